"""A page as a set of paths; the paths most pages of a cluster share, how often each occurs, which vary,
and how one page differs.

Paths are kept as 64-bit hashes, the same in every process; their wording can
be had back from a page on which they stand.

I(X) = 1 - (sum over contents t of F(X, t)) / (M * number of contents)
    w(X) = F(X) * I(X)

F(X) is the number of pages that have the path X, F(X, t) of those that have the
content t there, M the number of all pages (Gulhane et al., ICDE 2011).
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from lxml import etree

from siteloom.core.model import Failure, Template, TemplatePath
from siteloom.html.parser import parse
from siteloom.html.time_limit import within
from siteloom.html.visible_text import FRAMES, NOT_CONTENT, normalize

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from siteloom.core.model import Page
    from siteloom.core.settings import ParseSettings
    from siteloom.html.parser import Element


_LARGEST = 2**64 - 1
_PRIME = 0x00000100000001B3  # FNV's, as in the hash of tag names

_WITHOUT_TEXT = NOT_CONTENT | FRAMES


class PathSet(NamedTuple):
    """The paths of a page, each once: those of elements, and those that go on to a text.

    `parents[i]` is the path of the element that the text of `texts[i]` stands in.
    """

    elements: NDArray[np.uint64]
    texts: NDArray[np.uint64]
    parents: NDArray[np.uint64]

    @property
    def all(self) -> NDArray[np.uint64]:
        """Both kinds, ascending."""
        return np.union1d(self.elements, self.texts)


class PathText(NamedTuple):
    """A path in words: the tags, and the text that it ends in, if it does."""

    tags: str
    text: str | None

    def __str__(self) -> str:
        return self.tags if self.text is None else f'{self.tags}/"{self.text}"'


def page_paths(root: Element) -> PathSet:
    """The paths of a page, without positions."""
    elements: list[int] = []
    parent_of_text: dict[int, int] = {}
    for ways, text in _walk(root, _tag_label):
        path = ways[-1].path
        if text is None:
            elements.append(path)
        else:
            parent_of_text[_child_hash(path, _text_hash(text))] = path
    texts = np.fromiter(parent_of_text, np.uint64, len(parent_of_text))
    parents = np.fromiter(parent_of_text.values(), np.uint64, len(parent_of_text))
    order = np.argsort(texts)
    return PathSet(np.unique(np.array(elements, np.uint64)), texts[order], parents[order])


def paths_of_page(page: Page, limits: ParseSettings) -> PathSet | Failure:
    """All paths of a page that is not parsed yet, or why it has none."""

    def paths() -> PathSet | Failure:
        root = parse(page, limits)
        return root if isinstance(root, Failure) else page_paths(root)

    return within(limits.max_seconds, page.url, paths)


def class_path_hashes(root: Element) -> NDArray[np.uint64]:
    """The paths of a page's elements, each label a tag with its class names."""
    hashes = [ways[-1].path for ways, text in _walk(root, _class_label) if text is None]
    return np.unique(np.array(hashes, np.uint64))


def path_texts(root: Element, wanted: Collection[int]) -> dict[int, PathText]:
    """The wording of those wanted paths that stand on a page, in the page's order."""
    found: dict[int, PathText] = {}
    for ways, text in _walk(root, _tag_label):
        path = ways[-1].path if text is None else _child_hash(ways[-1].path, _text_hash(text))
        if path in wanted and path not in found:
            found[path] = PathText("/".join(way.tag for way in ways[1:]), text)
    return found


class _Way:
    """Where a path of elements ends, and from there on: by which labels it goes on, and to which texts."""

    __slots__ = ("has_text", "path", "tag", "texts", "ways")

    def __init__(self, path: int, tag: str, *, has_text: bool) -> None:
        self.path = path
        self.tag = tag
        self.has_text = has_text
        self.ways: dict[str, _Way] = {}
        self.texts: set[str] = set()

    def to(self, label: str, tag: str) -> _Way:
        """The way on by a label that is new."""
        path = _child_hash(self.path, _label_hash(label))
        way = self.ways[label] = _Way(path, tag, has_text=self.has_text and tag not in _WITHOUT_TEXT)
        return way


def _walk(root: Element, label: Callable[[Element], str]) -> Iterator[tuple[list[_Way], str | None]]:
    """Each path of elements, and each text that one goes on to, in the order in which they first come.

    A path is given as its ways, behind where all begin. Most elements of a page have the path of another, for
    which nothing is to be computed.
    """
    here = _Way(0, "", has_text=True)
    ways = [here]
    for event, node in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event == "start":
            name = label(node)
            known = here.ways.get(name)
            here = known or here.to(name, str(node.tag))
            ways.append(here)
            if known is None:
                yield ways, None
            text = node.text
        else:
            if event == "end":
                ways.pop()
                here = ways[-1]
            text = node.tail
        if text and here.has_text and len(ways) > 1 and not text.isspace():
            words = normalize(text)
            if words not in here.texts:
                here.texts.add(words)
                yield ways, words


_tag_label: Callable[[Element], str] = attrgetter("tag")


def _class_label(element: Element) -> str:
    classes = element.get("class", "").split()
    return " ".join([str(element.tag), *sorted(set(classes))])


def _child_hash(parent: int, label: int) -> int:
    mixed = ((parent ^ label) * _PRIME) & _LARGEST
    return ((mixed ^ (mixed >> 29)) * _PRIME + label) & _LARGEST


@lru_cache(maxsize=65_536)  # a site's tags and classes come back on every page
def _label_hash(label: str) -> int:
    return _stable_hash(label)


