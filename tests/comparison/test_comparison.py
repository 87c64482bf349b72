"""The page of the comparison, made from figures."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
from benchmarks.comparison import css_of_path
from evals.comparison_page import Contestant, Measure, Part, contestants_of, left_out, page, part_of
from evals.peers import Peer
from evals.titles import titles_by_isbn

PEER = Peer("other", ("other==1.2",), "other", "other")
TITLES = Part(
    contestants_of({"Siteloom": None, "Siteloom, slow": None, "other": PEER, "vote": None}),
    (
        Measure("right", (0.9, 0.95, 0.93, 0.2)),
        Measure("right, of those written differently", (0.8, 0.7, 0.7996, None)),
        Measure("right, of those named", (1.0, 1.0, 1.0, None)),
        Measure("seconds", (2.0, None, 1.0, 3.0), "less", ".2f"),
        Measure("clusters", (3, 1, 2, 4), "neither", "d"),
    ),
    {"titles": "872", "different": "366"},
    left_out({"third": "it could not be installed", "fourth": None}),
    "2026-01-02",
)


def rows(document: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in document.splitlines() if line.startswith("| ")]


def test_the_best_of_each_row_is_bold() -> None:
    document = page({"titles": TITLES})
    assert ["right", "0.900", "**0.950**", "0.930", "0.200"] in rows(document)
    assert ["seconds", "2.00", "", "**1.00**", "3.00"] in rows(document)
    assert ["clusters", "3", "1", "2", "4"] in rows(document)


def test_values_that_are_written_alike_are_as_good() -> None:
    assert Measure("", (0.8, 0.7, 0.7996, None)).shown() == ["**0.800**", "0.700", "**0.800**", ""]
    assert Measure("", (None, None)).shown() == ["", ""]


def test_where_siteloom_is_not_best_is_told_first() -> None:
    document = page({"titles": TITLES})
    told = document.partition("## Where Siteloom is not best")[2].partition("\n## ")[0]
    assert "In 2 of 4 rows." in told
    assert [row[1:] for row in rows(told)[2:]] == [
        ["right", "0.900", "0.950 (Siteloom, slow)", "0.930 (other)"],
        ["seconds", "2.00", "", "1.00 (other)"],
    ]


def test_where_it_always_is_that_is_told() -> None:
    best = replace(TITLES, measures=TITLES.measures[1:3])
    assert "In none of 2 rows." in page({"titles": best})


def test_versions_facts_and_failures_are_on_the_page() -> None:
    document = page({"titles": TITLES})
    assert "872 titles" in document
    assert "other 1.2." in document
    assert "- third is left out: it could not be installed.\n" in document
    assert "fourth" not in document
    assert "Measured on 2026-01-02 by" in document


def test_kept_figures_are_read_as_they_were() -> None:
    assert part_of(json.loads(json.dumps(asdict(TITLES)))) == TITLES


def test_contestants_are_siteloom_or_not() -> None:
    assert [Contestant(name).is_ours for name in ("Siteloom, `paths`", "lxml")] == [True, False]


@pytest.mark.parametrize(
    ("xpath", "css"),
    [
        ('//*[@id="a b"]/div[2]/p[1]', '[id="a b"] > div:nth-of-type(2) > p:nth-of-type(1)'),
        ("/html[1]/body[1]", "html:nth-of-type(1) > body:nth-of-type(1)"),
        ('//*[@id="t"]/tr[3]/td[1]', '[id="t"] tr:nth-of-type(3) > td:nth-of-type(1)'),
        (
            '//*[@id="t"]/table[1]/tr[3]',
            '[id="t"] > table:nth-of-type(1) > tbody > tr:nth-of-type(3)',
        ),
        ('//*[@id="t"]', '[id="t"]'),
    ],
)
def test_paths_are_written_in_css(xpath: str, css: str) -> None:
    assert css_of_path(xpath) == css


def test_titles_are_linked_by_digits() -> None:
    records = [
        {"isbn_13": ["ISBN: 978-0-00-000000-1"], "title": ["The Desk!"]},
        {"isbn_13": ["9780000000001"], "title": ["Desk, The"]},
        {"title": ["No number"]},
    ]
    assert titles_by_isbn(records) == {"9780000000001": {"the desk", "desk the"}}
