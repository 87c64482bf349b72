"""Patterns match the addresses of a cluster, unseen ones of the same form, and hardly others."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.templates.url_patterns import PatternSet, matches, url_patterns
from tests.property_tests import fewer_examples

_ELEMENT = re.compile(
    r"\[\^(?P<excluded>[/?&#]+)\][+*] | \(\?: | \)\?? | \| | \\(?P<escaped>[\\.^$*+?{}\[\]|()])"
    r"| (?P<literal>[^\\.^$*+?{}\[\]|()])",
    re.VERBOSE | re.DOTALL,
)


def assert_linear(pattern: str) -> None:
    """Anchored; between a wildcard and the first character that ends it there are only literals."""
    assert pattern.startswith("^")
    assert pattern.endswith("$")
    inside = pattern[1:-1].replace("https?://", "https://")
    excluded = ""
    position = depth = 0
    while position < len(inside):
        element = _ELEMENT.match(inside, position)
        assert element is not None, f"unknown at {position} of {pattern}"
        position = element.end()
        depth += {"(?:": 1, ")": -1, ")?": -1}.get(element[0], 0)
        assert depth in (0, 1), "no group in a group"
        if element["excluded"]:
            assert not excluded, f"two wildcards in one place: {pattern}"
            excluded = element["excluded"]
        elif (element["escaped"] or element["literal"] or "nothing") in excluded:
            excluded = ""
    assert depth == 0
    assert len(pattern) < 20_000


def match_any(patterns: tuple[str, ...], url: str) -> bool:
    return any(matches(pattern, url) for pattern in patterns)


words = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)
numbers = st.integers(0, 99_999)
# So different that nothing is common to two of them by chance.
pairs = st.lists(
    st.tuples(numbers, words), min_size=3, max_size=12, unique_by=(lambda p: p[0], lambda p: p[1])
)

FAMILIES: dict[str, Callable[[int, str], str]] = {
    "file": lambda number, word: f"http://shop.example/product/{number}-{word}.html",
    "folder": lambda number, word: f"https://shop.example/{word}/item{number}/",
    "query": lambda number, word: f"http://shop.example/list?id={number}&cat={word}",
    "script": lambda number, word: f"http://www.shop.example:8080/a/file.asp?x={word}{number}",
    "session": lambda number, word: f"http://shop.example/show.do;jsessionid={number}{word}?p={word}",
    "empty value": lambda number, word: f"http://shop.example/s?q={word}{number}&page=",
}


@pytest.mark.parametrize("family", FAMILIES)
@given(pairs=pairs)
def test_unseen_urls_of_a_family_match_and_those_of_others_do_not(
    family: str, pairs: list[tuple[int, str]]
) -> None:
    url_of = FAMILIES[family]
    patterns = url_patterns([url_of(*pair) for pair in pairs[1:]])
    assert len(patterns) == 1
    assert match_any(patterns, url_of(*pairs[0]))
    assert match_any(patterns, url_of(*pairs[0]).replace("http:", "https:"))
    for other, other_url_of in FAMILIES.items():
        if other != family:
            assert not any(match_any(patterns, other_url_of(*pair)) for pair in pairs)


url_like = st.lists(
    st.sampled_from(
        ["http://", "https://", "ftp://", "//", "file:///", "a.example", "b.example", "/", "/", "?", "#", "&",
         "=", ".", "-", "x", "id", "12", "345", "%20", " ", "é", "\n", ":80", "@", "[::1]", "(.*)", "\\d+",
         "[", "{2}", "^", "$", "|", "\x00", "\ud800"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@given(st.lists(st.one_of(url_like, st.text(max_size=20)), max_size=12), st.randoms())
@example(["http://a.example", "http://a.example/", "http://a.example/b", "http://a.example/b/c?d"], random)
@example(["http://a.example/a-a", "http://a.example/a", "http://a.example/a-b-a"], random)
@example(["x?a", "x?a&b=1", "x", "x?b=1&a", "x?"], random)
def test_all_urls_match_whatever_they_are_and_in_any_order(urls: list[str], shuffling: random.Random) -> None:
    patterns = url_patterns(urls)
    assert len(patterns) <= 3
    assert all(match_any(patterns, url) for url in urls)
    for pattern in patterns:
        assert_linear(pattern)
    assert url_patterns(shuffling.sample(urls, len(urls)) + urls[:2]) == patterns


@given(st.lists(st.lists(url_like, min_size=1, max_size=4), max_size=6), st.lists(url_like, max_size=4))
@example([["http://a.example/x/1", "http://a.example/x/2"], ["http://a.example/y"]], ["http://a.example/y\n"])
@example(
    [["http://[::1]/x"], ["http://a(b/x"], ["http://a.example?x"], ["http://a.example"]], ["http://a(b/y"]
)
def test_patterns_together_match_what_they_match_one_by_one(
    clusters: list[list[str]], others: list[str]
) -> None:
    patterns = [pattern for urls in clusters for pattern in url_patterns(urls)]
    together = PatternSet(patterns)
    for url in [url for urls in clusters for url in urls] + others:
        expected = {number for number, pattern in enumerate(patterns) if matches(pattern, url)}
        assert together.matching(url) == expected


def test_hundreds_of_patterns_can_be_tried_together() -> None:
    together = PatternSet(rf"^https?://a\.example/{number}/[^/?#]+$" for number in range(500))
    assert together.matching("http://a.example/321/x") == {321}


@given(st.lists(st.tuples(words, numbers, words), min_size=33, max_size=60, unique=True))
@fewer_examples(4)
def test_many_forms_of_urls_give_few_patterns(parts: list[tuple[str, int, str]]) -> None:
    urls = [
        f"http://{host}.example" + f"/{host}" * (number % 20) + f"?{key}={number}"
        for host, number, key in parts
    ]
    patterns = url_patterns(urls)
    assert len(patterns) <= 3
    assert all(match_any(patterns, url) for url in urls)
    for pattern in patterns:
        assert_linear(pattern)


HOSTILE = [
    "http://a.example/" + "x" * 100_000,
    "http://a.example/" + "x-1/" * 25_000,
    "http://a.example/?" + "a=1&" * 25_000,
    "http://" + "a." * 50_000 + "example/",
    "http://a.example/" + ".html" * 20_000,
    "http://a.example/" + "%" * 100_000,
    "http://a.example/ /\t/\n",
    "http://[::1]:8080/a",
    "http://[",
    "http://10.0.0.1/a",
    "http://user:secret@a.example/a",
    "a.example/x",
    "/x/y",
    "x",
    "?",
    "",
    "file:///home/me/page.html",
    "http://á.example/ü?ö=ß",
    "mailto:me@a.example",
]


@pytest.mark.parametrize("url", HOSTILE, ids=lambda url: repr(url[:30]))
def test_hostile_urls_give_small_linear_patterns(url: str) -> None:
    for urls in ([url], [url, url + "1", url + "2/3"], HOSTILE):
        patterns = url_patterns(urls)
        for pattern in patterns:
            assert_linear(pattern)
        assert all(match_any(patterns, one) for one in urls)
        assert not match_any(url_patterns(["http://b.example/x/1", "http://b.example/x/2"]), url)


def test_the_check_of_the_form_finds_patterns_that_backtrack() -> None:
    for pattern in (
        "^a[^/?#]*b[^/?#]*$",
        "^(?:[^/?#]*)*$",
        "^(?:(?:a)?)?$",
        "^.*$",
        "a",
        "^/[^?#]*/[^/?#]+$",
    ):
        with pytest.raises(AssertionError):
            assert_linear(pattern)


def test_a_literal_is_nothing_but_itself() -> None:
    url = "http://a.example/x.(y)+[z]*/{1}^$|"
    (pattern,) = url_patterns([f"{url}/1.html", f"{url}/2.html"])
    assert matches(pattern, f"{url}/3.html")
    assert not matches(pattern, f"{url}/3xhtml")
    assert not matches(pattern, f"{url}/3.html\n")
    assert not matches(pattern, f"{url.replace('x.', 'xx')}/3.html")
    assert not matches(pattern, f"{url.replace('a.', 'ax')}/3.html")


def test_other_forms_do_not_match() -> None:
    (pattern,) = url_patterns([f"http://a.example/product/{n}-n{n}.html?id={n}" for n in range(5)])
    assert matches(pattern, "https://a.example/product/77-x.html?id=77#reviews")
    for other in (
        "http://a.example/product/77-x.html",
        "http://a.example/product/77/x.html?id=77",
        "http://a.example/product/77-x.html?id=77&page=2",
        "http://a.example/product/77-x.htm?id=77",
        "http://a.example/product/.html?id=77",
        "http://a.example/products/77-x.html?id=77",
        "http://a.example.evil.example/product/77-x.html?id=77",
        "http://evil.example/http://a.example/product/77-x.html?id=77",
        "http://evila.example/product/77-x.html?id=77",
        "ftp://a.example/product/77-x.html?id=77",
        "",
    ):
        assert not matches(pattern, other)


def test_many_hosts_of_a_site_match_and_no_other_site() -> None:
    hosts = ["blog.example", *(f"user{n}.blog.example" for n in range(40))]
    (pattern,) = url_patterns([f"http://{host}/post/{n}.html" for n, host in enumerate(hosts)])
    assert pattern == r"^https?://(?:[^/?#]*\.)?blog\.example/post/[^/?#]+\.html$"
    assert matches(pattern, "http://unseen.blog.example/post/x.html")
    assert not matches(pattern, "http://evilblog.example/post/x.html")


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param(
            ["http://a.example/p/12-x.html", "http://a.example/p/34-y.html"],
            [r"^https?://a\.example/p/[^/?#]+\.html$"],
            id="a file name keeps its end",
        ),
        pytest.param(
            ["http://a.example/p/1234", "http://a.example/p/1278"],
            [r"^https?://a\.example/p/[^/?#]+$"],
            id="numbers and words are common as a whole or not at all",
        ),
        pytest.param(
            ["http://a.example/ab-1/x", "http://a.example/ab-2/x", "http://a.example/ab-/x"],
            [r"^https?://a\.example/ab-[^/?#]*/x$"],
            id="what was empty may be empty",
        ),
        pytest.param(
            ["http://a.example/p-1/x", "http://a.example/p-2/x"],
            [r"^https?://a\.example/[^/?#]+/x$"],
            id="short affixes are left out",
        ),
        pytest.param(
            ["http://a.example/p-1", "http://a.example/p-2"],
            [r"^https?://a\.example/p-[^/?#]+$"],
            id="unless there is nothing else",
        ),
        pytest.param(
            ["http://a.example/x?id=1&cat=new", "http://a.example/x?id=2&cat=new"],
            [r"^https?://a\.example/x\?id=[^&#]*&cat=new$"],
            id="a query keeps its names and what never changes",
        ),
        pytest.param(
            [f"http://a.example/2010_{word}/v2-{word}/x3?y=5&id={word}" for word in ("a", "b", "c")],
            [r"^https?://a\.example/[^/?#]+/[^/?#]+/[^/?#]+\?y=[^&#]*&id=[^&#]*$"],
            id="few urls say nothing of numbers",
        ),
        pytest.param(
            [f"http://a.example/2010_{word}/v2-{word}/x3?y=5&id={word}" for word in "abcdefghij"],
            [r"^https?://a\.example/2010_[^/?#]+/v2-[^/?#]+/x3\?y=5&id=[^&#]*$"],
            id="ten do",
        ),
        pytest.param(
            ["http://a.example/x?i=1", "http://a.example/x?i=2"],
            [r"^https?://a\.example/x\?i=[^&#]*$"],
            id="a name may be short",
        ),
        pytest.param(
            ["http://a.example/shop/2010/12-name.html"],
            [r"^https?://a\.example/shop/[^/?#]+/[^/?#]+$"],
            id="one url says nothing of numbers and of its last segment",
        ),
        pytest.param(
            ["http://a.example/cars-2010-used/bmw/?page=2&q"],
            [r"^https?://a\.example/cars-[^/?#]+-used/[^/?#]+/\?page=[^&#]*&[^&#]*$"],
            id="nor of its values",
        ),
        pytest.param(
            ["http://a.example/x/1.html", "https://www.a.example/x/2.html", "http://b.example/y/z"],
            [
                r"^https?://a\.example/x/[^/?#]+$",
                r"^https?://b\.example/y/[^/?#]+$",
                r"^https?://www\.a\.example/x/[^/?#]+$",
            ],
            id="up to three forms stay apart",
        ),
        pytest.param(
            [f"http://{host}.example/x/{n}.html" for host in ("m.a", "www.a", "w.a", "a") for n in (1, 2)],
            [
                r"^https?://(?:m\.a\.example|w\.a\.example)/x/[^/?#]+\.html$",
                r"^https?://a\.example/x/[^/?#]+\.html$",
                r"^https?://www\.a\.example/x/[^/?#]+\.html$",
            ],
            id="forms that lose least are merged",
        ),
        pytest.param(
            [
                *(f"http://a.example/x/{n}.html" for n in range(5)),
                *(f"http://a.example/y/{n}/z.html" for n in range(5)),
                *("http://a.example/x/one.html?s=1", "http://a.example/x/one.html?s=2"),
                *("http://a.example/x/one.html?s=1&t=1", "http://a.example/x/one.html?s=2&t=2"),
            ],
            [
                r"^https?://a\.example/x/one\.html\?s=[^#]*$",
                r"^https?://a\.example/x/[^/?#]+\.html$",
                r"^https?://a\.example/y/[^/?#]+/z\.html$",
            ],
            id="the rest of a query is left open",
        ),
        pytest.param(
            [f"http://a.example/p/{'x/' * (n % 4)}{n}.html" for n in range(16)]
            + [f"http://a.example/p/q/{n}?r={n}" for n in range(500)]
            + [f"http://a.example/s/{n}?t={n}" for n in range(500)],
            [
                r"^https?://a\.example/p/[^?#]+\.html$",
                r"^https?://a\.example/p/q/[^/?#]+\?r=[^&#]*$",
                r"^https?://a\.example/s/[^/?#]+\?t=[^&#]*$",
            ],
            id="the rest of a path is left open",
        ),
        pytest.param(
            ["http://a.example", "http://a.example/", "https://a.example?x=1", "http://a.example/?x=2"],
            [
                r"^https?://a\.example(?:/)?$",
                r"^https?://a\.example\?x=[^&#]*$",
                r"^https?://a\.example/\?x=[^&#]*$",
            ],
            id="a path or a query may be missing",
        ),
        pytest.param(
            ["http://a.example/x/1#top", "http://a.example/x/1#end", "http://a.example/x/2"],
            [r"^https?://a\.example/x/[^/?#]+$"],
            id="fragments mean nothing",
        ),
        pytest.param(
            ["file:///home/me/1.html", "file:///home/me/2.html"],
            [r"^file:///home/me/[^/?#]+\.html$"],
            id="files",
        ),
    ],
)
def test_what_is_kept_of_urls(urls: list[str], expected: list[str]) -> None:
    assert list(url_patterns(urls)) == sorted(expected)
