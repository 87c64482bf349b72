"""Sequential covering: which features are chosen, and what is left alone."""

from __future__ import annotations

from collections.abc import Sequence

from siteloom.learning.induction.feature_columns import ColumnFeature
from siteloom.learning.induction.rule_search import Covering, CoverProblem, cover
from siteloom.wrappers.rule_features import Feature
from tests.learning.induction.problems import problem

Readable = tuple[str, int, str]


def words(problem: CoverProblem, features: Sequence[ColumnFeature]) -> list[Feature]:
    return [feature for found in features for feature in problem.rows.rule_features(found)]


def kinds(problem: CoverProblem, found: Covering) -> set[str]:
    return {feature.kind for rule in found.rules for feature in words(problem, rule.features)}


def selected(problem: CoverProblem, found: Covering, unit: int) -> list[str]:
    """The texts that all rules together select on a page."""
    rows = {row for rule in found.rules for row in problem.hits(rule.features).tolist()}
    mine = [row for row in sorted(rows) if problem.rows.unit[row] == unit]
    return [problem.rows.table.words.texts[value] for value in problem.rows.value[mine].tolist()]


# ---- what a value is found by


def spec_page(colour: str, weight: str, name: str) -> str:
    return f"""<h1>{name}</h1><table><tr><th>Colour</th><td>{colour}</td></tr>
        <tr><th>Weight</th><td>{weight}</td></tr></table>"""


def test_a_label_close_by_is_preferred_to_where_the_value_stands() -> None:
    found = problem(
        [(spec_page("red", "5 kg", "A"), ["red"]), (spec_page("blue", "7 kg", "B"), ["blue"])],
        [spec_page("green", "9 kg", "C"), spec_page("grey", "8 kg", "D")],
    )
    result = cover(found)
    assert len(result.rules) == 1
    assert "Colour" in {feature.value for feature in words(found, result.rules[0].features)}
    assert not {"position", "text-number"} & kinds(found, result)
    assert (result.rules[0].wrong, result.rules[0].covered, result.rules[0].filled) == (
        0,
        frozenset({0, 1}),
        1.0,
    )


def test_a_label_in_the_same_part_of_the_page_is_preferred_to_one_farther_away() -> None:
    def page(value: str) -> str:
        return f"<div><p>Far</p></div><div><section><p><i><b>{value}</b></i></p></section></div><p>Near</p>"

    found = problem([(page("x"), ["x"]), (page("y"), ["y"])], [page("z"), page("w")])
    text = ColumnFeature("text-before", 0, found.rows.table.words.find("Far"))
    assert not found.rows.is_near(text)
    tag = next(feature for feature in found.features(1) if feature.column == "tag" and not feature.distance)
    assert found.cost(text) > found.cost(tag)


def test_names_made_of_digits_and_texts_of_none_but_signs_are_trusted_less() -> None:
    page = "<p class=item7>Price: <b>x</b> | <i class=item>y</i></p>"
    found = problem([(page, ["x"]), (page, ["x"])])
    known = found.rows.table.words.find

    def cost(column: str, text: str) -> float:
        return found.cost(ColumnFeature(column, 0, known(text)))

    assert cost("class", "item7") > cost("class", "item")
    assert cost("text-before", "|") > cost("text-before", "Price:")
    assert cost("last-position", "b 1") > cost("position", "b 1") > cost("tag", "b")


def test_nodes_of_one_page_only_have_features_that_belong_to_their_record() -> None:
    # The id is a record's own: a rule with it would find nothing elsewhere.
    def page(number: int) -> str:
        return f"<div id=rec{number}><b class=name>N{number}</b></div><b>x</b>"

    found = problem([(page(1), ["N1"]), (page(2), ["N2"])], [page(3), page(4)])
    result = cover(found)
    assert all(
        not feature.value.startswith("rec")
        for rule in result.rules
        for feature in words(found, rule.features)
    )
    assert selected(found, result, 3) == ["N4"]


# ---- what is counted from the end


def history(*seats: str) -> str:
    """Where a member has sat, the current seat last."""
    rows = "".join(f"<tr><td>{seat}</td><td>seat of {seat}</td></tr>" for seat in seats)
    return f"<h1>Member</h1><table>{rows}</table><p>more</p>"


