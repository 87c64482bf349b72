"""Each page finds its wrapper and gives records, or is a failure with a reason; all is counted."""

from __future__ import annotations

import json
import pickle
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from siteloom import Example, Page, Wrapper, learn
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.errors import UnreadablePage, WrapperError
from siteloom.core.model import Attribute, Failure, Footprint, Record, Resource, Skipped
from siteloom.core.settings import ParseSettings
from siteloom.extraction.extraction_counts import ExtractionCounts, PageCounts
from siteloom.extraction.extractor import (
    BROKEN,
    LACKING,
    NO_VALUES,
    Extractor,
)
from siteloom.extraction.shard_extraction import ShardExtraction, ShardResult
from siteloom.html.guards import RECORDS_TOO_LARGE, TOO_MANY_RECORDS
from siteloom.html.time_limit import LOST, TOOK_TOO_LONG, Lost
from siteloom.sources.page_source import Items, SourceItem
from siteloom.wrappers.matching import NO_WRAPPER_FOR_SITE, NO_WRAPPER_FOR_URL, NamedWrapper
from siteloom.wrappers.named_wrappers import read_wrapper
from tests.apps.demo.sites import directory, guide, of_kind

NAMES = ("name", "address", "cuisine", "phone")
RESTAURANTS = of_kind(guide(), "restaurant")
LISTS = of_kind(guide(), "list")


@cache
def restaurants() -> Wrapper:
    examples = [Example(page.page, truth(page)) for page in RESTAURANTS[:5]]
    return learn(examples, [page.page for page in RESTAURANTS[:80]])


@cache
def lists() -> Wrapper:
    records = [{name: list(texts) for name, texts in record.items()} for record in LISTS[0].records[:3]]
    return learn([Example(LISTS[0].page, records=records)], [page.page for page in LISTS])


def truth(page: BuiltinPage) -> dict[str, list[str]]:
    assert page.truth is not None
    return {name: list(page.truth[name]) for name in NAMES}


def pages(site: Sequence[BuiltinPage]) -> list[Page]:
    return [page.page for page in site]


def extractor(*wrappers: Wrapper) -> Extractor:
    return Extractor([NamedWrapper(f"w{number}", 1, one) for number, one in enumerate(wrappers)])


def named(wrapper: Wrapper, name: str = "food") -> NamedWrapper:
    return NamedWrapper(name, None, wrapper)


def work(
    items: Sequence[SourceItem],
    *wrappers: NamedWrapper,
    lost: dict[int, str] | None = None,
    limits: ParseSettings = ParseSettings(),
) -> ShardResult:
    steps: list[int] = []
    result = ShardExtraction(wrappers, limits)(Items(items), Lost(lost or {}), steps.append)
    assert steps == list(range(len(items) + 1))  # to read an item is part of its step
    return result


def assert_all_counted(result: ShardResult) -> None:
    """Every page has given records or a failure, and the tally agrees with what came out."""
    counts = result.counts
    giving = len({row.url for row in result.rows})
    assert counts.pages == giving + len(result.failures)
    assert counts.records == len(result.rows)
    assert counts.failures == Counter(failure.reason for failure in result.failures)
    rows = [json.loads(row.content) for row in result.rows]
    for name, of_wrapper in counts.wrappers.items():
        own = [row for row in rows if row["wrapper"] == name]
        assert of_wrapper.filled == Counter(attribute for row in own for attribute in row["values"])
        assert of_wrapper.withheld == Counter(attribute for row in own for attribute in row["withheld"])
    assert counts.wrappers.keys() == {row["wrapper"] for row in rows}


# ---- the built-in sites


def test_only_the_pages_of_its_template_give_what_the_wrapper_finds_there() -> None:
    one = extractor(restaurants())
    for page in guide():
        found = one.extract(page.page)
        if page.kind == "restaurant":
            assert found.failure is None
            assert found.records == (restaurants().extract(page.page),)
        else:
            assert found.records == ()
            assert found.failure == Failure(page.page.url, NO_WRAPPER_FOR_URL)
    for page in directory():
        reason = one.extract(page.page).failure
        assert reason == Failure(page.page.url, NO_WRAPPER_FOR_SITE, "tableatlas.example")


def test_odd_pages_with_the_urls_of_its_pages_give_no_record() -> None:
    url = RESTAURANTS[0].page.url
    one = extractor(restaurants())
    odd = {
        "of another site": replace(directory()[0].page, url=url),
        "an error": Page.from_text(url, "<html><body><h1>404 Not Found</h1><p>Sorry.</body></html>"),
        "text": Page.from_text(url, "gone"),
        "nothing": Page(url, b""),
        "bytes": Page(url, bytes(range(256)) * 40),
    }
    for what, page in odd.items():
        found = one.extract(page)
        assert found.failure is not None, what
        assert found.failure.reason


