"""Several layouts in one wrapper: each page is read by the one that it has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom import Page, Wrapper
from siteloom.core.errors import UsageError
from siteloom.core.model import Attribute, Footprint, Record
from siteloom.templates.signature import Signatures, signature
from siteloom.wrappers.page_layouts import most_alike
from siteloom.wrappers.rule_features import (
    AttributeRules,
    Feature,
    Kind,
    RecordRule,
    Rule,
    RuleSupport,
    ValuePart,
)
from siteloom.wrappers.value_contract import Contract, learned_contract

EVIDENCE = RuleSupport(5, 0, 1.0, 0.0)
PHONES = learned_contract([f"0117 496 0{number:03}" for number in range(30)])


def rule(*features: tuple[Kind, int, str]) -> Rule:
    return Rule("text", tuple(Feature(*feature) for feature in features), ValuePart(), EVIDENCE)


def found_after(
    label: str, *, multi: bool = False, filled: float = 1.0, contract: Contract | None = None
) -> AttributeRules:
    return AttributeRules(
        Attribute(multi=multi), (rule(("text-before", 0, label)),), (), filled, contract=contract
    )


NAME = AttributeRules(Attribute(multi=False), (rule(("tag", 0, "h1")),), (), 1.0)
OLDEST = Wrapper({"name": NAME, "phone": found_after("Call:"), "fax": found_after("Telefax:")})
OLD = Wrapper({"name": NAME, "phone": found_after("Phone:"), "fax": found_after("Fax:")})
NEWEST = Wrapper(
    {"name": NAME, "phone": found_after("Tel."), "fax": found_after("Fax no.")}, earlier=(OLD, OLDEST)
)


def page(*rows: str, name: str = "Blue Fern") -> Page:
    cells = "".join(
        f"<dt>{label}</dt><dd>{value}</dd>" for label, _, value in (r.partition("=") for r in rows)
    )
    return Page.from_text("https://inn.example/1", f"<h1>{name}</h1><dl>{cells}</dl>")


def values(wrapper: Wrapper, of: Page) -> dict[str, tuple[str, ...]]:
    return dict(wrapper.extract(of).values)


def rule_names(record: Record) -> dict[str, str]:
    return {name: origin.rule for name, (origin, *_) in record.provenance.items()}


def test_a_page_in_the_newest_layout_is_read_by_the_newest_rules() -> None:
    record = NEWEST.extract(page("Tel.=1", "Fax no.=2"))
    assert record.values == {"name": ("Blue Fern",), "phone": ("1",), "fax": ("2",)}
    assert rule_names(record) == {"name": "name#1", "phone": "phone#1", "fax": "fax#1"}


def test_a_page_that_still_has_an_earlier_layout_is_read_by_its_rules() -> None:
    record = NEWEST.extract(page("Phone:=1", "Fax:=2"))
    assert record.values == {"name": ("Blue Fern",), "phone": ("1",), "fax": ("2",)}
    assert rule_names(record) == {"name": "name#1@2", "phone": "phone#1@2", "fax": "fax#1@2"}
    oldest = NEWEST.extract(page("Call:=1", "Telefax:=2"))
    assert oldest.values == record.values
    assert rule_names(oldest)["phone"] == "phone#1@3"
    assert [found.provenance["phone"][0].layout for found in (record, oldest)] == [2, 3]


def test_where_both_layouts_find_values_the_newest_is_preferred() -> None:
    both = page("Phone:=old", "Fax:=old", "Tel.=new", "Fax no.=new")
    assert values(NEWEST, both) == {"name": ("Blue Fern",), "phone": ("new",), "fax": ("new",)}


def test_where_no_layout_finds_anything_the_newest_says_so() -> None:
    record = NEWEST.extract(page("Mail:=x"))
    assert record.values == {"name": ("Blue Fern",)}
    assert rule_names(record) == {"name": "name#1"}


def test_the_layout_that_finds_more_counts_as_a_whole() -> None:
    record = NEWEST.extract(page("Tel.=1", "Phone:=2", "Fax:=3"))
    assert record.values == {"name": ("Blue Fern",), "phone": ("2",), "fax": ("3",)}
    assert rule_names(record)["phone"] == "phone#1@2"


def test_a_value_that_breaks_its_contract_does_not_win() -> None:
    newest = {"name": NAME, "phone": found_after("Tel.", contract=PHONES)}
    earlier = {"name": NAME, "phone": found_after("Phone:", contract=PHONES)}
    wrapper = Wrapper(newest, earlier=(Wrapper(earlier),))
    mixed_up = page("Tel.=ask at the bar", "Phone:=0117 496 0001")
    assert values(wrapper, mixed_up)["phone"] == ("0117 496 0001",)
    other_way = page("Tel.=0117 496 0001", "Phone:=ask at the bar")
    assert values(wrapper, other_way)["phone"] == ("0117 496 0001",)
    # Where nothing better is found, it is a value all the same.
    assert values(wrapper, page("Tel.=ask at the bar"))["phone"] == ("ask at the bar",)


def test_what_hardly_any_page_has_does_not_make_an_earlier_layout_win() -> None:
    """The phone by the newest rules tells more than a fax that few pages have."""
    newest = {"phone": found_after("Tel."), "fax": found_after("Fax no.", filled=0.05)}
    earlier = {"phone": found_after("Phone:"), "fax": found_after("Fax:", filled=0.05)}
    wrapper = Wrapper(newest, earlier=(Wrapper(earlier),))
    assert values(wrapper, page("Tel.=1", "Fax:=2")) == {"phone": ("1",)}
    assert values(wrapper, page("Phone:=1", "Fax no.=2")) == {"phone": ("1",)}


def test_an_attribute_that_only_one_layout_has_does_not_decide() -> None:
    earlier = Wrapper({"phone": found_after("Phone:"), "telex": found_after("Telex:")})
    wrapper = Wrapper({"phone": found_after("Tel.")}, earlier=(earlier,))
    assert values(wrapper, page("Tel.=1", "Telex:=2")) == {"phone": ("1",)}
    assert values(wrapper, page("Phone:=1", "Telex:=2")) == {"phone": ("1",), "telex": ("2",)}


# ---- by signature

ELSE = "".join(
    f"<{one}><{other}>x</{other}></{one}>" for one in ("p", "em", "q") for other in ("b", "i", "u")
)


def framed(of: Page, frame: str) -> Page:
    return Page(of.url, of.html + f"<section>{frame * 3}</section>".encode())


def signed(of: Page) -> Footprint:
    found = signature(of.html)
    assert found is not None
    return Footprint(("inn.example",), accepted=(found.hex(),))


def by_signature(contract: Contract | None = None) -> tuple[Wrapper, Page, Page]:
    """A wrapper of two layouts that have the same labels; a page of the newest, and one of the earlier."""
    new, old = framed(page("Tel.=1"), ELSE), page("Tel.=1")
    earlier = Wrapper({"phone": found_after("Tel.", contract=contract)}, footprint=signed(old))
    newest = {
        "phone": AttributeRules(Attribute(multi=False), (rule(("tag", 0, "h1")),), (), 1.0, contract=contract)
    }
    both = Footprint(("inn.example",), accepted=(*signed(old).accepted, *signed(new).accepted))
    return Wrapper(newest, footprint=both, earlier=(earlier,)), new, old


def test_a_page_that_looks_like_those_of_a_layout_is_read_by_its_rules() -> None:
    wrapper, new, old = by_signature()
    assert values(wrapper, old) == {"phone": ("1",)}
    assert values(wrapper, new) == {"phone": ("Blue Fern",)}


def test_where_its_rules_find_nothing_what_is_found_decides() -> None:
    wrapper, _, old = by_signature()
    lacking = Page(old.url, old.html.replace(b"Tel.", b"Ring"))
    assert values(wrapper, lacking) == {"phone": ("Blue Fern",)}


def test_a_value_that_breaks_its_contract_does_not_win_by_a_signature_either() -> None:
    """A template that stays while two fields change places: both layouts have pages that look the same."""
    wrapper, _, old = by_signature(PHONES)
    swapped = Page(
        old.url, old.html.replace(b"Blue Fern", b"0117 496 0001").replace(b"<dd>1", b"<dd>Blue Fern")
    )
    assert signature(swapped.html) == signature(old.html)
    assert values(wrapper, swapped) == {"phone": ("0117 496 0001",)}


def test_the_layout_that_is_clearly_more_alike_is_taken_and_else_the_first() -> None:
    new, old = Signatures([bytes(8)]), Signatures([bytes([1] * 8)])
    assert most_alike([new, old], bytes(8)) == 0
    assert most_alike([new, old], bytes([1] * 8)) == 1
    assert most_alike([new, old], bytes([1] * 5 + [0] * 3)) == 0  # 5 bytes to 3
    assert most_alike([new, old], bytes([1] * 6 + [0] * 2)) == 1
    assert most_alike([None, old], bytes([1] * 8)) == 0  # nothing is known of the newest


# ---- lists


def list_layout(css_class: str, label: str) -> Wrapper:
    return Wrapper(
        {"name": NAME, "price": found_after(label)},
        record_rule=RecordRule((Feature("class", 0, css_class),), runs_on=False),
    )


CARDS = Wrapper(
    list_layout("card", "Price").attributes,
    record_rule=list_layout("card", "Price").record_rule,
    earlier=(list_layout("row", "Cost"),),
)


def listing(css_class: str, label: str, count: int) -> str:
    return "".join(
        f"<div class={css_class}><h1>Inn {number}</h1><b>{label}</b> <i>{number}</i></div>"
        for number in range(count)
    )


@pytest.mark.parametrize(("css_class", "label", "mark"), [("card", "Price", ""), ("row", "Cost", "@2")])
def test_all_records_of_a_list_are_read_by_the_layout_that_gives_most(
    css_class: str, label: str, mark: str
) -> None:
    found = CARDS.extract_all(Page.from_text("https://inn.example/", listing(css_class, label, 4)))
    assert [record.values for record in found] == [
        {"name": (f"Inn {number}",), "price": (str(number),)} for number in range(4)
    ]
    assert {rule_names(record)["price"] for record in found} == {f"price#1{mark}"}


def test_a_list_in_two_layouts_is_read_by_the_one_that_gives_more_and_the_newest_if_equal() -> None:
    def count(new: int, old: int) -> tuple[int, bool]:
        html = listing("card", "Price", new) + listing("row", "Cost", old)
        found = CARDS.extract_all(Page.from_text("https://inn.example/", html))
        return len(found), all("@2" in rule_names(record)["price"] for record in found)

    assert count(2, 3) == (3, True)
    assert count(3, 2) == (3, False)
    assert count(2, 2) == (2, False)


def test_a_list_without_records_in_any_layout_has_none() -> None:
    assert CARDS.extract_all(Page.from_text("https://inn.example/", "<p>Nothing found")) == ()


@pytest.mark.parametrize("html", ["<h1>Inn</h1><b>Tel.</b><i>1</i>", listing("card", "Price", 3), "<p>x"])
def test_layouts_of_which_only_one_is_of_lists_do_no_harm(html: str) -> None:
    """A wrapper file is data from others, and another wrapper of a site may stand in for one."""
    of = Page.from_text("https://inn.example/1", html)
    for newest, earlier in ((OLD, list_layout("card", "Price")), (list_layout("card", "Price"), OLD)):
        both = Wrapper(newest.attributes, record_rule=newest.record_rule, earlier=(earlier,))
        found = {str(record.values) for record in both.extract_all(of)}
        by_either = [{str(record.values) for record in one.extract_all(of)} for one in (newest, earlier)]
        assert found in by_either


# ---- what can be done with layouts


def test_each_layout_is_a_wrapper_by_itself() -> None:
    assert len(NEWEST.layouts) == 3
    first, second, third = NEWEST.layouts
    assert first.earlier == ()
    assert first.attributes == NEWEST.attributes
    assert (second, third) == (OLD, OLDEST)
    old_page = page("Phone:=1")
    assert "phone" not in first.extract(old_page).values
    assert rule_names(second.extract(old_page))["phone"] == "phone#1"
    assert OLD.layouts == (OLD,)


def test_the_footprint_stays_with_the_newest_layout() -> None:
    known = Footprint(("inn.example",))
    wrapper = Wrapper(NEWEST.attributes, footprint=known, earlier=(OLD,))
    assert wrapper.layouts[0].footprint == known


def test_ids_are_looked_for_if_any_layout_does() -> None:
    by_id = Wrapper({"phone": AttributeRules(Attribute(multi=False), (rule(("id", 0, "tel")),), (), 1.0)})
    by_label = Wrapper({"phone": found_after("Phone:")})
    assert not by_label.looks_for_ids
    either = Wrapper(by_label.attributes, earlier=(by_id,))
    assert either.looks_for_ids
    assert values(either, Page.from_text("https://inn.example/", "<b id=tel>7</b>")) == {"phone": ("7",)}


def test_explanations_tell_of_each_layout_what_differs() -> None:
    told = NEWEST.explain()
    newest, second, third = told.split("\nLayout ")
    assert "right after 'Tel.'" in newest
    assert second.startswith("2, which pages had before. It counts where its rules clearly find more:")
    assert "right after 'Phone:'" in second
    assert "right after 'Fax:'" in second
    assert third.startswith("3, which pages had before.")
    assert "right after 'Call:'" in third
    assert told.count("The text inside the heading `h1`.") == 1  # it is the same in all


def test_only_a_single_layout_can_be_a_stylesheet() -> None:
    with pytest.raises(UsageError) as caught:
        NEWEST.to_xslt()
    assert str(caught.value) == (
        "Which of several layouts a page has cannot be said in XSLT 1.0: "
        "export it as xpath-json, scrapy or web-poet."
    )
    for layout, label in zip(NEWEST.layouts, ("Tel.", "Phone:", "Call:"), strict=True):
        assert f"'{label}'" in layout.to_xslt()


@given(st.sets(st.sampled_from(["Tel.", "Fax no.", "Phone:", "Fax:", "Call:", "Telefax:"])))
def test_what_is_found_is_always_what_one_of_the_layouts_finds(labels: set[str]) -> None:
    of = page(*(f"{label}={number}" for number, label in enumerate(sorted(labels))))
    by_layout = [values(layout, of) for layout in NEWEST.layouts]
    found = values(NEWEST, of)
    assert found in by_layout
    assert len(found) == max(map(len, by_layout))
    if len(by_layout[0]) == len(found):
        assert found == by_layout[0]
