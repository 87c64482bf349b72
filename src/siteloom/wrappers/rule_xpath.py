"""Translate rules to XPath 1.0: one expression selects exactly the nodes that a rule selects.

An expression begins at the feature that is rarest on a page, such as a label or an id, and continues from
there. Axes that look backwards are applied only to the few remaining nodes: `preceding::` costs as much as
the page is long. Several conditions are joined by `and` in one predicate, because libxml2 stops at the first
hit of `[a and b][1]` but tries all nodes for `[a][b][1]`.

XPath knows four blanks, Python many more; `translate` handles those that XML allows. The others cannot be
written in XPath, and `siteloom.html.parser.parse` removes them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import UsageError
from siteloom.html.visible_text import HIDDEN, NOT_CONTENT
from siteloom.wrappers.rule_features import CURRENCIES, DIGITS, LETTERS, TEXT_KINDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from siteloom.wrappers.rule_features import Feature, Rule

ODD_BLANKS = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""White space of Python that XPath does not recognize, as far as XML can hold it."""

_FORBIDDEN_BLANKS = re.compile("[\x0b\x0c\x1c-\x1f]")
_FORBIDDEN = re.compile("[\x00-\x08\x0e-\x1b\ud800-\udfff\ufffe\uffff]")
_NAME = re.compile(r"[A-Za-z_][\w.-]*\Z", re.ASCII)

# Texts and HTML attributes are one level below their element.
_LEAF = -1

# The features that an expression may begin at, the rarest first.
_ANCHORS = ("text-before", "before", "prefix", "id", "first-text", "attribute", "class", "class-word", "tag")
# An element without text can also follow a label, which is more expensive to find.
_ANCHORS_OF_ELEMENTS = ("id", "attribute", "class", "class-word", "first-text", "before", "tag")

# Features are tested in this order, cheap ones first.
_CHEAP = ("id", "class", "class-word", "attribute", "tag", "position", "last-position")
_EXPENSIVE = ("shape", "prefix", "text-number", "first-text", "before", "text-before")
_CHEAP_FIRST = (*_CHEAP, *_EXPENSIVE)


class Blanks(NamedTuple):
    """Two XPath expressions: the odd blanks, and as many plain ones."""

    odd: str
    plain: str


def quote(text: str) -> str:
    """Quote a text as an XPath literal."""
    text = xml_characters(text)
    if "'" not in text:
        return f"'{text}'"
    if '"' not in text:
        return f'"{text}"'
    pieces = (f'"{piece}"' if "'" in piece else f"'{piece}'" for piece in re.findall("[^']+|'+", text))
    return f"concat({', '.join(pieces)})"


def xml_characters(text: str) -> str:
    """Replace the characters that XML forbids: white space by blanks, all others by U+FFFD."""
    return _FORBIDDEN.sub("\ufffd", _FORBIDDEN_BLANKS.sub(" ", text))


WRITTEN_OUT = Blanks(quote(ODD_BLANKS), quote(" " * len(ODD_BLANKS)))


BY_NAME = Blanks("$odd", "$plain")
"""The blanks as names of variables, which keep expressions short."""


def rule_xpath(rule: Rule, within_record: bool = False, blanks: Blanks = WRITTEN_OUT) -> str:
    """Return the XPath of a rule; within a record it is relative to the record's element."""
    expression = _rule_expression(rule, blanks, within_record)
    return expression.in_record() if within_record else expression.on_page()


def rule_xpath_in_run(rule: Rule, blanks: Blanks = WRITTEN_OUT) -> str:
    """Return the XPath of a rule within a record that continues through siblings.

    It is relative to an element that contains only copies of these siblings and is not part of the record.
    """
    return _rule_expression(rule, blanks, within_record=True).in_run()


def _rule_expression(rule: Rule, blanks: Blanks, within_record: bool) -> _Expression:
    ignored_tags = NOT_CONTENT | {"head"} if within_record else NOT_CONTENT
    return _Expression(rule.target, rule.features, blanks, ignored_tags, within_record)


