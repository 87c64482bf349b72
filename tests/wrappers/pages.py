"""Small pages and rules that fit them, for tests by properties."""

from __future__ import annotations

from html import escape

from hypothesis import assume
from hypothesis import strategies as st

from siteloom.html.parser import Element
from siteloom.html.visible_text import HIDDEN
from siteloom.wrappers.rule_features import RECORD_KINDS, Feature, RecordRule, Rule, RuleSupport, ValuePart
from tests.html.trees import tree
from tests.wrappers.reference import Scope, Selected

TARGETS = ("text", "text", "text", "element", "@href", "@data-x")
EVIDENCE = RuleSupport(examples=1, wrong=0, filled=1.0, repeated=0.0)
GONE = Feature("id", 0, "gone")
"""What no node has."""

_TEXTS = (
    *("A", "B:", "A B", "A\u00a0 B\n", "\u00a0", " \u2003\n", "  ", "B: 1", "C:D: e", "$5", "12", "a1"),
    *("it's", 'say "x"', 'it\'s "x"', "\u20ac 7 and more", "A, B,, C", "A,B", "<&>"),
)
_TAGS = (
    *("div", "div", "p", "span", "b", "a", "td", "ul", "li", "o:p", "br"),
    *("script", "noscript", "template", "iframe"),
)
_ATTRIBUTES = {
    "id": ("x", "it's", " y"),
    "class": ("r", " r  s", "s\tt", "it's", ""),
    "itemprop": ("name", "na  me"),
    "href": ("/1", "A", " B:\u00a0", ""),
    "data-x": ("1 2", "A B"),
}


def _markup(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    attributes = st.fixed_dictionaries({}, optional={n: st.sampled_from(v) for n, v in _ATTRIBUTES.items()})
    return st.builds(_element, st.sampled_from(_TAGS), attributes, st.lists(children, max_size=4))


def _element(tag: str, attributes: dict[str, str], children: list[str]) -> str:
    said = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    return f"<{tag}{said}>{''.join(children)}</{tag}>"


_leaves = st.sampled_from([*map(escape, _TEXTS), "<!-- A -->", "<img href=A class=r>", "<style>A</style>"])
_heads = st.sampled_from(["", "<title>A</title>", "<title>A</title><meta class=r href=A><style>B:</style>"])
bodies = st.lists(st.recursive(_leaves, _markup, max_leaves=12), min_size=2, max_size=8)


@st.composite
def pages(draw: st.DrawFn) -> Element:
    """A page, made by the parser out of markup that may be odd."""
    return tree(f"<html><head>{draw(_heads)}</head><body>{''.join(draw(bodies))}</body></html>")


@st.composite
def scopes(draw: st.DrawFn) -> Scope:
    """A page, or one of its elements as a record."""
    root = draw(pages())
    if draw(st.booleans()):
        return Scope(root, is_record=False)
    elements = [e for e in root.iter() if isinstance(e.tag, str) and not _is_hidden(e)]
    return Scope(draw(st.sampled_from(elements)), is_record=True)


@st.composite
def rules(draw: st.DrawFn, scope: Scope, targets: tuple[str, ...] = TARGETS) -> Rule:
    """A rule of features that some node has, and now and then of one more that another node has."""
    there = [target for target in targets if scope.nodes(target)]
    assume(there)
    target = draw(st.sampled_from(there))
    nodes = scope.nodes(target)
    features = _some_features(draw, scope, draw(st.sampled_from(nodes)), target, most=4)
    if draw(st.integers(0, 5)) == 0:
        features |= _some_features(draw, scope, draw(st.sampled_from(nodes)), target, most=1)
    return Rule(target, tuple(sorted(features)), ValuePart(), EVIDENCE)


@st.composite
def record_rules(draw: st.DrawFn, root: Element) -> RecordRule:
    """A rule for the records of a page; now and then only its fallback finds some."""
    page = Scope(root, is_record=False)
    features, fallback = (
        tuple(f for f in draw(rules(page, targets=("element",))).features if f.kind in RECORD_KINDS)
        for _ in range(2)
    )
    if draw(st.booleans()):
        features = (*features, GONE)
    return RecordRule(features, False, draw(st.sampled_from([(), fallback])), draw(st.integers(1, 3)))


def _some_features(draw: st.DrawFn, scope: Scope, node: Selected, target: str, most: int) -> set[Feature]:
    known = sorted(scope.features(node, target))
    by_kind = {feature.kind: [f for f in known if f.kind == feature.kind] for feature in known}
    of_any_kind = st.sampled_from(sorted(by_kind)).flatmap(lambda kind: st.sampled_from(by_kind[kind]))
    chosen = set(draw(st.lists(of_any_kind, max_size=most)))
    # A position says nothing without the tag that is counted.
    tags = {feature.distance: feature for feature in known if feature.kind == "tag"}
    return chosen | {tags[feature.distance] for feature in chosen if feature.kind.endswith("position")}


def _is_hidden(element: Element) -> bool:
    return any(above.tag in HIDDEN for above in (element, *element.iterancestors()))