def test_what_is_current_stands_in_the_last_row_however_many_there_are() -> None:
    found = problem(
        [(history("A"), ["A"]), (history("B", "C", "D"), ["D"]), (history("E", "F"), ["F"])],
        [history("G"), history("H", "I"), history("J", "K", "L"), history("M", "N", "O", "P")],
    )
    result = cover(found)
    assert len(result.rules) == 1
    assert Feature("last-position", 1, "1") in words(found, result.rules[0].features)
    assert [selected(found, result, unit) for unit in range(3, 7)] == [["G"], ["I"], ["L"], ["P"]]


def test_where_lists_are_of_one_length_it_is_counted_from_the_start() -> None:
    # A longer list has a second item as well, and a shorter one a last item that is no second.
    found = problem(
        [(history("A", "B"), ["B"]), (history("C", "D"), ["D"])],
        [history("E"), history("F", "G", "H"), history("I", "J"), history("K", "L")],
    )
    result = cover(found)
    assert "last-position" not in kinds(found, result)
    assert [selected(found, result, unit) for unit in range(2, 5)] == [[], ["G"], ["J"]]


# ---- several rules


def test_variants_of_a_template_have_a_rule_each() -> None:
    def old(name: str) -> str:
        return f"<h1 class=name>{name}</h1><p>foot</p>"

    def new(name: str) -> str:
        return f"<p>Name: <span>{name}</span></p><h1>Shop</h1><span>more</span>"

    found = problem(
        [(old("A"), ["A"]), (new("B"), ["B"]), (old("C"), ["C"])],
        [old("D"), new("E"), old("F"), new("G")],
    )
    result = cover(found)
    assert len(result.rules) == 2
    assert [set(rule.covered) for rule in result.rules] == [{0, 2}, {1}] or [
        set(rule.covered) for rule in result.rules
    ] == [{1}, {0, 2}]
    assert [selected(found, result, unit) for unit in range(7)] == [[name] for name in "ABCDEFG"]


def test_the_value_of_a_page_may_stand_anywhere_and_the_best_place_is_taken() -> None:
    def page(name: str, other: str) -> str:
        return f"<nav><i>{other}</i><i>{name}</i></nav><h1>{name}</h1>"

    found = problem([(page("A", "B"), ["A"]), (page("B", "A"), ["B"])], [page("C", "A"), page("D", "A")])
    result = cover(found)
    assert [selected(found, result, unit) for unit in range(4)] == [["A"], ["B"], ["C"], ["D"]]


def test_values_of_a_list_are_united_without_saying_which_one() -> None:
    def page(*items: str) -> str:
        listed = "".join(f"<li>{item}</li>" for item in items)
        return f"<ul class=cuisine>{listed}</ul><ul><li>Home</li><li>About us</li></ul>"

    found = problem(
        [(page("Thai", "Vegan"), ["Thai", "Vegan"]), (page("Greek"), ["Greek"])],
        [page("Fish", "Thai", "Vegan"), page("Greek", "Fish")],
        is_multi=True,
    )
    result = cover(found)
    assert selected(found, result, 2) == ["Fish", "Thai", "Vegan"]
    assert selected(found, result, 3) == ["Greek", "Fish"]
    items = [
        feature
        for rule in result.rules
        for feature in words(found, rule.features)
        if feature.kind in ("position", "last-position", "text-number") and feature.distance == 0
    ]
    assert items == []


def test_values_of_a_list_in_two_places_are_united() -> None:
    def page(first: str, second: str) -> str:
        return f"<h2 class=main>{first}</h2><p>x</p><div id=also>and <em>{second}</em></div><h2>Other</h2>"

    found = problem(
        [(page("A", "B"), ["A", "B"]), (page("C", "D"), ["C", "D"])],
        [page("E", "F"), page("G", "H")],
        is_multi=True,
    )
    result = cover(found)
    assert len(result.rules) == 2
    assert selected(found, result, 2) == ["E", "F"]


# ---- what is never taken


