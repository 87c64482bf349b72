"""Name a column by the template text beside its values, or by their markup."""

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
_MIN_AGREEMENT = 0.6  # share of sampled values with the same name
_MIN_LABEL_AGREEMENT = 0.8  # higher, since another value or a menu item may precede a value
_TEXTS_UNDER_HEADING = 50  # texts between a heading and a value; headings farther up name something else
_LEVELS = 3  # up from a value; the common element of a value and its label is small
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SIGNS = f" {COLONS}*•|-–—>»·.,"  # noqa: RUF001
_OPEN_BRACKET = re.compile(r"[(\[][^)\]]*$")
_IN_BRACKETS = re.compile(r"[(\[]?([^()\[\]]+)[)\]]")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_NAME_ATTRIBUTES = ("itemprop", "property", "data-label", "data-title", "data-field")
_LABEL_TAGS = frozenset({"b", "dt", "em", "label", "legend", "strong", "th"})
_HEADINGS = frozenset({"caption", "h2", "h3", "h4", "h5", "h6", "legend"})
_RECORD_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_OF_ATTRIBUTE = {"src": "image", "href": "link", "alt": "image text", "datetime": "time"}
# Words in classes that describe style and layout, not content.
_LOOKS = frozenset(
    "align alt area base big block blue body bold border bottom box btn button card cell center "
    "clear clearfix col color column cont container content contents copy data default detail "
    "details div element even fl float font form fr gray green grey grid group head header hidden "
    "hide holder icon image img info inline inner item large last layout left line link list main "
    "margin mb md middle mod module mr mt nav node normal nowrap number odd outer padding page pane "
    "panel part pb pl pr pt red right row section sep show single size sm small span style sub tab "
    "table td text th top tr txt ul unit val value white width wrap wrapper xs".split()
)


class ValueContext(NamedTuple):
    """The context of a value: its element, its text, and the name of its HTML attribute if it is in one."""

    element: Element
    text: str
    attribute: str | None
    boundary: Element | None
    """The first element of the record; texts before it do not name its values."""


def column_name(contexts: Sequence[ValueContext], anchor: str | None) -> str:
    """Return the best name on which most contexts agree.

    A label must be the template text before the column, its anchor; otherwise it is a value itself.
    """
    for source in _SOURCES:
        names = Counter(name for context in contexts if (name := source(context)))
        for name, count in names.most_common(1):
            min_count = (_MIN_LABEL_AGREEMENT if source in _BESIDE else _MIN_AGREEMENT) * len(contexts)
            if count >= min_count and (source not in _ANCHORS or name == anchor):
                return tidy(name)
    attribute = contexts[0].attribute
    return _OF_ATTRIBUTE[attribute] if attribute is not None else "text"


def tidy(text: str) -> str:
    """Return a text as a name: without colons and other signs around it, or an unclosed bracket."""
    normalized = normalize(text)
    name = _OPEN_BRACKET.sub("", normalized).strip(_SIGNS)
    if in_brackets := _IN_BRACKETS.fullmatch(name):
        name = in_brackets[1]
    return name or normalized


def is_short(text: str) -> bool:
    """Return whether a text may be a name rather than a sentence, a number or a date."""
    digits = sum(character.isdigit() for character in text)
    return (
        len(text) <= _LONGEST
        and len(text.split()) <= _MOST_WORDS
        and bool(_LETTERS.search(text))
        and digits < sum(character.isalpha() for character in text)
    )


def unique(names: Sequence[str]) -> list[str]:
    """Make names unique by appending numbers to repeated ones; case is ignored, as in databases."""
    counts: Counter[str] = Counter()
    used_names: set[str] = set()
    unique_names = []
    for name in names:
        candidate = name
        while candidate.casefold() in used_names:
            counts[name.casefold()] += 1
            candidate = f"{name} {counts[name.casefold()] + 1}"
        used_names.add(candidate.casefold())
        unique_names.append(candidate)
    return unique_names


def _markup_name(context: ValueContext) -> str | None:
    """Return the name of the value in the markup."""
    for element in _around(context):
        for name in _NAME_ATTRIBUTES:
            if words := attribute_words(element.get(name) or ""):
                return words[-1].rpartition(":")[2]
        if visible_text(element) != context.text:
            break
    return None


def _own_prefix(context: ValueContext) -> str | None:
    prefix = OWN_LABEL.match(context.text) if context.attribute is None else None
    return prefix[1] if prefix and is_short(prefix[1]) else None


def _title(context: ValueContext) -> str | None:
    """Name the main heading of a page, or any heading of a record, `title`."""
    tags = {"h1"} if context.boundary is None else _RECORD_HEADINGS
    return "title" if any(element.tag in tags for element in _around(context)) else None