def _text_hash(text: str) -> int:
    return _stable_hash(f"\n{text}")  # no label begins with a new line


def _stable_hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())


_HEAVIEST = 20  # paths whose mean informativeness stands for a whole cluster


class Informativeness(NamedTuple):
    """The text-bearing paths of a cluster, ascending, with what is known of each."""

    paths: NDArray[np.uint64]
    pages: NDArray[np.int64]
    contents: NDArray[np.int64]
    informativeness: NDArray[np.float64]

    @property
    def weight(self) -> NDArray[np.float64]:
        """How much it would tell to see a page with the path."""
        return self.pages * self.informativeness


def informativeness(pages: Sequence[PathSet]) -> Informativeness:
    """How much each path that bears text tells about a page."""
    empty = np.empty(0, np.uint64)
    parents = np.concatenate([empty, *(page.parents for page in pages)])
    texts = np.concatenate([empty, *(page.texts for page in pages)])
    paths, occurrences = np.unique(parents, return_counts=True)
    _, first = np.unique(texts, return_index=True)
    contents = np.bincount(np.searchsorted(paths, parents[first]), minlength=len(paths))
    parents_of_pages = np.concatenate([empty, *(np.unique(page.parents) for page in pages)])
    pages_with_path = np.bincount(np.searchsorted(paths, parents_of_pages), minlength=len(paths))
    told = 1 - occurrences / (max(1, len(pages)) * np.maximum(1, contents))
    return Informativeness(paths, pages_with_path, contents, told)


def importance(pages: Sequence[PathSet], cluster_size: int) -> float:
    """How much a cluster is worth a person's time: its pages times how much its heaviest paths tell."""
    found = informativeness(pages)
    heaviest = np.argsort(-found.weight, kind="stable")[:_HEAVIEST]
    return float(cluster_size * found.informativeness[heaviest].mean()) if heaviest.size else 0.0


class SharedPaths(NamedTuple):
    """Paths that most pages have, ascending, and how many pages have each."""

    paths: NDArray[np.uint64]
    support: NDArray[np.int64]


class Delta(NamedTuple):
    """How a page departs from its template: the paths that it adds, and those that it lacks."""

    added: NDArray[np.uint64]
    lacking: NDArray[np.uint64]


def shared_paths(pages: Sequence[NDArray[np.uint64]]) -> SharedPaths:
    """The paths of the shortest description of the pages: those on more than half of them.

    A path in the template costs one entry there and one for each page without
    it; left out, it costs one for each page with it (Kim and Shim, TKDE 2011).
    """
    paths, support = np.unique(np.concatenate([np.empty(0, np.uint64), *pages]), return_counts=True)
    is_shared = 2 * support >= len(pages) + 1
    return SharedPaths(paths[is_shared], support[is_shared])


def page_delta(page: NDArray[np.uint64], template: NDArray[np.uint64]) -> Delta:
    """What a page adds to its template, and what it lacks."""
    return Delta(
        np.setdiff1d(page, template, assume_unique=True),
        np.setdiff1d(template, page, assume_unique=True),
    )


def describe_template(shared: SharedPaths, pages: int, roots: Iterable[Element]) -> Template:
    """The template in words, which are taken from trees of its pages, in the order they stand there."""
    support = dict(zip(shared.paths.tolist(), shared.support.tolist(), strict=True))
    missing = set(support)
    described: list[TemplatePath] = []
    for root in roots:
        found = path_texts(root, missing)
        described += [TemplatePath(words.tags, words.text, support[path]) for path, words in found.items()]
        missing -= set(found)
        if not missing:
            break
    return Template(tuple(described), pages)


class PathRow(NamedTuple):
    """A path of a cluster, and the text that it goes on to if that is template text.

    Informativeness is known of paths that bear text.
    """

    path: str
    text: str | None
    support: int
    essential: bool
    informativeness: float | None


class TagRow(NamedTuple):
    """How often a tag stands on a page, or on all pages together, and on how many of them."""

    page: int | None
    tag: str
    occurrences: int
    support: int
    essential: bool


def path_rows(roots: Sequence[Element]) -> list[PathRow]:
    """The paths of elements on some pages of a cluster, and the template texts, in the pages' order."""
    path_sets = [page_paths(root) for root in roots]
    elements = np.concatenate([np.empty(0, np.uint64), *(p.elements for p in path_sets)])
    paths, support = np.unique(elements, return_counts=True)
    shared = shared_paths([p.all for p in path_sets])
    told = informativeness(path_sets)
    support_of = dict(zip(paths.tolist(), support.tolist(), strict=True))
    support_of |= dict(zip(shared.paths.tolist(), shared.support.tolist(), strict=True))
    informativeness_of = dict(zip(told.paths.tolist(), told.informativeness.tolist(), strict=True))
    essential = set(shared.paths.tolist())
    rows: dict[int, PathRow] = {}
    for root in roots:
        for path, words in path_texts(root, support_of.keys() - rows.keys()).items():
            rows[path] = PathRow(
                words.tags, words.text, support_of[path], path in essential, informativeness_of.get(path)
            )
    return list(rows.values())


def tag_rows(roots: Sequence[Element]) -> list[TagRow]:
    """The tags of some pages of a cluster: for all pages together, then for each page."""
    counts = [Counter(str(element.tag) for element in root.iter("*")) for root in roots]
    support = Counter(tag for page in counts for tag in page)
    total: Counter[str] = sum(counts, Counter())
    return [
        TagRow(page, tag, tags[tag], support[tag], 2 * support[tag] > len(roots))
        for page, tags in [(None, total), *enumerate(counts)]
        for tag in sorted(tags)
    ]
