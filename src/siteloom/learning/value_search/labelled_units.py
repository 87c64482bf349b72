"""Units whose values are known, and the nodes where these stand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import ExampleError, ExampleNotFound
from siteloom.learning.induction.tree_walk import LONGEST_TEXT
from siteloom.learning.value_search.text_equality import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from siteloom.html.parser import Element
    from siteloom.learning.induction.tree_walk import UnitRows
    from siteloom.learning.value_search.value_locations import Place, PlaceIndex

# Of the ways in which an attribute's values stand on the pages, so many are tried.
_MOST_FORMS = 3


class Form(NamedTuple):
    """How values stand in nodes: the rule's target, and whether the value is all of the node's text."""

    target: str
    is_whole: bool

    @property
    def preference(self) -> int:
        """What people mean most often comes first."""
        is_attribute = self.target.startswith("@")
        if self.is_whole:
            return 3 if is_attribute else 0 if self.target == "text" else 1
        return 5 if is_attribute else 2 if self.target == "text" else 4


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A value of a unit, and all places where it stands."""

    text: str
    places: tuple[Place, ...]

    @property
    def forms(self) -> set[Form]:
        """The ways in which it stands on the page; what is whole here may be a part elsewhere."""
        return {
            Form(place.target, is_whole)
            for place in self.places
            for is_whole in (True, False)
            if place.is_whole or not is_whole
        }


@dataclass(frozen=True, slots=True)
class Labelled:
    """A unit with what is known about it; an attribute without values is known to be absent."""

    url: str
    values: Mapping[str, tuple[KnownValue, ...]]


@dataclass(frozen=True, slots=True)
class PlacedUnit:
    """A labelled unit in the table: its number, and the rows of its nodes."""

    unit: int
    labelled: Labelled
    rows: UnitRows


def resolve(
    url: str,
    index: PlaceIndex,
    values: Mapping[str, Sequence[str]],
    nodes: Mapping[str, Sequence[str]],
    is_inside: Callable[[Element], bool] = lambda _: True,
) -> Labelled:
    """Find the values of an example on its page, or in one part of it, or say which one is not there."""
    if unknown := set(nodes) - set(values):
        raise ExampleError(f"The example of {url} has nodes for {min(unknown)}, but no values: give both.")
    known: dict[str, tuple[KnownValue, ...]] = {}
    for attribute, texts in values.items():
        exact = list(nodes.get(attribute, ()))
        if len(exact) > len(texts):
            raise ExampleError(
                f"The example of {url} has more nodes for {attribute} than values: give as many."
            )
        found: list[KnownValue] = []
        for number, text in enumerate(texts):
            if not fold(text):
                raise ExampleError(f"The example of {url} has a blank {attribute}: say [] if it is absent.")
            if number < len(exact):
                place = index.at(exact[number], text)
                if place is None:
                    raise ExampleNotFound(url, attribute, text, index.nearest(text), exact[number])
                places = [place]
            else:
                places = index.find(text)
            places = [
                place for place in places if len(place.whole) <= LONGEST_TEXT and is_inside(place.element)
            ]
            if not places:
                raise ExampleNotFound(url, attribute, text, index.nearest(text))
            found.append(KnownValue(text, tuple(places)))
        known[attribute] = tuple(found)
    return Labelled(url, known)


def forms(attribute: str, units: Iterable[Labelled]) -> list[Form]:
    """The forms to learn an attribute by: those that all values have first, then the most frequent."""
    values = [value for unit in units for value in unit.values.get(attribute, ())]
    count = Counter(form for value in values for form in value.forms)
    ranked = sorted(count, key=lambda form: (count[form] < len(values), form.preference, form))
    if ranked and count[ranked[0]] < len(values):
        ranked.sort(key=lambda form: (-count[form], form.preference, form))
    return ranked[:_MOST_FORMS]