def test_lists_and_single_pages_side_by_side() -> None:
    result = work(pages(guide()), named(restaurants()), named(lists(), "lists"))
    assert_all_counted(result)
    expected = [
        (record.url, name, record.values)
        for page in guide()
        for name, wrapper in (("food", restaurants()), ("lists", lists()))
        if page.kind == ("restaurant" if name == "food" else "list")
        for record in wrapper.extract_all(page.page)
    ]
    rows = [json.loads(line.content) for line in result.rows]
    assert [
        (row["url"], row["wrapper"], {name: tuple(texts) for name, texts in row["values"].items()})
        for row in rows
    ] == expected
    assert [(line.url, line.wrapper, line.version) for line in result.rows] == [
        (row["url"], row["wrapper"], row["version"]) for row in rows
    ]
    # Events have no wrapper, and what their URLs look like is told.
    assert result.counts.unmatched_shapes == {
        "www.larkmoor-guide.example/events/#/#/*.html": len(of_kind(guide(), "event")),
    }
    assert result.counts.total.passed_url >= len(RESTAURANTS) + len(LISTS)


def test_what_is_counted_is_told_site_by_site() -> None:
    known = [one.page for one in (*RESTAURANTS[:5], *of_kind(guide(), "event")[:3])]
    elsewhere = Page.from_text("https://x.org/", "<p>x")
    result = work([*known, elsewhere, SHOP[0]], named(restaurants()), named(shop()))
    here = result.counts.sites["larkmoor-guide.example"]
    assert here == PageCounts(8, here.passed_url, 5, Counter({NO_WRAPPER_FOR_URL: 3}), 3)
    assert result.counts.sites["shop.example"].pages == 1
    assert "x.org" not in result.counts.sites  # of sites without wrappers, a crawl may have millions
    assert result.counts.pages == 10


# ---- which wrapper


SHAPE = "<html><body><h1 class=name>{}</h1><p class=price>{}</p>{}<footer>x</footer></body></html>"
SHOP = [
    Page.from_text(f"https://shop.example/item/{n}", SHAPE.format(f"Item {n}", f"${n}.50", ""))
    for n in range(9)
]


@cache
def shop(*, mandatory: bool | None = True) -> Wrapper:
    examples = [Example(SHOP[n], {"name": [f"Item {n}"], "price": [f"${n}.50"]}) for n in range(1, 5)]
    schema = {name: Attribute(mandatory=mandatory, type="text") for name in ("name", "price")}
    return learn(examples, SHOP, schema)


def blind(wrapper: Wrapper, *names: str) -> Wrapper:
    """The wrapper with the rules of some attributes turned into those that find nothing."""
    rules = {
        name: replace(found, rules=(), voters=()) if name in names else found
        for name, found in wrapper.attributes.items()
    }
    return replace(wrapper, attributes=rules)


def test_of_equal_wrappers_the_one_that_finds_most_mandatory_attributes_is_taken() -> None:
    half = blind(shop(), "price")
    for wrappers, winner in (((half, shop()), "w1"), ((shop(), half), "w0"), ((shop(), shop()), "w0")):
        found = extractor(*wrappers).extract(SHOP[7])
        assert [one.name for one in found.match.chosen] == ["w0", "w1"]
        assert found.wrapper is not None
        assert found.wrapper.name == winner
        assert found.records[0].values == {"name": ("Item 7",), "price": ("$7.50",)}
    # What is not mandatory does not count.
    optional = blind(shop(mandatory=False), "price")
    assert optional.footprint == shop().footprint
    found = extractor(optional, blind(shop(), "name", "price")).extract(SHOP[7])
    assert found.wrapper is not None
    assert found.wrapper.name == "w0"


# ---- pages that give no record


def test_a_record_that_lacks_most_mandatory_attributes_is_a_failure() -> None:
    nothing = extractor(blind(shop(), "name", "price")).extract(SHOP[0])
    assert nothing.failure == Failure(SHOP[0].url, NO_VALUES, "found by w0, version 1")
    half = extractor(blind(shop(), "price")).extract(SHOP[0])
    assert half.failure is None
    attributes = dict(shop().attributes)
    three = {**attributes, "size": replace(attributes["price"], rules=(), voters=())}
    lacking = extractor(blind(replace(shop(), attributes=three), "price")).extract(SHOP[0])
    assert lacking.failure == Failure(SHOP[0].url, LACKING, "1 of 3 found by w0, version 1")
    result = work(SHOP, named(replace(shop(), attributes=three)))
    assert result.counts.wrappers["food"].incomplete == len(SHOP)
    assert_all_counted(result)


