"""What to call a column: by the template text beside its values, or by what its markup says they are."""

from __future__ import annotations

import re
from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from siteloom.html.node_paths import TextPosition, previous_text_position, text_before
from siteloom.html.visible_text import attribute_words, normalize, visible_text
from siteloom.learning.discovery.text_strands import COLONS, OWN_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from siteloom.html.parser import Element

_LONGEST = 40  # characters of a name; longer texts are sentences
_MOST_WORDS = 6
_AGREED = 0.6  # of the places looked at, on a name
_AGREED_LABEL = 0.8  # a value may stand before another, and in a menu as well
_TEXTS_UNDER_HEADING = 50  # above a value; what is further up names something else
_LEVELS = 3  # up from a value; what holds it and its label is small
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SIGNS = f" {COLONS}*•|-–—>»·.,"  # noqa: RUF001
_OPEN_BRACKET = re.compile(r"[(\[][^)\]]*$")
_IN_BRACKETS = re.compile(r"[(\[]?([^()\[\]]+)[)\]]")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_SAID = ("itemprop", "property", "data-label", "data-title", "data-field")
_LABEL_TAGS = frozenset({"b", "dt", "em", "label", "legend", "strong", "th"})
_HEADINGS = frozenset({"caption", "h2", "h3", "h4", "h5", "h6", "legend"})
_RECORD_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_OF_ATTRIBUTE = {"src": "image", "href": "link", "alt": "image text", "datetime": "time"}
# Words in classes that tell of looks and of building blocks, not of what is shown.
_LOOKS = frozenset(
    "align alt area base big block blue body bold border bottom box btn button card cell center "
    "clear clearfix col color column cont container content contents copy data default detail "
    "details div element even fl float font form fr gray green grey grid group head header hidden "
    "hide holder icon image img info inline inner item large last layout left line link list main "
    "margin mb md middle mod module mr mt nav node normal nowrap number odd outer padding page pane "
    "panel part pb pl pr pt red right row section sep show single size sm small span style sub tab "
    "table td text th top tr txt ul unit val value white width wrap wrapper xs".split()
)


class Place(NamedTuple):
    """Where a value stands: its element, the text in it or the name of its HTML attribute."""

    element: Element
    text: str
    attribute: str | None
    boundary: Element | None
    """The first element of the record; what stands before it names none of its values."""


def column_name(places: Sequence[Place], anchor: str | None) -> str:
    """The best name that most places agree on.

    A label must be the template text before the column, its anchor; else it is a value, too.
    """
    for source in _SOURCES:
        names = Counter(name for place in places if (name := source(place)))
        for name, count in names.most_common(1):
            least = (_AGREED_LABEL if source in _BESIDE else _AGREED) * len(places)
            if count >= least and (source not in _ANCHORS or name == anchor):
                return tidy(name)
    attribute = places[0].attribute
    return _OF_ATTRIBUTE[attribute] if attribute is not None else "text"


def tidy(text: str) -> str:
    """A text as a name: without the colon and other signs around it, nor half of a pair of brackets."""
    whole = normalize(text)
    name = _OPEN_BRACKET.sub("", whole).strip(_SIGNS)
    if in_brackets := _IN_BRACKETS.fullmatch(name):
        name = in_brackets[1]
    return name or whole


def is_short(text: str) -> bool:
    """Whether a text may be a name, and is no sentence, number or date."""
    digits = sum(character.isdigit() for character in text)
    return (
        len(text) <= _LONGEST
        and len(text.split()) <= _MOST_WORDS
        and bool(_LETTERS.search(text))
        and digits < sum(character.isalpha() for character in text)
    )


def unique(names: Sequence[str]) -> list[str]:
    """The names, those that come again with a number; case tells nothing apart, as in databases."""
    counts: Counter[str] = Counter()
    taken: set[str] = set()
    found = []
    for name in names:
        candidate = name
        while candidate.casefold() in taken:
            counts[name.casefold()] += 1
            candidate = f"{name} {counts[name.casefold()] + 1}"
        taken.add(candidate.casefold())
        found.append(candidate)
    return found


def _said(place: Place) -> str | None:
    """What the markup itself calls the value."""
    for element in _around(place):
        for name in _SAID:
            if words := attribute_words(element.get(name) or ""):
                return words[-1].rpartition(":")[2]
        if visible_text(element) != place.text:
            break
    return None


def _own_prefix(place: Place) -> str | None:
    prefix = OWN_LABEL.match(place.text) if place.attribute is None else None
    return prefix[1] if prefix and is_short(prefix[1]) else None


def _title(place: Place) -> str | None:
    """Nothing before a main heading names it; a record may have any heading as its own."""
    tags = {"h1"} if place.boundary is None else _RECORD_HEADINGS
    return "title" if any(element.tag in tags for element in _around(place)) else None


