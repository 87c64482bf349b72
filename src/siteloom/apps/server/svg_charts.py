"""Charts as SVG: drawn on the server, coloured by the stylesheet.

None has words or numbers drawn in it, for these would shrink on a small screen: they stand beside the
charts, in the page. What a chart shows as a whole is its accessible name, what a part shows is its tooltip.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

import svg
from markupsafe import Markup

from siteloom.apps.server.html_rendering import share as in_percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.apps.server.views.sites import HealthPoint
    from siteloom.core.model import TemplatePath


class Part(NamedTuple):
    """A part of a bar: from where it begins to where it ends, of 1; what it is, and its class of colour."""

    begin: float
    end: float
    title: str
    colour: str = "part"


def bar(parts: Iterable[Part], name: str) -> Markup:
    """A horizontal bar with parts on it."""
    drawn: list[svg.Element] = [svg.Rect(width=100, height=10, class_=["track"])]
    drawn += [
        svg.Rect(
            x=rounded(100 * part.begin),
            width=rounded(100 * (part.end - part.begin)),
            height=10,
            class_=part.colour.split(),
            elements=[titled(part.title)],
        )
        for part in parts
        if part.end > part.begin
    ]
    return drawing(drawn, 100, 10, name, "bar", stretches=True)


def share_bar(share: float, name: str) -> Markup:
    """A bar that is filled to a share."""
    return bar([Part(0, share, name)], name)


def coverage_steps(sizes: Sequence[int], pages: int, labels: Sequence[str]) -> Markup:
    """The share of pages that the first clusters cover together, step by step; the largest comes first.

    `pages` are all pages there are, `labels` name the clusters.
    """
    width, height = 100 * max(1, len(sizes)), 100
    drawn: list[svg.Element] = [
        svg.Line(x1=0, x2=width, y1=level, y2=level, class_=["grid"]) for level in (0, 25, 50, 75, 100)
    ]
    line: list[svg.PathData] = [svg.M(0, height)]
    covered = 0
    for number, (size, label) in enumerate(zip(sizes, labels, strict=True)):
        before = height * covered / max(1, pages)
        covered += size
        now = height * covered / max(1, pages)
        told = f"{label}: {_percent(size / max(1, pages))}, together {_percent(covered / max(1, pages))}"
        step = _Place(100 * number, height - now, 100, now)
        drawn += [
            _rectangle(step, "area", told),
            _rectangle(step._replace(height=now - before), "added", told),
        ]
        line += [svg.V(rounded(height - now)), svg.H(100 * (number + 1))]
    drawn.append(svg.Path(d=line, class_=["line"]))
    name = f"{len(sizes)} templates cover {_percent(covered / max(1, pages))} of {pages} pages"
    return drawing(drawn, width, height, name, "coverage", stretches=True)


def sparkline(values: Sequence[float], name: str) -> Markup:
    """A small line through values from 0 to 1, the oldest first; its last point is marked."""
    step, height, margin = 8, 20, 3
    places = [
        (margin + step * number, rounded(margin + (height - 2 * margin) * (1 - value)))
        for number, value in enumerate(values)
    ]
    drawn: list[svg.Element] = []
    if len(places) > 1:
        drawn.append(svg.Polyline(points=[svg.Point(*place) for place in places], class_=["line"]))
    if places:
        x, y = places[-1]
        colour = "good" if values[-1] >= 1 else "bad"
        drawn.append(svg.Circle(cx=x, cy=y, r=2.5, class_=["last", colour]))
    return drawing(drawn, 2 * margin + step * max(1, len(places) - 1), height, name, "sparkline")


def health_line(checks: Sequence[HealthPoint]) -> Markup:
    """How checks went, run by run, the oldest first."""
    shares = [point.healthy for point in checks]
    told = f"{len(shares)} runs of checks; the last found {in_percent(shares[-1])} healthy" if shares else ""
    return sparkline(shares, told)


def outline(essential: Sequence[TemplatePath], name: str) -> Markup:
    """The layout of a template in a few rectangles: each block as large as its share of the template.

    It is not how the pages look, as no stylesheet is followed; but templates that differ look different.
    """
    body = _blocks(essential)
    frame = _Place(0, 0, _PAPER_WIDTH, _PAPER_HEIGHT)
    drawn: list[svg.Element] = [
        svg.Rect(width=frame.width, height=frame.height, rx=4, class_=["paper"]),
        *_drawn_block(body, frame.inside(4), 0),
    ]
    return drawing(drawn, _PAPER_WIDTH, _PAPER_HEIGHT, name, "outline")


_PAPER_WIDTH, _PAPER_HEIGHT = 200, 170
_GAP = 3.0
_LEAST_SIDE = 7.0  # what is smaller than that in the drawing is not looked into
_MOST_DEPTH = 7

_BANDS = frozenset("header footer nav tr".split())  # what stands in these stands side by side
_BESIDE = frozenset(["aside"])  # what is next to these stands beside them
_KINDS = {
    "heading": frozenset("h1 h2 h3 h4 h5 h6".split()),
    "image": frozenset("img picture svg video canvas figure iframe map object".split()),
    "control": frozenset("input button select textarea form".split()),
    "list": frozenset("ul ol menu".split()),
    "pairs": frozenset(["dl"]),
    "paragraph": frozenset("p blockquote address pre".split()),
    "table": frozenset(["table"]),
    "navigation": frozenset("header footer nav".split()),
    "link": frozenset(["a"]),
}
_NAMED = frozenset[str]().union(*_KINDS.values())
# What stands in these is not drawn.
_WHOLE = frozenset("list pairs table paragraph heading image link".split())
_UNSEEN = frozenset("head script style link meta noscript template br hr base title".split())


class _Block:
    """An element of a template with what stands in it; `weight` counts the elements that there are in it.

    A table with tables in it is for the layout.
    """

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.weight = 1
        self.children: dict[str, _Block] = {}
        self.is_layout = False


class _Place(NamedTuple):
    """A rectangle in a drawing."""

    x: float
    y: float
    width: float
    height: float

    def inside(self, margin: float) -> _Place:
        return _Place(self.x + margin, self.y + margin, self.width - 2 * margin, self.height - 2 * margin)


def _blocks(essential: Sequence[TemplatePath]) -> _Block:
    """The visible elements of a template as a tree, whose root is the body or what stands for it."""
    root = _Block("html")
    for path in essential:
        tags = path.tags.split("/")
        if path.text is not None or not _UNSEEN.isdisjoint(tags):
            continue
        block = root
        tables: list[_Block] = []
        for tag in tags[1:]:
            block.weight += 1
            block = block.children.setdefault(tag, _Block(tag))
            if tag == "table":
                for outer in tables:
                    outer.is_layout = True
                tables.append(block)
    return root


def _drawn_block(block: _Block, place: _Place, depth: int) -> list[svg.Element]:
    while len(block.children) == 1 and (block.is_layout or block.tag not in _NAMED):
        (block,) = block.children.values()
    kind = next((kind for kind, tags in _KINDS.items() if block.tag in tags and not block.is_layout), "block")
    children = list(block.children.values())
    is_small = min(place.width, place.height) < 2 * _LEAST_SIDE
    if not children or is_small or depth >= _MOST_DEPTH or kind in _WHOLE:
        return _glyph(kind, place)
    drawn: list[svg.Element] = []
    if depth:
        drawn.append(_rectangle(place, kind, radius=2))
        place = place.inside(_GAP)
    for child, part in _divided(children, place, lies=_lies(block)):
        drawn += _drawn_block(child, part, depth + 1)
    return drawn


def _lies(block: _Block) -> bool:
    """Whether the blocks in a block stand side by side."""
    return block.tag in _BANDS or not _BESIDE.isdisjoint(block.children)


def _divided(blocks: Sequence[_Block], place: _Place, *, lies: bool) -> Iterable[tuple[_Block, _Place]]:
    """Blocks with their places in a larger one: each gets room by its weight, if that can be seen."""
    length = place.width if lies else place.height
    room = max(1, int((length + _GAP) // (_LEAST_SIDE + _GAP)))
    heaviest = sorted(blocks, key=lambda block: -block.weight)[:room]
    shown = [block for block in blocks if block in heaviest]
    whole = sum(block.weight for block in shown)
    spare = length - _GAP * (len(shown) - 1) - _LEAST_SIDE * len(shown)
    begin = place.x if lies else place.y
    for block in shown:
        side = _LEAST_SIDE + max(0.0, spare) * block.weight / whole
        if lies:
            yield block, _Place(begin, place.y, side, place.height)
        else:
            yield block, _Place(place.x, begin, place.width, side)
        begin += side + _GAP


def _glyph(kind: str, place: _Place) -> list[svg.Element]:
    """What stands for a block that is not looked into."""
    x, y, width, height = place
    match kind:
        case "heading":
            return [_rectangle(_Place(x, y, width * 0.7, min(height, 7)), "heading", radius=2)]
        case "image":
            mountain = ((x, y + height), (x + width * 0.4, y + height * 0.4), (x + width * 0.8, y + height))
            return [
                _rectangle(place, "image"),
                svg.Polygon(
                    points=[svg.Point(rounded(a), rounded(b)) for a, b in mountain], class_=["mountain"]
                ),
            ]
        case "list":
            dots = [(x + 2, top, x + 2.01, top) for top in _rows(place, 7)]
            items = [(x + 7, top, x + max(8.0, width * 0.8), top) for top in _rows(place, 7)]
            return [_lines(dots + items, "items")]
        case "pairs":
            labels = [(x + 2, top, x + width * 0.2, top) for top in _rows(place, 7)]
            values = [(x + width * 0.3, top, x + width * 0.75, top) for top in _rows(place, 7)]
            return [_lines(labels, "items"), _lines(values, "text")]
        case "table":
            columns = max(2, min(4, int(width // 30)))
            across = [(x, top, x + width, top) for top in _rows(place, 8)]
            sides = [x + width * column / columns for column in range(1, columns)]
            down = [(side, y, side, y + height) for side in sides]
            return [_rectangle(place, "table"), _lines(across + down, "rules")]
        case "link":
            return [_rectangle(_Place(x, y + height / 2 - 1.5, min(width, 40), 3), "link", radius=1)]
        case "control" | "navigation":
            return [_rectangle(place, kind, radius=2)]
        case _:
            # The last line of a paragraph is shorter.
            ends = [x + width * (0.6 if number % 3 == 2 else 0.95) for number in range(len(_rows(place, 6)))]
            return [
                _lines(
                    [(x + 1, top, end, top) for top, end in zip(_rows(place, 6), ends, strict=True)], "text"
                )
            ]


def _lines(lines: Iterable[tuple[float, float, float, float]], kind: str) -> svg.Path:
    steps: list[svg.PathData] = []
    for x1, y1, x2, y2 in lines:
        steps += [svg.M(rounded(x1), rounded(y1)), svg.L(rounded(x2), rounded(y2))]
    return svg.Path(d=steps, class_=[kind])


def _rows(place: _Place, apart: float) -> list[float]:
    count = max(1, int(place.height // apart))
    return [rounded(place.y + apart * (number + 0.5)) for number in range(count)]


def _rectangle(place: _Place, kind: str, title: str = "", radius: float | None = None) -> svg.Rect:
    x, y, width, height = map(rounded, place)
    told: list[svg.Element] = [titled(title)] if title else []
    return svg.Rect(x=x, y=y, width=width, height=height, rx=radius, class_=[kind], elements=told)


def drawing(
    elements: list[svg.Element], width: float, height: float, name: str, kind: str, *, stretches: bool = False
) -> Markup:
    """A drawing with a name for those who do not see it; one that stretches fills the room it is given."""
    drawn = svg.SVG(
        viewBox=svg.ViewBoxSpec(0, 0, width, height),
        preserveAspectRatio=svg.PreserveAspectRatio("none") if stretches else None,
        class_=[kind],
        elements=elements,
        extra={"role": "img", "aria-label": escape(name)},
    )
    return Markup(drawn.as_str())  # noqa: S704 (all texts in it are escaped)


def titled(text: str) -> svg.Title:
    """What is told when the mouse rests on an element."""
    return svg.Title(text=escape(text))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def rounded(number: float) -> float:
    """Short enough to be sent, exact enough to be seen."""
    return round(number, 2)
