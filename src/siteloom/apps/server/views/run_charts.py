"""Charts of runs: over time, and one number against another; drawn as those of `charts`.

The labels of the axes stand in the page, as does the same as a table. A point is drawn as a line without
length with round ends, which stays round however the drawing is stretched.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import svg

from siteloom.apps.server.svg_charts import drawing, rounded, titled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from markupsafe import Markup

_WIDTH, _HEIGHT = 1000.0, 100.0
_SMALLEST = 1e-9  # what is not larger is nothing
_MANY = 40  # on a phone, larger points would touch
_LONGEST_LABEL = 7  # characters
_COLOURS = 8  # as many as the stylesheet tells apart


class Moment(NamedTuple):
    """A run in a chart: when it was, what it is called, where more of it is, and whether it was cut short."""

    at: datetime
    title: str
    link: str = ""
    is_cut: bool = False


class Series(NamedTuple):
    """A value for each moment; None where there is none, which leaves a gap."""

    name: str
    values: Sequence[float | None]


class Chart(NamedTuple):
    """A chart and all that the page says beside it.

    That is what it came to in the newest run, the ends of its axes, a key to its colours, and a table.
    """

    title: str
    latest: str
    drawing: Markup
    top: str
    bottom: str
    begin: str
    end: str
    keys: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[Moment, tuple[str, ...]], ...]
    note: str = ""

    @property
    def heads(self) -> tuple[str, ...]:
        """What its columns are called in a table with those of other charts."""
        return (self.title,) if len(self.columns) == 1 else self.columns


def lines(
    title: str,
    moments: Sequence[Moment],
    series: Sequence[Series],
    words: Callable[[float], str],
    *,
    top: float | None = None,
    note: str = "",
) -> Chart:
    """A line for each series over true time; `top` is the highest value there can be, if there is one."""
    moments, series = _in_time(moments, series)
    highest = top or _nice_top([value for one in series for value in one.values])
    times = _Times(moments)
    drawn = _grid()
    for number, one in enumerate(series):
        colour = f"colour-{number % _COLOURS + 1}"
        places = [
            None if value is None else (times.x(moment.at), _y(value / highest))
            for moment, value in zip(moments, one.values, strict=True)
        ]
        drawn += [
            svg.Polyline(points=[svg.Point(*place) for place in part], class_=["line", colour])
            for part in _unbroken(places)
            if len(part) > 1
        ]
        drawn += [
            _point(place, _told(moment, one.name, value, words), colour, is_cut=moment.is_cut)
            for place, moment, value in zip(places, moments, one.values, strict=True)
            if place is not None and value is not None
        ]
    if len(series) > 1:
        return _chart(title, moments, series, words, drawn, highest, note, ())
    made = _chart(title, moments, series, words, drawn, highest, note, series[0].values[-1:])
    return made._replace(keys=())


def stacked(
    title: str,
    moments: Sequence[Moment],
    series: Sequence[Series],
    words: Callable[[float], str],
    *,
    note: str = "",
) -> Chart:
    """For each moment a bar, in which the series stand on each other, over true time."""
    moments, series = _in_time(moments, series)
    sums = [sum(one.values[number] or 0 for one in series) for number in range(len(moments))]
    highest = _nice_top(sums)
    times = _Times(moments)
    drawn = _grid()
    for place, moment in enumerate(moments):
        below = 0.0
        x = times.x(moment.at)
        for number, one in enumerate(series):
            value = one.values[place] or 0
            if value <= 0:
                continue
            drawn.append(
                svg.Line(
                    x1=x,
                    x2=x,
                    y1=_y(below / highest),
                    y2=_y((below + value) / highest),
                    class_=["stack", f"colour-{number % _COLOURS + 1}"],
                    elements=[titled(_told(moment, one.name, value, words))],
                )
            )
            below += value
        if moment.is_cut:
            drawn.append(_point((x, _y(below / highest)), f"{moment.title}, cut short", "", is_cut=True))
    return _chart(title, moments, series, words, drawn, highest, note, sums[-1:])


def scatter(
    title: str,
    moments: Sequence[Moment],
    across: Series,
    up: Series,
    across_words: Callable[[float], str],
    up_words: Callable[[float], str],
) -> Chart:
    """Runs as points: one number against another, both on scales on which each step is ten times the last."""
    x_scale, y_scale = _Decades(across.values), _Decades(up.values)
    drawn: list[svg.Element] = [
        svg.Line(x1=rounded(x), x2=rounded(x), y1=0, y2=_HEIGHT, class_=["grid"])
        for x in (_WIDTH * step for step in x_scale.steps())
    ]
    drawn += [
        svg.Line(x1=0, x2=_WIDTH, y1=_y(step), y2=_y(step), class_=["grid"]) for step in y_scale.steps()
    ]
    for moment, x, y in zip(moments, across.values, up.values, strict=True):
        if x is None or y is None or min(x, y) <= _SMALLEST:
            continue
        told = f"{moment.title}: {across.name} {across_words(x)}, {up.name} {up_words(y)}"
        place = (rounded(_WIDTH * x_scale.share(x)), _y(y_scale.share(y)))
        drawn.append(_point(place, told, "colour-1", is_cut=moment.is_cut))
    rows = tuple(
        (moment, (_or_nothing(x, across_words), _or_nothing(y, up_words)))
        for moment, x, y in zip(moments, across.values, up.values, strict=True)
    )
    name = f"{title}: {len(moments)} runs"
    return Chart(
        title,
        "",
        drawing(drawn, _WIDTH, _HEIGHT, name, _kind(moments), stretches=True),
        _short(y_scale.highest, up_words),
        _short(y_scale.lowest, up_words),
        f"{_short(x_scale.lowest, across_words)} {across.name}",
        f"{_short(x_scale.highest, across_words)} {across.name}",
        (),
        (across.name, up.name),
        rows,
        "Each step of the grid is ten times the one before.",
    )


def _chart(
    title: str,
    moments: Sequence[Moment],
    series: Sequence[Series],
    words: Callable[[float], str],
    drawn: list[svg.Element],
    highest: float,
    note: str,
    latest: Sequence[float | None],
) -> Chart:
    rows = tuple(
        (moment, tuple(_or_nothing(one.values[number], words) for one in series))
        for number, moment in enumerate(moments)
    )
    keys = tuple((one.name, number % _COLOURS + 1) for number, one in enumerate(series))
    times = _Times(moments)
    return Chart(
        title,
        "".join("none" if value is None else words(value) for value in latest),
        drawing(drawn, _WIDTH, _HEIGHT, _in_short(title, series, words), _kind(moments), stretches=True),
        _short(highest, words),
        _short(0, words),
        times.words(times.begin),
        times.words(times.end),
        keys,
        tuple(one.name for one in series),
        rows,
        note,
    )


def _kind(moments: Sequence[Moment]) -> str:
    """By what the stylesheet knows it: where points are many, they are small."""
    return "over-time many" if len(moments) > _MANY else "over-time"


def _in_short(title: str, series: Sequence[Series], words: Callable[[float], str]) -> str:
    """What a chart shows, for those who do not see it."""
    told = []
    for one in series:
        values = [value for value in one.values if value is not None]
        if values:
            told.append(
                f"{one.name} {words(values[-1])} in the end, "
                f"from {words(min(values))} to {words(max(values))} in {len(values)} runs"
            )
    return f"{title}: {'; '.join(told) or 'nothing'}"


def _in_time(moments: Sequence[Moment], series: Sequence[Series]) -> tuple[list[Moment], list[Series]]:
    """The same by time: clocks are set, and runs numbered as they began."""
    order = sorted(range(len(moments)), key=lambda number: moments[number].at)
    return [moments[number] for number in order], [
        Series(one.name, [one.values[number] for number in order]) for one in series
    ]


def _short(value: float, words: Callable[[float], str]) -> str:
    """A value for the label of an axis, where there is little room."""
    text = words(value)
    if len(text) <= _LONGEST_LABEL:
        return text
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return text


class _Times:
    """Where moments stand across a drawing: by time, or in the middle if there is but one."""

    def __init__(self, moments: Sequence[Moment]) -> None:
        ats = [moment.at for moment in moments]
        self.begin = min(ats, default=datetime.fromtimestamp(0, UTC))
        self.end = max(ats, default=self.begin)

    def x(self, at: datetime) -> float:
        span = (self.end - self.begin).total_seconds()
        return rounded(_WIDTH * (at - self.begin).total_seconds() / span) if span > 0 else _WIDTH / 2

    def words(self, at: datetime) -> str:
        """A time, as exact as tells the ends apart."""
        if self.end - self.begin < timedelta(days=2):
            return f"{at:%d %b, %H:%M}".lstrip("0")
        return f"{at:%d %b %Y}".lstrip("0")


class _Decades:
    """A scale from one power of ten to another, around all values that are greater than nothing."""

    def __init__(self, values: Iterable[float | None]) -> None:
        logarithms = [math.log10(value) for value in values if value is not None and value > _SMALLEST]
        self._low = math.floor(min(logarithms, default=0))
        self._high = max(math.ceil(max(logarithms, default=1)), self._low + 1)
        self.lowest, self.highest = 10.0**self._low, 10.0**self._high

    def share(self, value: float) -> float:
        """How far up the scale a value is, of 1."""
        return (math.log10(value) - self._low) / (self._high - self._low)

    def steps(self) -> list[float]:
        count = self._high - self._low
        return [step / count for step in range(count + 1)]


def _nice_top(values: Iterable[float | None]) -> float:
    """A round number that is no less than any value, and not far above the highest."""
    highest = max((value for value in values if value is not None), default=0)
    if highest <= _SMALLEST:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    return next(step * power for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 20) if step * power >= highest)


def _y(share: float) -> float:
    return rounded(_HEIGHT * (1 - min(1.0, max(0.0, share))))


def _grid() -> list[svg.Element]:
    return [
        svg.Line(x1=0, x2=_WIDTH, y1=level, y2=level, class_=["grid"]) for level in (0, _HEIGHT / 2, _HEIGHT)
    ]


def _point(place: tuple[float, float], title: str, colour: str, *, is_cut: bool) -> svg.Path:
    """A dot, or an upright dash where a run was cut short: shape tells them apart, not only colour."""
    x, y = place
    if is_cut:
        steps: list[svg.PathData] = [
            svg.M(x, rounded(max(0.0, y - _HEIGHT / 10))),
            svg.V(rounded(min(_HEIGHT, y + _HEIGHT / 10))),
        ]
        return svg.Path(d=steps, class_=["cut"], elements=[titled(title)])
    return svg.Path(d=[svg.M(x, y), svg.H(x)], class_=["point", colour], elements=[titled(title)])


def _unbroken(places: Iterable[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    """The parts of a line between its gaps."""
    parts: list[list[tuple[float, float]]] = [[]]
    for place in places:
        if place is None:
            parts.append([])
        else:
            parts[-1].append(place)
    return parts


def _told(moment: Moment, name: str, value: float, words: Callable[[float], str]) -> str:
    return f"{moment.title}: {name} {words(value)}{', cut short' if moment.is_cut else ''}"


def _or_nothing(value: float | None, words: Callable[[float], str]) -> str:
    return "" if value is None else words(value)
