"""A small site of inns, and a wrapper for it whose rules are written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from siteloom import Page, Wrapper
from siteloom.core.model import Attribute, Footprint, ValueType
from siteloom.wrappers.rule_features import (
    AttributeRules,
    Feature,
    Kind,
    RecordRule,
    Rule,
    RuleSupport,
    ValuePart,
)

EVIDENCE = RuleSupport(5, 0, 1.0, 0.0)
_FIRST = ("Blue", "Old", "Crooked", "Quiet", "Silver", "Merry", "Lonely", "Golden")
_SECOND = ("Fern", "Mill", "Lantern", "Badger", "Anchor", "Heron", "Thistle", "Barrel", "Swan", "Orchard")
_OWNERS = ("Ada", "Bruno", "Cleo", "Dmitri", "Enid", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kaya")
_FAMILY = ("Abel", "Birch", "Cole", "Dunn", "Ezra", "Ford", "Gale")


@dataclass(frozen=True)
class Inn:
    number: int
    name: str
    phone: str
    owner: str
    price: str
    dishes: tuple[str, ...]

    @property
    def url(self) -> str:
        return f"https://inns.example/inn/{self.number}"


def inn(number: int) -> Inn:
    return Inn(
        number,
        f"The {_FIRST[number % 8]} {_SECOND[number // 8 % 10]}",
        f"0117 496 {7 * number + 1000}",
        f"{_OWNERS[number % 11]} {_FAMILY[number % 7]}",
        f"£{10 + number % 23}.50",
        tuple(f"{_SECOND[(number + step) % 10]} {number % 13 + step} pie" for step in range(4)),
    )


INNS = tuple(map(inn, range(40)))


def after(label: str) -> Rule:
    return Rule("text", (Feature("text-before", 0, label),), ValuePart(), EVIDENCE)


def within(kind: Kind, value: str) -> Rule:
    return Rule("text", (Feature(kind, 0, value),), ValuePart(), EVIDENCE)


def found_by(
    *rules: Rule,
    constant: bool | None = None,
    mandatory: bool | None = None,
    multi: bool = False,
    kind: ValueType | None = None,
) -> AttributeRules:
    return AttributeRules(Attribute(multi, mandatory, constant, kind), rules, (), 1.0)


WRAPPER = Wrapper(
    {
        "name": found_by(within("tag", "h1"), constant=True, mandatory=True),
        "phone": found_by(after("Phone:"), after("Mobile:"), constant=True),
        "owner": found_by(after("Owner:"), constant=True),
        "price": found_by(after("Price:"), constant=False, kind="price"),
        "dishes": found_by(within("tag", "li"), constant=True, multi=True),
    }
)
NAME_ALONE = replace(WRAPPER, attributes={"name": WRAPPER.attributes["name"]})


def rows(one: Inn, phone_label: str = "Phone:") -> list[tuple[str, str]]:
    return [(phone_label, one.phone), ("Owner:", one.owner), ("Price:", one.price)]


def html(
    one: Inn, facts: Iterable[tuple[str, str]] | None = None, *, extra: str = "", name_tag: str = "h1"
) -> str:
    table = "".join(
        f"<dt>{label}</dt><dd>{text}</dd>" for label, text in (rows(one) if facts is None else facts)
    )
    dishes = "".join(f"<li>{dish}</li>" for dish in one.dishes)
    return (
        "<html><head><title>Inns</title></head><body><div id=top><a href='/'>All inns</a></div>"
        f"<{name_tag}>{one.name}</{name_tag}><dl>{table}</dl><ul>{dishes}</ul>{extra}"
        "<div id=end>Inns of the county</div></body></html>"
    )


def page(
    one: Inn, facts: Iterable[tuple[str, str]] | None = None, *, extra: str = "", name_tag: str = "h1"
) -> Page:
    return Page.from_text(one.url, html(one, facts, extra=extra, name_tag=name_tag))


def pages(inns: Sequence[Inn] = INNS) -> list[Page]:
    return [page(one) for one in inns]


def with_footprint(wrapper: Wrapper, accepted: Sequence[str]) -> Wrapper:
    known = Footprint(
        ("inns.example",), (r"^https?://inns\.example/inn/[^/?#]+$",), (), tuple(dict.fromkeys(accepted))
    )
    return replace(wrapper, footprint=known)


# ---- a list page

LIST = Wrapper(
    {
        "name": found_by(within("tag", "h2"), constant=True),
        "phone": found_by(after("Phone:"), constant=True),
        "price": found_by(after("Price:"), constant=False, kind="price"),
    },
    record_rule=RecordRule((Feature("class", 0, "card"),), runs_on=False),
)


def card(one: Inn, css_class: str = "card") -> str:
    facts = f"<b>Phone:</b><i>{one.phone}</i><b>Price:</b><i>{one.price}</i>"
    return f"<div class={css_class}><h2>{one.name}</h2>{facts}</div>"


def list_page(inns: Iterable[Inn], *, number: int = 1, extra: str = "") -> Page:
    cards = "".join(map(card, inns))
    return Page.from_text(f"https://inns.example/all/{number}", f"<h1>Inns</h1>{cards}{extra}<p>The end</p>")
