"""Pages as sets of paths: the paths that most pages of a cluster share, their support and informativeness,
and how a page differs from its template.

Paths are stored as 64-bit hashes, the same in every process; their text can be recovered from a page that has
them.

    I(X) = 1 - (sum over contents t of F(X, t)) / (M * number of contents)
    w(X) = F(X) * I(X)

F(X) is the number of pages that have the path X, F(X, t) the number of those that have the content t there,
and M the number of all pages (Gulhane et al., ICDE 2011).
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
    """The distinct paths of a page: those of elements, and those that end in a text.

    `parents[i]` is the path of the parent element of the text of `texts[i]`.
    """

    elements: NDArray[np.uint64]
    texts: NDArray[np.uint64]
    parents: NDArray[np.uint64]

    @property
    def all_paths(self) -> NDArray[np.uint64]:
        """The paths of both kinds, ascending."""
        return np.union1d(self.elements, self.texts)


class PathText(NamedTuple):
    """A path in readable form: the tags, and the text that it ends in, if it ends in one."""

    tags: str
    text: str | None

    def __str__(self) -> str:
        return self.tags if self.text is None else f'{self.tags}/"{self.text}"'


def page_paths(root: Element) -> PathSet:
    """Return the paths of a page, without positions."""
    elements: list[int] = []
    parent_of_text: dict[int, int] = {}
    for nodes, text in _walk(root, _tag_label):
        path = nodes[-1].path
        if text is None:
            elements.append(path)
        else:
            parent_of_text[_child_hash(path, _text_hash(text))] = path
    texts = np.fromiter(parent_of_text, np.uint64, len(parent_of_text))
    parents = np.fromiter(parent_of_text.values(), np.uint64, len(parent_of_text))
    order = np.argsort(texts)
    return PathSet(np.unique(np.array(elements, np.uint64)), texts[order], parents[order])


def paths_of_page(page: Page, limits: ParseSettings) -> PathSet | Failure:
    """Parse a page and return its paths, or the failure."""

    def paths() -> PathSet | Failure:
        root = parse(page, limits)
        return root if isinstance(root, Failure) else page_paths(root)

    return within(limits.max_seconds, page.url, paths)


def class_path_hashes(root: Element) -> NDArray[np.uint64]:
    """Return the paths of a page's elements, with tags and class names as labels."""
    hashes = [nodes[-1].path for nodes, text in _walk(root, _class_label) if text is None]
    return np.unique(np.array(hashes, np.uint64))


def path_texts(root: Element, path_hashes: Collection[int]) -> dict[int, PathText]:
    """Return the readable form of those of some paths that a page has, in the page's order."""
    texts_by_path: dict[int, PathText] = {}
    for nodes, text in _walk(root, _tag_label):
        path = nodes[-1].path if text is None else _child_hash(nodes[-1].path, _text_hash(text))
        if path in path_hashes and path not in texts_by_path:
            texts_by_path[path] = PathText("/".join(node.tag for node in nodes[1:]), text)
    return texts_by_path


class _PathNode:
    """The node of a prefix tree of paths: its children by label, and the texts of its elements."""

    __slots__ = ("children", "has_text", "path", "tag", "texts")

    def __init__(self, path: int, tag: str, *, has_text: bool) -> None:
        self.path = path
        self.tag = tag
        self.has_text = has_text
        self.children: dict[str, _PathNode] = {}
        self.texts: set[str] = set()

    def add_child(self, label: str, tag: str) -> _PathNode:
        """Add a child for a new label."""
        path = _child_hash(self.path, _label_hash(label))
        child = self.children[label] = _PathNode(
            path, tag, has_text=self.has_text and tag not in _WITHOUT_TEXT
        )
        return child


def _walk(root: Element, label: Callable[[Element], str]) -> Iterator[tuple[list[_PathNode], str | None]]:
    """Yield each distinct path of elements, and each distinct text of a path, in document order.

    A path is given as its nodes in the prefix tree, from the root on. Most elements share their path with
    another element, so that nothing needs to be computed for them.
    """
    current = _PathNode(0, "", has_text=True)
    nodes = [current]
    for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event == "start":
            name = label(element)
            known_node = current.children.get(name)
            current = known_node or current.add_child(name, str(element.tag))
            nodes.append(current)
            if known_node is None:
                yield nodes, None
            text = element.text
        else:
            if event == "end":
                nodes.pop()
                current = nodes[-1]
            text = element.tail
        if text and current.has_text and len(nodes) > 1 and not text.isspace():
            words = normalize(text)
            if words not in current.texts:
                current.texts.add(words)
                yield nodes, words


_tag_label: Callable[[Element], str] = attrgetter("tag")


def _class_label(element: Element) -> str:
    classes = element.get("class", "").split()
    return " ".join([str(element.tag), *sorted(set(classes))])


def _child_hash(parent: int, label: int) -> int:
    mixed = ((parent ^ label) * _PRIME) & _LARGEST
    return ((mixed ^ (mixed >> 29)) * _PRIME + label) & _LARGEST


@lru_cache(maxsize=65_536)  # a site's tags and classes repeat on every page
def _label_hash(label: str) -> int:
    return _stable_hash(label)


def _text_hash(text: str) -> int:
    return _stable_hash(f"\n{text}")  # no label begins with a new line


def _stable_hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())


_HEAVIEST = 20  # paths whose mean informativeness stands for a whole cluster


class Informativeness(NamedTuple):
    """The paths of a cluster that have text, ascending, with page counts, contents and informativeness."""

    paths: NDArray[np.uint64]
    pages: NDArray[np.int64]
    contents: NDArray[np.int64]
    informativeness: NDArray[np.float64]

    @property
    def weight(self) -> NDArray[np.float64]:
        """The weight of each path: its page count times its informativeness."""
        return self.pages * self.informativeness