def test_what_says_the_same_on_all_pages_is_not_taken_if_values_vary() -> None:
    # On the examples the menu says what the value is, but it says it everywhere.
    def page(value: str) -> str:
        return f"<ul><li class=first>Thai</li><li>Greek</li></ul><p><b class=kitchen>{value}</b></p>"

    found = problem([(page("Thai"), ["Thai"])], [page("Greek"), page("Fish"), page("Vegan"), page("Thai")])
    result = cover(found)
    assert [selected(found, result, unit) for unit in range(4)] == [["Thai"], ["Greek"], ["Fish"], ["Vegan"]]
    assert not result.rules[0].is_constant


def test_labels_are_never_selected() -> None:
    def page(phone: str) -> str:
        return f"<p>Phone:</p><p>{phone}</p>"

    found = problem(
        [(page("12"), ["12"]), (page("34"), ["34"])],
        [page("56"), "<p>Phone:</p><p>Fax:</p><p>7</p>"],
        labels=["Phone:", "Fax:"],
    )
    result = cover(found)
    assert selected(found, result, 2) == ["56"]
    assert "Fax:" not in selected(found, result, 3)


def test_a_rule_that_hangs_on_the_examples_comes_after_one_that_is_supported() -> None:
    # Both examples are of one district; its name before the value is on no other page.
    def page(district: str, name: str) -> str:
        return f"<div><h2>{district}</h2><h1 class=name>{name}</h1></div><h1>Shop</h1>"

    found = problem(
        [(page("Oak", "A"), ["A"]), (page("Oak", "B"), ["B"])], [page(f"D{n}", f"N{n}") for n in range(20)]
    )
    result = cover(found)
    assert not result.rules[0].is_unsupported
    assert result.rules[0].filled == 1.0
    oak = ColumnFeature("text-before", 0, found.rows.table.words.find("Oak"))
    assert oak in found.features(1)
    assert found.judge((oak,), found.mask(oak)).is_unsupported


def test_where_nothing_tells_the_value_there_is_no_rule() -> None:
    # Which of the two lines is meant cannot be seen.
    found = problem([("<p>a</p><p>x</p>", ["x"]), ("<p>y</p><p>b</p>", ["y"]), ("<p>c</p><p>z</p>", ["z"])])
    result = cover(found)
    for rule in result.rules:
        assert rule.wrong * 2 <= len(rule.covered)


def test_an_attribute_that_is_absent_on_a_page_makes_what_is_there_wrong() -> None:
    def page(first: str, second: str = "") -> str:
        return f"<p>{first}</p><p>{second}</p>"

    found = problem([(page("red", "5 kg"), ["red"]), (page("7 kg"), []), (page("blue", "8 kg"), ["blue"])])
    result = cover(found)
    assert selected(found, result, 1) == []
    assert [selected(found, result, unit) for unit in (0, 2)] == [["red"], ["blue"]]


# ---- voters


def test_voters_hang_on_other_things_than_the_rule_and_each_other() -> None:
    def page(price: str) -> str:
        return f"""<div id=offer><p class=cost><b>Price:</b> <span itemprop=price>{price}</span></p></div>
            <p><span>more</span></p><p><b>also</b> <span>this</span></p>"""

    found = problem(
        [(page("$1"), ["$1"]), (page("$2"), ["$2"]), (page("$3"), ["$3"])], [page("$4"), page("$5")]
    )
    result = cover(found)
    assert 1 <= len(result.voters) <= 2
    everything = [result.rules[0], *result.voters]
    seen: set[Readable] = set()
    for rule in everything:
        sources = {_source(feature) for feature in words(found, rule.features)}
        assert not sources & seen
        seen |= sources
        assert (rule.wrong, rule.covered) == (0, frozenset({0, 1, 2}))
        assert selected(found, Covering([rule], []), 4) == ["$5"]


def _source(feature: Feature) -> Readable:
    """What must not be shared: a text, the names of an element, its tag and number."""
    if feature.kind in ("text-before", "prefix", "first-text", "before"):
        return "text", 0, feature.value
    if feature.kind in ("tag", "position", "last-position"):
        return "tag", feature.distance, ""
    if feature.kind in ("shape", "text-number"):
        return feature.kind, 0, ""
    return "name", feature.distance, ""


def test_no_rule_no_voters() -> None:
    found = problem([("<p>a</p>", [])], ["<p>b</p>"])
    assert cover(found) == Covering([], [])