def record_xpath(features: Iterable[Feature], blanks: Blanks = WRITTEN_OUT) -> str:
    """Return the XPath of the elements that records begin with; a record inside a record is part of it."""
    expression = _Expression("element", features, blanks, HIDDEN, within_record=False)
    expression.demand(0, f"not(ancestor::{expression.as_condition()})")
    return expression.on_page()


class _Texts:
    """Conditions on texts."""

    def __init__(self, blanks: Blanks) -> None:
        self._blanks = blanks
        self.not_blank = f"normalize-space() and {self.normal('.')}"
        self.shown = f"not({_ancestors(HIDDEN, 'ancestor')})"
        self.visible = f"normalize-space() and {self.shown} and {self.normal('.')}"
        self.holds_visible = f"descendant-or-self::text()[{self.visible}]"

    def normal(self, node: str) -> str:
        """Return the expression for the normal form of a node's text."""
        return f"normalize-space(translate({node}, {self._blanks.odd}, {self._blanks.plain}))"

    def equals(self, text: str) -> str:
        """Test whether the node's text is this one. `contains` avoids the slow `translate` for most nodes."""
        return f"{_holds_word_of(text)} and {self.normal('.')} = {quote(text)}"

    def starts_with(self, text: str) -> str:
        """Test whether the node's text begins with this one."""
        return f"{_holds_word_of(text)} and starts-with({self.normal('.')}, {quote(text)})"

    def label(self, text: str) -> str:
        """Select all visible texts of the page that equal this one."""
        return f"//text()[{self.equals(text)} and {self.shown}]"


