"""Find the repeated records of list pages without examples.

Records are similar siblings, or runs of siblings that repeat in the same order. The parents of the siblings
are grouped by their path of tags, classes and ids, so that rows of a grid, sections of a page and the lists
of all pages come together. Of several such lists, the one with most of the varying text is the main listing.
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
    repeats_among_siblings,
    sibling_records,
    similarity,
)
from siteloom.learning.repeated_structure.tree_arrays import DIGITS, ClusterPages, SiblingGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.html.parser import Element

_LEAST_SHARE = 0.02  # of the varying text; lists with less are ignored
_SAME_TEXT = 0.8  # share of the outer group's text from which an inner group has the records
_TWO_FIELDS = 1.5  # on average; with fewer, records have a single one
_LINKS = 0.9  # a list is a menu if so much of its text is links
_DOUBTFUL = 0.3  # weight of paragraphs and records with a single field, which are seldom records
_SLOTS = 1.5  # names per record of a page; true records have new ones on every page
_NEARLY_ALL = 0.9

# Lists such as reviews have up to three quarters of the text of detail pages. Such SWDE sites have eight and
# more varying fields outside of lists, the built-in detail pages five and more; the built-in list pages and
# real search results have one or two. On a single page, all unique texts seem to vary: there, list pages have
# eight and more fields inside the list for each field outside.
_MAIN_SHARE = 0.5
_MAIN_SHARE_OF_LINKS = 0.7
_MOST_FIELDS_OUTSIDE = 4
_FIELDS_TO_ONE_OUTSIDE = 8


class ListedRecord(NamedTuple):
    """One record: neighbouring siblings of one page, in order; usually one."""

    page: int
    elements: tuple[Element, ...]


class Listing(NamedTuple):
    """Records of one kind, page by page in document order.

    `parents` is the path of their parent elements: tags with classes and ids, from the root.
    """

    records: tuple[ListedRecord, ...]
    parents: tuple[str, ...]


def main_listing(roots: Sequence[Element]) -> Listing | None:
    """Return the records that are the main content of the pages; None for detail pages."""
    pages = ClusterPages(roots)
    groups = _record_groups(pages)
    best = next(iter(_rank(pages, groups)), None)
    if best is None or not _is_main(pages, best, groups):
        return None
    return Listing(_listed_records(pages, best), pages.steps(best.path))


def find_listed_records(roots: Sequence[Element], parents: tuple[str, ...]) -> tuple[ListedRecord, ...]:
    """Return the records on further pages of a cluster whose main listing is known."""
    pages = ClusterPages(roots)
    for path, elements in _parents(pages).items():
        if pages.steps(path) == parents:
            group = _record_group(pages, path, elements)
            return () if group is None else _listed_records(pages, group)
    return ()


@dataclass(frozen=True, slots=True)
class _Group:
    """Records whose parents have the same path."""

    path: int
    records: tuple[SiblingGroup, ...]
    chars: int  # that vary
    linked: int  # of these inside links
    fields: float  # for each record, that vary
    regularity: float
    is_prose: bool  # each is a paragraph

    @property
    def weight(self) -> float:
        """The evidence that these records are the main content of the pages."""
        doubt = _DOUBTFUL if self.is_prose or self.fields < _TWO_FIELDS else 1
        return self.chars * min(1, 2 * self.regularity) * doubt

    @property
    def is_menu(self) -> bool:
        """Whether each record is only a link."""
        return self.fields < _TWO_FIELDS and self.linked >= _LINKS * self.chars


def _record_groups(pages: ClusterPages) -> list[_Group]:
    """Return the records of each path of parents that has any."""
    groups = (_record_group(pages, path, elements) for path, elements in _parents(pages).items())
    return [group for group in groups if group is not None and not _are_facts(pages, group)]


def _parents(pages: ClusterPages) -> defaultdict[int, list[SiblingGroup]]:
    """Return the elements with children, by path."""
    parents: defaultdict[int, list[SiblingGroup]] = defaultdict(list)
    for page, tree in enumerate(pages.trees):
        for number, children in tree.children.items():
            if children:
                parents[tree.paths[number]].append(SiblingGroup(page, (number,)))
    return parents


def _record_group(pages: ClusterPages, path: int, parents: Sequence[SiblingGroup]) -> _Group | None:
    families = [(page, pages.trees[page].children[number]) for page, (number,) in parents]
    if all(len(children) < SEVERAL for _, children in families):
        return None
    inner_chars = sum(map(pages.chars, parents))
    if inner_chars < _LEAST_SHARE * pages.all_chars or not inner_chars:
        return None
    families = [(page, children) for page, children in families if not _are_labelled(pages, page, children)]
    records = [record for record in sibling_records(pages, families) if not _is_template_row(pages, record)]
    own_parents = {pages.trees[page].elements[elements[0]].getparent() for page, elements in records}
    if not _repeats(records) or not repeats_among_siblings(records, len(own_parents)):
        return None
    return _Group(
        path=path,
        records=tuple(records),
        chars=sum(map(pages.chars, records)),
        linked=sum(map(pages.linked, records)),
        fields=sum(map(pages.fields, records)) / len(records),
        regularity=_regularity(pages, records),
        is_prose=all(len(record.elements) == 1 and pages.tag(record) == "p" for record in records),
    )


def _is_template_row(pages: ClusterPages, siblings: SiblingGroup) -> bool:
    """Return whether siblings are a header row or the like, with the same text on all pages."""
    start, end = pages.span(siblings)
    return not pages.fields(siblings) and (end - start < SEVERAL or pages.tag(siblings) == "tr")


def _repeats(records: Iterable[SiblingGroup]) -> bool:
    """Return whether there are three records on a page, or two on several pages."""
    counts = Counter(record.page for record in records).values()
    return any(count > SEVERAL for count in counts) or sum(count >= SEVERAL for count in counts) >= SEVERAL


def _regularity(pages: ClusterPages, records: Sequence[SiblingGroup]) -> float:
    """Return the structural similarity of the records: 1 if all have the same tag paths."""
    shapes = Counter(
        tuple(pages.trees[page].shapes[element] for element in elements) for page, elements in records
    )
    paths = {
        shape: frozenset().union(*(pages.looks.paths(shape_of_sibling) for shape_of_sibling in shape))
        for shape in shapes
    }
    counts: Counter[str] = Counter()
    for shape, count in shapes.items():
        counts.update(dict.fromkeys(paths[shape], count))
    usual_paths = {path for path, count in counts.items() if count >= USUAL * len(records)}
    return sum(count * similarity(paths[shape], usual_paths) for shape, count in shapes.items()) / len(
        records
    )


def _rank(pages: ClusterPages, groups: Sequence[_Group]) -> list[_Group]:
    """Return the groups by descending weight; of nested groups only one."""
    ranked = []
    remaining = sorted(groups, key=lambda group: -group.weight)
    while remaining:
        best = _innermost(pages, remaining[0], remaining)
        remaining = [group for group in remaining if not _overlap(pages, best, group)]
        ranked.append(best)
    return sorted(ranked, key=lambda group: -group.weight)


def _listed_records(pages: ClusterPages, group: _Group) -> tuple[ListedRecord, ...]:
    return tuple(
        ListedRecord(page, tuple(pages.trees[page].elements[element] for element in elements))
        for page, elements in sorted(group.records)
    )


def _share(pages: ClusterPages, group: _Group, groups: Sequence[_Group]) -> float:
    """Return the share of the varying text in a group, not counting links of menus.

    On a single page, menus cannot be distinguished from other links, so no link outside counts.
    """
    if len(pages.trees) == 1:
        links = pages.all_linked - group.linked
    else:
        menus = [
            other_group
            for other_group in groups
            if other_group.is_menu and not _overlap(pages, group, other_group)
        ]
        links = _union_chars(pages, menus)
    return group.chars / max(1, pages.all_chars - links)


def _union_chars(pages: ClusterPages, groups: Iterable[_Group]) -> int:
    """Return the number of varying characters in the union of the groups, which may be nested."""
    total = 0
    last_page, last_end = -1, 0
    for page, start, end in sorted(
        (record.page, *pages.span(record)) for group in groups for record in group.records
    ):
        begin = max(start, last_end) if page == last_page else start
        if end > begin:
            total += pages.chars_between(page, begin, end)
            last_page, last_end = page, end
    return total


def _are_labelled(pages: ClusterPages, page: int, siblings: Sequence[int]) -> bool:
    """Return whether most siblings begin with a template text of their own.

    Such siblings are facts about one thing, or their labels. A single page does not show its template.
    """
    if len(pages.trees) == 1:
        return False
    tree = pages.trees[page]
    first_texts = [tree.texts[tree.first_text[sibling]] for sibling in siblings if tree.has_text(sibling)]
    labels = {pages.path_and_text(text)[1] for text in first_texts if not pages.varies[text]}
    labels = {label for label in labels if LETTER.search(label)}
    return len(labels) >= max(SEVERAL, USUAL * len(first_texts))


def _are_facts(pages: ClusterPages, group: _Group) -> bool:
    """Return whether each record has its own id or label that is the same on other pages.

    Such groups are facts about one thing, or the layout columns of a page.
    """
    if len(pages.trees) == 1:
        return False
    ids, labels = [], []
    for page, elements in group.records:
        tree = pages.trees[page]
        ids.append((page, DIGITS.sub("", tree.elements[elements[0]].get("id", ""))))
        text = pages.path_and_text(tree.texts[tree.first_text[elements[0]]])[1]
        labels.append((page, _own_label(text) or text))
    return any(
        _name_slots([name for name in names if LETTER.search(name[1])], group) for names in (ids, labels)
    )


def _own_label(text: str) -> str:
    """Return the label that a text begins with, if it has one."""
    label = OWN_LABEL.match(text)
    return label[1] if label and LETTER.search(label[1]) else ""


def _name_slots(names: Sequence[tuple[int, str]], group: _Group) -> bool:
    """Return whether most records have names, mostly unique on a page and few across all pages."""
    per_page = len(group.records) / len({record.page for record in group.records})
    return (
        len(names) >= USUAL * len(group.records)
        and len(set(names)) >= _NEARLY_ALL * len(names)
        and len({name for _, name in names}) <= _SLOTS * per_page
    )


def _innermost(pages: ClusterPages, group: _Group, groups: Sequence[_Group]) -> _Group:
    """Return the group of records nested inside a group whose rows or sections have several records each."""
    for inner_group in groups:
        if inner_group is not group and _are_inside(pages, inner_group, group):
            return _innermost(pages, inner_group, groups)
    return group


def _are_inside(pages: ClusterPages, inner: _Group, outer: _Group) -> bool:
    if (
        not repeats_among_siblings(inner.records, len(outer.records))
        or inner.chars < _SAME_TEXT * outer.chars
    ):
        return False
    spans = _spans(pages, outer)
    inside = [record for record in inner.records if _covers(spans[record.page], pages.span(record))]
    return len(inside) >= _SAME_TEXT * len(inner.records) and are_records(pages, inner.records)


def _overlap(pages: ClusterPages, group: _Group, other_group: _Group) -> bool:
    """Return whether some record of one group is inside a record of the other."""
    return any(
        _covers(spans[record.page], pages.span(record))
        for outer, inner in ((group, other_group), (other_group, group))
        for spans in [_spans(pages, outer)]
        for record in inner.records
    )


def _spans(pages: ClusterPages, group: _Group) -> defaultdict[int, list[tuple[int, int]]]:
    spans: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for record in group.records:
        spans[record.page].append(pages.span(record))
    return spans


def _covers(spans: Sequence[tuple[int, int]], inside: tuple[int, int]) -> bool:
    index = bisect_right(spans, (inside[0], sys.maxsize)) - 1
    return index >= 0 and spans[index][1] >= inside[1]


def _is_main(pages: ClusterPages, group: _Group, groups: Sequence[_Group]) -> bool:
    """Return whether these records are the main content of the pages.

    Detail pages may have a long list, such as reviews, but have more fields outside of lists than list pages,
    which have a heading, a count and the like.
    """
    pages_with = {record.page for record in group.records}
    if (
        _share(pages, group, groups) < (_MAIN_SHARE_OF_LINKS if group.is_menu else _MAIN_SHARE)
        or len(group.records) <= SEVERAL * len(pages_with)
        or len(pages_with) < USUAL * len(pages.trees)
        or (group.fields < _TWO_FIELDS and not group.is_menu)
    ):
        return False
    separate_groups = [
        other_group
        for other_group in groups
        if other_group is group or not _overlap(pages, group, other_group)
    ]
    outer_fields = _fields_outside(pages, separate_groups)
    if len(pages.trees) > 1:
        return outer_fields <= _MOST_FIELDS_OUTSIDE
    return outer_fields * _FIELDS_TO_ONE_OUTSIDE <= group.fields * len(group.records) and _lead_on(
        pages, group
    )


def _lead_on(pages: ClusterPages, group: _Group) -> bool:
    """Return whether the records link to detail pages or are rows of a table; reviews are neither."""
    linked = sum(pages.linked(record) > 0 for record in group.records)
    return linked >= USUAL * len(group.records) or pages.tag(group.records[0]) == "tr"


def _fields_outside(pages: ClusterPages, groups: Sequence[_Group]) -> int:
    """Count the varying texts outside of all groups that most of the pages have.

    They are identified by their path, the preceding template text and their own label. Repeated texts count
    once; on a single page, links do not count, since they may belong to a menu.
    """
    inside: list[set[int]] = [set() for _ in pages.trees]
    for group in groups:
        for record in group.records:
            inside[record.page].update(range(*pages.span(record)))
    counts: Counter[tuple[int, int, str]] = Counter()
    for tree, inner_indices in zip(pages.trees, inside, strict=True):
        outside: dict[str, tuple[int, int, str]] = {}
        template_text = -1
        for index, text in enumerate(tree.texts):
            if not tree.lengths[index] or index in inner_indices:
                continue
            if not pages.varies[text]:
                template_text = text
            elif not (len(pages.trees) == 1 and tree.is_linked[index]):
                path, words = pages.path_and_text(text)
                outside[words] = path, template_text, _own_label(words)
        counts.update(set(outside.values()))
    return sum(count > USUAL * len(pages.trees) for count in counts.values())
