"""What the built-in sites promise about themselves."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from siteloom.apps.demo.sites import CHANGING_ATTRIBUTES, guide_site
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.errors import UsageError
from tests.apps.demo.absolute_path_vote import normalised
from tests.apps.demo.sites import all_sites, directory, guide, of_kind, parsed, texts_and_attributes

SITES = ("original", "redesign", "mild-change", "directory")

DIGEST_OF_ALL_SITES = """
import hashlib
from siteloom.apps.demo.sites import directory_site, guide_site
digest = hashlib.sha256()
for site in (*map(guide_site, ("original", "redesign", "mild-change")), directory_site()):
    for page in site:
        digest.update(repr(page).encode())
print(digest.hexdigest())
"""


def test_two_processes_with_different_hash_seeds_make_the_same_sites() -> None:
    here = hashlib.sha256()
    for site in all_sites().values():
        for page in site:
            here.update(repr(page).encode())
    elsewhere = [
        subprocess.run(
            [sys.executable, "-c", DIGEST_OF_ALL_SITES],
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    ]
    assert elsewhere == [here.hexdigest()] * 2


def test_another_seed_makes_another_site() -> None:
    assert {p.page.html for p in guide_site(seed=1)}.isdisjoint(p.page.html for p in guide())


def test_an_unknown_layout_is_refused() -> None:
    with pytest.raises(UsageError, match="mild-change"):
        guide_site("modern")  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", ["original", "redesign", "mild-change"])
def test_the_guide_has_three_kinds_of_pages(layout: str) -> None:
    kinds = Counter(page.kind for page in all_sites()[layout])
    assert kinds.keys() == {"restaurant", "event", "list"}
    assert kinds["restaurant"] == 240
    assert kinds["event"] == 120
    assert 30 <= kinds["list"] <= 50


def test_the_directory_has_restaurants_and_lists() -> None:
    kinds = Counter(page.kind for page in directory())
    assert kinds.keys() == {"restaurant", "list"}
    assert kinds["restaurant"] == 200
    assert kinds["list"] >= 8


@pytest.mark.parametrize("site", SITES)
def test_addresses_are_unique_and_under_example(site: str) -> None:
    urls = [page.page.url for page in all_sites()[site]]
    assert len(set(urls)) == len(urls)
    assert all((urlsplit(url).hostname or "").endswith(".example") for url in urls)


@pytest.mark.parametrize("site", SITES)
def test_pages_are_full_documents_of_their_time(site: str) -> None:
    for page in all_sites()[site]:
        fetched_at = page.page.fetched_at
        assert fetched_at is not None
        assert fetched_at.utcoffset() == timedelta(0)
        assert page.page.html.startswith(b"<!DOCTYPE html>")
        assert 7_000 < len(page.page.html) < 40_000


@pytest.mark.parametrize("site", SITES)
def test_every_true_value_can_be_found_on_its_page(site: str) -> None:
    for page in all_sites()[site]:
        on_page = texts_and_attributes(parsed(page))
        values = {value for values in page.truth.values() for value in values}
        assert values == {normalised(value) for value in values}
        assert values <= on_page, (page.page.url, values - on_page)


@pytest.mark.parametrize("site", SITES)
def test_only_detail_pages_have_truth_and_only_lists_have_records(site: str) -> None:
    for page in all_sites()[site]:
        is_list = page.kind == "list"
        assert bool(page.records) == is_list
        assert bool(page.truth) != is_list
        assert (page.entity is None) == is_list


def test_a_missing_fact_leaves_no_row_behind() -> None:
    labels = {
        "Phone:": "phone",
        "Average main:": "price",
        "Opening hours:": "hours",
        "Opened:": "opened",
        "E-mail:": "email",
        "Website:": "website",
    }
    for page in of_kind(guide(), "restaurant"):
        (record,) = parsed(page).xpath("//div[starts-with(@id, 'venue-')]")
        shown = labels.keys() & texts_and_attributes(record)
        assert shown == {label for label, name in labels.items() if page.truth[name]}


@pytest.mark.parametrize("site", SITES)
def test_names_identify_detail_pages(site: str) -> None:
    for kind, attribute in (("restaurant", "name"), ("event", "title")):
        names = [p.truth[attribute] for p in all_sites()[site] if p.kind == kind]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("site", SITES)
def test_lists_hold_their_records_in_page_order(site: str) -> None:
    details = {urlsplit(p.page.url).path for p in of_kind(all_sites()[site], "restaurant")}
    for page in of_kind(all_sites()[site], "list"):
        links = [a for a in parsed(page).iter("a") if a.get("href") in details]
        assert [normalised(a.text or "") for a in links] == [r["name"][0] for r in page.records]
        assert texts_and_attributes(parsed(page)) >= {
            value for record in page.records for values in record.values() for value in values
        }


def test_lists_leave_out_some_facts_and_carry_sponsored_cards() -> None:
    lists = of_kind(guide(), "list")
    records = [record for page in lists for record in page.records]
    for attribute in ("price", "rating"):
        assert 0.05 < sum(not record[attribute] for record in records) / len(records) < 0.4
    assert any(b'class="spons"' in page.page.html for page in lists)
    assert any(b">Next</a>" in page.page.html for page in lists)
    assert sum(12 <= len(page.records) <= 20 for page in lists) / len(lists) > 0.8


def by_url(site: tuple[BuiltinPage, ...]) -> dict[str, BuiltinPage]:
    return {page.page.url: page for page in site}


def constant(page: BuiltinPage) -> dict[str, tuple[str, ...]]:
    return {name: page.truth[name] for name in page.truth if name not in CHANGING_ATTRIBUTES}


def test_the_redesign_tells_the_same_facts_at_the_same_addresses() -> None:
    before, after = by_url(guide()), by_url(guide("redesign"))
    assert list(before) == list(after)
    for url, page in before.items():
        assert constant(page) == constant(after[url])
        assert page.entity == after[url].entity
        assert page.page.fetched_at < after[url].page.fetched_at  # type: ignore[operator]
        names = [record["name"] for record in page.records]
        assert names == [record["name"] for record in after[url].records]


def test_changing_attributes_do_change_with_the_redesign() -> None:
    pairs = list(zip(of_kind(guide(), "restaurant"), of_kind(guide("redesign"), "restaurant"), strict=True))
    for attribute in CHANGING_ATTRIBUTES:
        assert any(a.truth[attribute] != b.truth[attribute] for a, b in pairs)
    assert sum(a.truth["price"] != b.truth["price"] for a, b in pairs) < len(pairs) / 4


def test_the_redesign_shares_no_class_or_id_with_the_original() -> None:
    def names(site: tuple[BuiltinPage, ...]) -> set[str]:
        return {str(name) for page in site[::40] for name in parsed(page).xpath("//@class | //@id")}

    assert names(guide()).isdisjoint(names(guide("redesign")))


def test_the_mild_change_only_moves_the_phone_of_restaurants() -> None:
    for before, after in zip(guide(), guide("mild-change"), strict=True):
        assert (before.truth, before.records, before.entity) == (
            after.truth,
            after.records,
            after.entity,
        )
        has_phone = bool(before.truth.get("phone"))
        assert (before.page != after.page) == (before.kind == "restaurant" and has_phone)
        assert without_phone(before) == without_phone(after)


def without_phone(page: BuiltinPage) -> str:
    """The page without the lines that show its own phone, in either layout."""
    html = page.page.html.decode()
    if page.kind != "restaurant" or not page.truth["phone"]:
        return html
    (phone,) = page.truth["phone"]
    unbroken = phone.replace(" ", "&nbsp;")
    facts = (f"<dt>Phone:</dt>\n<dd>{unbroken}</dd>\n", f"<TR><TD class=lbl>Phone:<TD>{phone}\n")
    number = f"+44{phone[1:].replace(' ', '')}"
    call = f'<p class="call"><b>Call us</b> <a href="tel:{number}">{phone}</a></p>\n'
    removed = [line for line in (*facts, call) if line in html]
    assert len(removed) == 1, page.page.url
    return html.replace(removed[0], "", 1)


def test_the_two_sites_share_restaurants_under_other_spellings() -> None:
    ours = {page.entity: page for page in of_kind(guide(), "restaurant")}
    theirs = {page.entity: page for page in of_kind(directory(), "restaurant")}
    shared = ours.keys() & theirs.keys()
    assert len(shared) == 130
    assert len(theirs) == 200
    spelled_alike = sum(ours[key].truth["name"] == theirs[key].truth["name"] for key in shared)
    assert 0.5 < spelled_alike / len(shared) < 0.9
    synonyms = sum(ours[key].truth["cuisine"] != theirs[key].truth["cuisine"] for key in shared)
    assert 0.1 < synonyms / len(shared) < 0.6
    for key in shared:
        assert ours[key].truth["address"] != theirs[key].truth["address"]
        assert bool(ours[key].truth["phone"]) == bool(theirs[key].truth["phone"])