def _label_beside(place: Place) -> str | None:
    """The text right before the value, if it stands close by and looks like a label."""
    if place.attribute not in (None, "href"):
        return None
    spot = _before(place)
    if spot is None or (place.attribute is not None and spot.parent.tag == "a"):  # that is another link
        return None
    label = normalize(spot.text)
    if not is_short(label) or OWN_LABEL.match(label):  # with a value of its own it names no other
        return None
    is_marked = label.endswith(tuple(COLONS)) or any(
        element.tag in _LABEL_TAGS
        for element in (spot.parent, spot.parent.getparent())
        if element is not None
    )
    # The last link of a menu names nothing, although a value may come right after it.
    is_link = any(element.tag == "a" for element in (spot.parent, *_ancestors(spot.parent)))
    return label if is_marked or (not is_link and _is_near(spot.parent, place.element)) else None


def _before(place: Place) -> TextPosition | None:
    """The text before the first text of the element that the value is in."""
    own = TextPosition(place.element, None)
    for child in (None, *place.element):
        if normalize(TextPosition(place.element, child).text) == place.text:
            own = TextPosition(place.element, child)
            break
    limit = None if place.boundary is None else previous_text_position(TextPosition(place.boundary, None))
    return text_before(previous_text_position(own), limit)


def _is_near(label: Element, element: Element) -> bool:
    """Whether a small element holds both, such as a row or an item of a list."""
    above = {label, *_ancestors(label)}
    return element in above or any(one in above for one in _ancestors(element))


def _ancestors(element: Element) -> Iterator[Element]:
    for number, above in enumerate(element.iterancestors()):
        if number == _LEVELS:
            return
        yield above


def _around(place: Place) -> Iterator[Element]:
    """The element of a value and those around it, none around the whole record."""
    yield place.element
    outside = None if place.boundary is None else place.boundary.getparent()
    yield from takewhile(lambda above: above is not outside, _ancestors(place.element))


def _cell(place: Place) -> Element | None:
    return next((element for element in _around(place) if element.tag == "td"), None)


def _table_header(place: Place) -> str | None:
    """What stands at the head of the value's column of a table, which is in a row of heads alone."""
    cell = _cell(place)
    row = cell.getparent() if cell is not None else None
    table = next(row.iterancestors("table"), None) if row is not None else None
    if cell is None or row is None or table is None:
        return None
    position = list(row.iterchildren("td", "th")).index(cell)
    heads = next(filter(_are_heads, (list(other) for other in table.iter("tr"))), [])
    text = visible_text(heads[position]) if position < len(heads) else ""
    return text if is_short(text) else None


def _are_heads(cells: Sequence[Element]) -> bool:
    return len(cells) > 1 and all(cell.tag == "th" for cell in cells)


def _cell_above(place: Place) -> str | None:
    """What the cell above says, if it is made otherwise: heads are often cells as others.

    In a cell that begins with something else, that may be the label.
    """
    cell = _cell(place)
    row = cell.getparent() if cell is not None else None
    if cell is None or row is None or place.boundary is not None:
        return None
    if place.attribute is not None or not visible_text(cell).startswith(place.text):
        return None
    above = next((other for other in row.itersiblings("tr", preceding=True) if visible_text(other)), None)
    heads = [] if above is None else [head for head in above if head.get("rowspan", "1") == "1"]
    cells = list(row.iterchildren("td", "th"))
    if len(heads) != len(cells):
        return None
    head = heads[cells.index(cell)]
    text = visible_text(head)
    return text if is_short(text) and _look(head) != _look(cell) else None


def _look(cell: Element) -> tuple[object, ...]:
    return cell.tag, cell.get("class"), *(child.tag for child in cell)


def _heading(place: Place) -> str | None:
    """The heading that the value stands under, if it is the nearest text that is not a value."""
    spot = _before(place)
    for _ in range(_TEXTS_UNDER_HEADING):
        if spot is None:
            return None
        tags = {spot.parent.tag, *(one.tag for one in _ancestors(spot.parent))}
        if tags & _HEADINGS:
            text = normalize(spot.text)
            return text if is_short(text) else None
        if normalize(spot.text) and spot.parent.tag != place.element.tag:
            return None
        spot = text_before(previous_text_position(spot))
    return None


def _class_name(place: Place) -> str | None:
    """The last word of a class or id close by that tells what is shown."""
    for element in _around(place):
        for written in (*reversed(attribute_words(element.get("class") or "")), element.get("id") or ""):
            words = [word.lower() for word in _WORDS.findall(written)]
            if any(len(word) > 2 and word not in _LOOKS for word in words):
                return " ".join(words)
        if visible_text(element) != place.text and place.attribute is None:
            break
    return None


_SOURCES = (
    *(_said, _own_prefix, _title, _table_header, _cell_above),
    *(_label_beside, _heading, _class_name),
)
_BESIDE = (_cell_above, _label_beside, _heading)
_ANCHORS = (_label_beside, _heading)
"""Sources whose name must be the anchor."""
