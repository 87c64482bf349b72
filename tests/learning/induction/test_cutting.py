"""Units cut out of pages that were walked through are what a walk through these units finds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from siteloom.html.parser import Element
from siteloom.learning.induction.feature_columns import Table
from siteloom.learning.induction.tree_walk import TableBuilder
from siteloom.learning.induction.unit_slices import WalkedPages
from siteloom.wrappers.rule_evaluation import Scope, records
from siteloom.wrappers.rule_features import Feature, RecordRule
from tests.html.trees import tree
from tests.learning.induction.test_feature_columns import odd_pages


def check(pages: Sequence[Element], units: Sequence[tuple[Element, Scope | None]]) -> None:
    """Cut units out of pages, and walk through them alone."""
    walked = WalkedPages()
    for page in pages:
        walked.add(page)
    spans = [walked.span(*unit) for unit in units]
    builder = TableBuilder()
    for (root, scope), span in zip(units, spans, strict=True):
        rows = (
            builder.add(root)
            if scope is None
            else builder.add(*scope.tops, with_tails=scope.end != _end_of_one(scope))
        )
        nodes = walked.nodes(root, span)
        assert nodes.elements == list(rows.elements)
        assert list(zip(nodes.text_parents, nodes.text_numbers, strict=True)) == list(rows.texts)
    expected, found = builder.walked, walked.cut(spans)
    assert found.words.texts == expected.words.texts
    assert found.class_words == expected.class_words
    for column in ("first_elements", "first_texts", "elements", "parents", "spans", "texts"):
        np.testing.assert_array_equal(getattr(found, column), getattr(expected, column), column)
    np.testing.assert_array_equal(Table(found).elements, Table(expected).elements)


def _end_of_one(scope: Scope) -> object:
    """Where a record ends that does not run on."""
    above = scope.start.getparent()
    return None if above is None else (above, scope.start)


@given(
    st.lists(odd_pages(), min_size=1, max_size=3),
    st.sampled_from(["p", "div", "span", "li", "td", "tr", "b", "table", "body", "html"]),
    st.booleans(),
    st.booleans(),
)
def test_records_of_any_pages(pages: list[Element], tag: str, runs_on: bool, has_whole_page: bool) -> None:
    rule = RecordRule((Feature("tag", 0, tag),), runs_on)
    units: list[tuple[Element, Scope | None]] = [
        (page, scope) for page in reversed(pages) for scope in records(rule, page)
    ]
    check(pages, [*units, (pages[0], None)] if has_whole_page else units)


def test_a_record_that_runs_on_may_hold_another() -> None:
    page = tree(
        "<div>menu<h3 class='b a'>One</h3>tail<script>x</script> 1<div>in <h3 class=a>Two</h3> 2</div>3"
        "<!-- c -->4</div><p>end</p>"
    )
    rule = RecordRule((Feature("tag", 0, "h3"),), runs_on=True)
    scopes = records(rule, page)
    assert len(scopes) == 2
    check([page], [(page, scope) for scope in scopes])


def test_words_are_numbered_as_they_come_in_the_units() -> None:
    page = tree("<p class='big low'>top</p><ul><li id=low class='low big' title=x>1<li class=low>top</ul>")
    check([page], [(page, scope) for scope in records(RecordRule((Feature("tag", 0, "li"),), False), page)])


def test_pages_come_one_after_the_other() -> None:
    first, second = tree("<p>1</p><p>2</p>"), tree("<i>0</i><p>3</p>")
    walked = WalkedPages()
    walked.add(first)
    rule = RecordRule((Feature("tag", 0, "p"),), runs_on=False)
    before = walked.cut([walked.span(first, scope) for scope in records(rule, first)])
    walked.add(second)
    walked.add(first)
    both = walked.cut([walked.span(page, scope) for page in (first, second) for scope in records(rule, page)])
    assert [before.words.texts[value] for value in before.texts[2]] == ["1", "2"]
    assert [both.words.texts[value] for value in both.texts[2]] == ["1", "2", "3"]
