"""Charts of runs: true to time and numbers, whatever they are, and always inside their frame."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from siteloom.apps.server.routes.runs import duration
from siteloom.apps.server.views.run_charts import Chart, Moment, Series, lines, scatter, stacked
from tests.apps.server.test_charts import HOSTILE, drawn, titles

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
any_value = st.none() | st.floats(0, 1e12, allow_nan=False)
any_time = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
any_runs = st.lists(st.tuples(any_time, any_value, any_value, st.booleans()), max_size=25)


def words(value: float) -> str:
    return f"{value:g}"


def moments(*days: float, cut: int | None = None) -> list[Moment]:
    return [
        Moment(BEGIN + timedelta(days=one), f"Run {number}", is_cut=number == cut)
        for number, one in enumerate(days)
    ]


def places(root: etree._Element) -> list[tuple[float, float]]:
    """Every place that anything is drawn at."""
    found: list[tuple[float, float]] = []
    for points in root.xpath("//@points"):
        found += [tuple(map(float, point.split(","))) for point in str(points).split()]  # type: ignore[misc]
    for line in root.xpath("//*[local-name() = 'line']"):
        assert isinstance(line, etree._Element)
        found += [(float(line.get(f"x{end}", "")), float(line.get(f"y{end}", ""))) for end in "12"]
    for path in root.xpath("//@d"):
        numbers = [float(one) for one in re.findall(r"-?[\d.]+(?:e-?\d+)?", str(path))]
        assert len(numbers) == 3
        x, y, end = numbers
        found += [(x, y), (end, y) if "H" in str(path) else (x, end)]
    return found


def points_of(chart: Chart) -> list[tuple[float, float]]:
    root = drawn(str(chart.drawing))
    found = root.xpath("//*[contains(@class, 'point') and not(contains(@class, 'cut'))]/@d")
    return [(float(x), float(y)) for x, y in (re.findall(r"-?[\d.]+", str(one))[:2] for one in found)]


@given(any_runs)
def test_whatever_is_drawn_stays_in_the_frame(
    runs: list[tuple[datetime, float | None, float | None, bool]],
) -> None:
    when = [Moment(at, "a run", is_cut=is_cut) for at, _, _, is_cut in runs]
    one, two = Series("one", [run[1] for run in runs]), Series("two", [run[2] for run in runs])
    made = [
        lines("Lines", when, [one, two], words),
        stacked("Stacked", when, [one, two], words),
        scatter("Scatter", when, one, two, words, words),
    ]
    for chart in made:
        root = drawn(str(chart.drawing))
        width, height = map(float, str(root.get("viewBox")).split()[2:])
        for x, y in places(root):
            assert math.isfinite(x)
            assert math.isfinite(y)
            assert 0 <= x <= width + 0.01
            assert 0 <= y <= height + 0.01
        assert len(chart.rows) == len(runs)


def test_time_is_true() -> None:
    chart = lines("Pages", moments(0, 1, 10), [Series("pages", [5, 10, 0])], words)
    assert points_of(chart) == [(0, 50), (100, 0), (1000, 100)]
    assert (chart.top, chart.bottom, chart.begin, chart.end) == ("10", "0", "1 Jan 2026", "11 Jan 2026")
    assert chart.latest == "0"


def test_runs_are_drawn_in_the_order_of_time() -> None:
    chart = lines("Pages", moments(10, 0), [Series("pages", [5, 10])], words)
    assert points_of(chart) == [(0, 0), (1000, 50)]
    assert [moment.title for moment, _ in chart.rows] == ["Run 1", "Run 0"]


def test_one_run_stands_in_the_middle() -> None:
    chart = lines("Pages", moments(3), [Series("pages", [4])], words)
    assert points_of(chart) == [(500, 0)]
    assert not drawn(str(chart.drawing)).xpath("//@points")
    assert chart.begin == chart.end


def test_a_gap_is_not_bridged() -> None:
    chart = lines("Pages", moments(0, 1, 2, 3, 4), [Series("pages", [1, 2, None, 2, 1])], words)
    root = drawn(str(chart.drawing))
    parts = root.xpath("//@points")
    assert isinstance(parts, list)
    assert [len(str(part).split()) for part in parts] == [2, 2]
    assert len(points_of(chart)) == 4
    assert [texts for _, texts in chart.rows][2] == ("",)


def test_a_run_that_was_cut_short_has_another_shape() -> None:
    chart = lines("Pages", moments(0, 1, cut=1), [Series("pages", [1, 2])], words)
    root = drawn(str(chart.drawing))
    assert len(points_of(chart)) == 1
    assert [told for told in titles(root) if told.endswith("cut short")] == ["Run 1: pages 2, cut short"]
    assert "cut short" in str(stacked("S", moments(0, cut=0), [Series("a", [1])], words).drawing)


def test_what_is_stacked_stands_on_each_other() -> None:
    chart = stacked("Failures", moments(0, 1), [Series("a", [3, 1]), Series("b", [2, None])], words)
    root = drawn(str(chart.drawing))
    bars = root.xpath("//*[contains(@class, 'stack')]")
    assert isinstance(bars, list)
    ends = [(float(bar.get("y1")), float(bar.get("y2"))) for bar in bars]
    assert ends == [(100, 40), (40, 0), (100, 80)]
    assert chart.keys == (("a", 1), ("b", 2))


def test_a_share_is_drawn_against_the_whole() -> None:
    chart = lines("Filled", moments(0), [Series("name", [0.25])], lambda value: f"{value:.0%}", top=1)
    assert (points_of(chart), chart.top) == ([(500, 75)], "100%")


def test_runs_of_very_different_size_are_told_apart() -> None:
    chart = scatter(
        "Time", moments(0, 1), Series("pages", [10, 100_000]), Series("s", [1, 100]), words, words
    )
    assert points_of(chart) == [(0, 100), (1000, 0)]
    assert (chart.begin, chart.end, chart.bottom, chart.top) == ("10 pages", "100000 pages", "1", "100")


def test_large_numbers_are_short_beside_the_axis() -> None:
    chart = lines("Pages", moments(0), [Series("pages", [1_800_000])], lambda value: f"{value:,.0f}")
    assert (chart.top, chart.latest) == ("2 M", "1,800,000")


def test_it_is_told_in_words_what_is_drawn() -> None:
    told = drawn(str(lines("Pages", moments(0, 1), [Series("pages", [5, 10])], words).drawing))
    assert told.get("aria-label") == "Pages: pages 10 in the end, from 5 to 10 in 2 runs"
    nothing = drawn(str(lines("Pages", [], [Series("pages", [])], words).drawing))
    assert nothing.get("aria-label") == "Pages: nothing"


def test_texts_are_escaped() -> None:
    when = [Moment(BEGIN, HOSTILE)]
    for chart in (
        lines(HOSTILE, when, [Series(HOSTILE, [1])], words),
        stacked(HOSTILE, when, [Series(HOSTILE, [1])], words),
        scatter(HOSTILE, when, Series(HOSTILE, [1]), Series(HOSTILE, [1]), words, words),
    ):
        root = drawn(str(chart.drawing))
        assert titles(root)[0].startswith(HOSTILE)
        assert str(root.get("aria-label")).startswith(HOSTILE)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0 s"), (0.25, "0.25 s"), (59, "59 s"), (60, "1 min"), (119.6, "2 min"), (75, "1 min 15 s"),
     (3600, "1 h"), (90_061, "25 h 1 min")],
)  # fmt: skip
def test_times_in_words(seconds: float, told: str) -> None:
    assert duration(seconds) == told
