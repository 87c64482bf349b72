"""Contracts: what values are like, learned from values, and how another value is unlike them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.core.errors import WrapperError
from siteloom.core.model import Attribute, Footprint, ValueType
from siteloom.core.values import typed_value
from siteloom.core.values.value_types import Price, Rating
from siteloom.wrappers.rule_features import AttributeRules, Feature, Rule, RuleSupport, ValuePart
from siteloom.wrappers.value_contract import CHARACTERS, Contract, breach, learned_contract
from siteloom.wrappers.wrapper import Wrapper
from tests.wrappers.strategies import attributes, record_rules, shares, texts

PHONES = [f"0117 496 0{number:03}" for number in range(30)]
EMAILS = [f"desk{number}@inn-{number}.example" for number in range(30)]
PARTIES = ["Labour", "Green", "National"] * 10
PRICES = [f"£{pounds}.50" for pounds in range(9, 33)]


def learned(values: list[str], kind: ValueType | None = None) -> Contract:
    found = learned_contract(values, kind)
    assert found is not None
    return found


# ---- what is learned


def test_a_contract_says_how_long_values_are_and_what_they_are_made_of() -> None:
    assert learned(PHONES) == Contract(
        values=30,
        shortest=13,
        longest=13,
        always=("digits", "blanks"),
        never=("capitals", "small letters", "@", "/", "currency signs"),
        commonest=0.0333,
    )


@pytest.mark.parametrize("count", [0, 1, 4])
def test_too_few_values_give_no_contract(count: int) -> None:
    assert learned_contract(PHONES[:count]) is None


def test_five_values_tell_a_length_and_nothing_of_characters() -> None:
    assert learned(PHONES[:5]) == Contract(5, 13, 13, commonest=0.2)


def test_claims_about_characters_need_twenty_values() -> None:
    assert learned(EMAILS[:19]).always == ()
    assert "@" in learned(EMAILS[:20]).always


def test_one_odd_value_in_fifty_makes_no_claim_void_but_two_do() -> None:
    fifty = [f"a{number}@b.example" for number in range(50)]
    assert "@" in learned(["none", *fifty[1:]]).always
    assert "@" not in learned(["none", "none", *fifty[2:]]).always
    assert "/" in learned(["a/b@c", *fifty[1:]]).never
    assert "/" not in learned(["a/b@c", "a/b@c", *fifty[2:]]).never


def test_values_that_come_back_often_are_chosen_from_a_list() -> None:
    assert learned(PARTIES).choices == ("Green", "Labour", "National")
    assert learned(PARTIES).commonest == 0.3333


@pytest.mark.parametrize(
    "values",
    [
        PHONES,  # each once
        ["Green", "Labour", "National"] * 6,  # not often enough
        ["12 May 2025", "13 May 2025"] * 20,  # of the same days
        [f"{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(51)] * 5,  # too many
    ],
    ids=["each once", "seldom", "numbers", "too many"],
)
def test_other_values_are_not(values: list[str]) -> None:
    assert learned(values).choices == ()


def test_the_range_is_that_of_typed_numbers() -> None:
    contract = learned(PRICES, "price")
    assert (contract.least, contract.most) == (9.5, 32.5)
    assert (learned(PRICES).least, learned(PRICES).most) == (None, None)
    assert learned(["4.5 of 5", "2 of 5"] * 5, "rating").most == 4.5


def test_there_is_no_range_if_one_value_is_no_number() -> None:
    contract = learned([*PRICES, "on request"], "price")
    assert (contract.least, contract.most) == (None, None)


# ---- breaches


@pytest.mark.parametrize(
    ("contract", "text", "typed", "message"),
    [
        (learned(PHONES), "0117", None, "4 characters instead of 13 to 13"),
        (learned(PHONES), "0 " * 16, None, "32 characters instead of 13 to 13"),
        (learned(PARTIES), "Liberal", None, "none of the 3 values known"),
        (learned(PARTIES), "green", None, "none of the 3 values known"),
        (learned(PHONES), "0117-496-0001", None, "no blanks"),
        (learned(PHONES), "ask at the bar", None, "no digits"),
        (learned(PHONES), "0117 496 000A", None, "capitals, which no value had"),
        (learned(EMAILS), "https://inn-7.example/@inn", None, "/, which no value had"),
        (learned(PRICES), "12.50", None, "no currency signs"),
        (learned(PRICES, "price"), "£0.90", Price(Decimal("0.90"), "GBP"), "0.9 instead of 9.5 to 32.5"),
        (learned(PRICES, "price"), "£326", Price(Decimal(326), "GBP"), "326 instead of 9.5 to 32.5"),
        (Contract(9, 1, 9, least=1, most=5), "51", Rating(Decimal(51), Decimal(5)), "51 instead of 1 to 5"),
        (Contract(9, 1, 9, least=-40, most=-11), "-401", Decimal(-401), "-401 instead of -40 to -11"),
        (Contract(9, 1, 9, least=-40, most=-11), "5", 5, "5 instead of -40 to -11"),
        (Contract(9, 1, 9, least=-3, most=30), "-31.5", -31.5, "-31.5 instead of -3 to 30"),
    ],
)
def test_a_breach_says_how_a_value_is_unlike_the_others(
    contract: Contract, text: str, typed: object, message: str
) -> None:
    assert breach(contract, text, typed) == message


@pytest.mark.parametrize(
    ("contract", "text", "typed"),
    [
        (learned(PHONES), "0117 49", None),  # half as long
        (learned(PHONES), "0117 496 0001 or 0117 496 0002"[:13] + " 0117 496 0002 00", None),
        (learned(PARTIES), "Labour", None),
        (learned(PRICES, "price"), "£0.95", Price(Decimal("0.95"), "GBP")),
        (learned(PRICES, "price"), "£325", Price(Decimal(325), "GBP")),
        (learned(PRICES, "price"), "£3250", None),  # of what type it is was not found out
        (Contract(9, 1, 9, least=-40, most=-11), "-400", Decimal(-400)),
        (Contract(9, 1, 9, least=-40, most=-11), "-2", Decimal(-2)),
        (Contract(9, 1, 9, least=-3, most=30), "-30", Decimal(-30)),
        (Contract(9, 1, 9, least=1, most=5), "7", "seven"),
    ],
)
def test_what_differs_a_little_is_no_breach(contract: Contract, text: str, typed: object) -> None:
    assert breach(contract, text, typed) is None


# ---- what holds for all values

PLAIN = st.text(st.sampled_from("aZ0 9@/$€.-x"), max_size=8)
MOST_OF_CLASS = 0.02  # of the values may be without a character that all others have, or have one


@given(st.lists(PLAIN, min_size=5, max_size=49))
def test_no_value_of_fewer_than_fifty_breaks_the_contract_that_was_learned_from_it(values: list[str]) -> None:
    contract = learned(values)
    assert [breach(contract, text) for text in values] == [None] * len(values)


@given(st.lists(PLAIN, min_size=1, max_size=5), st.lists(PLAIN, min_size=50, max_size=70))
@example(["@"], ["a"] * 50)
def test_of_more_only_characters_are_a_breach_and_only_of_few(odd: list[str], values: list[str]) -> None:
    everything = [*values * 3, *odd]
    contract = learned(everything)
    breaches = [found for text in everything if (found := breach(contract, text))]
    claims = [*(f"no {name}" for name in CHARACTERS), *(f"{name}, which no value had" for name in CHARACTERS)]
    assert set(breaches) <= set(claims)
    assert all(breaches.count(claim) <= MOST_OF_CLASS * len(everything) for claim in claims)


@given(st.lists(st.integers(-10_000, 10_000), min_size=5, max_size=49))
def test_no_number_is_out_of_the_range_that_was_learned_from_it(numbers: list[int]) -> None:
    values = [str(number) for number in numbers]
    contract = learned(values, "number")
    known = (min(numbers), max(numbers)) if any(numbers) else (None, None)  # 0 has no order of magnitude
    assert (contract.least, contract.most) == known
    assert [breach(contract, text, typed_value(text, "number")) for text in values] == [None] * len(values)


@given(st.lists(PLAIN, min_size=5, max_size=60), st.permutations(range(60)))
def test_the_order_of_values_does_not_matter(values: list[str], order: list[int]) -> None:
    shuffled = [values[number] for number in order if number < len(values)]
    assert learned(shuffled) == learned(values)


@given(texts, texts)
def test_a_breach_is_told_of_any_text_in_one_line(text: str, choice: str) -> None:
    for contract in (learned(PHONES), learned([choice] * 5), learned(PARTIES)):
        found = breach(contract, text)
        assert found is None or "\n" not in found


# ---- contracts in wrapper files

finite = st.none() | st.floats(allow_nan=False, allow_infinity=False)
classes = st.lists(st.sampled_from(CHARACTERS), unique=True).map(tuple)
contracts = st.builds(
    Contract,
    values=st.integers(5, 10**9),
    shortest=st.integers(0, 10**6),
    longest=st.integers(0, 10**6),
    always=classes,
    never=classes,
    choices=st.lists(texts, max_size=4).map(tuple),
    least=finite,
    most=finite,
    commonest=shares,
)


RULE = Rule("text", (Feature("text-before", 0, "Phone:"),), ValuePart(), RuleSupport(5, 0, 1.0, 0.0))
layouts = st.builds(
    Wrapper,
    st.dictionaries(
        texts,
        st.builds(
            AttributeRules, attributes, st.just((RULE,)), st.just(()), shares, contract=st.none() | contracts
        ),
        max_size=3,
    ),
    st.frozensets(texts, max_size=2),
    st.none() | record_rules,
    footprint=st.just(Footprint())
    | st.builds(Footprint, st.just(("a.example",)), accepted=st.just(("0" * 16,))),
)
wrappers_with_contracts = st.builds(replace, layouts, earlier=st.lists(layouts, max_size=2).map(tuple))


@given(wrappers_with_contracts)
def test_contracts_and_earlier_layouts_come_back_exactly(wrapper: Wrapper) -> None:
    text = wrapper.to_json()
    found = Wrapper.from_json(text)
    assert found == wrapper
    assert found.layouts == wrapper.layouts
    assert found.to_json() == text
    assert found.explain() == wrapper.explain()


PHONE = AttributeRules(Attribute(), (RULE,), (), 1.0, contract=learned(PHONES))
PARTY = AttributeRules(Attribute(), (RULE,), (), 1.0, contract=learned(PARTIES))
PRICE = AttributeRules(Attribute(), (RULE,), (), 1.0, contract=learned(PRICES, "price"))
AGREED = Wrapper(
    {"phone": PHONE, "party": PARTY, "price": PRICE}, earlier=(Wrapper({"phone": PHONE}), Wrapper({}))
)


def test_a_contract_can_be_reviewed() -> None:
    content = json.loads(AGREED.to_json())["attributes"]
    assert content["phone"]["contract"] == {
        "values": 30,
        "shortest": 13,
        "longest": 13,
        "always": ["digits", "blanks"],
        "never": ["capitals", "small letters", "@", "/", "currency signs"],
        "commonest": 0.0333,
    }
    assert content["party"]["contract"]["choices"] == ["Green", "Labour", "National"]
    assert (content["price"]["contract"]["least"], content["price"]["contract"]["most"]) == (9.5, 32.5)


def test_a_wrapper_file_from_before_there_were_contracts_is_still_read() -> None:
    content = json.loads(AGREED.to_json())
    del content["earlier"]
    for rules in content["attributes"].values():
        del rules["contract"]
    found = Wrapper.from_json(json.dumps(content))
    assert found.earlier == ()
    assert [rules.contract for rules in found.attributes.values()] == [None] * 3
    assert found.attributes["phone"] == replace(PHONE, contract=None)


Content = dict[str, Any]
IN_CONTRACT = "attribute 'phone', contract"


def contract_of(content: Content) -> Content:
    found: Content = content["attributes"]["phone"]["contract"]
    return found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: contract_of(w).update(colour="red"), f"{IN_CONTRACT} has the unknown key 'colour'"),
        (lambda w: contract_of(w).pop("values"), f"{IN_CONTRACT} lacks 'values'"),
        (lambda w: contract_of(w).pop("commonest"), f"{IN_CONTRACT} lacks 'commonest'"),
        (
            lambda w: w["attributes"]["phone"].update(contract=[]),
            f"{IN_CONTRACT} must be an object",
        ),
        (
            lambda w: contract_of(w).update(shortest=-1),
            f"{IN_CONTRACT} must have a whole number from 0 on as 'shortest'",
        ),
        (
            lambda w: contract_of(w).update(longest=13.0),
            f"{IN_CONTRACT} must have a whole number from 0 on as 'longest'",
        ),
        (
            lambda w: contract_of(w).update(values=True),
            f"{IN_CONTRACT} must have a whole number from 0 on as 'values'",
        ),
        (
            lambda w: contract_of(w).update(always=["digits", "vowels"]),
            (
                f"{IN_CONTRACT}, kind of character 2 is 'vowels', but there are only digits, capitals, "
                "small letters, blanks, @, /, currency signs"
            ),
        ),
        (
            lambda w: contract_of(w).update(never=[["digits"]]),
            f"{IN_CONTRACT}, kind of character 1 is ['digits'], but there are only digits",
        ),
        (lambda w: contract_of(w).update(never="digits"), f"{IN_CONTRACT}, kind"),
        (lambda w: contract_of(w).update(choices=[1]), f"{IN_CONTRACT}, choice 1 must be a text"),
        (lambda w: contract_of(w).update(least="1"), f"{IN_CONTRACT} must have a number as 'least'"),
        (lambda w: contract_of(w).update(most=None), f"{IN_CONTRACT} must have a number as 'most'"),
        (lambda w: contract_of(w).update(most=float("inf")), f"{IN_CONTRACT} must have a number as 'most'"),
        (lambda w: contract_of(w).update(most=float("nan")), f"{IN_CONTRACT} must have a number as 'most'"),
        (
            lambda w: contract_of(w).update(commonest=1.5),
            f"{IN_CONTRACT} must have a number from 0 to 1 as 'commonest'",
        ),
        (lambda w: w.update(earlier={}), "earlier layouts must be a list"),
        (lambda w: w.update(earlier=[1]), "earlier layout 1 must be an object"),
        (lambda w: w["earlier"][1].pop("parser"), "earlier layout 2 lacks 'parser'"),
        (lambda w: w["earlier"][0].pop("attributes"), "earlier layout 1 lacks 'attributes'"),
        (lambda w: w["earlier"][0].pop("footprint"), "earlier layout 1 lacks 'footprint'"),
        (lambda w: w["earlier"][0].update(footprint=[]), "earlier layout 1, footprint must be an object"),
        (lambda w: w["earlier"][0].update(earlier=[]), "earlier layout 1 has the unknown key 'earlier'"),
        (
            lambda w: w["earlier"][0]["attributes"]["phone"]["contract"].update(always=["vowels"]),
            "attribute 'phone', contract, kind of character 1 is 'vowels'",
        ),
    ],
    ids=range(24),
)
def test_what_is_wrong_with_contracts_and_layouts_is_said_in_one_sentence(
    change: Callable[[Content], object], message: str
) -> None:
    content = json.loads(AGREED.to_json())
    change(content)
    with pytest.raises(WrapperError) as caught:
        Wrapper.from_json(json.dumps(content))
    found = str(caught.value)
    assert found.startswith(f"The wrapper cannot be read: {message}")
    assert found.endswith(".")
    assert "\n" not in found
    assert found.count(". ") == 0


def test_a_number_that_is_too_large_for_any_range_is_refused_as_well() -> None:
    content = json.loads(AGREED.to_json())
    contract_of(content).update(most=10**400)
    with pytest.raises(WrapperError, match="must have a number as 'most'"):
        Wrapper.from_json(json.dumps(content))
