"""Group the texts of many units into strands: texts at the same place of the template.

A unit is a page, or one record of a list page. Texts of one style (tags and classes of their path) that occur
once in each unit form a strand. Where a unit has several texts of a style, the template text before them
separates them: texts that all units share, and labels. A text that is constant in its strand is template text
too, and may separate other texts; so this is repeated until nothing changes, as in the equivalence classes of
EXALG (Arasu and Garcia-Molina, SIGMOD 2003).
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.html.page_text_arrays import ATTRIBUTE, TEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from siteloom.html.page_text_arrays import PageTexts

TEMPLATE_SHARE = 0.9
"""The share of the units with its style from which a text is template text, as in the segment table."""

COLONS = ":："  # noqa: RUF001
"""The characters that labels end in; Chinese and Japanese have a full-width colon."""

OWN_LABEL = re.compile(rf"([^{COLONS}]{{2,40}})[{COLONS}](?!//)\s*\S")
"""The label of a text that contains its own label, as `Phone: 123` does."""

LETTER = re.compile(r"[^\W\d_]")
"""Labels have a letter: years and ranks are no labels, even if many pages have them."""

_LEAST_TEMPLATE_SHARE = 0.05  # of all units; rarer strands are too small to judge
_LEAST_LABEL_SHARE = 0.03  # of all units; optional fields are rare, and so are their labels
_LEAST_UNITS = 3
_LONGEST_LABEL = 60  # characters; sentences are no labels
_ALONE_SHARE = 0.95  # share of units that have a style once, from which it needs no separation
_LABELS_OF_UNIT = 2  # labels of one style per unit; single texts may be values
_USES_OF_LABEL = 5  # mean number of units with a label; values vary more
_FOLLOWED_SHARE = 0.8  # of labels, by a text of another style
_FOLLOWERS_OF_LABEL = 3  # mean number of distinct followers of a label; a value is followed by the next label
_LABELLED_SHARE = 0.8  # share of a strand's units in which it directly follows its label
_ROUNDS = 4
_MOST_TRIED = 50  # strands to try joining with another; no template has more that are similar
_MOST_CELLS = 4  # of a row of names and values; in a wider table of a page, a row is a list

_DIGITS = re.compile(r"\d+")
_CELL = re.compile(r"t[dh]\[(\d+)\]")
_WORD = re.compile(r"\w")
_NO_STYLE = -1

Anchor = int | None
"""The number of the template text that precedes other texts, if there is one."""


class Strand(NamedTuple):
    """The texts of one place: for each unit that has any, its rows of the page texts.

    `anchor` is the number of the template text that precedes them in most units.
    """

    anchor: Anchor
    rows: Mapping[int, tuple[int, ...]]


_Place = tuple[int, Anchor]
_Units = dict[int, list[int]]


class _Row(NamedTuple):
    number: int
    unit: int
    style: int
    text: int


class Strands(NamedTuple):
    """The strands of text nodes that are not template text, and of HTML attributes that a unit has once."""

    texts: list[Strand]
    attributes: list[Strand]


def find_strands(texts: PageTexts) -> Strands:
    """Group the texts of units into strands."""
    styles = _Styles(texts)
    rows = _rows(texts, styles)
    template = _Template(texts, rows)
    for _ in range(_ROUNDS):
        grouped = _group_by_place(rows, template)
        if not template.learn(grouped.places, rows):
            break
    return Strands(_join_exclusive(grouped, styles), _attribute_strands(texts, styles, grouped.template))


def _attribute_strands(texts: PageTexts, styles: _Styles, template: Sequence[_Row]) -> list[Strand]:
    """Return the strands of HTML attributes, such as the image of a unit or a link."""
    numbers = [row.number for row in template]
    of_style: _OfStyle = defaultdict(lambda: defaultdict(list))
    for number in np.flatnonzero(texts.form == ATTRIBUTE).tolist():
        unit = int(texts.page[number])
        template_index = bisect(numbers, number) - 1
        anchor = (
            template[template_index].text
            if template_index >= 0 and template[template_index].unit == unit
            else None
        )
        style = styles.below(styles.of(int(texts.styled_path[number])), texts.leaf(number))
        of_style[style][unit].append(_Placed(number, anchor, is_direct=False))
    places, _ = _by_place(of_style)
    places = _join_similar(places, lambda place: (styles.ending(place[0], 2), place[1]))
    return [strand for strand in _strands(places) if _is_single(strand.rows.values())]


def _is_single(placed: Collection[Sequence[object]]) -> bool:
    """Return whether almost every unit that has any item has exactly one."""
    return sum(len(items) == 1 for items in placed) >= _ALONE_SHARE * len(placed)


class _Styles:
    """Numbers for styles: the paths of tags and classes.

    Digits in classes (`item-17`) number items and are not part of the style. Where a unit has several texts
    of a style, the numbers of table cells become part of it.
    """

    def __init__(self, texts: PageTexts) -> None:
        self._numbers: dict[tuple[int, str], int] = {}
        self._steps: list[str] = []
        self._above: list[int] = []
        self._of_path: list[int] = []
        for parent, step in texts.styled_paths:
            above = _NO_STYLE if parent == _NO_STYLE else self._of_path[parent]
            self._of_path.append(self._number(above, _DIGITS.sub("", step)))

    def _number(self, above: int, step: str) -> int:
        number = self._numbers.setdefault((above, step), len(self._numbers))
        if number == len(self._steps):
            self._steps.append(step)
            self._above.append(above)
        return number

    def of(self, styled_path: int) -> int:
        """Return the style of a path."""
        return self._of_path[styled_path]

    def below(self, style: int, step: str) -> int:
        """Return the style one step further down."""
        return self._number(style, step)

    def in_cell(self, style: int, cell: str) -> int:
        """Return the style within a table cell of this number."""
        return self._number(style, f"{self._steps[style]} in cell {cell}")

    def ending(self, style: int, steps: int) -> tuple[str, ...]:
        """Return the steps nearest to the text, starting at the text."""
        last_steps: list[str] = []
        while style != _NO_STYLE and len(last_steps) < steps:
            last_steps.append(self._steps[style])
            style = self._above[style]
        return tuple(last_steps)


def _rows(texts: PageTexts, styles: _Styles) -> list[_Row]:
    has_words = [bool(_WORD.search(text)) for text in texts.texts]
    columns = (texts.page, texts.text, texts.styled_path, texts.form)
    rows = [
        _Row(number=number, unit=unit, style=styles.of(styled_path), text=text)
        for number, (unit, text, styled_path, form) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        )
        if form == TEXT and has_words[text]
    ]
    counts = Counter((row.style, row.unit) for row in rows)
    units, alone = Counter[int](), Counter[int]()
    for (style, _), count in counts.items():
        units[style] += 1
        alone[style] += count == 1
    cells = _cells(texts)
    paths = texts.path.tolist()
    return [
        row._replace(style=styles.in_cell(row.style, cells[paths[row.number]]))
        if cells[paths[row.number]] and alone[row.style] < _ALONE_SHARE * units[row.style]
        else row
        for row in rows
    ]


def _cells(texts: PageTexts) -> list[str]:
    """Return for each path the number of the table cell that it leads through.

    Rows that are units may have any width; cells of other tables with many columns are ignored.
    """
    widths: Counter[int] = Counter()
    for parent, step in texts.paths:
        widths[parent] += _CELL.fullmatch(step) is not None
    cells: list[str] = []
    for parent, step in texts.paths:
        cell = _CELL.fullmatch(step)
        if cell and (_is_top(texts, parent) or widths[parent] <= _MOST_CELLS):
            cells.append(cell[1])
        else:
            cells.append(cells[parent] if parent != _NO_STYLE else "")
    return cells


def _is_top(texts: PageTexts, path: int) -> bool:
    """Return whether a path leads to a topmost element of the unit."""
    return path != _NO_STYLE and texts.paths[path][0] == _NO_STYLE


class _Template:
    """The texts that are template text in a style, everywhere or after a certain anchor."""

    def __init__(self, texts: PageTexts, rows: Sequence[_Row]) -> None:
        self._units = texts.pages
        self._min_label_units = max(_LEAST_UNITS, _LEAST_LABEL_SHARE * texts.pages)
        self._behind: set[tuple[int, int, Anchor]] = set()
        styles = Counter(style for style, _ in {(row.style, row.unit) for row in rows})
        units = Counter((style, text) for style, text, _ in {(row.style, row.text, row.unit) for row in rows})
        min_units = max(2, _LEAST_TEMPLATE_SHARE * texts.pages)
        label_styles = _label_styles(rows)
        paired = _paired_labels(rows)
        # Texts with a colon are labels in any style, since handwritten pages use several.
        units_of_text = Counter(text for text, _ in {(row.text, row.unit) for row in rows})
        has_colon = [
            text.endswith(tuple(COLONS)) and units_of_text[number] >= self._min_label_units
            for number, text in enumerate(texts.texts)
        ]
        self.can_separate = [bool(LETTER.search(text)) for text in texts.texts]
        self._everywhere = {
            (style, text)
            for (style, text), count in units.items()
            if (count >= min_units and count >= TEMPLATE_SHARE * styles[style])
            or (
                len(texts.texts[text]) <= _LONGEST_LABEL
                and self.can_separate[text]
                and (
                    has_colon[text]
                    or (count >= self._min_label_units and (style in label_styles or (style, text) in paired))
                )
            )
        }

    def has(self, row: _Row, anchor: Anchor) -> bool:
        """Return whether a text is template text after this anchor."""
        return (row.style, row.text) in self._everywhere or (row.style, row.text, anchor) in self._behind

    def learn(self, places: Mapping[_Place, _Units], rows: Sequence[_Row]) -> bool:
        """Add texts that are constant in their strands to the template; return False if there are none."""
        text_of = {row.number: row.text for row in rows}
        count_before = len(self._behind)
        for (style, anchor), units in places.items():
            if len(units) < self._min_label_units or anchor is None:
                continue
            contents = Counter(text_of[number] for numbers in units.values() for number in set(numbers))
            text, count = contents.most_common(1)[0]
            if count >= TEMPLATE_SHARE * len(units) and count >= TEMPLATE_SHARE * contents.total():
                self._behind.add((style, text, anchor))
        return len(self._behind) > count_before


def _label_styles(rows: Sequence[_Row]) -> set[int]:
    """Return the styles of labels: units have several distinct texts of them, often reused and followed."""
    of_style: dict[int, list[_Row]] = defaultdict(list)
    followed: Counter[int] = Counter()
    followers: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for row, next_row in pairwise(rows):
        if row.unit == next_row.unit and row.style != next_row.style:
            followed[row.style] += 1
            followers[row.style].add((row.text, next_row.text))
    for row in rows:
        of_style[row.style].append(row)
    label_styles = set()
    for style, own in of_style.items():
        units, contents = {row.unit for row in own}, {row.text for row in own}
        if (
            len(own) >= _LABELS_OF_UNIT * len(units)
            and len(own) >= _USES_OF_LABEL * len(contents)
            and len(own) == len({(row.unit, row.text) for row in own})
            and followed[style] >= _FOLLOWED_SHARE * len(own)
            and len(followers[style]) >= _FOLLOWERS_OF_LABEL * len(contents)
        ):
            label_styles.add(style)
    return label_styles


def _paired_labels(rows: Sequence[_Row]) -> set[tuple[int, int]]:
    """Return texts, with their styles, that almost always directly precede texts of one other style.

    Labels of an optional part do so, whatever else has their style.
    """
    units: dict[tuple[int, int], set[int]] = defaultdict(set)
    units_of_style: dict[int, set[int]] = defaultdict(set)
    together: dict[tuple[int, int, int], set[int]] = defaultdict(set)
    followers: dict[tuple[int, int, int], set[int]] = defaultdict(set)
    for row in rows:
        units[row.style, row.text].add(row.unit)
        units_of_style[row.style].add(row.unit)
    for row, next_row in pairwise(rows):
        if row.unit == next_row.unit and row.style != next_row.style:
            pair = row.style, row.text, next_row.style
            together[pair].add(row.unit)
            followers[pair].add(next_row.text)
    return {
        (style, text)
        for (style, text, next_style), common_units in together.items()
        if len(common_units) >= TEMPLATE_SHARE * len(units[style, text])
        and len(common_units) >= TEMPLATE_SHARE * len(units_of_style[next_style])
        and len(followers[style, text, next_style]) >= _FOLLOWERS_OF_LABEL
    }


class _Placed(NamedTuple):
    """A row that is not template text, with its anchor; it is direct if no other text is between them."""

    number: int
    anchor: Anchor
    is_direct: bool


_OfStyle = dict[int, dict[int, list[_Placed]]]
"""By style and unit."""


class _GroupedRows(NamedTuple):
    """Rows by place and unit, and the places whose texts mostly follow their anchor directly.

    `template` has the rows that are template text, in document order.
    """

    places: dict[_Place, _Units]
    labelled: set[_Place]
    template: list[_Row]


def _group_by_place(rows: Sequence[_Row], template: _Template) -> _GroupedRows:
    """Group rows that are not template text by style, and by anchor where a unit has several of a style."""
    of_style: _OfStyle = defaultdict(lambda: defaultdict(list))
    template_rows = []
    anchor: Anchor = None
    is_direct = False
    unit = -1
    for row in rows:
        if row.unit != unit:
            anchor, unit = None, row.unit
        if template.has(row, anchor):
            if template.can_separate[row.text]:
                anchor, is_direct = row.text, True
                template_rows.append(row)
        else:
            of_style[row.style][row.unit].append(_Placed(row.number, anchor, is_direct))
            is_direct = False
    return _GroupedRows(*_by_place(of_style), template_rows)


def _by_place(of_style: _OfStyle) -> tuple[dict[_Place, _Units], set[_Place]]:
    """Return rows by place and unit, and the places whose texts mostly follow their anchor directly."""
    places: dict[_Place, _Units] = {}
    direct: Counter[_Place] = Counter()
    for style, units in of_style.items():
        is_alone = _is_single(units.values())
        usual = _usual_anchor(units.values())
        for unit, placed in units.items():
            for number, anchor, stands_next in placed:
                place = (style, usual if is_alone else anchor)
                places.setdefault(place, {}).setdefault(unit, []).append(number)
                direct[place] += stands_next
    labelled = {place for place, units in places.items() if direct[place] >= _LABELLED_SHARE * len(units)}
    return places, labelled


def _usual_anchor(placed: Iterable[Sequence[_Placed]]) -> Anchor:
    return Counter(row.anchor for rows in placed for row in rows).most_common(1)[0][0]


def _join_exclusive(grouped: _GroupedRows, styles: _Styles) -> list[Strand]:
    """Join strands that are never in the same unit, but in similar elements.

    Pages with and without an optional part have the same texts on different paths. Strands are similar if
    they have the same anchor and element, or the same label, or the same last two steps including a class.
    """
    places = _join_similar(grouped.places, lambda place: (styles.ending(place[0], 1), place[1]))
    places = _join_similar(places, lambda place: place[1] if place in grouped.labelled else place)
    places = _join_similar(
        places, lambda place: styles.ending(place[0], 2) if _is_telling(styles, place) else place
    )
    return _strands(places)


def _strands(places: Mapping[_Place, _Units]) -> list[Strand]:
    return [
        Strand(anchor, {unit: tuple(numbers) for unit, numbers in sorted(units.items())})
        for (_, anchor), units in places.items()
    ]


def _is_telling(styles: _Styles, place: _Place) -> bool:
    return any("." in step for step in styles.ending(place[0], 2))


def _join_similar(places: Mapping[_Place, _Units], alike: Callable[[_Place], object]) -> dict[_Place, _Units]:
    groups: dict[object, list[_Place]] = defaultdict(list)
    for place in places:
        groups[alike(place)].append(place)
    joined: dict[_Place, _Units] = {}
    for group in groups.values():
        own: list[_Units] = []
        for place in sorted(group, key=lambda place: -len(places[place])):
            for units in own[:_MOST_TRIED]:
                if units.keys().isdisjoint(places[place]):
                    units.update(places[place])
                    break
            else:
                joined[place] = dict(places[place])
                own.append(joined[place])
    return joined