class _Expression:
    """A rule split by levels: 0 is the element, 1 its parent, and so on; the leaf is below 0."""

    def __init__(
        self,
        target: str,
        features: Iterable[Feature],
        blanks: Blanks,
        ignored_tags: frozenset[str],
        within_record: bool,
    ) -> None:
        self._target = target
        self._leaf = 0 if target == "element" else _LEAF
        self._texts = _Texts(blanks)
        self._within_record = within_record
        self._features = sorted(features, key=lambda feature: (_CHEAP_FIRST.index(feature.kind), feature))
        self._tags: dict[int, str] = {}
        self._tests: dict[int, list[str]] = {}
        self._positions: dict[int, list[str]] = {}
        self._text_number = 0
        self._axis_in_run = ""  # the axis to the highest level, unless that is a record's own element
        for feature in self._features:
            if feature.kind == "tag":
                self._tags.setdefault(feature.distance, feature.value)
        for feature in self._features:
            if feature.kind in _CHEAP:
                self._add(feature)
        if target != "text":
            self.demand(0, _outside(ignored_tags))
        for feature in self._features:
            if feature.kind in _EXPENSIVE:
                self._add(feature)

    def demand(self, level: int, test: str) -> None:
        """Add a condition on the node of a level."""
        self._tests.setdefault(level, []).append(test)

    # Features

    def _add(self, feature: Feature) -> None:
        if feature.kind in TEXT_KINDS and self._target != "text":
            self.demand(self._leaf, "false()")
        elif feature.kind == "text-number":
            if self._text_number:
                self.demand(self._leaf, "false()")
            self._text_number = int(feature.value)
        elif feature.kind in ("position", "last-position"):
            test = self._position(feature)
            self._positions.setdefault(feature.distance, []).append(test)
            self.demand(feature.distance, test)
        elif feature.kind == "first-text":
            first_text = self._texts.normal(f"descendant::text()[{self._texts.visible}][1]")
            self.demand(feature.distance, f"{first_text} = {quote(feature.value)}")
            self.demand(self._leaf, self._has_other_text(feature.value))
        elif test := self._test(feature):
            self.demand(self._level(feature), test)

    def _level(self, feature: Feature) -> int:
        is_own = feature.kind == "shape" or feature.kind in TEXT_KINDS
        return self._leaf if is_own else feature.distance

    def _test(self, feature: Feature) -> str:
        value = quote(feature.value)
        match feature.kind:
            case "id":
                return f"@id = {value}"
            case "class":
                return f"normalize-space(@class) = {value}"
            case "class-word":
                words = "concat(' ', normalize-space(@class), ' ')"
                return f"contains(@class, {value}) and contains({words}, {quote(f' {feature.value} ')})"
            case "attribute":
                name, _, expected = feature.value.partition("=")
                return f"normalize-space({_attribute(name)}) = {quote(expected)}"
            case "tag":
                is_node_test = self._tags[feature.distance] == feature.value and _NAME.match(feature.value)
                return "" if is_node_test else f"name() = {value}"
            case "shape":
                return self._shape(feature.value)
            case "prefix":
                return self._texts.starts_with(feature.value)
        return f"{self._texts.normal(self._text_before)} = {value}"

    @property
    def _text_before(self) -> str:
        """Select the visible text before a node.

        In a record, `preceding::` would go back to the beginning of the page for each record, so this goes to
        the nearest sibling that contains text. The caller must ensure that the record has one.
        """
        visible, holds_visible = self._texts.visible, self._texts.holds_visible
        if not self._within_record:
            return f"preceding::text()[{visible}][1]"
        return (
            f"ancestor-or-self::node()[preceding-sibling::node()[{holds_visible}]][1]"
            f"/preceding-sibling::node()[{holds_visible}][1]/descendant-or-self::text()[{visible}][last()]"
        )

    def _position(self, feature: Feature) -> str:
        """Test for exactly this many siblings of the same tag; libxml2 stops after one more."""
        tag = self._tags.get(feature.distance)
        if tag is None:
            raise UsageError(
                f"XPath 1.0 cannot say that an element is number {feature.value} of its kind "
                "unless the rule says which tag it has: learn the wrapper again."
            )
        axis = "preceding-sibling" if feature.kind == "position" else "following-sibling"
        siblings = f"{axis}::{tag}" if _NAME.match(tag) else f"{axis}::*[name() = {quote(tag)}]"
        number = int(feature.value)
        if number == 1:
            return f"not({siblings})"
        return f"{siblings}[{number - 1}] and not({siblings}[{number}])"

    def _shape(self, shape: str) -> str:
        digits = self._has(DIGITS)
        if shape == "words":
            return f"not({digits})"
        if shape == "price":
            return f"{digits} and {self._has(CURRENCIES)}"
        excluded = CURRENCIES if shape == "mixed" else CURRENCIES + LETTERS
        letters = f" and {self._has(LETTERS)}" if shape == "mixed" else ""
        return f"{digits} and not({self._has(excluded)}){letters}"

    def _has(self, characters: str) -> str:
        """Test whether any of these characters is in the text of the selected node."""
        test = f"translate(., '{characters}', '') != ."
        return f"{_count_inside(test)} > 0" if self._target == "element" else test

    def _has_other_text(self, text: str) -> str:
        equals = self._texts.equals(text)
        if self._target != "element":
            return f"not({equals})"
        return f"not({_count_inside(self._texts.not_blank)} = 1 and {_count_inside(equals)} = 1)"

    # On a page

    def on_page(self) -> str:
        """Return the expression for a whole page."""
        anchor = self._anchor()
        if anchor is None:
            level = 0 if self._needs_parent() else self._leaf
            return self._complete(f"//{self._step(level)}", level)
        level = self._leaf if anchor.kind in TEXT_KINDS else anchor.distance
        return " | ".join(self._complete(start, level) for start in self._starts(anchor, level))

    def _anchor(self) -> Feature | None:
        anchors = _ANCHORS if self._target == "text" else _ANCHORS_OF_ELEMENTS
        anchor_features = (feature for feature in self._features if feature.kind in anchors)
        return min(anchor_features, key=lambda feature: anchors.index(feature.kind), default=None)

    def _needs_parent(self) -> bool:
        return self._text_number > 0 or self._target not in ("text", "element")

    def _starts(self, anchor: Feature, level: int) -> list[str]:
        """Return the expressions that select the nodes of a level that have the anchor."""
        if anchor.kind not in ("text-before", "before", "first-text"):
            return [f"//{self._step(level)}"]
        label = self._texts.label(anchor.value)
        if anchor.kind == "first-text":
            return [f"{label}/ancestor::{self._step(level)}"]
        following = f"{label}/following::text()[{self._texts.visible}][1]"
        if anchor.kind == "text-before":
            # A step of its own for further conditions: libxml2 must see `[1]` as the last predicate.
            tests = [test for test in self._own_tests(is_known_visible=True) if test != self._test(anchor)]
            return [f"{following}/self::text(){_predicate(tests)}"]
        starts = [f"{following}/ancestor::{self._step(level)}"]
        if self._target != "text":
            # Elements without text, between the label and the next text. Few have the HTML attribute.
            if self._leaf == _LEAF:
                self._tests[level].insert(0, "*/" * level + _attribute(self._target.removeprefix("@")))
            inside = f"*[not({self._texts.holds_visible})]/descendant-or-self::{self._step(level)}"
            starts.append(f"{label}/ancestor-or-self::node()/following-sibling::{inside}")
            starts.append(f"{following}/ancestor-or-self::node()/preceding-sibling::{inside}")
        return starts

    def _complete(self, start: str, level: int) -> str:
        above = self._above(level)
        return start + (f"[{above}]" if above else "") + self._below(level)

    def _above(self, level: int) -> str:
        """Return the conditions on the ancestors of a node of this level."""
        return "/".join(f"parent::{self._step(higher)}" for higher in range(level + 1, self._top + 1))

    def _below(self, level: int) -> str:
        """Return the steps from a node of this level down to the selected ones."""
        steps = [self._step(lower) for lower in range(level - 1, -1, -1)]
        if level > self._leaf == _LEAF:
            steps.append(self._leaf_below())
        return "".join(f"/{step}" for step in steps)

    def as_condition(self) -> str:
        """Return the step to an element that the rule selects, for use after any axis."""
        above = self._above(0)
        return self._step(0) + (f"[{above}]" if above else "")

    # In a record

    def in_record(self) -> str:
        """Return the expression relative to a record's element."""
        top = max(self._top, 0) if self._needs_parent() else self._top
        preceding_features = [
            feature for feature in self._features if feature.kind in ("text-before", "before")
        ]
        if not preceding_features:
            return self._from_top(top)
        return self._after_text(top, max(preceding_features, key=self._level))

    def in_run(self) -> str:
        """Return the expression relative to the element that contains the topmost elements of a record."""
        # Texts between these have no element in the record, but they can be counted.
        self._axis_in_run = "descendant" if self._top > _LEAF else "descendant-or-self"
        return self.in_record()

    def _from_top(self, top: int) -> str:
        """Return all steps down from the highest level that a feature refers to."""
        if top == _LEAF:
            return f"descendant::{self._step(top)}"
        if self._axis_in_run:
            return f"{self._axis_in_run}::{self._step(top)}{self._below(top)}"
        positions = self._positions.get(top)
        if positions is None:
            return f"descendant-or-self::{self._step(top)}{self._below(top)}"
        # The record's own element has no siblings: it is the first of its kind, and the last.
        paths = [f"descendant::{self._step(top)}{self._below(top)}"]
        if all(test.startswith("not(") for test in positions):
            paths.append(f"self::{self._step(top, without=positions)}{self._below(top)}")
        return " | ".join(paths)

    def _after_text(self, top: int, feature: Feature) -> str:
        """Return all steps if a text in the record must precede the node of a level.

        Either the text also precedes the highest element, at the end of a sibling of that element or of one
        of its ancestors; or it is inside the highest element.
        """
        level = self._level(feature)
        holds_word, text = _holds_word_of(feature.value), quote(feature.value)
        sibling = f"preceding-sibling::node()[{self._texts.holds_visible}]"
        last_text = f"descendant-or-self::text()[{self._texts.visible}][last()]"
        label = f"descendant::node()[{holds_word} and {self._texts.normal(last_text)} = {text}]"
        behind = f"following-sibling::node()[{self._texts.normal(f'{sibling}[1]/{last_text}')} = {text}]"
        path = f"{label}/{behind}/descendant-or-self::{self._step(top)}{self._below(top)}"
        if top == level:
            return path
        self.demand(level, f"ancestor-or-self::node()[position() <= {top - level}][{sibling}]")
        self._tests.setdefault(top, []).insert(0, holds_word)
        return f"{path} | {self._from_top(top)}"

    # Steps

    @property
    def _top(self) -> int:
        return max([*self._tags, *self._tests], default=self._leaf)

    def _step(self, level: int, without: Collection[str] = ()) -> str:
        """Return a node test with all conditions on the nodes of a level."""
        if level == _LEAF:
            return "text()" + _predicate(self._own_tests(is_known_visible=False))
        tag = self._tags.get(level, "*")
        tests = [test for test in self._tests.get(level, []) if test not in without]
        return (tag if _NAME.match(tag) else "*") + _predicate(tests)

    def _own_tests(self, is_known_visible: bool) -> list[str]:
        """Return the conditions on a text that was not reached through its parent."""
        tests = list(self._tests.get(_LEAF, []))
        if not is_known_visible:
            has_prefix = any(feature.kind == "prefix" for feature in self._features)
            tests.append(self._texts.shown if has_prefix else self._texts.visible)
        if self._text_number:
            earlier_texts = f"preceding-sibling::text()[{self._texts.not_blank}]"
            tests.append(f"count({earlier_texts}) = {self._text_number - 1}")
        return tests

    def _leaf_below(self) -> str:
        """Return the step from an element to its selected text or HTML attribute."""
        tests = _predicate(self._tests.get(_LEAF, []))
        if self._target != "text":
            return _attribute(self._target.removeprefix("@")) + tests
        number = f"[{self._text_number}]" if self._text_number else ""
        return f"text()[{self._texts.visible}]{number}{tests}"


