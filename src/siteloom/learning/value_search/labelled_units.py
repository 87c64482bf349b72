"""Units with known values, and the locations of these values."""

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
    from siteloom.learning.value_search.value_locations import ValueIndex, ValueLocation

_MOST_FORMS = 3  # forms of an attribute's values to try


class Form(NamedTuple):
    """The form of a value: the target of its rule, and whether the value is the whole text of its node."""

    target: str
    is_whole: bool

    @property
    def preference(self) -> int:
        """The rank of the form; the form that people mean most often has the lowest."""
        is_attribute = self.target.startswith("@")
        if self.is_whole:
            return 3 if is_attribute else 0 if self.target == "text" else 1
        return 5 if is_attribute else 2 if self.target == "text" else 4


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value of a unit, and all its locations."""

    text: str
    locations: tuple[ValueLocation, ...]

    @property
    def forms(self) -> set[Form]:
        """The forms that the value may have; a whole text here may be part of a text on another page."""
        return {
            Form(location.target, is_whole)
            for location in self.locations
            for is_whole in (True, False)
            if location.is_whole or not is_whole
        }


@dataclass(frozen=True, slots=True)
class LabelledValues:
    """The known values of a unit; an attribute without values is known to be absent."""

    url: str
    values: Mapping[str, tuple[LocatedValue, ...]]


@dataclass(frozen=True, slots=True)
class PlacedUnit:
    """A labelled unit in the table: its number, and the rows of its nodes."""

    unit: int
    labelled: LabelledValues
    rows: UnitRows


def resolve(
    url: str,
    index: ValueIndex,
    values: Mapping[str, Sequence[str]],
    nodes: Mapping[str, Sequence[str]],
    is_inside: Callable[[Element], bool] = lambda _: True,
) -> LabelledValues:
    """Find the values of an example on its page or in one part of it; raise an error if one is missing."""
    if unknown := set(nodes) - set(values):
        raise ExampleError(f"The example of {url} has nodes for {min(unknown)}, but no values: give both.")
    labelled_values: dict[str, tuple[LocatedValue, ...]] = {}
    for attribute, texts in values.items():
        node_paths = list(nodes.get(attribute, ()))
        if len(node_paths) > len(texts):
            raise ExampleError(
                f"The example of {url} has more nodes for {attribute} than values: give as many."
            )
        located_values: list[LocatedValue] = []
        for number, text in enumerate(texts):
            if not fold(text):
                raise ExampleError(f"The example of {url} has a blank {attribute}: say [] if it is absent.")
            if number < len(node_paths):
                location = index.at(node_paths[number], text)
                if location is None:
                    raise ExampleNotFound(
                        url=url,
                        attribute=attribute,
                        value=text,
                        nearest=index.nearest(text),
                        node=node_paths[number],
                    )
                locations = [location]
            else:
                locations = index.find(text)
            locations = [
                location
                for location in locations
                if len(location.text) <= LONGEST_TEXT and is_inside(location.element)
            ]
            if not locations:
                raise ExampleNotFound(url=url, attribute=attribute, value=text, nearest=index.nearest(text))
            located_values.append(LocatedValue(text, tuple(locations)))
        labelled_values[attribute] = tuple(located_values)
    return LabelledValues(url, labelled_values)


def forms(attribute: str, units: Iterable[LabelledValues]) -> list[Form]:
    """Return the forms to learn an attribute by: those that all values have first, then the most frequent."""
    values = [value for unit in units for value in unit.values.get(attribute, ())]
    count = Counter(form for value in values for form in value.forms)
    ranked = sorted(count, key=lambda form: (count[form] < len(values), form.preference, form))
    if ranked and count[ranked[0]] < len(values):
        ranked.sort(key=lambda form: (-count[form], form.preference, form))
    return ranked[:_MOST_FORMS]
