"""Find the shortest XPath of a column."""

from __future__ import annotations

import re
import sys
from itertools import chain, islice, takewhile
from math import inf
from typing import TYPE_CHECKING, NamedTuple, cast

from lxml import etree

from siteloom.core.sequences import evenly_spaced
from siteloom.html.node_paths import is_xpath_name, node_path
from siteloom.html.visible_text import normalize
from siteloom.learning.discovery.column_names import ValueContext, column_name
from siteloom.wrappers.rule_xpath import quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from siteloom.html.parser import Element
    from siteloom.learning.discovery.column_selection import ColumnCandidate
    from siteloom.learning.repeated_structure.table_units import Units


_WORD = re.compile(r"\w")
_SCOPES = 3  # enclosing elements in which a label may be unique
_ANCHORS = 2  # elements with a class or id to begin at
_CONTENTS = (  # XPath does not treat a no-break space as white space
    "normalize-space()",
    "normalize-space(translate(., '\N{NO-BREAK SPACE}', ' '))",
)
_TAKEN_FROM = 4  # samples that suggest XPaths
_RECORDS = 20  # records that suggest XPaths
_MAX_STYLES = 3  # of records, some of which stand out by their class


class Sample(NamedTuple):
    """The texts of a column in one unit, whose elements are the root of a page or parts of it."""

    unit: tuple[Element, ...]
    element: Element
    texts: tuple[str, ...]


def column_xpath(
    samples: Sequence[Sample],
    units_without: Sequence[tuple[Element, ...]],
    leaf: str,
    label: str | None,
    *,
    in_record: bool,
) -> str:
    """Return the first candidate XPath that is wrong on the fewest units, with and without the column.

    `leaf` is its last step: `text()`, or `@src`. In a record it begins at the record's first element.
    """
    candidates = chain(
        _class_and_label_xpaths(samples[:_TAKEN_FROM], leaf, label, in_record=in_record),
        _position_xpaths(samples, leaf, in_record=in_record),
    )
    best, fewest = "", inf
    for xpath in dict.fromkeys(candidates):
        misses = _misses(xpath=xpath, samples=samples, units_without=units_without, limit=fewest)
        if misses < fewest:
            best, fewest = xpath, misses
        if not misses:
            break
    return best


def prose_xpath(
    samples: Sequence[Sample], units_without: Sequence[tuple[Element, ...]], *, in_record: bool
) -> str:
    """Return the first candidate XPath that finds exactly the element of a running text on the most units."""
    paths = [
        path.removeprefix("./")
        for sample in samples[:_TAKEN_FROM]
        for path in _class_paths(sample, in_record=in_record)
    ]
    paths += [_exact_path(sample, in_record=in_record) for sample in samples]
    expected = [
        *((sample.unit, [sample.element]) for sample in samples),
        *((unit, []) for unit in units_without),
    ]
    return min(
        dict.fromkeys(paths),
        key=lambda path: sum(unit[0].xpath(path) != elements for unit, elements in expected),
    )


def record_xpath(records: Sequence[Element]) -> str:
    """Return the XPath that finds most of these elements, and fewest others on their pages."""
    first_record = records[0]
    parent = first_record.getparent()
    own = dict.fromkeys(path for record in records[:_RECORDS] for path in _from_anchors_of_page(record))
    inside = [] if parent is None else [f"{path}/*" for path in _from_anchors_of_page(parent)]
    styles = dict.fromkeys(map(_element_xpath, records))
    any_style = [" | ".join(styles)] if 1 < len(styles) <= _MAX_STYLES else []
    roots = dict.fromkeys(record.getroottree().getroot() for record in records)
    wanted_elements = set(records)
    best, best_count = "", -sys.maxsize
    for xpath in (*own, *inside, *any_style):
        elements = {element for root in roots for element in cast("list[Element]", root.xpath(xpath))}
        count = len(elements & wanted_elements) - len(elements - wanted_elements)
        if count > best_count:
            best, best_count = xpath, count
    return best


