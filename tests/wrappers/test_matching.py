"""A page finds its wrapper by URL and signature, and each wrapper is told why it was chosen or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import siteloom.wrappers.matching
from siteloom.apps.demo.sites import directory_site, guide_site
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.model import Example, Footprint, Page
from siteloom.core.urls import site_of
from siteloom.html.page_scan import PageScan
from siteloom.learning.induction.learner import learn
from siteloom.templates.sampling import sample
from siteloom.templates.signature import Mask, scan
from siteloom.templates.url_patterns import matches
from siteloom.wrappers.matching import (
    NO_TAGS,
    NO_WRAPPER_FOR_SITE,
    NO_WRAPPER_FOR_URL,
    UNLIKE,
    Match,
    Matcher,
    NamedWrapper,
)
from siteloom.wrappers.safe_patterns import tells_pages_apart
from siteloom.wrappers.wrapper import Wrapper

ITEM = r"^https?://a\.example/item/[^/?#]+$"
ANY = r"^https?://a\.example/[^?#]*$"
URL = "http://a.example/item/1"
TYPICAL = "0102030405060708"


@pytest.fixture(autouse=True)
def pages_that_are_signatures() -> Iterator[None]:
    """In these tests a page may be nothing but its signature in hexadecimal."""

    def read(html: bytes) -> PageScan:
        found = scan(html)
        return found._replace(least_bytes=bytes.fromhex(html.decode())) if len(html) == 16 else found

    with mock.patch.object(siteloom.wrappers.matching, "scan", read):
        yield


def page(written: str, url: str = URL) -> Page:
    return Page(url, written.encode())


def wrapper(
    name: str,
    *masks: tuple[str, int],
    accepted: Sequence[str] = (TYPICAL,),
    patterns: Sequence[str] = (ITEM,),
    sites: Sequence[str] = ("a.example",),
) -> NamedWrapper:
    return NamedWrapper(
        name, None, Wrapper({}, footprint=Footprint(tuple(sites), tuple(patterns), masks, tuple(accepted)))
    )


def names(match: Match) -> list[str]:
    return [named.name for named in match.chosen]


def reason(match: Match) -> tuple[str, str]:
    assert match.failure is not None
    assert not match.chosen
    return match.failure.reason, match.failure.detail


# ---- the two steps


def test_a_page_is_for_the_wrapper_that_knows_its_url_and_its_signature() -> None:
    other = wrapper("other", patterns=[r"^https?://a\.example/list$"])
    match = Matcher([other, wrapper("own")]).match(page(TYPICAL, f"{URL}#top"))
    assert names(match) == ["own"]
    assert match.failure is None
    assert match.signature == bytes.fromhex(TYPICAL)
    assert (match.passed_url, match.passed_signature) == (1, 1)


def test_no_signature_is_computed_where_no_url_pattern_matches() -> None:
    matcher = Matcher([wrapper("own")])
    with mock.patch.object(siteloom.wrappers.matching, "scan", side_effect=AssertionError):
        elsewhere = matcher.match(page(TYPICAL, "http://b.example/item/1"))
        assert reason(elsewhere) == (NO_WRAPPER_FOR_SITE, "b.example")
        assert reason(matcher.match(page(TYPICAL, "http://a.example/"))) == (NO_WRAPPER_FOR_URL, "")
    assert elsewhere.signature is None


def test_a_page_without_tags_is_for_no_wrapper() -> None:
    match = Matcher([wrapper("own")]).match(Page(URL, b"no tags here"))
    assert reason(match) == (NO_TAGS, "")
    assert match.passed_url == 1


def test_a_wrapper_without_a_footprint_is_for_no_page() -> None:
    matcher = Matcher([NamedWrapper("old", 3, Wrapper({}))])
    assert reason(matcher.match(page(TYPICAL)))[0] == NO_WRAPPER_FOR_SITE
    (considered,) = matcher.explain(page(TYPICAL))
    assert considered.verdict == "It has no footprint and so is for no page: learn it again."


@pytest.mark.parametrize("url", ["", "no address", "http://[", "file:///x", "http://a.example\n"])
def test_odd_urls_are_for_no_wrapper(url: str) -> None:
    matcher = Matcher([wrapper("own")])
    assert not matcher.match(page(TYPICAL, url)).chosen
    assert matcher.explain(page(TYPICAL, url))


def test_the_mask_of_most_pages_wins_then_the_one_with_fewest_wildcards() -> None:
    only_accepted = wrapper("only accepted")
    small = wrapper("small", (TYPICAL, 9))
    wide = wrapper("wide", ("0102030405****08", 10))
    narrow = wrapper("narrow", (TYPICAL, 2), ("0102030405**0708", 10))
    assert names(Matcher([only_accepted, small]).match(page(TYPICAL))) == ["small"]
    assert names(Matcher([only_accepted, small, wide]).match(page(TYPICAL))) == ["wide"]
    match = Matcher([only_accepted, small, wide, narrow]).match(page(TYPICAL))
    assert names(match) == ["narrow"]
    assert match.passed_signature == 4


def test_wrappers_that_are_equally_good_are_all_chosen_in_their_order() -> None:
    equal = [wrapper(name, (TYPICAL, 5)) for name in "cab"]
    assert names(Matcher([*equal, wrapper("less", (TYPICAL, 4))]).match(page(TYPICAL))) == ["c", "a", "b"]


@pytest.mark.parametrize(("pattern", "needed"), [(ITEM, 4), (ANY, 6)])
def test_the_nearest_is_chosen_if_enough_bytes_agree(pattern: str, needed: int) -> None:
    nearest = wrapper("nearest", patterns=[pattern])
    farther = wrapper("farther", accepted=["ff" + TYPICAL[2:]], patterns=[pattern])
    matcher = Matcher([farther, nearest])
    near = TYPICAL[: 2 * needed] + "ee" * (8 - needed)
    match = matcher.match(page(near))
    assert names(match) == ["nearest"]
    assert match.passed_signature == 0
    far = TYPICAL[: 2 * needed - 2] + "ee" * (9 - needed)
    assert reason(matcher.match(page(far))) == (
        UNLIKE,
        f"{needed - 1} of 8 bytes agree with nearest, {needed} must",
    )


@pytest.mark.parametrize(
    ("pattern", "does"),
    [
        (r"^https?://a\.example/item/[^/?#]+$", True),
        (r"^https?://a\.example/[^/?#]+\.html$", True),
        (r"^https?://a\.example/\?id=[^&#]*$", True),
        (r"^https?://a\.example/[^?#]*$", False),
        (r"^https?://a\.example/[^/?#]+/[^/?#]+/$", False),
        (r"^https?://a\.example(?:/item)?(?:\?id=[^&#]*)?$", False),
        (r"^https?://(?:a\.example|b\.example)/[^/?#]+\?[^&#]*&[^&#]*$", False),
        ("not of the grammar", False),
    ],
)
def test_whether_a_pattern_tells_pages_of_a_host_apart(pattern: str, does: bool) -> None:
    assert tells_pages_apart(pattern) == does


# ---- any wrappers and pages

few_bytes = st.lists(st.sampled_from(["00", "01", "02"]), min_size=8, max_size=8)
signatures = few_bytes.map("".join)


@st.composite
def masks(draw: st.DrawFn) -> tuple[str, int]:
    chosen = draw(few_bytes)
    for place in draw(st.sets(st.integers(0, 7), max_size=2)):
        chosen[place] = "**"
    return "".join(chosen), draw(st.integers(1, 3))


PATTERNS = (
    *(ITEM, ANY, r"^https?://a\.example/[^/?#]+/[^/?#]+$", r"^https?://b\.example/item/[^/?#]+$"),
    *(r"^https?://b\.example(?:/)?(?:\?x=[^&#]*)?$", r"^https?://(?:a\.example|b\.example)/item/1$"),
)
SITES = ("a.example", "b.example")
footprints = st.builds(
    Footprint,
    sites=st.lists(st.sampled_from(SITES), max_size=2).map(tuple),
    url_patterns=st.lists(st.sampled_from(PATTERNS), max_size=3).map(tuple),
    masks=st.lists(masks(), max_size=3).map(tuple),
    accepted=st.lists(signatures, max_size=4).map(tuple),
)
any_wrappers = st.lists(footprints, max_size=6).map(
    lambda found: [
        NamedWrapper(str(number), number, Wrapper({}, footprint=footprint))
        for number, footprint in enumerate(found)
    ]
)
URLS = (
    URL,
    "https://a.example/list",
    "http://b.example/item/1",
    "http://b.example/?x=1",
    "http://c.example/",
)
any_pages = st.builds(page, signatures, st.sampled_from(URLS)) | st.builds(
    Page, st.sampled_from(URLS), st.just(b"")
)


def slowly_matched(wrappers: Sequence[NamedWrapper], one: Page) -> tuple[list[str], str | None]:
    """What the matcher is for, without any preparation: the names of the chosen, or a reason."""

    def agreeing(known: str) -> int:
        return sum(mine == other for mine, other in zip(bytes.fromhex(known), found, strict=True))

    of_site = [named for named in wrappers if site_of(one.url) in named.wrapper.footprint.sites]
    if not of_site:
        return [], NO_WRAPPER_FOR_SITE
    passed = [
        (named, patterns)
        for named in of_site
        if (patterns := [p for p in named.wrapper.footprint.url_patterns if matches(p, one.url)])
    ]
    if not passed:
        return [], NO_WRAPPER_FOR_URL
    if not one.html:
        return [], NO_TAGS
    found = bytes.fromhex(one.html.decode())
    ranks: dict[str, tuple[int, ...]] = {}
    for named, _ in passed:
        footprint = named.wrapper.footprint
        covering = [
            (-pages, mask.count("**"))
            for mask, pages in footprint.masks
            if Mask.from_text(mask).covers(found)
        ]
        if covering or found.hex() in footprint.accepted:
            ranks[named.name] = min(covering, default=(0, 0))
    if not ranks:
        for named, patterns in passed:
            needed = 4 if any(map(tells_pages_apart, patterns)) else 6
            agreement = max(map(agreeing, named.wrapper.footprint.accepted), default=0)
            if agreement >= needed:
                ranks[named.name] = (-agreement,)
    if not ranks:
        return [], UNLIKE
    return [name for name, rank in ranks.items() if rank == min(ranks.values())], None


@given(any_wrappers, any_pages)
def test_the_matcher_decides_as_a_slow_one_does(wrappers: list[NamedWrapper], one: Page) -> None:
    match = Matcher(wrappers).match(one)
    chosen, failure = slowly_matched(wrappers, one)
    assert names(match) == chosen
    assert (match.failure and match.failure.reason) == failure
    assert match.passed_signature <= match.passed_url <= len(wrappers)


@given(any_wrappers, any_pages)
def test_the_explanation_says_what_was_decided(wrappers: list[NamedWrapper], one: Page) -> None:
    matcher = Matcher(wrappers)
    match, considered = matcher.match(one), matcher.explain(one)
    assert {named.wrapper.name for named in considered if named.verdict.startswith("Chosen")} == set(
        names(match)
    )
    assert [each.rank for each in considered] == sorted(each.rank for each in considered)
    if match.chosen:
        assert [each.wrapper for each in considered if each.rank == 1] == list(match.chosen)
    of_site = [named for named in wrappers if site_of(one.url) in named.wrapper.footprint.sites]
    assert len(considered) == len(of_site or wrappers)
    assert sum(each.url_pattern is not None for each in considered) == match.passed_url
    for each in considered:
        assert each.verdict.endswith(".")
        assert (each.mask is None) == (each.mask_pages == 0)
        assert 0 <= each.agreement <= 8
        assert each.agreement == 8 or not each.is_accepted


# ---- explanations


def verdicts(matcher: Matcher, one: Page) -> dict[str, str]:
    return {each.wrapper.name: each.verdict for each in matcher.explain(one)}


MATCHES = "Its URL pattern matches"


def test_verdicts_are_plain_sentences() -> None:
    large = wrapper("large", ("0102030405**0708", 1_200))
    matcher = Matcher(
        [
            wrapper("list", patterns=[r"^https?://a\.example/list$"]),
            wrapper("other", accepted=["0102030405ffffff"]),
            wrapper("small", (TYPICAL, 9)),
            large._replace(version=2),
            wrapper("far", accepted=["ff" * 8]),
            wrapper("known"),
            wrapper("elsewhere", sites=["b.example"]),
        ]
    )
    merit = "1,200 of its pages are built like this one (7 of 8 bytes agree)"
    best = f"of large, version 2 {merit}."
    assert verdicts(matcher, page(TYPICAL)) == {
        "large": f"Chosen: {merit}.",
        "small": f"Not chosen: {merit.replace('1,200', '9').replace('7 of 8', '8 of 8')}, but {best}",
        "known": f"Not chosen: one of its pages is built just like this one, but {best}",
        "other": "Not chosen: one of its pages is built somewhat like this one "
        f"(5 of 8 bytes agree), but {best}",
        "far": f"{MATCHES}, but 0 of 8 bytes agree with the signatures of its pages, and 4 must.",
        "list": "None of its URL patterns matches.",
    }
    assert set(verdicts(matcher, Page(URL, b"")).values()) == {
        f"{MATCHES}, but the page has no tags.",
        "None of its URL patterns matches.",
    }
    assert verdicts(matcher, page(TYPICAL, "http://c.example/"))["elsewhere"] == (
        "It is for b.example, not for c.example."
    )


def test_equal_wrappers_are_told_that_their_records_decide() -> None:
    matcher = Matcher([wrapper("a"), wrapper("b")])
    best = "one of its pages is built just like this one"
    assert set(verdicts(matcher, page(TYPICAL)).values()) == {
        f"Chosen as well as 1 more, of which what they extract decides: {best}."
    }


def test_where_no_wrapper_is_of_the_site_the_most_alike_are_told_of() -> None:
    strangers = [wrapper(str(number), accepted=["ff" * 8]) for number in range(50)]
    considered = Matcher([*strangers, wrapper("alike")]).explain(page(TYPICAL, "http://b.example/"))
    assert len(considered) == 20
    assert considered[0].wrapper.name == "alike"
    assert considered[0].agreement == 8


def test_a_name_comes_with_its_version() -> None:
    named = NamedWrapper("a.example/1", None, Wrapper({}))
    assert str(named) == "a.example/1"
    assert str(named._replace(version=3)) == "a.example/1, version 3"


# ---- the built-in sites


def learned(name: str, pages: Sequence[BuiltinPage], unlabelled: Sequence[Page]) -> NamedWrapper:
    chosen = sample([one.page for one in pages], 5)
    examples = [Example(pages[place].page, pages[place].truth) for place in chosen]
    return NamedWrapper(name, None, learn(examples, unlabelled))


@pytest.fixture(scope="module")
def details() -> dict[str, list[BuiltinPage]]:
    guide, directory = guide_site(), directory_site()
    return {
        "restaurants": [one for one in guide if one.kind == "restaurant"],
        "events": [one for one in guide if one.kind == "event"],
        "places": [one for one in directory if one.kind == "restaurant"],
    }


@pytest.fixture(scope="module")
def detail_matcher(details: dict[str, list[BuiltinPage]]) -> Matcher:
    return Matcher(learned(name, pages, [one.page for one in pages]) for name, pages in details.items())


def test_details_get_their_wrapper(details: dict[str, list[BuiltinPage]], detail_matcher: Matcher) -> None:
    for name, pages in details.items():
        assert all(names(detail_matcher.match(one.page)) == [name] for one in pages)


def test_lists_get_none_if_only_details_have_wrappers(detail_matcher: Matcher) -> None:
    lists = [one.page for one in (*guide_site(), *directory_site()) if one.kind == "list"]
    assert len(lists) > 50
    assert {reason(detail_matcher.match(one))[0] for one in lists} == {NO_WRAPPER_FOR_URL}


def test_errors_and_redesigned_pages_get_none(
    details: dict[str, list[BuiltinPage]], detail_matcher: Matcher
) -> None:
    redesigned = [one.page for one in guide_site("redesign") if one.kind != "list"]
    assert {reason(detail_matcher.match(one))[0] for one in redesigned} == {UNLIKE}
    url = details["restaurants"][0].page.url
    error = b"<html><head><title>404</title></head><body><h1>Not found</h1><hr><p>No such page</body></html>"
    assert reason(detail_matcher.match(Page(url, error)))[0] == UNLIKE
    assert reason(detail_matcher.match(Page(url, b"Service unavailable")))[0] == NO_TAGS


def test_a_mild_change_does_not_lose_pages(detail_matcher: Matcher) -> None:
    changed = [one.page for one in guide_site("mild-change") if one.kind == "restaurant"]
    assert all(names(detail_matcher.match(one)) == ["restaurants"] for one in changed)