def test_a_page_that_cannot_be_parsed_is_a_failure() -> None:
    result = work(SHOP, named(shop()), limits=ParseSettings(max_tags=3))
    assert not result.rows
    assert {failure.reason for failure in result.failures} == {"too many tags"}
    assert_all_counted(result)
    assert not result.counts.unmatched_shapes


def test_a_page_that_breaks_extraction_is_a_failure_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = Wrapper.record_of

    def breaking(self: Wrapper, root: object, url: str, *more: object) -> object:
        if url == SHOP[2].url:
            raise RecursionError("too deep")
        return original(self, root, url, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(Wrapper, "record_of", breaking)
    result = work(SHOP, named(shop()))
    assert result.failures == [Failure(SHOP[2].url, BROKEN, "RecursionError('too deep')")]
    assert [line.url for line in result.rows] == [page.url for page in SHOP if page != SHOP[2]]
    assert_all_counted(result)


def test_a_record_that_cannot_be_written_is_a_failure_of_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("siteloom.extraction.shard_extraction.record_row", lambda *_: {"values": object()})
    result = work(SHOP[:2], named(shop()))
    assert [failure.reason for failure in result.failures] == [BROKEN, BROKEN]
    assert (result.rows, result.counts.records) == ([], 0)


def test_a_page_at_which_a_process_died_is_a_failure() -> None:
    result = work(SHOP, named(shop()), lost={4: "was ended by SIGKILL"})
    assert result.failures == [Failure(SHOP[4].url, LOST, "the process was ended by SIGKILL")]
    assert len(result.rows) == len(SHOP) - 1
    assert_all_counted(result)


def test_a_page_at_which_a_process_was_ended_for_its_time_took_too_long() -> None:
    result = work(SHOP, named(shop()), lost={4: "was ended by SIGVTALRM"})
    assert result.failures == [Failure(SHOP[4].url, TOOK_TOO_LONG, "the process was ended by SIGVTALRM")]
    assert_all_counted(result)


# ---- limits


def endless_list() -> Page:
    """A list page with some thousand records, which take seconds."""
    page = LISTS[0].page
    start, body, rest = re.split(rb"(?s)(<body[^>]*>.*)(?=</body>)", page.html)
    return replace(page, html=start + body * 150 + rest)


LIMITS = [
    (ParseSettings(max_seconds=0.3), TOOK_TOO_LONG),
    (ParseSettings(max_records=300), TOO_MANY_RECORDS),
    (ParseSettings(max_characters=300_000), RECORDS_TOO_LARGE),
]


@pytest.mark.parametrize(("limits", "reason"), LIMITS)
def test_a_page_past_a_limit_is_a_failure_and_counted(limits: ParseSettings, reason: str) -> None:
    hostile = endless_list()
    result = work([LISTS[1].page, hostile, LISTS[2].page], named(lists(), "list"), limits=limits)
    assert [(failure.url, failure.reason) for failure in result.failures] == [(hostile.url, reason)]
    assert {line.url for line in result.rows} == {LISTS[1].page.url, LISTS[2].page.url}
    assert result.counts.failures[reason] == 1
    assert_all_counted(result)


def test_elements_in_each_other_do_not_take_all_memory() -> None:
    known = [
        Example(Page.from_text(URL, nested("<div>" * 20, word)), {"x": [word]}) for word in ("one", "two")
    ]
    wrapper = learn(known)
    rules = wrapper.attributes["x"]
    wrapper = replace(
        wrapper, attributes={"x": replace(rules, attribute=replace(rules.attribute, multi=True))}
    )
    page = Page.from_text(URL, nested("<div class=x>" * 300, "a" * 200_000))
    with pytest.raises(UnreadablePage, match=r": records too large\.$"):
        wrapper.extract(page)
    (failure,) = work([page], named(wrapper)).failures
    assert failure.reason == RECORDS_TOO_LARGE
    assert failure.detail == "the elements that a rule finds have more than 50,000,000 characters"


@pytest.mark.parametrize(("limits", "reason"), LIMITS[1:])
def test_earlier_layouts_do_not_get_around_a_limit(
    limits: ParseSettings, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they give is compared as a whole, but no more of it is held than of one."""
    wrapper = replace(lists(), earlier=(lists(),))
    made: list[object] = []
    record_of = Wrapper.record_of

    def counted(*given: Any, **named: Any) -> Record:
        made.append(None)
        return record_of(*given, **named)

    monkeypatch.setattr(Wrapper, "record_of", counted)
    (failure,) = work([endless_list()], named(wrapper, "list"), limits=limits).failures
    assert failure.reason == reason
    assert len(made) < 2_000
    assert isinstance(found := wrapper.read(endless_list(), limits=limits), Failure)
    assert found.reason == reason


URL = "https://a.example/1"


def nested(around: str, word: str) -> str:
    return f"<body>{around}<div class=x>{word[0]}<i>{word[1:]}</i>"


def test_what_else_a_source_holds_is_counted_for_what_it_is() -> None:
    items = (
        Failure("a.warc:3", "truncated or damaged file"),
        SHOP[0],
        Resource("https://shop.example/x.css", b"", "text/css"),
        Skipped("https://shop.example/robots.txt", "no HTML"),
        SHOP[1],
    )
    result = work(items, named(shop()))
    assert result.failures == [items[0]]
    assert len(result.rows) == result.counts.pages == 2
    assert result.counts.skipped["no HTML"] == 1


# ---- values that are withheld or absent


def test_values_of_another_shape_are_withheld_and_counted() -> None:
    odd = [
        Page.from_text("https://shop.example/item/20", SHAPE.format("Item 20", "ask in the shop", "")),
        Page.from_text("https://shop.example/item/21", SHAPE.format("Item 21", "$2.50", "")),
    ]
    result = work(odd, named(shop()))
    assert_all_counted(result)
    first, second = (json.loads(line.content) for line in result.rows)
    assert first["values"] == {"name": ["Item 20"]}
    assert [one["text"] for one in first["withheld"]["price"]] == ["ask in the shop"]
    assert "price" not in first["confidence"]
    assert second["values"]["price"] == ["$2.50"]
    assert second["withheld"] == {}
    assert result.counts.wrappers["food"].withheld["price"] == 1
    assert result.counts.wrappers["food"].incomplete == 1


def test_an_attribute_that_a_page_lacks_stays_absent_in_its_row() -> None:
    """None of the guide's restaurants gets a phone from elsewhere."""
    lacking = [page for page in RESTAURANTS if not truth(page)["phone"]]
    assert len(lacking) > 10
    result = work(pages(lacking), named(restaurants()))
    rows = [json.loads(line.content) for line in result.rows]
    assert len(rows) == len(lacking)
    for row in rows:
        assert "phone" not in row["values"].keys() | row["typed"].keys() | row["provenance"].keys()
    assert result.counts.wrappers["food"].filled["phone"] == 0


# ---- counts


def test_counts_can_be_kept_as_json() -> None:
    counts = work(pages(guide()), named(restaurants())).counts
    assert ExtractionCounts.from_rows(json.loads(json.dumps(counts.to_rows()))) == counts


def test_shapes_of_urls_are_told_apart_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("siteloom.extraction.shard_extraction.MOST_SHAPES", 3)
    unknown = [Page(f"https://b.example/{'x' * n}/", b"") for n in (1, 2, 2, 3, 4, 5, 1)]
    counts = work(unknown, named(shop())).counts
    expected = {"b.example/x/": 2, "b.example/xx/": 2, "b.example/xxx/": 1, "other URLs": 2}
    assert counts.unmatched_shapes == expected
    rows = [["unmatched", "b.example/x/", 5], ["unmatched", "b.example/", 1], ["pages", 6]]
    total = ExtractionCounts.from_rows(rows)
    total.add(counts, most_shapes=3)
    assert total.unmatched_shapes == {
        "b.example/x/": 7,
        "b.example/": 1,
        "b.example/xx/": 2,
        "other URLs": 3,
    }
    assert (total.pages, total.total.unmatched) == (13, 13)


# ---- wrappers as texts


def test_the_work_can_be_sent_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(named(shop()))) == named(shop())
    result = work(SHOP, named(shop()))
    assert pickle.loads(pickle.dumps(result)) == result


def test_a_text_that_is_no_wrapper_is_told_by_its_name() -> None:
    with pytest.raises(WrapperError, match=r"^broken: "):
        read_wrapper("broken", None, "{")


def test_workers_do_not_repeat_warnings() -> None:
    other = replace(shop(), parser="lxml 4.0 with libxml2 2.9.0")
    with pytest.warns(UserWarning, match="learned with"):
        read = read_wrapper("old", None, other.to_json())
    assert pickle.loads(pickle.dumps(read)) == read
    assert len(work(SHOP, named(other)).rows) == len(SHOP)  # warnings are errors here


def test_a_wrapper_without_a_footprint_is_for_no_page() -> None:
    result = work(SHOP, named(replace(shop(), footprint=Footprint())))
    assert {failure.reason for failure in result.failures} == {NO_WRAPPER_FOR_SITE}