def _misses(
    xpath: str, samples: Sequence[Sample], units_without: Sequence[tuple[Element, ...]], limit: float
) -> float:
    """Sum up the shares of samples and of units without the column on which an XPath is wrong.

    Counting stops once the sum reaches the limit.
    """
    find = etree.XPath(xpath)
    misses = 0.0
    units = chain(
        ((sample.unit, sample.texts, 1 / len(samples)) for sample in samples),
        ((unit, (), 1 / len(units_without)) for unit in units_without),
    )
    for unit, texts, weight in units:
        misses += weight * (_column_texts(find, unit[0]) != texts)
        if misses >= limit:
            break
    return misses


def _element_xpath(element: Element) -> str:
    """Return a short XPath for elements like this one: an id or a class, and the tags from there."""
    return next(_from_anchors_of_page(element))


def _class_and_label_xpaths(
    samples: Sequence[Sample], leaf: str, label: str | None, *, in_record: bool
) -> Iterator[str]:
    for sample in samples:
        for path in _class_paths(sample, in_record=in_record):
            yield f"{path}/{leaf}".removeprefix("./")
    if label is not None:
        for sample in samples:
            yield from _from_label(sample, leaf, label, in_record=in_record)


def _position_xpaths(samples: Sequence[Sample], leaf: str, *, in_record: bool) -> Iterator[str]:
    """Yield XPaths by the number among elements of the same classes, then by exact paths."""
    for sample in samples[:_TAKEN_FROM]:
        for path in _class_paths(sample, in_record=in_record):
            elements = cast("list[Element]", sample.unit[0].xpath(path))
            if sample.element in elements:
                yield f"({path})[{elements.index(sample.element) + 1}]/{leaf}"
    for sample in samples:
        yield f"{_exact_path(sample, in_record=in_record)}/{leaf}"


def _exact_path(sample: Sample, *, in_record: bool) -> str:
    """Return the path of exactly this element."""
    top = _top(sample)
    below = node_path(sample.element).removeprefix(node_path(top))
    return f"{_beside(sample.unit, top) if in_record else node_path(top)}{below}"


def _class_paths(sample: Sample, *, in_record: bool) -> Iterator[str]:
    top = _top(sample)
    begin = f"{_beside(sample.unit, top)}/descendant-or-self::" if in_record else "//"
    return _from_anchors(sample.element, top, begin)


def _from_label(sample: Sample, leaf: str, label: str, *, in_record: bool) -> Iterator[str]:
    """Yield XPaths from a label to the next text, or to a sibling of one of its ancestors."""
    top = _top(sample)
    begin = _beside(sample.unit, top) if in_record else ""
    node = "text()[normalize-space()][1]" if leaf == "text()" else f"*[{leaf}][1]/{leaf}"
    for content in _CONTENTS:
        named = f"text()[{content}={quote(label)}]"
        labels = f"{begin}//{named}"
        if holders := cast("list[Element]", sample.unit[0].xpath(f"{labels}/..")):
            break
    else:
        return
    label_path = _path_from_nearest_label(holders, sample.element)
    below = f"{begin}/descendant-or-self::" if in_record else "//"
    scopes = [f"{below}{scope}//{named}" for scope in _scopes(label_path.common, top)]
    for start in (labels, f"({labels})[{label_path.number}]", *scopes):
        yield f"{start}/following::{node}"
        for end in _label_path_ends(label_path, leaf):
            yield start + end
    if leaf == "text()":
        yield f"({begin}//*[{content}={quote(label)}])[1]/following-sibling::*[1]//text()"


def _scopes(element: Element, top: Element) -> Iterator[str]:
    """Yield the steps of the nearest enclosing elements with an id or a class."""
    around = takewhile(lambda ancestor: ancestor is not top, (element, *element.iterancestors()))
    return islice((step for ancestor in around if "[" in (step := _step(ancestor))), _SCOPES)


class _LabelPath(NamedTuple):
    """The path between a label and a value: their common element, the label's number, and both branches."""

    common: Element
    number: int
    label_side: tuple[Element, ...]
    value_side: tuple[Element, ...]


