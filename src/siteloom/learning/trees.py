"""The trees of pages and what hangs on them alone, kept as long as pages are learned from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from siteloom.config import ParseSettings
from siteloom.dom import parse
from siteloom.learning.places import PlaceIndex
from siteloom.learning.records import Looks
from siteloom.model import Failure
from siteloom.signature import signature
from siteloom.wrapper.language import RecordRule
from siteloom.wrapper.selection import records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from siteloom.dom import Element
    from siteloom.model import Page
    from siteloom.wrapper.language import Feature
    from siteloom.wrapper.selection import Scope

    PageKey = tuple[str, bytes, str | None]
    ScopesKey = tuple[Element, tuple[Feature, ...], bool]


def page_key(page: Page) -> PageKey:
    """What a page is known by: whenever it was fetched, the same is read on it."""
    return page.url, page.html, page.charset


class Trees:
    """Trees of pages.

    `most_kept` is how many bytes of pages are kept as trees, those of examples not counted; in memory a tree
    is about ten times as large. Where that has a limit, nothing else is kept either.
    """

    def __init__(self, most_kept: float = math.inf, limits: ParseSettings = ParseSettings()) -> None:
        self._limits = limits.learned
        self.keeps_all = most_kept == math.inf
        self._left = most_kept
        self._roots: dict[PageKey, Element | Failure] = {}
        self.looks = Looks()
        self._places: dict[Element, PlaceIndex] = {}
        self._scopes: dict[ScopesKey, list[Scope]] = {}
        self._signatures: dict[PageKey, bytes | None] = {}

    def root(self, page: Page, *, is_example: bool = False) -> Element | Failure:
        """The tree of a page, or why it has none."""
        key = page_key(page)
        root = self._roots.get(key)
        if root is None:
            root = parse(page, self._limits)
            if is_example or len(page.html) <= self._left:
                self._left -= 0 if is_example else len(page.html)
                self._roots[key] = root
        return root

    def parsed(self, pages: Iterable[Page]) -> Iterator[tuple[Page, Element]]:
        """The pages that can be read, with their trees."""
        for page in pages:
            root = self.root(page)
            if not isinstance(root, Failure):
                yield page, root

    def places(self, root: Element) -> PlaceIndex:
        """Where values stand on a page."""
        if not self.keeps_all:
            return PlaceIndex(root)
        if root not in self._places:
            self._places[root] = PlaceIndex(root)
        return self._places[root]

    def scopes(self, rule: RecordRule, root: Element) -> list[Scope]:
        """The records of a list page."""
        if not self.keeps_all:
            return records(rule, root)
        found = self._scopes_by(rule.features, root, runs_on=rule.runs_on)
        if not found and rule.fallback:
            found = self._scopes_by(rule.fallback, root, runs_on=rule.runs_on)
        return found

    def _scopes_by(self, features: tuple[Feature, ...], root: Element, *, runs_on: bool) -> list[Scope]:
        key = root, features, runs_on
        if key not in self._scopes:
            self._scopes[key] = records(RecordRule(features, runs_on), root)
        return self._scopes[key]

    def signature(self, page: Page) -> bytes | None:
        """The signature of a page."""
        if not self.keeps_all:
            return signature(page.html)
        key = page_key(page)
        if key not in self._signatures:
            self._signatures[key] = signature(page.html)
        return self._signatures[key]
