"""What another tool was taught, as far as it can be said in examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from siteloom.html.visible_text import normalize, visible_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.core.model import Page
    from siteloom.html.parser import Element

# A layout of which a page shows less is that of other pages: a title alone is on nearly all pages of a site.
_LEAST_SHARE = 0.5


Values: TypeAlias = "Mapping[str, tuple[str, ...]]"
"""Texts by attribute. What was not found is left out, for it may be there all the same. Nor is it told where
they stand: a page often has a value twice, and the learner finds out which places can be told from others."""


@dataclass(frozen=True, slots=True)
class PeerExample:
    """What another tool finds on a page: the values of the page, or the records of a list."""

    values: Values
    records: tuple[Values, ...] = ()

    @property
    def attributes(self) -> set[str]:
        """Those with a value."""
        return {name for found in (self.values, *self.records) for name in found}


class Layout(Protocol):
    """The rules of another tool for pages of one kind."""

    @property
    def attributes(self) -> Sequence[str]:
        """The attributes that it has rules for."""
        ...

    def on(self, root: Element) -> PeerExample:
        """What the rules find on a page."""
        ...


@dataclass(frozen=True, slots=True)
class Sample:
    """A page that came with what a tool was taught, and what was said of it."""

    page: Page
    example: PeerExample


@dataclass(frozen=True, slots=True)
class PeerModel:
    """What a tool was taught: rules for any pages, or pages with their values.

    `left_out` has a sentence for each thing that cannot be taken over.
    """

    tool: str
    layouts: tuple[Layout, ...]
    samples: tuple[Sample, ...]
    left_out: tuple[str, ...]


def best_example(layouts: Sequence[Layout], root: Element) -> tuple[int, PeerExample] | None:
    """The number of the layout that a page shows most of, and what it finds; None if none shows half."""
    best: tuple[float, int, PeerExample] | None = None
    for number, layout in enumerate(layouts):
        found = layout.on(root)
        share = len(found.attributes) / len(layout.attributes)
        if share >= _LEAST_SHARE and (best is None or share > best[0]):
            best = share, number, found
    return None if best is None else best[1:]


def shown(element: Element, html_attribute: str) -> str:
    """All that is read inside an element, or what an HTML attribute of it says if one is named."""
    return normalize(html_attribute_of(element, html_attribute)) if html_attribute else visible_text(element)


def html_attribute_of(element: Element, name: str) -> str:
    """What an HTML attribute says, which may be called anything; nothing if there is none."""
    return str(dict(element.attrib).get(name, ""))  # lxml itself refuses to look for odd names


def each_once(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts that say something, each once."""
    return tuple(dict.fromkeys(filter(None, texts)))
