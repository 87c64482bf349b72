"""The rules and samples of another tool, as far as they can be expressed as examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from siteloom.html.visible_text import normalize, visible_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.core.model import Page
    from siteloom.html.parser import Element

# A page that shows a smaller share of a layout does not have it: nearly all pages of a site have a title.
_LEAST_SHARE = 0.5


Values: TypeAlias = "Mapping[str, tuple[str, ...]]"
"""Texts by attribute. Missing values are left out, because they may still be on the page. Positions are not
given: a page often shows a value twice, and the learner determines which nodes can be distinguished."""


@dataclass(frozen=True, slots=True)
class PeerExample:
    """The result of another tool on a page: the values of the page, or the records of a list."""

    values: Values
    records: tuple[Values, ...] = ()

    @property
    def attributes(self) -> set[str]:
        """The attributes with a value."""
        return {name for values in (self.values, *self.records) for name in values}


class Layout(Protocol):
    """The rules of another tool for pages of one kind."""

    @property
    def attributes(self) -> Sequence[str]:
        """The attributes that the layout has rules for."""
        ...

    def on(self, root: Element) -> PeerExample:
        """Apply the rules to a page."""
        ...


@dataclass(frozen=True, slots=True)
class Sample:
    """A page stored by a tool, with its values."""

    page: Page
    example: PeerExample


@dataclass(frozen=True, slots=True)
class PeerModel:
    """The content of a tool's file: rules for any pages, or pages with their values.

    `left_out` has a sentence for each part that cannot be imported.
    """

    tool: str
    layouts: tuple[Layout, ...]
    samples: tuple[Sample, ...]
    left_out: tuple[str, ...]


def best_example(layouts: Sequence[Layout], root: Element) -> tuple[int, PeerExample] | None:
    """Return the number and result of the layout that matches a page best; None if none matches half."""
    best: tuple[float, int, PeerExample] | None = None
    for number, layout in enumerate(layouts):
        example = layout.on(root)
        share = len(example.attributes) / len(layout.attributes)
        if share >= _LEAST_SHARE and (best is None or share > best[0]):
            best = share, number, example
    return None if best is None else best[1:]


def shown(element: Element, html_attribute: str) -> str:
    """Return the visible text of an element, or the value of an HTML attribute if one is named."""
    return normalize(html_attribute_of(element, html_attribute)) if html_attribute else visible_text(element)


def html_attribute_of(element: Element, name: str) -> str:
    """Return the value of an HTML attribute with any name; empty if there is none."""
    return str(dict(element.attrib).get(name, ""))  # lxml itself rejects invalid names


def distinct_texts(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct texts without empty ones."""
    return tuple(dict.fromkeys(filter(None, texts)))
