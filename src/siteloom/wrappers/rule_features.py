"""The language of rules: features, readable by a person, that identify the nodes that hold a value.

A rule selects the nodes that have all of its features. Such a node is a visible
text, an element with all the text inside it, or an HTML attribute of an element.
The value is cut out of the node's text by the rule's part.

*Visible texts* are the text nodes that a person can see and that are not blank, in document order;
`siteloom.html.visible_text.HIDDEN` elements (head, script, iframe...) are not visible and do not count among
the children of an element. Texts are compared in normal form (`siteloom.html.visible_text.normalize`).
Features of elements have a distance: 0 is the element that contains the text or is itself selected, 1 its
parent, and so on.

Inside a record of a list page, nothing outside the record exists: no text before its first one, no ancestor
above its topmost elements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.core.model import Attribute
    from siteloom.wrappers.value_contract import Contract

TextKind = Literal[
    "text-before",  # the visible text before this one
    "prefix",  # this text begins with these words, which end in a colon
    "text-number",  # the how-many-th visible text among the children of its parent
]
ElementKind = Literal[
    "id",
    "class",  # all class names, as they stand
    "class-word",  # one of the class names
    "attribute",  # another HTML attribute that tells what this is: itemprop=name
    "tag",
    "first-text",  # the first visible text inside, where the selected node says something else
    "before",  # the visible text before the element
    "position",  # its number among the children of its parent that have its tag
    "last-position",  # likewise, counted from the last one
]
Kind = Literal[TextKind, "shape", ElementKind]

TEXT_KINDS: tuple[TextKind, ...] = get_args(TextKind)
"""Features of a visible text; selected elements and HTML attributes have none of them."""
ELEMENT_KINDS: tuple[ElementKind, ...] = get_args(ElementKind)
RECORD_KINDS: tuple[ElementKind, ...] = tuple(kind for kind in ELEMENT_KINDS if kind != "first-text")
"""Features of the elements that records begin with; the content of a record is not considered."""

TEXTUAL = frozenset({"text-before", "before", "first-text", "prefix"})
"""Kinds of features that find a value by a text that names it."""

NUMBERED = frozenset({"text-number", "position", "last-position"})
"""Kinds of features whose value is a number from 1 on."""

TELLING_ATTRIBUTES = ("itemprop", "property", "rel", "name", "for", "headers", "role", "itemtype")
"""HTML attributes that describe what an element is about, besides id and class."""

Shape = Literal["price", "digits", "mixed", "words"]
DIGITS = "0123456789"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
CURRENCIES = "$€£¥"
_ANY_DIGIT, _ANY_LETTER, _ANY_CURRENCY = (re.compile(f"[{any_}]") for any_ in (DIGITS, LETTERS, CURRENCIES))


def shape(text: str) -> Shape:
    """Classify a text: digits with a currency sign, digits without letters, digits and letters, or no digits.

    Only these exact characters count, so that XPath can distinguish shapes as well.
    """
    if not _ANY_DIGIT.search(text):
        return "words"
    if _ANY_CURRENCY.search(text):
        return "price"
    return "mixed" if _ANY_LETTER.search(text) else "digits"


SHAPES: tuple[Shape, ...] = get_args(Shape)
_ALSO_POSSIBLE: dict[Shape, frozenset[Shape]] = {
    "price": frozenset({"price"}),
    "digits": frozenset({"digits", "mixed"}),
    "mixed": frozenset({"digits", "mixed", "words"}),
    "words": frozenset({"digits", "mixed", "words"}),
}


def possible_shapes(texts: Iterable[str]) -> tuple[Shape, ...]:
    """Return the shapes that further values may have, given some values: a price is never a name."""
    known_shapes = {shape(text) for text in texts}
    possible = frozenset[Shape]().union(*(_ALSO_POSSIBLE[known] for known in known_shapes))
    return tuple(candidate for candidate in SHAPES if candidate in possible)


@dataclass(frozen=True, slots=True, order=True)
class Feature:
    """Something that a selected node must have.

    `value` is a text, a number in decimal digits (those `NUMBERED`), a `Shape` of
    the node's whole text (`shape`), or `name=value` (`attribute`).
    The distance is 0 for features of texts and for shapes.
    """

    kind: Kind
    distance: int
    value: str


@dataclass(frozen=True, slots=True)
class ValuePart:
    """How values are cut out of the text of a node.

    The value begins after the first occurrence of `left` and ends before the next occurrence of `right`; an
    empty anchor is ignored, and if the text lacks an anchor, there is no value. Instead of anchors, `pattern`
    is a regular expression whose first match within the first 5,000 characters is the value. The result is
    split at `separator` if there is one. Blank values are left out.
    """

    left: str = ""
    right: str = ""
    pattern: str = ""
    separator: str = ""


@dataclass(frozen=True, slots=True)
class RuleSupport:
    """How a rule performed on the pages it was learned from.

    It found `examples` example values, and `wrong` other nodes. `filled` is the share of unlabelled pages on
    which it found a value, `repeated` the share on which it found several.
    """

    examples: int
    wrong: int
    filled: float
    repeated: float


@dataclass(frozen=True, slots=True)
class Scorer:
    """A classifier that chooses among nodes that features do not distinguish
    (`siteloom.wrappers.value_from_node`).

    A node's probability is the logistic function of the intercept plus the sum of its weak features times
    their weights. Of the nodes with at least 0.5 the most probable one counts, or all of them if it
    `takes_all`.
    """

    weights: tuple[tuple[str, float], ...]
    intercept: float
    takes_all: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """How a value is found: all nodes of the target that have all features, and the part of their text.

    `target` is `text`, `element`, or an HTML attribute such as `@href`. With a `scorer`, the nodes are only
    candidates for it to choose from.
    """

    target: str
    features: tuple[Feature, ...]
    part: ValuePart
    evidence: RuleSupport
    scorer: Scorer | None = None


LEAST_VOTERS = 2
"""A single voter may find a wrong value where no rule finds one; several rarely find the same one."""


@dataclass(frozen=True, slots=True)
class AttributeRules:
    """How an attribute is found.

    A single-valued attribute takes the first value of the first rule that finds one; a multi-valued one takes
    the values of all rules. `voters` are independent rules that confirm values. If no rule finds the value of
    a single-valued attribute, they may supply it: at least `LEAST_VOTERS` must agree on their first value. A
    text with none of the `shapes` is not a value. `filled` is the share of unlabelled pages on which the
    rules find a value. `day_first` says how to read dates like 03/04/2011, where it is known. The `contract`
    describes valid values; a value that breaks it is still kept.
    """

    attribute: Attribute
    rules: tuple[Rule, ...]
    voters: tuple[Rule, ...]
    filled: float
    shapes: tuple[Shape, ...] = SHAPES
    day_first: bool | None = None
    contract: Contract | None = None

    @property
    def do_voters_step_in(self) -> bool:
        """Whether voters may supply the value if no rule finds one.

        They may not if the first rule uses a text: a missing label means that the value is missing, while a
        missing class may have been renamed.
        """
        goes_by_text = bool(self.rules) and any(feature.kind in TEXTUAL for feature in self.rules[0].features)
        return not self.attribute.multi and len(self.voters) >= LEAST_VOTERS and not goes_by_text


@dataclass(frozen=True, slots=True)
class RecordRule:
    """Where the records of a list page begin: at each element that has all features.

    A record is everything inside its element; if `runs_on`, it continues through the element's siblings up to
    the next record. If no element has all features, `fallback` is used instead: the features without names,
    which a site may change. An element with values of fewer than `least` attributes is not a record, but for
    example an advertisement.
    """

    features: tuple[Feature, ...]
    runs_on: bool
    fallback: tuple[Feature, ...] = ()
    least: int = 1
