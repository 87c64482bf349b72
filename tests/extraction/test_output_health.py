"""The health of ordinary output, told by what a run has counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from siteloom.core.model import Change
from siteloom.core.settings import ParseSettings
from siteloom.extraction.extraction_counts import ExtractionCounts
from siteloom.extraction.output_health import output_changes
from siteloom.extraction.shard_extraction import ShardExtraction
from siteloom.html.time_limit import Lost
from siteloom.sources.page_source import Items
from siteloom.wrappers.matching import NamedWrapper
from tests.maintenance import guide
from tests.maintenance.inns import WRAPPER

WRAPPERS = {
    "inns": replace(
        WRAPPER,
        attributes={name: replace(rules, filled=0.9) for name, rules in WRAPPER.attributes.items()},
    )
}


def tally(
    records: int = 100,
    *,
    filled: Mapping[str, int] | None = None,
    breaching: Mapping[str, int] | None = None,
    pages: int = 0,
    fruitless: int = 0,
) -> ExtractionCounts:
    """A run of the inns; what is not told was found on all pages, and all of it is well."""
    counts = ExtractionCounts()
    inns = counts.wrappers["inns"]
    inns.records = records
    for name in WRAPPER.attributes:
        inns.filled[name] = (filled or {}).get(name, records)
    inns.breaching.update(breaching or {})
    counts.site_pages["inns.example"] = pages
    counts.fruitless["inns.example"] = fruitless
    return counts


def told(changes: list[Change]) -> list[tuple[str, str, tuple[str, ...], float]]:
    return [(change.wrapper, change.test, change.attributes, change.share) for change in changes]


def test_output_as_it_always_was_is_no_change() -> None:
    assert output_changes(tally(), WRAPPERS) == []
    assert output_changes(tally(), WRAPPERS, tally()) == []


def test_a_share_filled_that_falls_below_that_of_learning_is_a_change() -> None:
    (change,) = output_changes(tally(filled={"phone": 40}), WRAPPERS)
    assert told([change]) == [("inns", "null", ("phone",), 0.5)]
    (evidence,) = change.evidence
    assert (evidence.url, evidence.attribute, evidence.before, evidence.after, evidence.finding) == (
        "",
        "phone",
        ("90 %",),
        ("40 %",),
        "share of records with a value",
    )


def test_what_the_run_before_had_counts_more_than_what_learning_saw() -> None:
    before = tally(filled={"phone": 45})
    assert output_changes(tally(filled={"phone": 40}), WRAPPERS, before) == []
    (change,) = output_changes(tally(filled={"phone": 10, "owner": 60}), WRAPPERS, before)
    assert told([change]) == [("inns", "null", ("phone", "owner"), 0.4)]
    assert [(one.before, one.after) for one in change.evidence] == [
        (("45 %",), ("10 %",)),
        (("100 %",), ("60 %",)),
    ]


def test_a_run_before_that_was_too_small_does_not_count() -> None:
    assert told(output_changes(tally(filled={"phone": 40}), WRAPPERS, tally(19, filled={"phone": 8}))) == [
        ("inns", "null", ("phone",), 0.5)
    ]


@pytest.mark.parametrize(("now", "is_change"), [(61, False), (59, True)])
def test_a_fall_of_more_than_the_threshold_is_a_change(now: int, is_change: bool) -> None:
    assert bool(output_changes(tally(filled={"phone": now}), WRAPPERS)) is is_change
    assert bool(output_changes(tally(filled={"phone": now + 20}), WRAPPERS, threshold=0.1)) is is_change


def test_more_values_than_before_are_no_change() -> None:
    assert output_changes(tally(), WRAPPERS, tally(filled={"phone": 3})) == []


def test_values_unlike_those_learned_from_are_a_change() -> None:
    (change,) = output_changes(tally(breaching={"price": 31, "phone": 30}), WRAPPERS)
    assert told([change]) == [("inns", "value", ("price",), 0.31)]
    assert change.evidence[0].finding == "share of values unlike those learned from"
    assert change.evidence[0].after == ("31 %",)


def test_the_share_of_odd_values_is_that_of_the_values_there_are() -> None:
    found = output_changes(tally(filled={"price": 70}, breaching={"price": 35}), WRAPPERS)
    assert told(found) == [("inns", "value", ("price",), 0.5)]
    few = tally(filled={"price": 19}, breaching={"price": 19})
    assert output_changes(few, WRAPPERS, tally(filled={"price": 19})) == []


def test_too_few_records_say_nothing() -> None:
    assert output_changes(tally(19, filled={"phone": 0}, breaching={"price": 19}), WRAPPERS) == []
    assert output_changes(tally(20, filled={"phone": 0}), WRAPPERS) != []


def test_pages_without_a_record_are_a_change_only_if_there_were_fewer_before() -> None:
    now = tally(pages=100, fruitless=60)
    assert output_changes(now, WRAPPERS) == []
    assert output_changes(now, WRAPPERS, tally(pages=100, fruitless=35)) == []
    (change,) = output_changes(now, WRAPPERS, tally(pages=50, fruitless=5))
    assert told([change]) == [("inns.example", "shingle", (), 0.5)]
    (evidence,) = change.evidence
    assert (evidence.before, evidence.after) == (("10 %",), ("60 %",))
    assert evidence.finding == "share of pages of inns.example that give no record"


@pytest.mark.parametrize(("now", "before"), [(19, 100), (100, 19)])
def test_too_few_pages_of_a_site_say_nothing(now: int, before: int) -> None:
    assert output_changes(tally(pages=now, fruitless=now), WRAPPERS, tally(pages=before)) == []


def test_a_wrapper_that_gives_nothing_any_more_is_seen_by_its_site() -> None:
    now = tally(0, pages=100, fruitless=100)
    assert told(output_changes(now, WRAPPERS, tally(pages=100))) == [("inns.example", "shingle", (), 1.0)]


# ---- on pages


def extracted(layout: str) -> ExtractionCounts:
    work = ShardExtraction([NamedWrapper("guide", 1, guide.wrapper())], ParseSettings())
    return work(Items(guide.pages(layout)), Lost({}), lambda _: None).counts  # type: ignore[arg-type]


def test_the_layouts_of_the_guide() -> None:
    wrappers = {"guide": guide.wrapper()}
    well = extracted("original")
    assert output_changes(well, wrappers) == []
    assert [change[1:3] for change in told(output_changes(extracted("mild-change"), wrappers, well))] == [
        ("null", ("phone",))
    ]
    assert told(output_changes(extracted("redesign"), wrappers, well)) == [
        ("guide", "shingle", (), 1.0),
        ("larkmoor-guide.example", "shingle", (), 1.0),
    ]