def _label_beside(context: ValueContext) -> str | None:
    """Return the text right before the value, if it is close and looks like a label."""
    if context.attribute not in (None, "href"):
        return None
    spot = _preceding_text(context)
    if spot is None or (context.attribute is not None and spot.parent.tag == "a"):  # that is another link
        return None
    label = normalize(spot.text)
    if not is_short(label) or OWN_LABEL.match(label):  # a label with its own value names no other
        return None
    is_marked = label.endswith(tuple(COLONS)) or any(
        element.tag in _LABEL_TAGS
        for element in (spot.parent, spot.parent.getparent())
        if element is not None
    )
    # The last link of a menu is no label, although a value may follow it.
    is_link = any(element.tag == "a" for element in (spot.parent, *_ancestors(spot.parent)))
    return label if is_marked or (not is_link and _is_near(spot.parent, context.element)) else None


def _preceding_text(context: ValueContext) -> TextPosition | None:
    """Return the text before the first text of the value's element."""
    own_spot = TextPosition(context.element, None)
    for child in (None, *context.element):
        if normalize(TextPosition(context.element, child).text) == context.text:
            own_spot = TextPosition(context.element, child)
            break
    limit = None if context.boundary is None else previous_text_position(TextPosition(context.boundary, None))
    return text_before(previous_text_position(own_spot), limit)


def _is_near(label: Element, element: Element) -> bool:
    """Return whether a small element contains both, such as a row or a list item."""
    label_ancestors = {label, *_ancestors(label)}
    return element in label_ancestors or any(ancestor in label_ancestors for ancestor in _ancestors(element))


def _ancestors(element: Element) -> Iterator[Element]:
    for number, above in enumerate(element.iterancestors()):
        if number == _LEVELS:
            return
        yield above


def _around(context: ValueContext) -> Iterator[Element]:
    """Yield the element of a value and its nearest ancestors inside the record."""
    yield context.element
    outside = None if context.boundary is None else context.boundary.getparent()
    yield from takewhile(lambda above: above is not outside, _ancestors(context.element))


def _cell(context: ValueContext) -> Element | None:
    return next((element for element in _around(context) if element.tag == "td"), None)


def _table_header(context: ValueContext) -> str | None:
    """Return the header of the value's table column, from a row that has only header cells."""
    cell = _cell(context)
    row = cell.getparent() if cell is not None else None
    table = next(row.iterancestors("table"), None) if row is not None else None
    if cell is None or row is None or table is None:
        return None
    position = list(row.iterchildren("td", "th")).index(cell)
    header_cells = next(filter(_are_heads, (list(table_row) for table_row in table.iter("tr"))), [])
    text = visible_text(header_cells[position]) if position < len(header_cells) else ""
    return text if is_short(text) else None


def _are_heads(cells: Sequence[Element]) -> bool:
    return len(cells) > 1 and all(cell.tag == "th" for cell in cells)


def _cell_above(context: ValueContext) -> str | None:
    """Return the text of the cell above if its style differs, since headers are often ordinary cells.

    If the value's cell begins with another text, that text may be the label instead.
    """
    cell = _cell(context)
    row = cell.getparent() if cell is not None else None
    if cell is None or row is None or context.boundary is not None:
        return None
    if context.attribute is not None or not visible_text(cell).startswith(context.text):
        return None
    row_above = next(
        (sibling_row for sibling_row in row.itersiblings("tr", preceding=True) if visible_text(sibling_row)),
        None,
    )
    header_cells = (
        []
        if row_above is None
        else [header_cell for header_cell in row_above if header_cell.get("rowspan", "1") == "1"]
    )
    cells = list(row.iterchildren("td", "th"))
    if len(header_cells) != len(cells):
        return None
    header_cell = header_cells[cells.index(cell)]
    text = visible_text(header_cell)
    return text if is_short(text) and _cell_style(header_cell) != _cell_style(cell) else None


def _cell_style(cell: Element) -> tuple[object, ...]:
    return cell.tag, cell.get("class"), *(child.tag for child in cell)


def _heading(context: ValueContext) -> str | None:
    """Return the heading above the value, if it is the nearest text that is not a value."""
    spot = _preceding_text(context)
    for _ in range(_TEXTS_UNDER_HEADING):
        if spot is None:
            return None
        tags = {spot.parent.tag, *(ancestor.tag for ancestor in _ancestors(spot.parent))}
        if tags & _HEADINGS:
            text = normalize(spot.text)
            return text if is_short(text) else None
        if normalize(spot.text) and spot.parent.tag != context.element.tag:
            return None
        spot = text_before(previous_text_position(spot))
    return None


def _class_name(context: ValueContext) -> str | None:
    """Return the last class or id near the value that describes content."""
    for element in _around(context):
        for name in (*reversed(attribute_words(element.get("class") or "")), element.get("id") or ""):
            words = [word.lower() for word in _WORDS.findall(name)]
            if any(len(word) > 2 and word not in _LOOKS for word in words):
                return " ".join(words)
        if visible_text(element) != context.text and context.attribute is None:
            break
    return None


_SOURCES = (
    *(_markup_name, _own_prefix, _title, _table_header, _cell_above),
    *(_label_beside, _heading, _class_name),
)
_BESIDE = (_cell_above, _label_beside, _heading)
_ANCHORS = (_label_beside, _heading)
"""Sources whose name must be the anchor."""
