"""From pages whose records are known to a wrapper."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from siteloom.core.model import Attribute, Example, Page, Seed
from siteloom.learning.induction.learner import check_example, learn
from siteloom.learning.known_records.aligned_pages import KnownPages, known_pages, known_records
from siteloom.learning.known_records.trial_wrapper import TrialResult, learn_and_try
from tests.learning.known_records import sites

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.learning.induction.learning_session import Schema


def outcome(pages: Sequence[Page], seeds: Sequence[Seed] | None = None, schema: Schema = None) -> TrialResult:
    known = known_pages(
        known_records(sites.seeds() if seeds is None else seeds, sites.CORE), sites.texts_of(pages)
    )
    assert isinstance(known, KnownPages), known
    return learn_and_try(known, pages, schema)


@cache
def whole_site() -> TrialResult:
    return outcome(sites.pages())


@cache
def without_kitchens() -> TrialResult:
    return outcome(sites.pages(without=("cuisine",)))


def test_the_wrapper_is_right_on_all_pages() -> None:
    found = whole_site()

    assert found.wrapper is not None
    for page, one in zip(sites.pages(), sites.ON_SITE, strict=True):
        assert found.wrapper.extract(page).values == {name: (text,) for name, text in one.values.items()}


def test_what_speaks_for_an_attribute_was_measured_on_other_pages() -> None:
    for name, evidence in whole_site().attributes.items():
        assert (evidence.verdict, evidence.reason) == ("accepted", ""), name
        assert 0 < evidence.pairs < 30  # the rest were learned from
        assert evidence.agreement == 1
        assert evidence.shuffled < 0.5
        assert evidence.filled == 1


def test_values_that_are_not_what_is_known_are_told() -> None:
    seeds = [
        Seed({**seed.values, "cuisine": ("Martian",)}, seed.source) if number % 3 == 0 else seed
        for number, seed in enumerate(sites.seeds())
    ]
    found = outcome(sites.pages(), seeds)
    agreement = found.attributes["cuisine"].agreement
    assert 0 < agreement < 1
    assert len(found.disagreements) == round((1 - agreement) * found.attributes["cuisine"].pairs)
    shown = zip(sites.pages(), sites.ON_SITE, strict=True)
    on_pages = {page.url: one.values["cuisine"] for page, one in shown}
    for one in found.disagreements:
        assert (one.attribute, one.value, one.text) == ("cuisine", "Martian", on_pages[one.url])
        assert seeds[one.seed].values["cuisine"] == ("Martian",)
    assert whole_site().disagreements == ()


def test_an_attribute_that_the_site_lacks_is_refused_and_not_extracted() -> None:
    found = without_kitchens()

    assert found.attributes["cuisine"].verdict == "refused"
    assert "chance" in found.attributes["cuisine"].reason
    assert found.wrapper is not None
    assert set(found.wrapper.attributes) == {"name", "address", "phone"}


def test_a_city_is_suggested_at_most_for_an_address() -> None:
    found = outcome(sites.pages(without=("address",)))

    assert found.attributes["address"].verdict != "accepted"
    assert found.attributes["address"].reason
    assert found.wrapper is not None
    assert "address" not in found.wrapper.attributes


def test_suggestions_are_pages_with_values_that_a_person_completes() -> None:
    suggestions = without_kitchens().suggestions

    assert suggestions
    for example in suggestions:
        check_example(example)
        expected = sites.ON_SITE[sites.number_of(example.page.url)].values
        assert example.values == {name: [expected[name]] for name in ("name", "address", "phone")}
    assert len({example.page.url for example in suggestions}) == len(suggestions)
    assert whole_site().suggestions == ()  # nothing is left to ask


def test_suggestions_that_a_person_completed_teach_the_rest() -> None:
    pages = outcome(sites.pages(without=("address",))).suggestions
    completed = [
        Example(sites.page(number), {name: [text] for name, text in sites.ON_SITE[number].values.items()})
        for number in (sites.number_of(example.page.url) for example in pages)
    ]

    wrapper = learn(completed)

    assert wrapper.extract(sites.page(39)).values["address"] == (sites.ON_SITE[39].values["address"],)


def test_evidence_has_each_known_value_once() -> None:
    evidence = whole_site().evidence

    assert len(evidence) == len(set(evidence)) == 4 * 30
    assert {match.attribute for match in evidence} == set(sites.ATTRIBUTES)
    assert all(0.5 <= match.similarity <= 1 for match in evidence)


def test_pages_of_the_template_are_named_and_no_others() -> None:
    strangers = [
        Page.from_text(
            f"https://eat.example/news/{number}", f"<article><b>News of day {number}</b></article>"
        )
        for number in range(10)
    ]
    found = outcome([*strangers, *sites.pages()])

    assert found.urls == tuple(page.url for page in sites.pages())


def with_dishes(number: int) -> tuple[Page, tuple[str, ...]]:
    """A page that lists one to three dishes, and these."""
    starters = ("Lentil soup", "Beef stew", "Plum cake", "Fried rice", "Bean salad", "Apple pie", "Leek tart")
    dishes = tuple(
        f"{starters[(number + 3 * step) % 7]} {(5 * number + step) % 11}" for step in range(1 + number % 3)
    )
    lines = "".join(f"<li>{dish}</li>" for dish in dishes)
    return sites.changed(sites.page(number), "<p>Open daily</p>", f"<ol>{lines}</ol>"), dishes


def test_several_values_are_extracted_where_records_have_several() -> None:
    shown = [with_dishes(number) for number in range(40)]
    seeds = [
        Seed({**sites.seed(one).values, "dish": shown[number][1]})
        for number, one in enumerate(sites.ON_SITE[:30])
    ]
    seeds += [Seed({**sites.seed(one).values, "dish": ("Roast", "Toast")}) for one in sites.EVERY[40:]]

    found = outcome([page for page, _ in shown], seeds)

    assert found.attributes["dish"].verdict == "accepted"
    assert found.wrapper is not None
    for page, dishes in shown:
        assert found.wrapper.extract(page).values["dish"] == dishes


def test_the_schema_is_that_of_the_attributes_found() -> None:
    schema = {"phone": Attribute(mandatory=True), "cuisine": Attribute(type="text"), "unheard": Attribute()}
    found = outcome(sites.pages(without=("cuisine",)), schema=schema)

    assert found.wrapper is not None
    assert found.wrapper.attributes["phone"].attribute.mandatory
    assert "unheard" not in found.attributes


@pytest.mark.parametrize("name", ["name", "phone"])
def test_pages_that_lack_an_attribute_get_none(name: str) -> None:
    pages = [sites.page(number, without=(name,) if number % 4 == 1 else ()) for number in range(40)]
    found = outcome(pages)

    assert found.wrapper is not None
    for number, page in enumerate(pages):
        value = None if number % 4 == 1 else (sites.ON_SITE[number].values[name],)
        assert found.wrapper.extract(page).values.get(name) == value
    assert found.attributes[name].verdict == "accepted"
    assert 0.5 < found.attributes[name].filled < 1


def with_a_cook(number: int) -> tuple[Page, str]:
    """A page with its cook, and with the chef of the chain, who is the same person on the first 30 pages."""
    cook, chef = person(number), person(number if number < 30 else number + 100)
    staff = [f'<div>Staff <i id="chef">{chef}</i></div>', f"<div>Staff <i>{person(number + 60)}</i></div>"]
    first, second = reversed(staff) if number % 2 else staff
    page = sites.changed(sites.page(number), "<ul class='menu'>", f"{first}{second}<ul class='menu'>")
    line = f'<p class="line"><b>Cook</b> <span>{cook}</span></p>'
    return sites.changed(page, "<p>Open daily</p>", line), cook


def person(number: int) -> str:
    """One of 143 names."""
    first = "Ann Bob Cid Dora Ernest Fay Gus Hal Ida Joan Karl".split()
    last = "Abel Brown Cole Dunn Early Frost Gray Hill Irving Jones King Lamb Moss".split()
    return f"{first[number % 11]} {last[number % 13]}"


def test_what_stands_elsewhere_with_the_same_text_is_something_else() -> None:
    shown = [with_a_cook(number) for number in range(40)]
    known = [
        *((one, cook) for one, (_, cook) in zip(sites.ON_SITE[:30], shown, strict=False)),
        *((one, person(number)) for number, one in enumerate(sites.EVERY[40:])),
    ]
    seeds = [Seed({**sites.seed(one).values, "cook": (cook,)}) for one, cook in known]

    found = outcome([page for page, _ in shown], seeds)

    assert found.wrapper is not None
    for page, cook in shown:
        assert found.wrapper.extract(page).values["cook"] == (cook,)


def test_a_value_that_stands_twice_in_the_same_way_is_found() -> None:
    def twice(number: int) -> Page:
        box = f"<div><p><b>Phone</b> <span>{sites.ON_SITE[number].phone}</span></p></div>"
        other = f"<div><p><b>Tables</b> <span>{number}</span></p></div>"
        boxes = other * (number % 4) + box + other * (number % 3) + box + other * (number % 5)
        return sites.changed(sites.page(number, without=["phone"]), "<p>Open daily</p>", boxes)

    pages = [twice(number) for number in range(40)]

    found = outcome(pages)

    assert found.attributes["phone"].verdict == "accepted"
    assert found.wrapper is not None
    for page, one in zip(pages, sites.ON_SITE, strict=True):
        assert found.wrapper.extract(page).values["phone"] == (one.phone,)
