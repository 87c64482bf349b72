"""Keys and folder names: different things have different ones."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from siteloom.store.keys import address_key, content_hash, folder_name, url_key

HOSTILE = ["..", ".", "", "../x", "a/b", "/etc", "~root", "con", "a\\b", "a b", "a\nb", "é.example", "%", "-"]
HOSTILE += ["A.example", "a.example", "a.EXAMPLE", "x" * 300, "x" * 299 + "y", "é" * 300, ".hidden", "%2e"]


def test_hostile_site_names_get_folders_of_their_own() -> None:
    names = [folder_name(site) for site in HOSTILE]
    assert len({name.casefold() for name in names}) == len(HOSTILE)


@given(st.text(st.characters(codec="utf-8")) | st.sampled_from(HOSTILE))
def test_a_folder_name_is_one_plain_name_that_every_file_system_takes(site: str) -> None:
    name = folder_name(site)
    assert name.isascii()
    assert 0 < len(name) < 255
    assert not name.startswith(".")
    assert not set(name) & set('/\\\0\n :*?"<>|')


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_two_sites_never_share_a_folder_even_where_case_does_not_count(one: str, other: str) -> None:
    assume(one != other)
    assert folder_name(one).casefold() != folder_name(other).casefold()


@pytest.mark.parametrize("site", ["guide.example", "xn--caf-dma.example", "127.0.0.1", "a_b-c.example"])
def test_the_folder_of_an_ordinary_site_has_its_name(site: str) -> None:
    assert folder_name(site) == site


def test_the_same_url_in_two_sites_has_two_keys() -> None:
    assert url_key("a", "http://x/") != url_key("b", "http://x/")


@pytest.mark.parametrize(
    "other", [("a", "b\nc"), ("a b", "c"), ("", "a\nb\nc"), ("a\nb\n", "c"), ("5", "a\nb c")]
)
def test_site_and_url_cannot_be_mistaken_for_another_pair(other: tuple[str, str]) -> None:
    assert url_key("a\nb", "c") != url_key(*other)


def test_an_address_that_no_page_can_have_has_a_key_nevertheless() -> None:
    assert url_key("a", "http://x/\ud800") != url_key("a", "http://x/?")


def test_content_is_known_by_its_bytes_and_type() -> None:
    assert content_hash("text/html", b"x") == content_hash("text/html", b"x")
    assert content_hash("text/html", b"x") != content_hash("text/html", b"y")
    assert content_hash("text/html", b"x") != content_hash("text/css", b"x")


def test_an_address_has_one_key_whatever_stands_in_it() -> None:
    addresses = ["", "http://a.example/", "http://a.example/\0", "http://a.example/\ud800", "x" * 10_000]
    assert len({address_key(address) for address in addresses}) == len(addresses)
    assert {len(address_key(address)) for address in addresses} == {16}