def _path_from_nearest_label(holders: Sequence[Element], element: Element) -> _LabelPath:
    """Return the path from the nearest label; of equally near labels, the last, as labels precede values."""
    label_paths = []
    around = [element, *element.iterancestors()]
    for number, holder in enumerate(holders, start=1):
        own = [holder, *holder.iterancestors()]
        up, down = next((up, around.index(ancestor)) for up, ancestor in enumerate(own) if ancestor in around)
        label_paths.append(
            _LabelPath(
                common=around[down],
                number=number,
                label_side=tuple(own[:up]),
                value_side=tuple(around[:down]),
            )
        )
    return min(
        label_paths,
        key=lambda label_path: (len(label_path.value_side), len(label_path.label_side), -label_path.number),
    )


def _label_path_ends(label_path: _LabelPath, leaf: str) -> Iterator[str]:
    """Yield relative XPaths from the text of a label to the value."""
    up = "/.." * len(label_path.label_side)
    if not label_path.value_side:
        yield f"{up}/following-sibling::text()" if leaf == "text()" else f"{up}/../{leaf}"
        return
    *below, branch = label_path.value_side
    step = _sibling_step(label_path.label_side[-1] if label_path.label_side else None, branch)
    inside = "".join(f"/{_step(element)}" for element in reversed(below))
    yield f"{up}/following-sibling::{step}{inside}/{leaf}"
    if leaf == "text()":
        yield f"{up}/following-sibling::{step}//text()"


def _sibling_step(side: Element | None, branch: Element) -> str:
    """Return the step from the label's branch to the value's; from a text, it is the next of that name."""
    name = _name(branch)
    if side is None:
        return f"{name}[1]"
    between = takewhile(lambda sibling: sibling is not side, branch.itersiblings(preceding=True))
    return f"{name}[{1 + sum(sibling.tag == branch.tag for sibling in between)}]"


def _top(sample: Sample) -> Element:
    """Return the element of the unit that contains the sample."""
    around = {sample.element, *sample.element.iterancestors()}
    return next(top for top in sample.unit if top in around)


def _beside(unit: Sequence[Element], element: Element) -> str:
    """Return the XPath from the first element of a unit to another."""
    number = unit.index(element)
    if number == 0:
        return "."
    step = _step(element)
    place = sum(_step(sibling) == step for sibling in unit[1 : number + 1])
    return f"following-sibling::{step}[{place}]"


def _from_anchors(element: Element, top: Element, begin: str) -> Iterator[str]:
    """Yield paths down from the nearest elements with an id or a class, then from the top by its tag."""
    below = ""
    anchors = 0
    for ancestor in (element, *element.iterancestors()):
        if ancestor is top:
            break
        step = _step(ancestor)
        if "[" in step and anchors < _ANCHORS:
            anchors += 1
            yield begin + step + below
        below = f"/{step}{below}"
    yield begin + _name(top) + below


def _from_anchors_of_page(element: Element) -> Iterator[str]:
    return _from_anchors(element, element.getroottree().getroot(), "//")


def _name(element: Element) -> str:
    tag = str(element.tag)
    return tag if is_xpath_name(tag) else "*"


def _step(element: Element) -> str:
    for attribute in ("id", "class"):
        value = element.get(attribute) or ""
        if value.strip() and not any(character.isdigit() for character in value):
            return f"{_name(element)}[@{attribute}={quote(value)}]"
    return _name(element)


def _column_texts(find: etree.XPath, element: Element) -> tuple[str, ...]:
    texts = [normalize(str(text)) for text in cast("list[str]", find(element))]
    return tuple(text for text in texts if _WORD.search(text))


_NAMED_BY = 5  # units that name a column
_TRIED_WITH = 10  # units with a column: enough to find an XPath that is right on nine in ten of all units
_TRIED_WITHOUT = 4
_COMMON = 12  # units used first for all columns, so that few pages are parsed again


