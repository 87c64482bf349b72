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
    for path, text in _walk(root, _tag_label):
        if text is None:
            elements.append(path.hash)
        else:
            parent_of_text[_child_hash(path.hash, _text_hash(text))] = path.hash
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
    hashes = [path.hash for path, text in _walk(root, _class_label) if text is None]
    return np.unique(np.array(hashes, np.uint64))


def path_texts(root: Element, wanted: Collection[int]) -> dict[int, PathText]:
    """The wording of those wanted paths that stand on a page, in the page's order."""
    found: dict[int, PathText] = {}
    for path, text in _walk(root, _tag_label):
        hash_ = path.hash if text is None else _child_hash(path.hash, _text_hash(text))
        if hash_ in wanted and hash_ not in found:
            found[hash_] = PathText(path.tags, text)
    return found


class _Path:
    """A path of elements: from where it goes on, and to which paths and texts it does so."""

    __slots__ = ("above", "below", "has_text", "hash", "tag", "texts")

    def __init__(self, above: _Path | None, tag: str, hash_: int) -> None:
        self.above = above
        self.tag = tag
        self.hash = hash_
        self.has_text: bool = tag not in _WITHOUT_TEXT and (above is None or above.has_text)
        self.below: dict[str, _Path] = {}
        self.texts: set[str] = set()

    @property
    def tags(self) -> str:
        """The tags from the root down."""
        tags: list[str] = []
        path = self
        while path.above is not None:
            tags.append(path.tag)
            path = path.above
        return "/".join(reversed(tags))


def _walk(root: Element, label: Callable[[Element], str]) -> Iterator[tuple[_Path, str | None]]:
    """Each path of elements, and each text that one goes on to, in the order in which they first come.

    Most elements of a page have the path of another, for which nothing is to be computed.
    """
    here = _Path(None, "", 0)
    for event, node in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event == "start":
            name = label(node)
            path = here.below.get(name)
            if path is None:
                path = _Path(here, str(node.tag), _child_hash(here.hash, _label_hash(name)))
                here.below[name] = path
                yield path, None
            here = path
            text = node.text
        else:
            if event == "end":
                assert here.above is not None
                here = here.above
            text = node.tail
        if text and here.has_text and here.above is not None and not text.isspace():
            words = normalize(text)
            if words not in here.texts:
                here.texts.add(words)
                yield here, words


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