def _predicate(tests: list[str]) -> str:
    return f"[{' and '.join(tests)}]" if tests else ""


def _ancestors(tags: frozenset[str], axis: str) -> str:
    return " or ".join(f"{axis}::{tag}" for tag in sorted(tags))


def _outside(tags: frozenset[str]) -> str:
    return f"not({_ancestors(tags, 'ancestor-or-self')})"


def _attribute(name: str) -> str:
    return f"@{name}" if _NAME.match(name) else f"@*[name() = {quote(name)}]"


def _holds_word_of(text: str) -> str:
    return f"contains(., {quote(max(text.split(), key=len, default=''))})"


def _count_inside(test: str) -> str:
    """Count the texts inside an element that pass a test, without those hidden inside it."""
    hidden = " or ".join(f"self::{tag}" for tag in sorted(HIDDEN))
    return f"(count(descendant::text()[{test}]) - count(descendant::*[{hidden}]/descendant::text()[{test}]))"


_TEXTS = _Texts(BY_NAME)
SHARED_BY_NAME = {
    "TEXT": _TEXTS.normal("."),
    "SHOWN": _TEXTS.shown,
    "VISIBLE": _TEXTS.visible,
    "OUTSIDE_CODE": _outside(NOT_CONTENT),
    "OUTSIDE_CODE_AND_HEAD": _outside(NOT_CONTENT | {"head"}),
    "OUTSIDE_HIDDEN": _outside(HIDDEN),
}
"""Long subexpressions shared by most expressions; exports use their names. Some contain earlier ones."""
