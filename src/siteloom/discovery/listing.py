"""The records that are repeated inside list pages, found without examples.

Records are siblings that look alike, or runs of siblings that come in the same
order again and again. The parents of the siblings are known by their path of
tags, classes and ids, so that rows of a grid, sections of a page and the lists
of all pages come together. Of several such lists the one that holds most of the
text that varies is what the pages are about.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from siteloom.dom import attribute_words
from siteloom.dom.text import HIDDEN
from siteloom.template.page_texts import Numbered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from siteloom.dom import Element


class RecordPart(NamedTuple):
    """One record: neighbouring siblings of one page, in order; usually one."""

    page: int
    elements: tuple[Element, ...]


class Listing(NamedTuple):
    """Records of one sort, page by page in document order.

    `share` tells how much of the text that varies on the pages stands inside
    the records; links of menus are not counted.
    """

    parts: tuple[RecordPart, ...]
    share: float


_NOT_SHOWN = HIDDEN | {"datalist", "select"}  # choices of a form repeat, but are no records
_NO_SHAPE = frozenset({"br", "wbr"})
_CELLS = frozenset({"td", "th"})
_TEXT = "#text"
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})

_DIGITS = re.compile(r"\d+")
# Classes that tell the place of a record among the others, and nothing about what it is.
_STRIPES = frozenset("odd even alt alternate first last active current selected hover row".split())

_TEMPLATE_SHARE = 0.5  # a text on more of the pages that have its path is template
_ALIKE = 0.5  # of the paths inside two records so many must be shared, as in learning
_PAIRED = 0.75  # siblings that take turns and share fewer paths are two parts of a record
_SHAPE_DEPTH = 4
_OPTIONAL = 0.3  # what fewer records have is no part of the record
_USUAL = 0.5  # a kind in fewer of the runs is no part of the record
_ONCE = 1.3  # a kind that comes more often in a run than this is repeated in it
_RECORD_FIELDS = 0.6  # of the records so many must have two fields, to be told from cells and tags
_SAME_TEXT = 0.8  # records inside of parts must hold so much of their text to be the records
_LEAST_SHARE = 0.02
_LINK_ONLY = 0.9
_NEARLY = 0.9
_RULED = 0.7
_ALIKE_OF_A_CLASS = 0.2
_TWO_FIELDS = 1.5  # on average; fewer is a single one
_DOUBTFUL = 0.3
_MAIN_SHARE = 0.5
_MAIN_SHARE_OF_LINKS = 0.7
_MOST_FIELDS_OUTSIDE = 4
_FIELDS_TO_ONE_OUTSIDE = 8
_RECORDS = 0.6
_MOST_KINDS = 12
_FEW = 2
_SLOTS = 1.5
_TELLING_PATHS = 4  # siblings of other classes must share so many
_LETTER = re.compile(r"[^\W\d_]")
_NO_KIND = -1
_AT_RULES = -2


def listings(roots: Sequence[Element]) -> tuple[Listing, ...]:
    """All records that repeat on the pages of a cluster, those that hold most text first."""
    pages = _Pages(roots)
    groups, ranked = _find(pages)
    return tuple(_listing(pages, group, groups) for group in ranked)


def main_listing(roots: Sequence[Element]) -> Listing | None:
    """The records, if these are what the pages are about; None for detail pages."""
    pages = _Pages(roots)
    groups, ranked = _find(pages)
    if not ranked or not _is_main(pages, ranked[0], groups):
        return None
    return _listing(pages, ranked[0], groups)


class _Looks:
    """What elements look like: their tag and class, and the order of the tags inside them, as numbers."""

    def __init__(self) -> None:
        self._shapes = Numbered()
        self._inner: list[tuple[tuple[str, int], ...]] = []
        self._steps: dict[tuple[str, str | None, str | None], tuple[str, str]] = {}
        self._paths: dict[tuple[int, int], frozenset[str]] = {}
        self.text_inside = _TEXT, self.shape(())

    def steps(self, element: Element, tag: str) -> tuple[str, str]:
        """The style of an element (tag and classes), and its step in a path, which tells the id as well.

        Numbers are left out: they count things. So are the classes of a body, which often name the page.
        """
        key = tag, element.get("class"), element.get("id")
        if key not in self._steps:
            words = () if tag == "body" else attribute_words(_DIGITS.sub("", key[1] or ""))
            style = ".".join((tag, *(word for word in words if word not in _STRIPES)))
            name = "" if tag == "body" else _DIGITS.sub("", key[2] or "")
            self._steps[key] = style, f"{style}#{name}" if name else style
        return self._steps[key]

    def shape(self, inner: Iterable[tuple[str, int]]) -> int:
        """A number for what is inside an element: each tag once, with the shape that it has."""
        distinct = tuple(dict.fromkeys(inner))
        shape = self._shapes[distinct]
        if shape == len(self._inner):
            self._inner.append(distinct)
        return shape

    def paths(self, shape: int, depth: int = _SHAPE_DEPTH) -> frozenset[str]:
        """The paths of tags down from an element of this shape."""
        key = shape, depth
        if key not in self._paths:
            paths: set[str] = set()
            for step, inside in self._inner[shape]:
                paths.add(step)
                if depth > 1:
                    paths.update(f"{step}/{path}" for path in self.paths(inside, depth - 1))
            self._paths[key] = frozenset(paths)
        return self._paths[key]

    def lead(self, shape: int) -> str:
        """The path to the first text of an element of this shape; empty if it has none."""
        for step, inside in self._inner[shape]:
            if step == _TEXT:
                return step
            if below := self.lead(inside):
                return f"{step}/{below}"
        return ""

    def is_plain(self, shape: int) -> bool:
        """Whether there is nothing but text in an element of this shape."""
        return all(step == _TEXT for step, _ in self._inner[shape])


class _Tree:
    """A page as lists: for each shown element in document order what it looks like, and where it ends.

    Texts are told by numbers of path and text; an image is a text of no length.
    """

    def __init__(self, root: Element, looks: _Looks, path_numbers: Numbered, text_numbers: Numbered) -> None:
        self.elements: list[Element] = []
        self.styles: list[str] = []
        self.paths: list[int] = []
        self.shapes: list[int] = []
        self.children: list[list[int]] = []
        self.end: list[int] = []  # the number of the first element behind it
        self.first_text: list[int] = []
        self.text_end: list[int] = []  # with the text that follows it in its parent
        self.texts: list[int] = []
        self.lengths: list[int] = []
        self.is_linked: list[bool] = []
        self._read(root, looks, path_numbers, text_numbers)

    def _read(self, root: Element, looks: _Looks, path_numbers: Numbered, text_numbers: Numbered) -> None:
        open_links = 0

        def add_text(raw: str, path: int) -> None:
            text = raw.strip()
            self.texts.append(text_numbers[path, text])
            self.lengths.append(len(text))
            self.is_linked.append(open_links > 0)

        def opened(element: Element, tag: str, above: int) -> _Open:
            nonlocal open_links
            style, step = looks.steps(element, tag)
            path = path_numbers[above, step]
            number = len(self.elements)
            self.elements.append(element)
            self.styles.append(style)
            self.paths.append(path)
            self.shapes.append(0)
            self.children.append([])
            self.end.append(0)
            self.first_text.append(len(self.texts))
            self.text_end.append(0)
            inner: list[tuple[str, int]] = []
            open_links += tag == "a"
            if tag == "img":
                self.texts.append(text_numbers[path, element.get("src", "")])
                self.lengths.append(0)
                self.is_linked.append(False)
            elif (text := element.text) and not text.isspace():
                add_text(text, path)
                inner.append(looks.text_inside)
            return _Open(element, tag, iter(element), number, path, inner)

        stack = [opened(root, str(root.tag), -1)]
        while stack:
            top = stack[-1]
            child = next(top.children, None)
            if child is not None:
                tag: object = child.tag
                if isinstance(tag, str) and tag not in _NOT_SHOWN:
                    self.children[top.number].append(len(self.elements))
                    stack.append(opened(child, tag, top.path))
                elif (tail := child.tail) and not tail.isspace():
                    add_text(tail, top.path)
                    top.inner.append(looks.text_inside)
                continue
            stack.pop()
            open_links -= top.tag == "a"
            number = top.number
            shape = self.shapes[number] = looks.shape(top.inner)
            self.end[number] = len(self.elements)
            if stack:
                above = stack[-1]
                tag = top.tag
                if tag in _CELLS:
                    wide = "-" if top.element.get("colspan", "1") != "1" else ""
                    above.inner.append((f"{tag}{len(self.children[above.number])}{wide}", shape))
                elif tag not in _NO_SHAPE:
                    above.inner.append((tag, shape))
                if (tail := top.element.tail) and not tail.isspace():
                    add_text(tail, above.path)
                    above.inner.append(looks.text_inside)
            self.text_end[number] = len(self.texts)


class _Open(NamedTuple):
    """An element that the walk is inside of."""

    element: Element
    tag: str
    children: Iterator[Element]
    number: int
    path: int
    inner: list[tuple[str, int]]


class _Sums(NamedTuple):
    """Of a page, for each text, what came before it."""

    chars: list[int]
    linked: list[int]
    fields: list[int]


class _Pages:
    """The pages of a cluster, with what varies on them."""

    def __init__(self, roots: Sequence[Element]) -> None:
        self.looks = _Looks()
        paths, texts = Numbered(), Numbered()
        self.trees = [_Tree(root, self.looks, paths, texts) for root in roots]
        self._texts: list[tuple[int, str]] = list(texts)
        self.varies = _varying(self.trees, self._texts)
        self.sums = [self._summed(tree) for tree in self.trees]
        self.chars = sum(sums.chars[-1] for sums in self.sums)

    def path_and_text(self, number: int) -> tuple[int, str]:
        """A text (or the address of an image), and the path of its parent."""
        return self._texts[number]

    def _summed(self, tree: _Tree) -> _Sums:
        varies = [self.varies[text] for text in tree.texts]
        chars = [length * is_so for length, is_so in zip(tree.lengths, varies, strict=True)]
        linked = [length * is_so for length, is_so in zip(chars, tree.is_linked, strict=True)]
        return _Sums(*([*accumulate(numbers, initial=0)] for numbers in (chars, linked, varies)))


def _varying(trees: Sequence[_Tree], texts: Sequence[tuple[int, str]]) -> list[bool]:
    """Which texts differ from page to page or, of a single page, inside it."""
    of_text: Counter[int] = Counter()
    of_path: Counter[int] = Counter()
    for tree in trees:
        counted = set(tree.texts) if len(trees) > 1 else tree.texts
        of_text.update(counted)
        paths = [texts[text][0] for text in counted]
        of_path.update(set(paths) if len(trees) > 1 else paths)
    return [
        of_text[number] == 1 or of_text[number] <= _TEMPLATE_SHARE * of_path[path]
        for number, (path, _) in enumerate(texts)
    ]


class _Part(NamedTuple):
    """A record as numbers: of its page, and of its elements."""

    page: int
    elements: tuple[int, ...]


@dataclass(frozen=True)
class _Group:
    """Records whose parents have the same path."""

    path: int
    parts: tuple[_Part, ...]
    chars: int  # that vary
    linked: int  # of these inside links
    fields: float  # for each record, that vary
    regularity: float
    is_prose: bool  # each is a paragraph

    @property
    def weight(self) -> float:
        """What speaks for these to be what the pages are about."""
        return (
            self.chars
            * min(1, 2 * self.regularity)
            * (_DOUBTFUL if self.is_prose or self.fields < _TWO_FIELDS else 1)
        )

    @property
    def is_menu(self) -> bool:
        """Whether the records are but a link each."""
        return self.fields < _TWO_FIELDS and self.linked >= _LINK_ONLY * self.chars


_Variant: TypeAlias = "tuple[str, int]"
"""What a sibling looks like: its style and its shape."""


class _Children(NamedTuple):
    """The children of one element, with their kinds; a child that tells nothing is of no kind."""

    page: int
    numbers: list[int]
    kinds: list[int]


def _groups(pages: _Pages) -> list[_Group]:
    """The records of each path of parents, where there are any."""
    parents: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for page, tree in enumerate(pages.trees):
        for number, path in enumerate(tree.paths):
            if tree.children[number]:
                parents[path].append((page, number))
    found = (_group(pages, path, elements) for path, elements in parents.items())
    return [group for group in found if group is not None]


def _group(pages: _Pages, path: int, parents: Sequence[tuple[int, int]]) -> _Group | None:
    if all(len(pages.trees[page].children[number]) < _FEW for page, number in parents):
        return None
    inside = sum(_chars(pages, page, (number,)) for page, number in parents)
    if inside < _LEAST_SHARE * pages.chars or not inside:
        return None
    families = _kinds(pages, [(page, pages.trees[page].children[number]) for page, number in parents])
    parts = _best_parts(pages, families, inside)
    parts = [part for part in parts if not _is_furniture(pages, part)]
    if not _repeats(parts) or len(parts) <= _ONCE * len({_parent(pages, part) for part in parts}):
        return None
    return _measured(pages, path, parts)


def _measured(pages: _Pages, path: int, parts: Sequence[_Part]) -> _Group:
    fields = sum(_fields(pages, part) for part in parts)
    return _Group(
        path,
        tuple(parts),
        sum(_chars(pages, *part) for part in parts),
        sum(_linked(pages, *part) for part in parts),
        fields / len(parts),
        _regularity(pages, parts),
        all(
            pages.trees[page].elements[elements[-1]].tag == "p"
            for page, elements in parts
            if len(elements) == 1
        ),
    )


def _span(pages: _Pages, page: int, elements: Sequence[int]) -> tuple[int, int]:
    tree = pages.trees[page]
    return tree.first_text[elements[0]], tree.text_end[elements[-1]]


def _chars(pages: _Pages, page: int, elements: Sequence[int]) -> int:
    start, end = _span(pages, page, elements)
    return pages.sums[page].chars[end] - pages.sums[page].chars[start]


def _linked(pages: _Pages, page: int, elements: Sequence[int]) -> int:
    start, end = _span(pages, page, elements)
    return pages.sums[page].linked[end] - pages.sums[page].linked[start]


def _fields(pages: _Pages, part: _Part) -> int:
    start, end = _span(pages, *part)
    return pages.sums[part.page].fields[end] - pages.sums[part.page].fields[start]


def _is_furniture(pages: _Pages, part: _Part) -> bool:
    """Whether a part is a header row or such: it says the same on all pages."""
    start, end = _span(pages, *part)
    if end == start:
        return True
    tree = pages.trees[part.page]
    return _fields(pages, part) == 0 and (end - start < _FEW or tree.elements[part.elements[0]].tag == "tr")


def _parent(pages: _Pages, part: _Part) -> Element | None:
    return pages.trees[part.page].elements[part.elements[0]].getparent()


def _repeats(parts: Iterable[_Part]) -> bool:
    """Whether there are three on a page, or two on several."""
    counts = Counter(part.page for part in parts)
    return any(count > _FEW for count in counts.values()) or (
        sum(count >= _FEW for count in counts.values()) >= _FEW
    )


def _regularity(pages: _Pages, parts: Sequence[_Part]) -> float:
    """How alike the records are inside: 1 if all have the same paths of tags."""
    shapes = Counter(tuple(pages.trees[page].shapes[one] for one in elements) for page, elements in parts)
    paths = {shape: frozenset().union(*(pages.looks.paths(inner) for inner in shape)) for shape in shapes}
    counts = Counter(path for shape, count in shapes.items() for path in paths[shape] for _ in range(count))
    usual = {path for path, count in counts.items() if count >= _USUAL * len(parts)}
    return sum(count * _similarity(paths[shape], usual) for shape, count in shapes.items()) / len(parts)


def _similarity(one: AbstractSet[object], other: AbstractSet[object]) -> float:
    return len(one & other) / len(one | other) if one or other else 1.0


# Kinds of siblings


def _kinds(pages: _Pages, families: Sequence[tuple[int, list[int]]]) -> list[_Children]:
    """The siblings of all these families sorted by what they look like."""
    variants: Counter[_Variant] = Counter()
    for page, children in families:
        tree = pages.trees[page]
        variants.update((tree.styles[child], tree.shapes[child]) for child in children)
    kinds = _variant_kinds(pages.looks, variants)
    _part_pairs(pages, families, kinds)
    sorted_families = []
    fields: Counter[int] = Counter()
    for page, children in families:
        tree = pages.trees[page]
        numbers = [kinds[tree.styles[child], tree.shapes[child]] for child in children]
        sorted_families.append(_Children(page, children, numbers))
        for child, number in zip(children, numbers, strict=True):
            fields[number] += _fields(pages, _Part(page, (child,)))
    return [
        family._replace(kinds=[kind if fields[kind] else _NO_KIND for kind in family.kinds])
        for family in sorted_families
    ]


def _variant_kinds(looks: _Looks, variants: Counter[_Variant]) -> dict[_Variant, int]:
    """Looks of siblings come together by class first, then by what those of a class have inside."""
    of_style: defaultdict[str, list[_Kind]] = defaultdict(list)
    for (style, shape), count in variants.most_common():
        if style in _NO_SHAPE:
            continue
        kind = next((kind for kind in of_style[style] if kind.has_alike(looks, shape)), None)
        if kind is None:
            kind = _Kind(style, shape)
            of_style[style].append(kind)
        kind.add(looks, shape, count)
    merged: list[list[_Kind]] = []
    for kind in sorted((kind for kinds in of_style.values() for kind in kinds), key=lambda kind: -kind.count):
        home = next((kinds for kinds in merged if kinds[0].is_like(looks, kind)), None)
        if home is None:
            merged.append([kind])
        else:
            home.append(kind)
    found = dict.fromkeys(variants, _NO_KIND)
    found.update(
        ((kind.style, shape), number)
        for number, kinds in enumerate(merged)
        for kind in kinds
        for shape in kind.shapes
    )
    return found


class _Kind:
    """Siblings of one class that are alike inside."""

    def __init__(self, style: str, leader: int) -> None:
        self.style = style
        self.tag, *self.words = style.split(".")
        self.leader = leader
        self.count = 0
        self.shapes: list[int] = []
        self._paths: Counter[str] = Counter()

    def add(self, looks: _Looks, shape: int, count: int) -> None:
        """Take in siblings of a shape."""
        self.count += count
        self.shapes.append(shape)
        for path in looks.paths(shape):
            self._paths[path] += count

    @property
    def usual_paths(self) -> set[str]:
        """What many have inside."""
        return {path for path, count in self._paths.items() if count >= _OPTIONAL * self.count}

    def has_alike(self, looks: _Looks, shape: int) -> bool:
        """Whether siblings of the same class with this shape are of this kind."""
        least = _ALIKE_OF_A_CLASS if self.words else _ALIKE
        return _similarity(looks.paths(self.leader), looks.paths(shape)) >= least or (
            looks.lead(self.leader) == looks.lead(shape)
        )

    def is_like(self, looks: _Looks, other: _Kind) -> bool:
        """Whether siblings of other classes are the same, such as odd ones and promoted ones."""
        if self.tag != other.tag or self.style == other.style:
            return False
        paths, other_paths = self.usual_paths, other.usual_paths
        if _similarity(paths, other_paths) < _ALIKE:
            return False
        if set(self.words) <= set(other.words) or set(other.words) <= set(self.words):
            return self.tag == "li" or not (looks.is_plain(self.leader) or looks.is_plain(other.leader))
        return len(paths & other_paths) >= _TELLING_PATHS


def _part_pairs(pages: _Pages, families: Sequence[tuple[int, list[int]]], kinds: dict[_Variant, int]) -> None:
    """Siblings of two classes that take turns, and differ inside, are two kinds: a title row, a detail row."""
    for kind in set(kinds.values()):
        variants = [variant for variant, number in kinds.items() if number == kind]
        styles = sorted({style for style, _ in variants})
        if len(styles) != _FEW:
            continue
        sequences = [
            [
                style
                for child in children
                if kinds[(style := pages.trees[page].styles[child]), pages.trees[page].shapes[child]] == kind
            ]
            for page, children in families
        ]
        if not all(one != other for sequence in sequences for one, other in pairwise(sequence)):
            continue
        insides = [
            frozenset().union(*(pages.looks.paths(shape) for style, shape in variants if style == own))
            for own in styles
        ]
        if _similarity(*insides) < _PAIRED:
            new = max(kinds.values()) + 1
            kinds.update((variant, new) for variant in variants if variant[0] == styles[1])


# From siblings to records


class _Cut(NamedTuple):
    """One way to cut siblings into records."""

    parts: list[_Part]
    kinds: list[list[int]]  # of the siblings in each part
    score: float


def _best_parts(pages: _Pages, families: Sequence[_Children], chars: int) -> list[_Part]:
    """The records among siblings: the cut that leaves out least text and whose parts are most alike."""
    counts = Counter(kind for family in families for kind in family.kinds if kind != _NO_KIND)
    cuts = [
        _cut(pages, families, kind, chars) for kind, count in counts.most_common(_MOST_KINDS) if count >= _FEW
    ]
    if not cuts:
        return []
    best = max(cuts, key=lambda cut: cut.score)
    ruled = _cut(pages, families, _AT_RULES, chars)
    if len(ruled.parts) >= len(best.parts) and ruled.score >= _RULED * best.score:
        return ruled.parts
    return _repeated_inside(pages, best) or best.parts


def _cut(pages: _Pages, families: Sequence[_Children], start: int, chars: int) -> _Cut:
    """Records that begin at each sibling of a kind, or after each rule."""
    runs = [(family, first, behind) for family in families for first, behind in _runs(pages, family, start)]
    counts = Counter(kind for family, first, behind in runs for kind in set(family.kinds[first:behind]))
    del counts[_NO_KIND]
    usual = {kind for kind, count in counts.items() if count >= _USUAL * len(runs)}
    known = {kind for kind, count in counts.items() if count >= max(_FEW, _OPTIONAL * len(runs))} | usual
    parts, kinds = [], []
    for family, first, behind in runs:
        places = [place for place in range(first, behind) if family.kinds[place] in known]
        while places and _is_heading(pages, family, places[-1]) and family.kinds[places[-1]] not in usual:
            places.pop()
        if usual & {family.kinds[place] for place in places}:
            inside = slice(places[0], places[-1] + 1)
            parts.append(_Part(family.page, tuple(family.numbers[inside])))
            kinds.append(family.kinds[inside])
    covered = sum(_chars(pages, *part) for part in parts)
    return _Cut(parts, kinds, covered / chars * _evenness(kinds, usual))


def _evenness(runs: Sequence[list[int]], usual: AbstractSet[int]) -> float:
    """How much runs are alike in their kinds; two of a kind that others have once are two records in one."""
    counts = [Counter(kind for kind in run if kind != _NO_KIND) for run in runs]
    once = Counter(kind for run in counts for kind, count in run.items() if count == 1)
    often = Counter(kind for run in counts for kind in run)
    single = {kind for kind in often if once[kind] >= _USUAL * often[kind]}
    alike = (
        _similarity(usual, run.keys())
        / max((count for kind, count in run.items() if kind in single), default=1)
        for run in counts
    )
    return sum(alike) / max(1, len(runs))


def _is_heading(pages: _Pages, family: _Children, place: int) -> bool:
    """Whether a sibling is the heading of what follows it."""
    return pages.trees[family.page].elements[family.numbers[place]].tag in _HEADINGS


def _runs(pages: _Pages, family: _Children, start: int) -> list[tuple[int, int]]:
    """Where records may begin and end among siblings."""
    if start == _AT_RULES:
        elements = pages.trees[family.page].elements
        rules = [place for place, number in enumerate(family.numbers) if elements[number].tag == "hr"]
        return (
            [(one + 1, other) for one, other in pairwise([-1, *rules, len(family.numbers)])] if rules else []
        )
    starts = [place for place, kind in enumerate(family.kinds) if kind == start]
    return list(pairwise([*starts, len(family.kinds)]))


def _repeated_inside(pages: _Pages, cut: _Cut) -> list[_Part]:
    """The siblings of one kind that come again and again in the parts, if they are records themselves."""
    found: defaultdict[int, list[_Part]] = defaultdict(list)
    for part, own in zip(cut.parts, cut.kinds, strict=True):
        for one, kind in zip(part.elements, own, strict=True):
            if kind != _NO_KIND:
                found[kind].append(_Part(part.page, (one,)))
    repeated = [parts for parts in found.values() if len(parts) > _ONCE * len(cut.parts)]
    chars = sum(_chars(pages, *part) for part in cut.parts)
    for parts in repeated:
        if sum(_chars(pages, *part) for part in parts) >= _USUAL * chars and _are_records(pages, parts):
            return parts
    return []


def _are_records(pages: _Pages, parts: Sequence[_Part]) -> bool:
    """Whether most parts have several fields, which tells records from cells, tags and paragraphs."""
    return sum(_fields(pages, part) >= _FEW for part in parts) >= _RECORDS * len(parts)


# From groups to listings


class _Found(NamedTuple):
    """All groups of records, and of those that stand in each other one, the heaviest first."""

    groups: list[_Group]
    ranked: list[_Group]


def _find(pages: _Pages) -> _Found:
    groups = [group for group in _groups(pages) if not _are_facts(pages, group)]
    ranked = []
    left = sorted(groups, key=lambda group: -group.weight)
    while left:
        best = _innermost(pages, left[0], left)
        left = [group for group in left if not _overlap(pages, best, group)]
        ranked.append(best)
    return _Found(groups, sorted(ranked, key=lambda group: -group.weight))


def _listing(pages: _Pages, group: _Group, groups: Sequence[_Group]) -> Listing:
    parts = (
        RecordPart(page, tuple(pages.trees[page].elements[one] for one in elements))
        for page, elements in sorted(group.parts)
    )
    return Listing(tuple(parts), _share(pages, group, groups))


def _share(pages: _Pages, group: _Group, groups: Sequence[_Group]) -> float:
    """How much of the varying text is in a group; links of menus are not counted.

    On a single page nothing tells menus from other links: no link outside is counted.
    """
    if len(pages.trees) == 1:
        sums = pages.sums[0]
        links = sums.linked[-1] - group.linked
    else:
        links = _chars_of_all(
            pages, [one for one in groups if one.is_menu and not _overlap(pages, group, one)]
        )
    return group.chars / max(1, pages.chars - links)


def _chars_of_all(pages: _Pages, groups: Iterable[_Group]) -> int:
    """The varying text in any of the groups, some of which may stand inside others."""
    total = 0
    spans = sorted((part.page, *_span(pages, *part)) for group in groups for part in group.parts)
    last_page, last_end = -1, 0
    for page, start, end in spans:
        begin = max(start, last_end) if page == last_page else start
        if end > begin:
            total += pages.sums[page].chars[end] - pages.sums[page].chars[begin]
            last_page, last_end = page, end
    return total


def _are_facts(pages: _Pages, group: _Group) -> bool:
    """Whether each part has an id or a label of its own that is the same on other pages.

    So have the facts about one thing, and the columns that a page is laid out in.
    """
    if len(pages.trees) == 1:
        return False
    ids, labels = [], []
    for page, elements in group.parts:
        tree = pages.trees[page]
        ids.append((page, _DIGITS.sub("", tree.elements[elements[0]].get("id", ""))))
        labels.append((page, pages.path_and_text(tree.texts[tree.first_text[elements[0]]])[1]))
    return any(
        _name_slots([name for name in names if _LETTER.search(name[1])], group) for names in (ids, labels)
    )


def _name_slots(names: Sequence[tuple[int, str]], group: _Group) -> bool:
    """Whether most parts are named, seldom two of a page alike, and with few names over all pages."""
    per_page = len(group.parts) / len({part.page for part in group.parts})
    return (
        len(names) >= _USUAL * len(group.parts)
        and len(set(names)) >= _NEARLY * len(names)
        and len({name for _, name in names}) <= _SLOTS * per_page
    )


def _innermost(pages: _Pages, group: _Group, groups: Sequence[_Group]) -> _Group:
    """The records inside the parts of a group, where these hold several each: rows of a grid, sections."""
    for other in groups:
        if other is not group and _are_inside(pages, other, group):
            return _innermost(pages, other, groups)
    return group


def _are_inside(pages: _Pages, inner: _Group, outer: _Group) -> bool:
    if len(inner.parts) <= _ONCE * len(outer.parts) or inner.chars < _SAME_TEXT * outer.chars:
        return False
    spans = _spans(pages, outer)
    inside = [part for part in inner.parts if _covers(spans[part.page], _span(pages, *part))]
    return len(inside) >= _SAME_TEXT * len(inner.parts) and _are_records(pages, inner.parts)


def _overlap(pages: _Pages, one: _Group, other: _Group) -> bool:
    """Whether some part of one group stands inside a part of the other."""
    return any(
        _covers(spans[part.page], _span(pages, *part))
        for outer, inner in ((one, other), (other, one))
        for spans in [_spans(pages, outer)]
        for part in inner.parts
    )


def _spans(pages: _Pages, group: _Group) -> defaultdict[int, list[tuple[int, int]]]:
    spans: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for part in group.parts:
        spans[part.page].append(_span(pages, *part))
    return spans


def _covers(spans: Sequence[tuple[int, int]], inside: tuple[int, int]) -> bool:
    place = bisect_right(spans, (inside[0], sys.maxsize)) - 1
    return place >= 0 and spans[place][1] >= inside[1]


def _is_main(pages: _Pages, group: _Group, groups: Sequence[_Group]) -> bool:
    """Whether the pages are about these records.

    Pages about one thing may have a long list of reviews or of other things, but they tell more outside
    of any list than list pages, which have a heading, a count and the like.
    """
    pages_with = {part.page for part in group.parts}
    if (
        _share(pages, group, groups) < (_MAIN_SHARE_OF_LINKS if group.is_menu else _MAIN_SHARE)
        or len(group.parts) <= _FEW * len(pages_with)
        or len(pages_with) < _USUAL * len(pages.trees)
        or (group.fields < _TWO_FIELDS and not group.is_menu)
    ):
        return False
    outside = _fields_outside(pages, groups)
    if len(pages.trees) > 1:
        return outside <= _MOST_FIELDS_OUTSIDE
    return outside * _FIELDS_TO_ONE_OUTSIDE <= group.fields * len(group.parts) and _lead_on(pages, group)


def _lead_on(pages: _Pages, group: _Group) -> bool:
    """Whether the records lead to pages about each, or are rows of a table; reviews do not and are not."""
    linked = sum(_linked(pages, *part) > 0 for part in group.parts)
    page, elements = group.parts[0]
    return linked >= _USUAL * len(group.parts) or pages.trees[page].elements[elements[0]].tag == "tr"


def _fields_outside(pages: _Pages, groups: Sequence[_Group]) -> int:
    """The paths outside of any group that have a text that varies on most of the pages.

    Of texts that stand there twice one counts; of a single page no links, which may be those of a menu.
    """
    inside: list[set[int]] = [set() for _ in pages.trees]
    for group in groups:
        for part in group.parts:
            inside[part.page].update(range(*_span(pages, *part)))
    counts: Counter[int] = Counter()
    for tree, places in zip(pages.trees, inside, strict=True):
        outside: dict[str, int] = {}
        for place, text in enumerate(tree.texts):
            is_told = tree.lengths[place] and pages.varies[text] and place not in places
            if is_told and not (len(pages.trees) == 1 and tree.is_linked[place]):
                path, words = pages.path_and_text(text)
                outside[words] = path
        counts.update(set(outside.values()))
    return sum(count > _USUAL * len(pages.trees) for count in counts.values())
