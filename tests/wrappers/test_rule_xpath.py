"""XPath selects what the rules mean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from siteloom.core.errors import UsageError
from siteloom.html.node_paths import TextPosition
from siteloom.html.parser import Element
from siteloom.wrappers.feature_index import occurrences, triggers
from siteloom.wrappers.rule_evaluation import Scope as RecordScope
from siteloom.wrappers.rule_evaluation import _behind as behind
from siteloom.wrappers.rule_evaluation import records as native_records
from siteloom.wrappers.rule_evaluation import select, select_in
from siteloom.wrappers.rule_features import Feature, Kind, RecordRule, Rule, ValuePart
from siteloom.wrappers.rule_xpath import quote, record_xpath, rule_xpath
from tests.html.trees import tree
from tests.wrappers.pages import EVIDENCE, pages, record_rules, rules, scopes
from tests.wrappers.reference import Scope, record_elements


def rule(target: str, *features: tuple[Kind, int, str]) -> Rule:
    return Rule(target, tuple(Feature(*feature) for feature in features), ValuePart(), EVIDENCE)


def place(node: Any) -> TextPosition | Element:
    """A node of an XPath result as `Scope` names it."""
    if isinstance(node, etree._Element):
        return node
    parent = node.getparent()
    if node.is_tail:
        return TextPosition(parent.getparent(), parent)
    return TextPosition(parent, None) if node.is_text else parent


def by_xpath(rule: Rule, scope: Scope) -> list[TextPosition | Element]:
    found: Any = scope.top.xpath(rule_xpath(rule, within_record=scope.is_record))
    return [place(node) for node in found]


def texts(rule: Rule, html: str) -> list[str]:
    found: Any = tree(html).xpath(rule_xpath(rule))
    return [str(node) if isinstance(node, str) else node.tag for node in found]


@given(st.data())
def test_xpath_selects_what_a_rule_means(data: st.DataObject) -> None:
    scope = data.draw(scopes())
    rule = data.draw(rules(scope))
    assert by_xpath(rule, scope) == [node.place for node in scope.select(rule)]


def by_native_selection(rule: Rule, scope: Scope) -> list[TextPosition | Element]:
    if scope.is_record:
        found = select_in(rule, RecordScope(scope.top, behind(scope.top)))
    else:
        wanted = triggers([rule])
        found = select(wanted.searches[rule], occurrences(scope.top, wanted))
    return [node.spot or node.element for node in found]


@given(st.data())
def test_native_selection_means_the_same(data: st.DataObject) -> None:
    scope = data.draw(scopes())
    rule = data.draw(rules(scope))
    assert by_native_selection(rule, scope) == [node.place for node in scope.select(rule)]


@pytest.mark.parametrize(
    ("rule", "page"),
    [
        # Texts of the head are not visible, not even for what is in the head.
        (rule("@href", ("before", 0, "A")), "<title>A</title><meta href=1><p>B"),
        (rule("element", ("first-text", 1, "A")), "<title>A</title><meta href=1><p>B"),
        # An element says the same as a label only if it holds that very text and no other.
        (rule("element", ("first-text", 1, "A B"), ("tag", 0, "b")), "<p>A B<b>A <i>B</i></b>"),
        # In HTML attributes a no-break space is no blank.
        (rule("text", ("class", 0, "a b")), "<p class='a\u00a0b'>x"),
        (rule("text", ("class-word", 0, "a")), "<p class='a\u00a0b'>x"),
        (rule("text", ("attribute", 0, "itemprop=a b")), "<p itemprop='a\u00a0b'>x"),
    ],
)
def test_native_selection_where_words_are_subtle(rule: Rule, page: str) -> None:
    scope = Scope(tree(page), is_record=False)
    assert by_native_selection(rule, scope) == by_xpath(rule, scope)


def test_no_record_is_in_the_head() -> None:
    root = tree("<title>A</title><p>B")
    rule = RecordRule((Feature("tag", 0, "title"),), runs_on=False)
    assert root.xpath(record_xpath(rule.features)) == []
    assert native_records(rule, root) == []


@given(st.data())
def test_xpath_finds_the_elements_that_records_begin_with(data: st.DataObject) -> None:
    root = data.draw(pages())
    features = data.draw(rules(Scope(root, is_record=False), targets=("element",))).features
    rule = RecordRule(features, runs_on=False)
    found = root.xpath(record_xpath(features))
    assert found == record_elements(rule, root)
    # Native extraction does not look at the text of a record as a whole.
    if not any(feature.kind in ("shape", "first-text") for feature in features):
        assert found == [record.start for record in native_records(rule, root)]


@given(st.data())
def test_without_any_record_the_fallback_takes_its_place(data: st.DataObject) -> None:
    root = data.draw(pages())
    rule = data.draw(record_rules(root))
    assert [record.start for record in native_records(rule, root)] == record_elements(rule, root)


LIST = """
    <dl><dt>Name:<dd>Blue Fern<dt>Phone:<dd><b>555-1</b> home <a href="/1"></a><img href="/2">
    <dt>Phone: <dd>555-2<dt>Fax:</dl>
