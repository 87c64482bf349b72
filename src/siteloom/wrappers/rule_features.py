"""The language of rules: which nodes hold a value, said by features that a person can read.

A rule selects the nodes that have all of its features. Such a node is a visible
text, an element with all the text inside it, or an HTML attribute of an element.
From the text of a node its part takes the value.

*Visible texts* are the text nodes that a person can see and that are not blank,
in document order; `siteloom.html.visible_text.HIDDEN` elements (head, script, iframe...)
are not seen, and among the children of an element they do not count. Texts are
compared in normal form (`siteloom.html.visible_text.normalize`). Features of elements have a distance: 0
is the
element that the text stands in or that is selected itself, 1 its parent, and so on.

Inside a record of a list page nothing outside the record exists: no text before
its first one, no ancestor above its topmost elements.
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
"""Features of the elements that records begin with; what a record says is not looked at."""

TEXTUAL = frozenset({"text-before", "before", "first-text", "prefix"})
"""Kinds of features that find a value by a text that names it."""

NUMBERED = frozenset({"text-number", "position", "last-position"})
"""Kinds of features whose value is a number from 1 on."""

TELLING_ATTRIBUTES = ("itemprop", "property", "rel", "name", "for", "headers", "role", "itemtype")
"""HTML attributes that say what an element is about, besides id and class."""

Shape = Literal["price", "digits", "mixed", "words"]
DIGITS = "0123456789"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
CURRENCIES = "$€£¥"
_ANY_DIGIT, _ANY_LETTER, _ANY_CURRENCY = (re.compile(f"[{any_}]") for any_ in (DIGITS, LETTERS, CURRENCIES))


def shape(text: str) -> Shape:
    """What a text is made of: digits beside a currency sign, digits without letters, both, or no digits.

    Only these very characters count, so that XPath can tell shapes, too.
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
    """The shapes that values may have if these are some of them: a price is never a name."""
    seen = {shape(text) for text in texts}
    possible = frozenset[Shape]().union(*(_ALSO_POSSIBLE[one] for one in seen))
    return tuple(one for one in SHAPES if one in possible)


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
class Part:
    """From the text of a node to the values in it.

    The value begins behind the first occurrence of `left` and ends before the
    first occurrence of `right` behind that; an anchor that is empty does not
    count, and where one is missing there is no value. Instead of anchors,
    `pattern` is a regular expression whose first match is the value; it must be in
    the first 5,000 characters. What was found is split at `separator` if there is
    one. Blank values are left out.
    """

    left: str = ""
    right: str = ""
    pattern: str = ""
    separator: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a rule did on the pages it was learned from.

    `examples` example values were found by it, and `wrong` nodes besides them.
    On `filled` of the unlabelled pages it found something, on `repeated` more
    than one value.
    """

    examples: int
    wrong: int
    filled: float
    repeated: float


@dataclass(frozen=True, slots=True)
class Scorer:
    """A classifier that chooses among nodes which features do not tell apart
    (`siteloom.wrappers.value_from_node`).

    A node's probability is the logistic function of the intercept and the sum of
    its weak features times their weights. Of the nodes with at least 0.5 the most
    probable one counts, or each of them if it `takes_all`.
    """

    weights: tuple[tuple[str, float], ...]
    intercept: float
    takes_all: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """How a value is found: all nodes of the target that have all features, and the part of their text.

    `target` is `text`, `element`, or an HTML attribute such as `@href`. With a
    `scorer` the nodes are only candidates, of which it chooses.
    """

    target: str
    features: tuple[Feature, ...]
    part: Part
    evidence: Evidence
    scorer: Scorer | None = None


LEAST_VOTERS = 2
"""One voter alone might take another value for the one that no rule finds, but hardly all the same."""


@dataclass(frozen=True, slots=True)
class AttributeRules:
    """How an attribute is found.

    A single-valued attribute takes the first value of the first rule that finds
    one; a multi-valued one takes the values of all rules. `voters` find it
    independently; they are asked whether they agree. Where no rule finds the
    value of a single-valued attribute, they may step in: if there are at least `LEAST_VOTERS`, whose
    first values are all the same, that is the value. A text of none of the
    `shapes` is no value. `filled` is the share of unlabelled pages on which the
    rules find a value. `day_first` says how to read dates like 03/04/2011, where it is known.
    The `contract` says what right values are like; one that breaks it is a value all the same.
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
        """Whether voters may give the value where no rule finds one.

        They may not where the first rule goes by a text: that its label is missing
        says that the value is, while a class that is missing may have been renamed.
        """
        goes_by_text = bool(self.rules) and any(feature.kind in TEXTUAL for feature in self.rules[0].features)
        return not self.attribute.multi and len(self.voters) >= LEAST_VOTERS and not goes_by_text


@dataclass(frozen=True, slots=True)
class RecordRule:
    """Where the records of a list page begin: at each element that has all features.

    A record is all that is inside its element; if `runs_on`, it goes on through
    the element's siblings up to the next record. On a page where nothing has all
    features, `fallback` takes their place: the same without names, which a site may change.
    What has values of fewer than `least` attributes is no record, but an advertisement or the like.
    """

    features: tuple[Feature, ...]
    runs_on: bool
    fallback: tuple[Feature, ...] = ()
    least: int = 1
