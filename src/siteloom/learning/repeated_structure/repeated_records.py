"""The records that are repeated inside list pages, found without examples.

Records are siblings that look alike, or runs of siblings that come in the same
order again and again. The parents of the siblings are known by their path of
tags, classes and ids, so that rows of a grid, sections of a page and the lists
of all pages come together. Of several such lists the one that holds most of the
text that varies is what the pages are about.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from siteloom.learning.discovery.text_strands import LETTER, OWN_LABEL
from siteloom.learning.repeated_structure.similar_siblings import (
    SEVERAL,
    USUAL,
    are_records,
    record_parts,
    repeats_among_siblings,
    similarity,
)
from siteloom.learning.repeated_structure.tree_arrays import DIGITS, ClusterPages, Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.html.parser import Element

_LEAST_SHARE = 0.02  # of the varying text; a list that holds less is not worth a look
_SAME_TEXT = 0.8  # records inside of parts must hold so much of their text to be the records
_TWO_FIELDS = 1.5  # on average; with fewer, records have a single one
_LINKS = 0.9  # a list is a menu if so much of its text is links
_DOUBTFUL = 0.3  # paragraphs and parts with a single field are seldom records: they weigh less
_SLOTS = 1.5  # names for each part of a page; records have new ones on every page
_NEARLY_ALL = 0.9

# Lists of reviews and of other things hold up to three quarters of the text of detail pages. Such SWDE
# sites have eight and more varying fields outside of lists, the built-in detail pages five and more; the
# built-in list pages and real search results have one or two. On a single page all that stands once
# seems to vary: there list pages have eight fields and more inside the list for each outside.
_MAIN_SHARE = 0.5
_MAIN_SHARE_OF_LINKS = 0.7
_MOST_FIELDS_OUTSIDE = 4
_FIELDS_TO_ONE_OUTSIDE = 8


class RecordPart(NamedTuple):
    """One record: neighbouring siblings of one page, in order; usually one."""

    page: int
    elements: tuple[Element, ...]


class Listing(NamedTuple):
    """Records of one sort, page by page in document order.

    `parents` is the path of the elements that they stand in: tags with classes and ids, from the root on.
    """

    parts: tuple[RecordPart, ...]
    parents: tuple[str, ...]


def main_listing(roots: Sequence[Element]) -> Listing | None:
    """The records, if these are what the pages are about; None for detail pages."""
    pages = ClusterPages(roots)
    groups = _groups(pages)
    best = next(iter(_ranked(pages, groups)), None)
    if best is None or not _is_main(pages, best, groups):
        return None
    return Listing(_record_parts(pages, best), pages.steps(best.path))


def parts_inside(roots: Sequence[Element], parents: tuple[str, ...]) -> tuple[RecordPart, ...]:
    """The records on other pages of a cluster whose main listing is known."""
    pages = ClusterPages(roots)
    for path, elements in _parents(pages).items():
        if pages.steps(path) == parents:
            group = _group(pages, path, elements)
            return () if group is None else _record_parts(pages, group)
    return ()


@dataclass(frozen=True, slots=True)
class _Group:
    """Records whose parents have the same path."""

    path: int
    parts: tuple[Part, ...]
    chars: int  # that vary
    linked: int  # of these inside links
    fields: float  # for each record, that vary
    regularity: float
    is_prose: bool  # each is a paragraph

    @property
    def weight(self) -> float:
        """What speaks for these to be what the pages are about."""
        doubt = _DOUBTFUL if self.is_prose or self.fields < _TWO_FIELDS else 1
        return self.chars * min(1, 2 * self.regularity) * doubt

    @property
    def is_menu(self) -> bool:
        """Whether the records are but a link each."""
        return self.fields < _TWO_FIELDS and self.linked >= _LINKS * self.chars


def _groups(pages: ClusterPages) -> list[_Group]:
    """The records of each path of parents, where there are any."""
    found = (_group(pages, path, elements) for path, elements in _parents(pages).items())
    return [group for group in found if group is not None and not _are_facts(pages, group)]


def _parents(pages: ClusterPages) -> defaultdict[int, list[Part]]:
    """Elements that others stand in, by path."""
    parents: defaultdict[int, list[Part]] = defaultdict(list)
    for page, tree in enumerate(pages.trees):
        for number, children in tree.children.items():
            if children:
                parents[tree.paths[number]].append(Part(page, (number,)))
    return parents


def _group(pages: ClusterPages, path: int, parents: Sequence[Part]) -> _Group | None:
    families = [(page, pages.trees[page].children[number]) for page, (number,) in parents]
    if all(len(children) < SEVERAL for _, children in families):
        return None
    inside = sum(map(pages.chars, parents))
    if inside < _LEAST_SHARE * pages.all_chars or not inside:
        return None
    families = [(page, children) for page, children in families if not _are_labelled(pages, page, children)]
    parts = [part for part in record_parts(pages, families) if not _is_furniture(pages, part)]
    own_parents = {pages.trees[page].elements[elements[0]].getparent() for page, elements in parts}
    if not _repeats(parts) or not repeats_among_siblings(parts, len(own_parents)):
        return None
    return _Group(
        path,
        tuple(parts),
        sum(map(pages.chars, parts)),
        sum(map(pages.linked, parts)),
        sum(map(pages.fields, parts)) / len(parts),
        _regularity(pages, parts),
        all(len(part.elements) == 1 and pages.tag(part) == "p" for part in parts),
    )


def _is_furniture(pages: ClusterPages, part: Part) -> bool:
    """Whether a part is a header row or such: it says the same on all pages."""
    start, end = pages.span(part)
    return not pages.fields(part) and (end - start < SEVERAL or pages.tag(part) == "tr")


def _repeats(parts: Iterable[Part]) -> bool:
    """Whether there are three on a page, or two on several."""
    counts = Counter(part.page for part in parts).values()
    return any(count > SEVERAL for count in counts) or sum(count >= SEVERAL for count in counts) >= SEVERAL


def _regularity(pages: ClusterPages, parts: Sequence[Part]) -> float:
    """How alike the records are inside: 1 if all have the same paths of tags."""
    shapes = Counter(tuple(pages.trees[page].shapes[one] for one in elements) for page, elements in parts)
    paths = {shape: frozenset().union(*(pages.looks.paths(inner) for inner in shape)) for shape in shapes}
    counts: Counter[str] = Counter()
    for shape, count in shapes.items():
        counts.update(dict.fromkeys(paths[shape], count))
    usual = {path for path, count in counts.items() if count >= USUAL * len(parts)}
    return sum(count * similarity(paths[shape], usual) for shape, count in shapes.items()) / len(parts)


def _ranked(pages: ClusterPages, groups: Sequence[_Group]) -> list[_Group]:
    """The groups, the heaviest first; of those that stand inside each other one."""
    ranked = []
    left = sorted(groups, key=lambda group: -group.weight)
    while left:
        best = _innermost(pages, left[0], left)
        left = [group for group in left if not _overlap(pages, best, group)]
        ranked.append(best)
    return sorted(ranked, key=lambda group: -group.weight)


def _record_parts(pages: ClusterPages, group: _Group) -> tuple[RecordPart, ...]:
    return tuple(
        RecordPart(page, tuple(pages.trees[page].elements[one] for one in elements))
        for page, elements in sorted(group.parts)
    )


def _share(pages: ClusterPages, group: _Group, groups: Sequence[_Group]) -> float:
    """How much of the varying text is in a group; links of menus are not counted.

    On a single page nothing tells menus from other links: no link outside is counted.
    """
    if len(pages.trees) == 1:
        links = pages.all_linked - group.linked
    else:
        menus = [one for one in groups if one.is_menu and not _overlap(pages, group, one)]
        links = _chars_of_all(pages, menus)
    return group.chars / max(1, pages.all_chars - links)


def _chars_of_all(pages: ClusterPages, groups: Iterable[_Group]) -> int:
    """The varying text in any of the groups, some of which may stand inside others."""
    total = 0
    last_page, last_end = -1, 0
    for page, start, end in sorted(
        (part.page, *pages.span(part)) for group in groups for part in group.parts
    ):
        begin = max(start, last_end) if page == last_page else start
        if end > begin:
            total += pages.chars_between(page, begin, end)
            last_page, last_end = page, end
    return total


def _are_labelled(pages: ClusterPages, page: int, siblings: Sequence[int]) -> bool:
    """Whether most of some siblings begin with a text of the template, each with another.

    So do the facts about one thing, or their labels. On a single page nothing tells the template.
    """
    if len(pages.trees) == 1:
        return False
    tree = pages.trees[page]
    begin = [tree.texts[tree.first_text[one]] for one in siblings if tree.has_text(one)]
    labels = {pages.path_and_text(text)[1] for text in begin if not pages.varies[text]}
    labels = {label for label in labels if LETTER.search(label)}
    return len(labels) >= max(SEVERAL, USUAL * len(begin))


def _are_facts(pages: ClusterPages, group: _Group) -> bool:
    """Whether each part has an id or a label of its own that is the same on other pages.

    So have the facts about one thing, and the columns that a page is laid out in.
    """
    if len(pages.trees) == 1:
        return False
    ids, labels = [], []
    for page, elements in group.parts:
        tree = pages.trees[page]
        ids.append((page, DIGITS.sub("", tree.elements[elements[0]].get("id", ""))))
        text = pages.path_and_text(tree.texts[tree.first_text[elements[0]]])[1]
        labels.append((page, _own_label(text) or text))
    return any(
        _name_slots([name for name in names if LETTER.search(name[1])], group) for names in (ids, labels)
    )


def _own_label(text: str) -> str:
    """What a text that names itself begins with."""
    label = OWN_LABEL.match(text)
    return label[1] if label and LETTER.search(label[1]) else ""


def _name_slots(names: Sequence[tuple[int, str]], group: _Group) -> bool:
    """Whether most parts are named, seldom two of a page alike, and with few names over all pages."""
    per_page = len(group.parts) / len({part.page for part in group.parts})
    return (
        len(names) >= USUAL * len(group.parts)
        and len(set(names)) >= _NEARLY_ALL * len(names)
        and len({name for _, name in names}) <= _SLOTS * per_page
    )


def _innermost(pages: ClusterPages, group: _Group, groups: Sequence[_Group]) -> _Group:
    """The records inside the parts of a group, where these hold several each: rows of a grid, sections."""
    for other in groups:
        if other is not group and _are_inside(pages, other, group):
            return _innermost(pages, other, groups)
    return group


def _are_inside(pages: ClusterPages, inner: _Group, outer: _Group) -> bool:
    if not repeats_among_siblings(inner.parts, len(outer.parts)) or inner.chars < _SAME_TEXT * outer.chars:
        return False
    spans = _spans(pages, outer)
    inside = [part for part in inner.parts if _covers(spans[part.page], pages.span(part))]
    return len(inside) >= _SAME_TEXT * len(inner.parts) and are_records(pages, inner.parts)


def _overlap(pages: ClusterPages, one: _Group, other: _Group) -> bool:
    """Whether some part of one group stands inside a part of the other."""
    return any(
        _covers(spans[part.page], pages.span(part))
        for outer, inner in ((one, other), (other, one))
        for spans in [_spans(pages, outer)]
        for part in inner.parts
    )


def _spans(pages: ClusterPages, group: _Group) -> defaultdict[int, list[tuple[int, int]]]:
    spans: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for part in group.parts:
        spans[part.page].append(pages.span(part))
    return spans


def _covers(spans: Sequence[tuple[int, int]], inside: tuple[int, int]) -> bool:
    place = bisect_right(spans, (inside[0], sys.maxsize)) - 1
    return place >= 0 and spans[place][1] >= inside[1]


def _is_main(pages: ClusterPages, group: _Group, groups: Sequence[_Group]) -> bool:
    """Whether the pages are about these records.

    Pages about one thing may have a long list of reviews or of other things, but they tell more outside
    of any list than list pages, which have a heading, a count and the like.
    """
    pages_with = {part.page for part in group.parts}
    if (
        _share(pages, group, groups) < (_MAIN_SHARE_OF_LINKS if group.is_menu else _MAIN_SHARE)
        or len(group.parts) <= SEVERAL * len(pages_with)
        or len(pages_with) < USUAL * len(pages.trees)
        or (group.fields < _TWO_FIELDS and not group.is_menu)
    ):
        return False
    others = [one for one in groups if one is group or not _overlap(pages, group, one)]
    outside = _fields_outside(pages, others)
    if len(pages.trees) > 1:
        return outside <= _MOST_FIELDS_OUTSIDE
    return outside * _FIELDS_TO_ONE_OUTSIDE <= group.fields * len(group.parts) and _lead_on(pages, group)


def _lead_on(pages: ClusterPages, group: _Group) -> bool:
    """Whether the records lead to pages about each, or are rows of a table; reviews do not and are not."""
    linked = sum(pages.linked(part) > 0 for part in group.parts)
    return linked >= USUAL * len(group.parts) or pages.tag(group.parts[0]) == "tr"


def _fields_outside(pages: ClusterPages, groups: Sequence[_Group]) -> int:
    """How many texts stand outside of any group that vary on most of the pages.

    They are told apart by their path, the template text before and a label of their own. Of texts that
    stand there twice one counts; of a single page no links, which may be those of a menu.
    """
    inside: list[set[int]] = [set() for _ in pages.trees]
    for group in groups:
        for part in group.parts:
            inside[part.page].update(range(*pages.span(part)))
    counts: Counter[tuple[int, int, str]] = Counter()
    for tree, places in zip(pages.trees, inside, strict=True):
        outside: dict[str, tuple[int, int, str]] = {}
        before = -1
        for place, text in enumerate(tree.texts):
            if not tree.lengths[place] or place in places:
                continue
            if not pages.varies[text]:
                before = text
            elif not (len(pages.trees) == 1 and tree.is_linked[place]):
                path, words = pages.path_and_text(text)
                outside[words] = path, before, _own_label(words)
        counts.update(set(outside.values()))
    return sum(count > USUAL * len(pages.trees) for count in counts.values())
