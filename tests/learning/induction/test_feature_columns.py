"""What the table says of a node is what a rule finds on the page: learning and extraction mean the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.html.parser import Element
from siteloom.html.visible_text import HIDDEN
from siteloom.learning.induction.feature_columns import ColumnFeature, Rows, Table, target_rows
from siteloom.learning.induction.tree_walk import NONE, TableBuilder, UnitRows
from siteloom.wrappers.feature_index import occurrences, triggers
from siteloom.wrappers.rule_evaluation import Node, Scope, node_position, records, select, select_in
from siteloom.wrappers.rule_features import Feature, RecordRule, Rule, RuleSupport, ValuePart
from tests.html.trees import tree
from tests.wrappers.pages import bodies

ATTRIBUTES = frozenset({"href", "data-x", "content"})
EVIDENCE = RuleSupport(examples=1, wrong=0, filled=1.0, repeated=0.0)

Place = tuple[Element, int]  # of a text its parent and number, of an element the element and 0


class Unit(NamedTuple):
    """A page, or one record of it."""

    root: Element
    scope: Scope | None = None
    runs_on: bool = False


class Taken(NamedTuple):
    """Units in a table."""

    units: Sequence[Unit]
    rows: Sequence[UnitRows]
    table: Table

    def targets(self) -> list[str]:
        attributes = sorted(key for key in self.table.inner_texts if key.startswith("@"))
        return ["text", *attributes, "element"]

    def places(self, target: str) -> list[Place]:
        """Where the node of each row stands."""
        if target == "text":
            of_text = {row: place for one in self.rows for place, row in one.texts.items()}
            found = [of_text[row] for row in range(len(of_text))]
            return [(parent, number) for parent, number in found if parent is not None]
        of_element = {row: element for one in self.rows for element, row in one.elements.items()}
        return [(of_element[row], 0) for row in target_rows(self.table, target).element.tolist()]


def take(units: Sequence[Unit]) -> Taken:
    tags = {str(element.tag) for unit in units for element in unit.root.iter()}
    builder = TableBuilder(ATTRIBUTES, frozenset(tags))
    rows = [
        builder.add(unit.root)
        if unit.scope is None
        else builder.add(*unit.scope.tops, with_tails=unit.runs_on)
        for unit in units
    ]
    return Taken(units, rows, Table(builder))


def selected(unit: Unit, target: str, features: Iterable[Feature]) -> dict[Place, Node]:
    """The nodes that a rule finds in a unit; what is blank is no value and has no row."""
    rule = Rule(target, tuple(features), ValuePart(), EVIDENCE)
    if unit.scope is None:
        wanted = triggers([rule])
        nodes = select(wanted.searches[rule], occurrences(unit.root, wanted))
    else:
        nodes = select_in(rule, unit.scope)
    found = {(node.element, node.spot.number if node.spot else 0): node for node in nodes if node.text}
    assert len(found) == len([node for node in nodes if node.text])
    return found


def check(units: Sequence[Unit], pairs: Sequence[int] = (0,)) -> Taken:
    """Each row, each feature of it, and some pairs of features mean the same in the table and on the page."""
    taken = take(units)
    for target in taken.targets():
        rows, places = target_rows(taken.table, target), taken.places(target)
        assert len(places) == len(rows)
        for number, unit in enumerate(units):
            every = selected(unit, target, ())
            mine = np.flatnonzero(rows.unit == number).tolist()
            assert [places[row] for row in mine] == list(every), target
            for row in mine:
                node = every[places[row]]
                assert taken.table.words.texts[rows.value[row]] == node.text
                assert rows.node_position(row) == node_position(node, unit.scope)
        for rule in _rules(rows, pairs):
            words = [word for feature in rule for word in rows.rule_features(feature)]
            flags = rows.having_all(rule)
            for number, unit in enumerate(units):
                mine = np.flatnonzero(flags & (rows.unit == number)).tolist()
                assert [places[row] for row in mine] == list(selected(unit, target, words)), (target, words)
    return taken


def _rules(rows: Rows, pairs: Sequence[int]) -> Iterable[tuple[ColumnFeature, ...]]:
    """A rule of each feature that occurs, and some of two."""
    rows_of: defaultdict[ColumnFeature, list[int]] = defaultdict(list)
    for row in range(len(rows)):
        features = rows.features(row)
        for feature in features:
            rows_of[feature].append(row)
        for pair in pairs:
            yield features[pair % len(features)], features[(pair * 7 + row) % len(features)]
    for feature, having in rows_of.items():
        # Which rows have a feature is what the rows say of themselves.
        assert np.flatnonzero(rows.having(feature)).tolist() == having
        yield (feature,)


# ---- any page


heads = st.sampled_from(
    [
        "",
        "<title>A</title>",
        '<title>A</title><meta class=r content="A B"><link href="/1" rel="x  y"><style>B:</style>',
        "<script>B:</script><noscript><link href=A></noscript><meta name=r content=12><title>B: 1</title>",
    ]
)
tables = st.sampled_from(
    [
        "",
        "<table><tr><th>A<td>B: 1<td class=r><table><tr><td>A<td>12</table>$5<tr><td>A B<td>a1</table>",
        "<dl><dt>B:<dd>A<br>12<!-- x -->a1<dt>B:<dd><a href=A>A</a>, <a href='/1'>B: 1</a></dl>",
        "<p>A<noscript>12</noscript>B: 1<script>A</script> a1 <!-- A -->$5</p>tail",
        "<p>A<iframe href=A class=r>B: 1</iframe>B: 1<b>12<iframe data-x='A B'>A</iframe></b></p>",
    ]
)


@st.composite
def odd_pages(draw: st.DrawFn) -> Element:
    body = "".join(draw(bodies)) + draw(tables)
    return tree(f"<html><head>{draw(heads)}</head><body class=r>{body}</body></html>")


@given(st.lists(odd_pages(), min_size=1, max_size=2), st.lists(st.integers(0, 99), max_size=3))
def test_on_any_pages_a_feature_is_had_by_the_nodes_that_a_rule_with_it_finds(
    pages: list[Element], pairs: list[int]
) -> None:
    check([Unit(page) for page in pages], pairs)


@given(odd_pages(), st.booleans(), st.lists(st.integers(0, 99), max_size=2), st.data())
def test_in_any_records_as_well(page: Element, runs_on: bool, pairs: list[int], data: st.DataObject) -> None:
    seen = [
        element
        for element in page.iter()
        if isinstance(element.tag, str)
        and element.tag != "html"
        and not any(above.tag in HIDDEN for above in (element, *element.iterancestors()))
    ]
    start = data.draw(st.sampled_from(seen))
    rule = RecordRule((Feature("tag", 0, str(start.tag)),), runs_on)
    units = [Unit(page, scope, runs_on) for scope in records(rule, page)]
    assert units
    check(units, pairs)


def test_in_a_flat_record_nothing_before_it_counts() -> None:
    page = tree("<div><p>0</p><h3>One</h3><p>1</p><p>2</p><h3>Two</h3><p>3</p></div>")
    rule = RecordRule((Feature("tag", 0, "h3"),), runs_on=True)
    check([Unit(page, scope, runs_on=True) for scope in records(rule, page)])


def test_in_a_flat_record_nothing_behind_it_counts() -> None:
    page = tree("<div><h3>One</h3><p>1</p><p>2</p><b>3</b><h3>Two</h3><p>4</p><b>5</b><p>6</p></div><p>7</p>")
    rule = RecordRule((Feature("tag", 0, "h3"),), runs_on=True)
    taken = check([Unit(page, scope, runs_on=True) for scope in records(rule, page)])
    assert having(taken, "text", "last-position", 0, "p 1") == ["2", "6"]
    assert having(taken, "text", "last-position", 0, "h3 1") == ["One", "Two"]


@pytest.mark.parametrize(
    ("number", "found"),
    [
        ("1", [["4"], ["3"], ["4"]]),
        ("2", [["3"], ["2"], []]),
        ("3", [["2"], ["1"], []]),
        ("4", [["1"], [], []]),
    ],
)
def test_rules_may_count_farther_from_the_end_than_the_table_does(
    number: str, found: list[list[str]]
) -> None:
    page = tree("<div><h3>One</h3><p>1</p><p>2</p><b>x</b><p>3</p><h3>Two</h3><p>4</p></div>")
    features = (Feature("tag", 0, "p"), Feature("last-position", 0, number))
    starts = RecordRule((Feature("tag", 0, "h3"),), runs_on=True)
    units = [Unit(page), *(Unit(page, scope, runs_on=True) for scope in records(starts, page))]
    assert [[node.text for node in selected(unit, "text", features).values()] for unit in units] == found


# ---- pages that have been a trap


def having(taken: Taken, target: str, kind: str, distance: int, value: str | int) -> list[str]:
    """The texts of the rows that have a feature."""
    rows = target_rows(taken.table, target)
    number = value if isinstance(value, int) else taken.table.words.find(value)
    flags = rows.having(ColumnFeature(kind, distance, number))
    return [taken.table.words.texts[found] for found in rows.value[flags].tolist()]


def test_what_is_in_the_head_has_no_text_but_attributes() -> None:
    taken = check([Unit(tree('<title>T</title><meta property=og:t content="Fern"><h1>Fern</h1><p>B</p>'))])
    assert having(taken, "@content", "attribute:property", 0, "og:t") == ["Fern"]
    assert having(taken, "element", "tag", 0, "title") == ["T"]
    assert having(taken, "text", "tag", 0, "h1") == ["Fern"]
    assert taken.table.words.find("T") != NONE
    assert "T" not in [taken.table.words.texts[value] for value in taken.table.text_value]


def test_noscript_comments_and_blanks_count_neither_as_texts_nor_as_text_numbers() -> None:
    html = "<p>A<!-- x -->B<noscript>N</noscript> \n <b>C</b><?pi?>D<script>S</script>E</p>"
    taken = check([Unit(tree(html))])
    assert [having(taken, "text", "text-number", 0, n) for n in (1, 2, 3, 4)] == [
        ["A", "C"],
        ["B"],
        ["D"],
        ["E"],
    ]
    assert having(taken, "text", "text-before", 0, "B") == ["C"]


def test_nested_tables_have_positions_of_their_own() -> None:
    html = """<table><tr><td>1<td>2<td><table><tr><td>in 1<td>in 2</table>tail</td></tr>
        <tr><td>3<td>4</table>"""
    taken = check([Unit(tree(html))])
    assert having(taken, "text", "position", 0, "td 2") == ["2", "in 2", "4"]
    assert having(taken, "text", "last-position", 0, "td 1") == ["in 2", "tail", "4"]
    assert having(taken, "text", "last-position", 1, "tr 1") == ["in 1", "in 2", "3", "4"]
    assert having(taken, "text", "first-text", 0, "in 1") == ["tail"]
    assert having(taken, "text", "before", 0, "2") == ["in 1", "tail"]


def test_a_first_text_says_nothing_of_itself_but_of_an_element_that_says_more() -> None:
    taken = check([Unit(tree("<p>Phone:<b>12</b></p><p>Phone:</p>"))])
    assert having(taken, "text", "first-text", 0, "Phone:") == []
    assert having(taken, "text", "first-text", 1, "Phone:") == ["12"]
    assert having(taken, "element", "first-text", 0, "Phone:") == ["Phone:12 Phone:"] * 2 + ["Phone:12"]


def test_a_prefix_is_what_stands_before_the_first_colon_if_that_comes_early() -> None:
    late = "a clause that goes on and on and on and on: and then"
    taken = check([Unit(tree(f"<p>Fax: 1</p><p>Fax: 2: 3</p><p>Fax</p><p>: 4</p><p>{late}</p>"))])
    assert having(taken, "text", "prefix", 0, "Fax:") == ["Fax: 1", "Fax: 2: 3"]
    kinds = [f.column for row in (2, 3, 4) for f in target_rows(taken.table, "text").features(row)]
    assert "prefix" not in kinds


def test_an_element_behind_the_last_text_has_a_text_before_it() -> None:
    page = "<div><p>Last</p><a class=x href=A></a></div>"
    taken = check([Unit(tree(page)), Unit(tree("<p>Other")), Unit(tree(page))])
    assert having(taken, "@href", "before", 0, "Last") == ["A", "A"]
    listed = tree(f"<body>{page * 3}")
    rule = RecordRule((Feature("tag", 0, "div"),), runs_on=False)
    taken = check([Unit(listed, scope) for scope in records(rule, listed)])
    assert having(taken, "@href", "before", 0, "Last") == ["A", "A", "A"]


def test_texts_behind_the_elements_of_a_flat_record_belong_to_it() -> None:
    page = tree("<div>x<h3>One</h3> $1 <p>a</p><h3>Two</h3>$2<br>b<p>c</p></div><p>after</p>")
    rule = RecordRule((Feature("tag", 0, "h3"),), runs_on=True)
    units = [Unit(page, scope, runs_on=True) for scope in records(rule, page)]
    taken = check(units)
    texts = target_rows(taken.table, "text")
    assert [taken.table.words.texts[value] for value in texts.value] == [
        "One",
        "$1",
        "a",
        "Two",
        "$2",
        "b",
        "c",
    ]
    assert having(taken, "text", "text-before", 0, "One") == ["$1"]
    assert having(taken, "text", "text-number", 0, 1) == ["One", "$1", "a", "Two", "$2", "c"]
    assert having(taken, "text", "text-number", 0, 2) == ["b"]
    # Nothing outside the record exists.
    assert [taken.table.words.find(text) for text in ("x", "body", "after")] == [NONE] * 3


def test_records_end_where_the_next_begins_though_comments_stand_between() -> None:
    page = tree(
        "<dl><!-- a --><dt>A</dt><!-- b --><dd>1</dd>tail<!-- c -->more<dt>B</dt><dd>2</dd><!-- d --></dl>"
    )
    rule = RecordRule((Feature("tag", 0, "dt"),), runs_on=True)
    taken = check([Unit(page, scope, runs_on=True) for scope in records(rule, page)])
    assert taken.table.text_unit.tolist() == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("html", ["<p></p>", "<p>A", "<!-- x --><p> </p>", "<noscript>A</noscript>"])
def test_pages_that_say_next_to_nothing(html: str) -> None:
    check([Unit(tree(html)), Unit(tree("<p>A</p>"))])


def test_an_element_whose_text_is_very_long_is_no_row() -> None:
    taken = take([Unit(tree(f"<div>{'x ' * 3_000}</div><p>short</p>"))])
    rows = target_rows(taken.table, "element")
    assert {taken.table.words.texts[value] for value in rows.value.tolist()} == {"short"}


# ---- lists that go on


def goes_on(html: str) -> list[tuple[str, str]]:
    taken = take([Unit(tree(html))])
    table = taken.table
    said = [table.words.texts[value] for value in table.text_value.tolist()]
    return [
        (said[row], said[following])
        for row, following in enumerate(table.continuations().tolist())
        if following != NONE
    ]


@pytest.mark.parametrize(
    "html",
    [
        "<p><a>1</a><a>2</a><a>3</a></p>",
        "<p><a>1</a>, <a>2</a> and <a>3</a></p>",
        "<ul><li>1<li>2<li>3</ul>",
    ],
)
def test_items_side_by_side_are_a_list(html: str) -> None:
    assert goes_on(html) == [("1", "2"), ("2", "3")]


@pytest.mark.parametrize(
    "html",
    [
        "<p><a class=x>1</a><a class=y>2</a></p>",
        "<p><a>1</a><b>2</b></p>",
        "<p><a>1</a> or rather <a>2</a></p>",
        "<p><a>1</a></p><p><a>2</a></p>",
        "<p>1<br>2</p>",
    ],
)
def test_what_differs_or_stands_apart_is_none(html: str) -> None:
    assert goes_on(html) == []


def test_no_list_goes_on_from_one_page_to_the_next() -> None:
    taken = take([Unit(tree("<p>1</p>")), Unit(tree("<p>2</p>"))])
    assert taken.table.continuations().tolist() == [NONE, NONE]
    builder = TableBuilder()
    builder.add(tree("<p></p>"))
    assert Table(builder).continuations().tolist() == []