"""


@pytest.mark.parametrize(
    ("selected", "features"),
    [
        (["555-1", "555-2"], [("text-before", 0, "Phone:")]),
        ([" home ", "555-2"], [("before", 0, "Phone:"), ("tag", 0, "dd")]),
        (["555-1"], [("before", 1, "Phone:"), ("tag", 0, "b")]),
        (["555-1"], [("before", 0, "Phone:"), ("before", 1, "Phone:")]),
        ([" home "], [("first-text", 0, "555-1")]),
        ([" home "], [("text-number", 0, "1"), ("position", 0, "2"), ("tag", 0, "dd")]),
        ([" home "], [("shape", 0, "words"), ("tag", 0, "dd"), ("position", 0, "2")]),
        (["Fax:"], [("tag", 0, "dt"), ("last-position", 0, "1")]),
        ([" home "], [("tag", 0, "dd"), ("last-position", 0, "2")]),
        (["Blue Fern"], [("tag", 0, "dd"), ("position", 0, "1"), ("last-position", 0, "3")]),
        ([], [("tag", 0, "dd"), ("last-position", 0, "4")]),
    ],
)
def test_features_of_texts(selected: list[str], features: list[tuple[Kind, int, str]]) -> None:
    assert [text.rstrip("\n ") for text in texts(rule("text", *features), LIST)] == [
        text.rstrip() for text in selected
    ]


def test_elements_without_text_stand_behind_a_label_too() -> None:
    page = "<p>Home:<a href=/1><i></i></a><img href=/2><br><b><a href=/3>here</a> <a href=/4>or there</a></b>"
    assert texts(rule("@href", ("before", 0, "Home:")), page) == ["/1", "/2", "/3"]
    assert texts(rule("element", ("before", 0, "Home:")), page) == ["a", "i", "img", "br", "b", "a"]


def test_what_is_hidden_says_nothing() -> None:
    page = "<title>A</title><p>A<script>B 1</script><noscript>C</noscript><b>D</b></p><p>C</p>"
    assert texts(rule("text"), page) == ["A", "D", "C"]
    assert texts(rule("text", ("text-before", 0, "A")), page) == ["D"]
    assert texts(rule("text", ("text-before", 0, "C")), page) == []
    assert texts(rule("element", ("shape", 0, "words")), page) == [
        "html",
        "head",
        "title",
        "body",
        "p",
        "b",
        "p",
    ]


def test_a_frame_counts_as_an_element_but_its_content_is_not_shown() -> None:
    page = "<p>Film:<iframe href=/1>A</iframe>B</p><div><iframe href=/2>C</iframe></div>"
    assert texts(rule("text"), page) == ["Film:", "B"]
    assert texts(rule("@href", ("before", 0, "Film:")), page) == ["/1"]
    assert texts(rule("@href", ("first-text", 0, "A")), page) == []


def test_texts_of_the_head_are_not_before_anything() -> None:
    page = "<title>A</title><meta href=1><body><p>B</p>"
    assert texts(rule("@href", ("before", 0, "A")), page) == []
    assert texts(rule("element", ("first-text", 1, "A")), page) == []


def test_tags_and_attributes_with_odd_names() -> None:
    page = '<p><o:p>A</o:p><o:p xml:lang=de>B</o:p><a"b>C</a"b>'
    assert texts(rule("text", ("tag", 0, "o:p"), ("position", 0, "2")), page) == ["B"]
    assert texts(rule("text", ("tag", 0, "o:p"), ("last-position", 0, "2")), page) == ["A"]
    assert texts(rule("text", ("tag", 0, 'a"b')), page) == ["C"]
    assert texts(rule("@xml:lang", ("tag", 0, "o:p")), page) == ["de"]


@pytest.mark.parametrize("text", ["plain", "it's", 'say "x"', 'it\'s "x"', "''\"\"''", "'", ""])
def test_quoted_texts_read_back(text: str) -> None:
    assert tree("x").xpath(f"string({quote(text)})") == text


def test_characters_that_xml_forbids_are_no_error() -> None:
    assert texts(rule("text", ("text-before", 0, "A\x01"), ("id", 0, "\x0c")), "<p>A<b id=1>B</b>") == []


@pytest.mark.parametrize("kind", ["position", "last-position"])
def test_a_position_without_a_tag_is_refused(kind: Kind) -> None:
    with pytest.raises(UsageError, match="which tag"):
        rule_xpath(rule("text", (kind, 0, "2")))


def test_that_an_element_is_the_last_is_said_by_what_does_not_follow() -> None:
    last, last_but_two = (
        rule_xpath(rule("element", ("tag", 0, "tr"), ("last-position", 0, number))) for number in "13"
    )
    assert "not(following-sibling::tr)" in last
    assert "following-sibling::tr[2] and not(following-sibling::tr[3])" in last_but_two


@pytest.mark.parametrize(
    ("selected", "positions"),
    [
        (["1", "2"], [("last-position", "1")]),
        (["1", "2"], [("position", "1"), ("last-position", "1")]),
        ([], [("position", "1"), ("last-position", "2")]),
        ([], [("last-position", "2")]),
    ],
)
def test_the_element_of_a_record_is_the_only_one_of_its_kind_in_it(
    selected: list[str], positions: list[tuple[Kind, str]]
) -> None:
    root = tree("<ul><li>1</li><li>2</li></ul>")
    found = rule("text", ("tag", 0, "li"), *((kind, 0, number) for kind, number in positions))
    scopes = [Scope(element, is_record=True) for element in root.iter("li")]
    assert [str(text) for scope in scopes for text in scope.top.xpath(rule_xpath(found, True))] == selected
    for scope in scopes:
        assert by_native_selection(found, scope) == by_xpath(found, scope)


def test_an_expression_begins_at_what_is_rare_and_looks_back_only_from_there() -> None:
    # What keeps the time linear: one pass over all texts with a cheap condition, then steps from the
    # few labels; `preceding::` stands in conditions on the nodes that these steps led to, never on all.
    expression = rule_xpath(rule("text", ("before", 1, "Phone:"), ("class", 3, "box"), ("tag", 0, "b")))
    assert expression.startswith("//text()[contains(., 'Phone:') and ")
    assert expression.count("//") == 1
    assert expression.index("preceding::") > expression.index("following::")