def informativeness(pages: Sequence[PathSet]) -> Informativeness:
    """Return the informativeness of each path that has text."""
    empty = np.empty(0, np.uint64)
    parents = np.concatenate([empty, *(page.parents for page in pages)])
    texts = np.concatenate([empty, *(page.texts for page in pages)])
    paths, occurrences = np.unique(parents, return_counts=True)
    _, first_indices = np.unique(texts, return_index=True)
    contents = np.bincount(np.searchsorted(paths, parents[first_indices]), minlength=len(paths))
    parents_of_pages = np.concatenate([empty, *(np.unique(page.parents) for page in pages)])
    pages_with_path = np.bincount(np.searchsorted(paths, parents_of_pages), minlength=len(paths))
    informative_share = 1 - occurrences / (max(1, len(pages)) * np.maximum(1, contents))
    return Informativeness(
        paths=paths, pages=pages_with_path, contents=contents, informativeness=informative_share
    )


def importance(pages: Sequence[PathSet], cluster_size: int) -> float:
    """Return the importance of a cluster: its size times the mean informativeness of its heaviest paths."""
    cluster_paths = informativeness(pages)
    heaviest = np.argsort(-cluster_paths.weight, kind="stable")[:_HEAVIEST]
    return float(cluster_size * cluster_paths.informativeness[heaviest].mean()) if heaviest.size else 0.0


class SharedPaths(NamedTuple):
    """The paths that most pages have, ascending, and the number of pages with each."""

    paths: NDArray[np.uint64]
    support: NDArray[np.int64]


class Delta(NamedTuple):
    """The difference of a page from its template: the paths that it adds, and those that it lacks."""

    added: NDArray[np.uint64]
    lacking: NDArray[np.uint64]


def shared_paths(pages: Sequence[NDArray[np.uint64]]) -> SharedPaths:
    """Return the paths of the shortest description of the pages: those on more than half of them.

    A path in the template costs one entry there and one for each page without it; left out, it costs one for
    each page with it (Kim and Shim, TKDE 2011).
    """
    paths, support = np.unique(np.concatenate([np.empty(0, np.uint64), *pages]), return_counts=True)
    is_shared = 2 * support >= len(pages) + 1
    return SharedPaths(paths[is_shared], support[is_shared])


def page_delta(page: NDArray[np.uint64], template: NDArray[np.uint64]) -> Delta:
    """Return the difference of a page from its template."""
    return Delta(
        np.setdiff1d(page, template, assume_unique=True),
        np.setdiff1d(template, page, assume_unique=True),
    )


def describe_template(shared: SharedPaths, pages: int, roots: Iterable[Element]) -> Template:
    """Return the template in readable form, which comes from trees of its pages, in their order."""
    support = dict(zip(shared.paths.tolist(), shared.support.tolist(), strict=True))
    missing = set(support)
    described: list[TemplatePath] = []
    for root in roots:
        texts_by_path = path_texts(root, missing)
        described += [
            TemplatePath(words.tags, words.text, support[path]) for path, words in texts_by_path.items()
        ]
        missing -= set(texts_by_path)
        if not missing:
            break
    return Template(tuple(described), pages)


class PathRow(NamedTuple):
    """A path of a cluster, and the text that it ends in if that is template text.

    Only paths that have text have an informativeness.
    """

    path: str
    text: str | None
    support: int
    essential: bool
    informativeness: float | None


class TagRow(NamedTuple):
    """The number of occurrences of a tag on a page, or on all pages together, and the pages that have it."""

    page: int | None
    tag: str
    occurrences: int
    support: int
    essential: bool


def path_rows(roots: Sequence[Element]) -> list[PathRow]:
    """Return the element paths on some pages of a cluster, and the template texts, in the pages' order."""
    path_sets = [page_paths(root) for root in roots]
    elements = np.concatenate([np.empty(0, np.uint64), *(path_set.elements for path_set in path_sets)])
    paths, support = np.unique(elements, return_counts=True)
    shared = shared_paths([path_set.all_paths for path_set in path_sets])
    cluster_paths = informativeness(path_sets)
    support_of = dict(zip(paths.tolist(), support.tolist(), strict=True))
    support_of |= dict(zip(shared.paths.tolist(), shared.support.tolist(), strict=True))
    informativeness_of = dict(
        zip(cluster_paths.paths.tolist(), cluster_paths.informativeness.tolist(), strict=True)
    )
    essential = set(shared.paths.tolist())
    rows: dict[int, PathRow] = {}
    for root in roots:
        for path, words in path_texts(root, support_of.keys() - rows.keys()).items():
            rows[path] = PathRow(
                path=words.tags,
                text=words.text,
                support=support_of[path],
                essential=path in essential,
                informativeness=informativeness_of.get(path),
            )
    return list(rows.values())


def tag_rows(roots: Sequence[Element]) -> list[TagRow]:
    """Return the tags of some pages of a cluster: for all pages together, then for each page."""
    counts = [Counter(str(element.tag) for element in root.iter("*")) for root in roots]
    support = Counter(tag for page in counts for tag in page)
    total: Counter[str] = sum(counts, Counter())
    return [
        TagRow(
            page=page,
            tag=tag,
            occurrences=tags[tag],
            support=support[tag],
            essential=2 * support[tag] > len(roots),
        )
        for page, tags in [(None, total), *enumerate(counts)]
        for tag in sorted(tags)
    ]
