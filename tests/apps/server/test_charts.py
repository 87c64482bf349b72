"""Charts: the numbers that are drawn, and what is said of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from siteloom.apps.server.svg_charts import Part, bar, coverage_steps, outline, share_bar, sparkline
from siteloom.core.model import TemplatePath

HOSTILE = "</title><script>alert(1)</script>\"'&"
tags = st.lists(st.sampled_from("div p ul li table tr td h1 a img form aside nav span".split()), max_size=12)


def drawn(chart: str) -> etree._Element:
    """The chart, which must be well-formed, have a name and no style of its own."""
    root = etree.fromstring(chart)
    assert root.get("role") == "img"
    assert not root.xpath("//@style | //@onclick | //*[local-name() = 'script' or local-name() = 'style']")
    return root


def numbers(root: etree._Element, kind: str, name: str) -> list[float]:
    found = root.xpath(f"//*[contains(concat(' ', @class, ' '), ' {kind} ')]/@{name}")
    assert isinstance(found, list)
    return [float(str(number)) for number in found]


def titles(root: etree._Element) -> list[str]:
    found = root.xpath("//*[local-name() = 'title']/text()")
    assert isinstance(found, list)
    return list(map(str, found))


def test_a_bar_is_as_long_as_its_share() -> None:
    root = drawn(share_bar(0.25, "a quarter"))
    assert (numbers(root, "part", "width"), root.get("aria-label")) == ([25], "a quarter")


def test_parts_of_a_bar() -> None:
    parts = [Part(0, 0.5, "one"), Part(0.5, 0.5, "none"), Part(0.5, 1, "two", "part second")]
    root = drawn(bar(parts, "both"))
    assert (numbers(root, "part", "x"), numbers(root, "part", "width")) == ([0, 50], [50, 50])
    assert titles(root) == ["one", "two"]


def test_coverage_grows_step_by_step() -> None:
    root = drawn(coverage_steps([50, 30], 100, ["a/1", "a/2"]))
    assert numbers(root, "added", "height") == [50, 30]
    assert numbers(root, "added", "y") == [50, 20]
    assert "a/2: 30.0 %, together 80.0 %" in titles(root)
    assert root.get("aria-label") == "2 templates cover 80.0 % of 100 pages"


def test_coverage_of_nothing() -> None:
    assert drawn(coverage_steps([], 0, [])).get("aria-label") == "0 templates cover 0.0 % of 0 pages"


@pytest.mark.parametrize(("values", "colour"), [([1.0, 0.5], "bad"), ([0.5, 1.0], "good")])
def test_a_sparkline_ends_as_things_are(values: list[float], colour: str) -> None:
    root = drawn(sparkline(values, "checks"))
    assert len(numbers(root, colour, "cy")) == 1
    (points,) = root.xpath("//@points")
    heights = [float(point.split(",")[1]) for point in str(points).split()]
    assert (heights[0] < heights[1]) == (values[0] > values[1])


def test_a_sparkline_of_one_value_or_none() -> None:
    assert len(drawn(sparkline([1.0], "one"))) == 1
    assert len(drawn(sparkline([], "none"))) == 0


def test_texts_are_escaped() -> None:
    root = drawn(coverage_steps([1], 1, [HOSTILE]))
    assert titles(root)[0].startswith(HOSTILE)
    assert drawn(outline([], HOSTILE)).get("aria-label") == HOSTILE


def paths(*texts: str) -> list[TemplatePath]:
    return [TemplatePath(text, None, 1) for text in texts]


def test_templates_that_differ_look_different() -> None:
    listing = paths("html/body", "html/body/h1", "html/body/ul", "html/body/ul/li", "html/body/p")
    detail = paths("html/body", "html/body/h1", "html/body/table", "html/body/table/tr", "html/body/p")
    assert outline(listing, "") != outline(detail, "")
    assert numbers(drawn(outline(detail, "")), "table", "width")
    assert not numbers(drawn(outline(listing, "")), "table", "width")


def test_a_table_with_tables_in_it_is_looked_into() -> None:
    cell = "html/body/table/tr/td"
    nested = paths("html/body/h1", cell, f"{cell}/h2", f"{cell}/table", f"{cell}/table/tr", f"{cell}/ul")
    assert len(numbers(drawn(outline(nested, "")), "table", "width")) == 1
    assert len(numbers(drawn(outline(nested, "")), "heading", "width")) == 2


def test_what_is_not_seen_is_not_drawn() -> None:
    seen = paths("html/body", "html/body/p", "html/body/h1")
    unseen = paths("html/head", "html/head/title", "html/body/script")
    assert outline([*unseen, *seen], "") == outline(seen, "")


@given(st.lists(tags, max_size=40))
def test_blocks_stay_on_the_paper(found: list[list[str]]) -> None:
    every = {"/".join(["html", "body", *path[:depth]]) for path in found for depth in range(len(path) + 1)}
    root = drawn(outline(paths(*sorted(every)), "any"))
    (paper,) = root.xpath("//*[@class = 'paper']")
    assert isinstance(paper, etree._Element)
    width, height = float(paper.get("width", "")), float(paper.get("height", ""))
    for block in root.iterfind("{*}rect"):
        x, y = float(block.get("x", "0")), float(block.get("y", "0"))
        assert 0 <= x <= x + float(block.get("width", "")) <= width + 0.1
        assert 0 <= y <= y + float(block.get("height", "")) <= height + 0.1


def test_a_template_nested_deeper_than_functions_may_be() -> None:
    deep = ["html/body" + "/div" * depth for depth in range(1_500)]
    assert drawn(outline(paths(*deep, deep[-1] + "/p", deep[-1] + "/ul"), "deep")) is not None
