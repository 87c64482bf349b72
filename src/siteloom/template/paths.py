"""A page as the set of its paths: the labels from the root to each element and each text.

Paths are kept as 64-bit hashes, the same in every process; their wording can
be had back from a page on which they stand.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from lxml import etree

from siteloom.dom import normalize, parse
from siteloom.dom.text import FRAMES, NOT_CONTENT
from siteloom.model import Failure
from siteloom.time_limit import within

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from numpy.typing import NDArray

    from siteloom.config import ParseSettings
    from siteloom.dom import Element
    from siteloom.model import Page

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
