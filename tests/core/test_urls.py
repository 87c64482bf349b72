"""Which site an address belongs to, and what it looks like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.urls import LOCAL_SITE, site_of, url_shape


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("http://example.com/", "example.com"),
        ("https://www.shop.example.com:8080/a?b#c", "example.com"),
        ("http://WWW.Example.COM/", "example.com"),
        ("http://user:password@www.example.com/", "example.com"),
        ("http://example.com./", "example.com"),
        ("http://www.example.co.uk/", "example.co.uk"),
        ("http://a.b.city.kawasaki.jp/", "city.kawasaki.jp"),  # an exception of the list
        ("http://someone.github.io/", "someone.github.io"),  # a private suffix
        ("http://www.bücher.example/", "bücher.example"),
        ("http://www.xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("http://192.0.2.1:80/a", "192.0.2.1"),
        ("http://[2001:db8::1]/a", "2001:db8::1"),
        ("http://intranet/a", "intranet"),
        ("http://co.uk/", "co.uk"),
        ("//www.example.com/a", "example.com"),
    ],
)
def test_the_site_is_the_registered_domain(url: str, site: str) -> None:
    assert site_of(url) == site


@pytest.mark.parametrize(
    "url", ["", "file:///tmp/a.html", "a.html", "mailto:a@example.com", "http://", "http://[", "http:///a"]
)
def test_an_address_without_a_host_belongs_to_the_local_site(url: str) -> None:
    assert site_of(url) == LOCAL_SITE


@given(st.text() | st.text().map(lambda host: f"http://{host}/"))
def test_any_text_has_a_site(url: str) -> None:
    assert site_of(url)


@given(
    st.text("ab1.-", min_size=1), st.text("/?#@:[]\\ \n\tü", max_size=6), st.sampled_from(["http", "https"])
)
def test_the_common_form_of_a_url_is_read_as_any_other(host: str, rest: str, scheme: str) -> None:
    url = f"://{host}{rest}"
    assert site_of(scheme + url) == site_of(scheme.upper() + url)


@given(st.from_regex(r"[a-z0-9]{1,8}(\.[a-z0-9]{1,8}){0,4}", fullmatch=True))
def test_a_site_is_its_own_site(host: str) -> None:
    site = site_of(f"http://{host}/")
    assert host.endswith(site)
    assert site_of(f"http://{site}/") == site


@pytest.mark.parametrize(
    ("url", "shape"),
    [
        ("https://a.example/item/a-lamp-12.html", "a.example/item/*.html"),
        ("http://a.example/item/12", "a.example/item/*"),
        ("https://a.example/2024/05/news/", "a.example/#/#/news/"),
        ("https://a.example/about", "a.example/about"),
        ("https://a.example/page12", "a.example/page#"),
        ("https://a.example/", "a.example/"),
        ("https://a.example", "a.example"),
        ("https://a.example:8080/x/y", "a.example:8080/x/*"),
        ("http://127.0.0.1:8080/12/y", "127.0.0.1:8080/#/*"),
        ("https://a.example/find?q=lamp&page=2#top", "a.example/find?page&q"),
        ("https://a.example/find?page=3&q=http://b.example/c", "a.example/find?page&q"),
        ("https://a.example/?a=1&a=2", "a.example/?a"),
        ("https://a.example/x?", "a.example/x"),
        ("file:///home/me/pages/12.html", "/home/me/pages/*.html"),
        ("crawl.jsonl:12", "crawl.jsonl:#"),
        ("", ""),
    ],
)
def test_what_differs_between_pages_of_a_kind_is_not_part_of_their_shape(url: str, shape: str) -> None:
    assert url_shape(url) == shape


@given(st.text())
def test_any_text_has_a_shape_that_numbers_behind_the_host_do_not_change(url: str) -> None:
    address = "http://a7.example/" + url
    assert url_shape(address) == url_shape(address.replace("7", "123")).replace("a123", "a7", 1)
    assert url_shape(url.replace("://", "")) == url_shape(url.replace("://", "").replace("7", "123"))
