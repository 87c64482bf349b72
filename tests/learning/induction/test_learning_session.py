"""Learning again in a session gives what learning once gives, whatever was learned before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom import Example, Page
from siteloom.apps.demo.sites import guide_site
from siteloom.core.errors import ExampleError, SiteloomError, UsageError
from siteloom.core.model import Failure
from siteloom.html.parser import parse
from siteloom.learning.induction import units
from siteloom.learning.induction.learner import learn_wrapper
from siteloom.learning.induction.learning_session import LearningSession
from siteloom.learning.induction.tree_walk import LONGEST_TEXT
from siteloom.learning.induction.wrapper_assembly import InductionResult
from tests.property_tests import fewer_examples

Values = Mapping[str, Sequence[str]]


def attempt(learn: Callable[[], InductionResult]) -> InductionResult | str:
    """What is learned, or why nothing is."""
    try:
        return learn()
    except SiteloomError as error:
        return f"{type(error).__name__}: {error}"


def check(session: LearningSession, examples: Sequence[Example]) -> InductionResult | None:
    """Learn in a session and without one; None if the examples are no good, and then for the same reason."""
    alone = attempt(lambda: learn_wrapper(examples, session.pages))
    learned = attempt(lambda: session.learn(examples))
    assert learned == alone
    if isinstance(alone, str) or isinstance(learned, str):
        return None
    for page in session.pages:
        root = parse(page)
        expected = () if isinstance(root, Failure) else tuple(alone.wrapper.records(root, page.url))
        assert session.records(page.url) == expected
    return learned


# ---- pages with one record


@cache
def restaurants() -> tuple[tuple[Page, Mapping[str, tuple[str, ...]]], ...]:
    found = [one for one in guide_site() if one.kind == "restaurant"]
    return tuple((one.page, one.truth) for one in found[:60:10])


class Click(NamedTuple):
    """An attribute is said on a page, or unsaid."""

    page: int
    attribute: int
    is_said: bool


clicks = st.lists(
    st.builds(Click, st.integers(0, 5), st.integers(0, 6), st.sampled_from([True, True, True, False])),
    min_size=2,
    max_size=5,
)


def said_after(said: dict[int, dict[str, tuple[str, ...]]], click: Click) -> list[Example]:
    """The examples after a click, in the order in which the pages were first clicked on."""
    _, truth = restaurants()[click.page]
    name = list(truth)[click.attribute % len(truth)]
    values = said.setdefault(click.page, {})
    if click.is_said:
        values[name] = truth[name]
    else:
        values.pop(name, None)
    return [Example(restaurants()[number][0], dict(values)) for number, values in said.items() if values]


@fewer_examples(3)
@given(clicks, st.booleans())
def test_any_clicks_in_any_order(clicked: list[Click], is_prepared: bool) -> None:
    session = LearningSession([page for page, _ in restaurants()])
    if is_prepared:
        session.prepare()
    said: dict[int, dict[str, tuple[str, ...]]] = {}
    for click in clicked:
        check(session, said_after(said, click))


def test_the_very_first_click_gives_suggestions_for_the_other_pages() -> None:
    pages = [page for page, _ in restaurants()]
    session = LearningSession(pages)
    learned = check(session, [Example(pages[2], {"name": restaurants()[2][1]["name"]})])
    assert learned is not None
    found = [session.records(page.url)[0].values.get("name") for page in pages]
    assert found == [truth["name"] for _, truth in restaurants()]


def test_an_example_of_a_page_as_it_was_or_of_another_page() -> None:
    (first, truth), (second, _), *_ = restaurants()
    session = LearningSession([page for page, _ in restaurants()[:5]])
    session.prepare()
    elsewhere = restaurants()[5]
    before = Page(second.url, first.html, charset=first.charset)
    for examples in (
        [Example(first, {"name": truth["name"]})],
        [Example(first, {"name": truth["name"]}), Example(before, {"name": truth["name"]})],
        [Example(elsewhere[0], {"name": elsewhere[1]["name"]}), Example(first, {"name": truth["name"]})],
        [Example(first, {"name": truth["name"]}), Example(first, {"phone": truth["phone"]})],
        [Example(first, {"name": truth["name"]})],
    ):
        assert check(session, examples) is not None


def test_what_was_asked_for_before_is_no_target_now() -> None:
    pages = [
        Page.from_text(
            f"http://a.example/{n}",
            f"<h1>Thing {n}</h1><a href=/t/{n} title='T {n}'>more</a><p>size <b>{n}</b> cm</p><p>end</p>",
        )
        for n in range(1, 7)
    ]
    session = LearningSession(pages)
    said: dict[str, list[str]] = {}
    for name, value in (
        ("name", "Thing 1"),
        ("link", "/t/1"),
        ("tip", "T 1"),
        ("size", "size 1 cm"),
        ("link", ""),
        ("size", ""),
        ("link", "/t/1"),
    ):
        said = {one: texts for one, texts in said.items() if one != name} | ({name: [value]} if value else {})
        assert check(session, [Example(pages[0], said)]) is not None
    assert session.records(pages[3].url)[0].values["link"] == ("/t/4",)


@pytest.mark.parametrize("target", ["element", "attribute"])
def test_values_too_long_to_be_learned_from_are_found_all_the_same(target: str) -> None:
    def page(number: int, text: str) -> Page:
        inside = (
            f"<div class=x>{text}<b>!</b></div>"
            if target == "element"
            else f"<a class=x title='{text}'>y</a>"
        )
        return Page.from_text(f"http://a.example/{number}", f"<p>menu</p>{inside}<p>end</p>")

    long = "word " * LONGEST_TEXT
    pages = [page(1, "one"), page(2, "two"), page(3, "three"), page(4, long)]
    session = LearningSession(pages)
    value = "one!" if target == "element" else "one"
    assert check(session, [Example(pages[0], {"text": [value]})]) is not None
    (found,) = session.records(pages[3].url)[0].values["text"]
    assert len(found) > LONGEST_TEXT


def test_pages_that_cannot_be_read_have_no_records() -> None:
    pages = [page for page, _ in restaurants()[:3]]
    broken = Page("http://broken.example/", b"")
    session = LearningSession([pages[0], broken, *pages[1:]])
    assert isinstance(session.roots[broken.url], Failure)
    assert list(session.roots) == [page.url for page in session.pages]
    assert check(session, [Example(pages[0], {"name": restaurants()[0][1]["name"]})]) is not None
    assert session.records(broken.url) == ()
    with pytest.raises(ExampleError, match="cannot be read"):
        session.learn([Example(broken, {"name": ["x"]})])


def test_records_are_those_of_what_was_learned_last() -> None:
    (page, truth), (other, _), *_ = restaurants()
    session = LearningSession([page, other])
    with pytest.raises(UsageError, match="learn one first"):
        session.records(page.url)
    session.learn([Example(page, {"name": truth["name"], "phone": truth["phone"]})])
    assert set(session.records(page.url)[0].values) == {"name", "phone"}
    session.learn([Example(page, {"name": truth["name"]})])
    assert set(session.records(page.url)[0].values) == {"name"}
    with pytest.raises(ExampleError):
        session.learn([Example(page, {"name": []})])
    assert set(session.records(page.url)[0].values) == {"name"}
    with pytest.raises(UsageError, match="is not one of the pages"):
        session.records("http://nowhere.example/")


# ---- lists


@cache
def lists() -> tuple[tuple[Page, tuple[Mapping[str, tuple[str, ...]], ...]], ...]:
    found = [one for one in guide_site() if one.kind == "list"]
    return tuple((one.page, one.records) for one in found[:4])


@fewer_examples(4)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 4)), min_size=2, max_size=5))
def test_any_clicks_on_records(clicked: list[tuple[int, int, int]]) -> None:
    session = LearningSession([page for page, _ in lists()])
    said: dict[int, dict[int, dict[str, tuple[str, ...]]]] = {}
    for number, record, attribute in clicked:
        truth = lists()[number][1][record]
        name = list(truth)[attribute % len(truth)]
        said.setdefault(number, {}).setdefault(record, {})[name] = truth[name]
        check(
            session,
            [Example(lists()[one][0], records=tuple(records.values())) for one, records in said.items()],
        )


def test_from_pages_to_lists_and_back() -> None:
    session = LearningSession([page for page, _ in lists()])
    session.prepare()
    page, records = lists()[0]
    as_list = [Example(page, records=[dict(list(one.items())[:2]) for one in records[:2]])]
    name = next(iter(records[0]))
    as_page = [Example(page, {name: records[0][name]})]
    for examples in (as_page, as_list, as_page, as_list):
        assert check(session, examples) is not None
    assert len(session.records(page.url)) > 2


def test_records_that_are_not_learned_from_are_found_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "_MOST_UNITS", 3)
    session = LearningSession([page for page, _ in lists()])
    for number, names in ((0, 1), (0, 2), (2, 2), (0, 3)):
        page, records = lists()[number]
        said = [dict(list(one.items())[:names]) for one in records[:2]]
        assert check(session, [Example(page, records=said)]) is not None
        assert all(session.records(page.url) for page, _ in lists())


def test_rules_that_go_by_the_shape_of_a_text_find_such_records_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "_MOST_UNITS", 3)

    def page(number: int) -> Page:
        cards = "".join(
            f"<div class=x><h2 class=title>Thing {row}</h2><p class=big>${row}.90</p><p>no. {row}</p></div>"
            for row in range(3 * number, 3 * number + 3)
        )
        return Page.from_text(f"http://a.example/{number}", f"<p>menu</p>{cards}<p>end</p>")

    pages = [page(number) for number in range(4)]
    session = LearningSession(pages)
    said = [{"name": [f"Thing {row}"], "price": [f"${row}.90"]} for row in range(2)]
    learned = check(session, [Example(pages[0], records=said)])
    assert learned is not None
    kinds = {
        feature.kind
        for rules in learned.wrapper.attributes.values()
        for rule in (*rules.rules, *rules.voters)
        for feature in rule.features
    }
    assert "shape" in kinds


def test_flat_records_that_look_different_from_each_other() -> None:
    def page(number: int) -> Page:
        rows = "".join(
            f"<h3 class='{'new ' * (row % 2)}title'>Thing {number}{row}</h3>from <!-- c --> ${row}.90<p>size "
            f"<b>{row}</b> cm</p><a href=/{number}/{row}>more</a> left: {number * row} "
            for row in range(1, 6)
        )
        return Page.from_text(f"http://a.example/{number}", f"<p>menu</p><div>0{rows}</div><p>end</p>")

    pages = [page(number) for number in range(1, 5)]
    session = LearningSession(pages)
    session.prepare()
    said = [{"name": ["Thing 11"]}, {"name": ["Thing 12"]}]
    for name, values in (
        ("price", ["$1.90", "$2.90"]),
        ("link", ["/1/1", "/1/2"]),
        ("size", ["size 1 cm", "size 2 cm"]),
    ):
        said = [{**record, name: [value]} for record, value in zip(said, values, strict=True)]
        assert check(session, [Example(pages[0], records=said)]) is not None
    assert [record.values["link"] for record in session.records(pages[3].url)][:2] == [("/4/1",), ("/4/2",)]


def test_what_becomes_a_label_is_no_value_any_more() -> None:
    """What is found by rules that stay changes as well if another attribute makes a label of it."""

    def page(n: int) -> Page:
        filling = "".join(f"<i>{word} {n}</i>" for word in ("red", "blue", "grey", "pink")[: n % 5])
        note = "<p class=x>Size</p>" if n > 3 else f"<p class=x>note {n}</p>{filling}<p>Size</p>"
        return Page.from_text(f"http://a.example/{n}", f"<h1>T {n}</h1>{filling}{note}<i>{n} cm</i>{filling}")

    pages = [page(n) for n in range(1, 13)]
    session = LearningSession(pages)
    note = Example(pages[0], {"note": ["note 1"]})
    sizes = [Example(pages[n - 1], {"size": [f"{n} cm"]}) for n in (2, 4, 7, 8)]
    found = []
    for examples in ([note], [note, *sizes], [note]):
        assert check(session, examples) is not None
        found.append(session.records(pages[8].url)[0].values.get("note"))
    assert found == [("Size",), None, ("Size",)]


def test_records_come_with_the_parts_of_the_page_that_they_are() -> None:
    page, records = lists()[0]
    session = LearningSession([page])
    name = next(iter(records[0]))
    learned = session.learn([Example(page, records=[{name: one[name]} for one in records[:2]])])
    root = session.roots[page.url]
    assert not isinstance(root, Failure)
    assert len(session.scoped_records(page.url)) > 2
    for scope, record in session.scoped_records(page.url):
        assert scope is not None
        assert record == learned.wrapper.record_of(root, page.url, scope)
    session.learn([Example(page, {name: records[0][name]})])
    assert [scope for scope, _ in session.scoped_records(page.url)] == [None]