class ColumnDescription(NamedTuple):
    """The name of a column, before names are made unique, and its XPath."""

    name: str
    xpath: str


def describe_columns(columns: Sequence[ColumnCandidate], units: Units) -> list[ColumnDescription]:
    """Return the names and XPaths of columns."""
    tops = _UnitElements(units)
    return [_describe(column, units, tops) for column in columns]


class _UnitElements:
    """A cache of the elements of a few units."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self._cache: dict[int, tuple[Element, ...]] = {}
        for unit in evenly_spaced(range(len(units.page_of)), _COMMON):
            self.of(unit)

    def of(self, unit: int) -> tuple[Element, ...]:
        """Return the elements of a unit."""
        if unit not in self._cache:
            self._cache[unit] = self._units.tops(unit)
        return self._cache[unit]

    def sample_with(self, column: Collection[int]) -> list[int]:
        """Return some of the units of a column."""
        return self._sample_units(column, _NAMED_BY, _TRIED_WITH)

    def sample_without(self, column: Collection[int]) -> list[int]:
        """Return some of the units without a column."""
        other_units = [unit for unit in range(len(self._units.page_of)) if unit not in column]
        return self._sample_units(other_units, _TRIED_WITHOUT, _TRIED_WITHOUT)

    def _sample_units(self, units: Collection[int], min_units: int, max_cached: int) -> list[int]:
        """Return at least `min_units` units if there are so many, preferably cached ones."""
        cached_units = [unit for unit in self._cache if unit in units]
        uncached_units = [unit for unit in units if unit not in self._cache]
        return [
            *cached_units[:max_cached],
            *evenly_spaced(uncached_units, max(0, min_units - len(cached_units))),
        ]


def _describe(column: ColumnCandidate, units: Units, tops: _UnitElements) -> ColumnDescription:
    texts = units.texts
    contexts, samples = [], []
    with_column = column.strand.rows.keys()
    for unit in tops.sample_with(with_column):
        rows = column.strand.rows[unit]
        unit_elements = tops.of(unit)
        shown = tuple(texts.texts[text] for text in texts.text[list(rows)].tolist())
        attribute = texts.leaf(rows[0])[1:] if column.form == "attribute" else None
        paths = [texts.path_text(int(texts.path[row])) for row in rows]
        element = _element(unit_elements, paths[0])
        contexts.append(
            ValueContext(
                element=element,
                text=shown[0],
                attribute=attribute,
                boundary=unit_elements[0] if units.are_parts else None,
            )
        )
        if column.form == "prose" and (around := common_element(paths)):  # or it stands in several parts
            element = _element(unit_elements, f"{around}/")
        samples.append(Sample(unit_elements, element, shown))
    anchor = None if column.strand.anchor is None else texts.texts[column.strand.anchor]
    name = column_name(contexts[:_NAMED_BY], anchor)
    units_without = [tops.of(unit) for unit in tops.sample_without(with_column)]
    if column.form == "prose":
        return ColumnDescription(name, prose_xpath(samples, units_without, in_record=units.are_parts))
    leaf = f"@{contexts[0].attribute}" if column.form == "attribute" else "text()"
    return ColumnDescription(
        name,
        column_xpath(
            samples=samples, units_without=units_without, leaf=leaf, label=anchor, in_record=units.are_parts
        ),
    )


def common_element(nodes: Sequence[str]) -> str:
    """Return the path of the smallest element that contains all nodes."""
    split = [node.split("/")[:-1] for node in nodes]
    common = [steps[0] for steps in takewhile(lambda steps: len(set(steps)) == 1, zip(*split, strict=False))]
    return "/".join(common)


def _element(tops: Sequence[Element], path: str) -> Element:
    """Return the element of a text's path, starting at the elements of its unit."""
    top, *steps = path[1:].split("/")[:-1]
    start = tops[int(top[top.rindex("[") + 1 : -1]) - 1]
    if not steps:
        return start
    return cast("list[Element]", start.xpath("/".join(steps)))[0]
