"""Seeded changes of a site's markup: each does the same to every page of the built-in guide's restaurants.

A mutation starts from the markup of `siteloom.apps.demo.sites.guide_original`: a record with facts in a
definition
list, or in a table on pages that nobody has touched for years.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from lxml import etree

from siteloom.apps.demo.sites.vocabulary import Dice
from siteloom.html.visible_text import normalize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from siteloom.apps.demo.sites.built_in_page import BuiltinPage
    from siteloom.html.parser import Element

SEEDS = (0, 1, 2)

_ATTRIBUTES_OF = {
    "Address:": ("address", "district"),
    "Cuisine:": ("cuisine",),
    "Phone:": ("phone",),
    "Average main:": ("price",),
    "Opening hours:": ("hours",),
    "Opened:": ("opened",),
    "E-mail:": ("email",),
    "Website:": ("website",),
    "Last updated:": ("updated",),
}
_FACTS = "//*[contains(concat(' ', @class, ' '), ' facts ')]"
_RECORD = "//*[starts-with(@id, 'venue-')]"
_CONTACT = "//*[@class='contact-box']"
_STAMP = "//*[@class='stamp']/span"


@dataclass(frozen=True, slots=True)
class Mutation:
    """A kind of change with a seed; `apply` names the attributes that the page has no more."""

    kind: str
    seed: int
    apply: Callable[[Element, _Chance], Iterable[str]]

    def __str__(self) -> str:
        """The kind with its seed."""
        return f"{self.kind} {self.seed}"


class _Chance(NamedTuple):
    """Chance that is the same for all pages of a site, or another for each page."""

    kind: str
    seed: int
    url: str

    def of_site(self, *what: str) -> Dice:
        """The same for all pages."""
        return Dice(self.kind, self.seed, *what)

    def of_page(self) -> Dice:
        """Another for each page."""
        return Dice(self.kind, self.seed, self.url)

    def name(self, what: str) -> str:
        """A name that tells nothing, always the same for `what`."""
        dice = self.of_site(what)
        return "".join(dice.pick("bcdfghklmnprst") for _ in range(6))

    def place(self, what: str) -> int:
        """Where `what` comes in an order that is the same for all pages."""
        return self.of_site("place", what).between(0, 10**9)


class _Row(NamedTuple):
    """A fact with its label; `parts` are the elements that belong to it."""

    label: Element
    value: Element
    parts: tuple[Element, ...]

    @property
    def name(self) -> str:
        """The label's text."""
        return normalize(_text(self.label))


def mutations() -> list[Mutation]:
    """All mutations: each kind with each seed."""
    return [Mutation(kind, seed, apply) for kind, apply in _KINDS.items() for seed in SEEDS]


def mutated(page: BuiltinPage, mutation: Mutation) -> BuiltinPage:
    """A page after a change; values that it no longer shows are not true of it any more."""
    root = etree.HTML(page.page.html, etree.HTMLParser(encoding="utf-8"))
    gone = set(mutation.apply(root, _Chance(mutation.kind, mutation.seed, page.page.url)))
    html = etree.tostring(root.getroottree(), method="html", encoding="utf-8")
    truth = {name: () if name in gone else values for name, values in page.truth.items()}
    return replace(page, page=replace(page.page, html=html), truth=truth)


def _nothing(root: Element, chance: _Chance) -> Iterable[str]:  # noqa: ARG001 - what is the same for all
    """Only time has passed: prices, reviews and advertisements are others."""
    return ()


def _renamed_classes(root: Element, chance: _Chance) -> Iterable[str]:
    """All classes have other names, or half of them, or a quarter."""
    share = (1, 0.5, 0.25)[chance.seed % 3]
    for element in root.xpath("//*[@class]"):
        element.set(
            "class",
            " ".join(
                chance.name(token) if chance.of_site("rename", token).chance(share) else token
                for token in element.get("class").split()
            ),
        )
    return ()


def _wrapped_nodes(root: Element, chance: _Chance) -> Iterable[str]:
    """Elements, or what is in them, are put into new ones."""
    around = {
        "h1": "//h1",
        "facts": _FACTS,
        "contact": _CONTACT,
        "record": _RECORD,
        "main": "//*[@id='main']",
    }
    inside = {"h1": "//h1", "values": None, "stamp": _STAMP, "crumbs": "//*[@id='crumbs']/strong"}
    dice = chance.of_site()
    for name in dice.sample(sorted(around), 2):
        for element in root.xpath(around[name]):
            _wrap(element, "div", chance.name(name))
    for name in dice.sample(sorted(inside), 2):
        path = inside[name]
        elements = root.xpath(path) if path else [row.value for row in _rows(root)]
        for element in elements:
            _wrap_content(element, "span", chance.name(name))
    return ()


def _swapped_blocks(root: Element, chance: _Chance) -> Iterable[str]:
    """The columns, the blocks of the main column or those of the record are in another order."""
    container = root.xpath(("//*[@id='columns']", "//*[@id='main']", _RECORD)[chance.seed % 3])[0]
    blocks = list(container)
    if chance.seed % 3 == 0:
        _arrange(container, blocks[::-1])
    else:
        _arrange(container, sorted(blocks, key=lambda block: chance.place(_looks(block))))
    return ()


def _removed_attribute(root: Element, chance: _Chance) -> Iterable[str]:
    """A fact is gone, together with its label."""
    label = ("Phone:", "Opening hours:", "Average main:")[chance.seed % 3]  # those that stand nowhere else
    for row in _rows(root):
        if row.name == label:
            _remove(row.parts)
    return _ATTRIBUTES_OF[label]


def _new_banner(root: Element, chance: _Chance) -> Iterable[str]:
    """A notice above everything, above the main column or at the top of the record."""
    place = root.xpath(("//body", "//*[@id='main']", _RECORD)[chance.seed % 3])[0]
    heading = chance.of_site().pick(("h1", "h2", "strong", "p"))
    banner = _new("div", {"class": chance.name("banner")})
    etree.SubElement(banner, heading).text = "The Larkmoor food festival is back"
    body = etree.SubElement(banner, "p")
    body.text = "Forty kitchens, three days. "
    etree.SubElement(body, "a", {"href": "/festival/"}).text = "Get tickets"
    place.insert(0, banner)
    return ()


def _reordered_rows(root: Element, chance: _Chance) -> Iterable[str]:
    """The facts come in another order."""
    rows = _rows(root)
    ordered = sorted(rows, key=lambda row: chance.place(row.name))
    if rows:
        _arrange(_container(rows), [part for row in ordered for part in row.parts])
    return ()


def _table_to_divs(root: Element, chance: _Chance) -> Iterable[str]:
    """Facts stand in plain boxes instead of a list or table."""
    row_tag, label_tag, value_tag = (
        ("div", "span", "span"),
        ("div", "div", "div"),
        ("p", "b", "span"),
    )[chance.seed % 3]
    rows = _rows(root)
    if not rows:
        return ()
    container = _container(rows)
    facts = _new("div", {"class": chance.name("facts")})
    for row in rows:
        box = etree.SubElement(facts, row_tag, {"class": chance.name("row")})
        for part, tag, name in ((row.label, label_tag, "label"), (row.value, value_tag, "value")):
            part.tag = tag
            part.attrib.clear()
            part.set("class", chance.name(name))
            part.tail = None
            box.append(part)
    _replace(_facts(container), facts)
    return ()


def _value_to_attribute(root: Element, chance: _Chance) -> Iterable[str]:
    """A value is no longer text but in an HTML attribute."""
    label = ("Phone:", "Opened:", "Last updated:")[chance.seed % 3]
    tag, attribute = chance.of_site().pick(
        (("abbr", "title"), ("time", "datetime"), ("meta", "content"), ("img", "alt"))
    )
    for element in _values(root, label):
        carrier = _new(tag, {attribute: normalize(_text(element))})
        if tag in ("abbr", "time"):
            carrier.text = "Show"
        _empty(element)
        element.append(carrier)
    return ()


def _swapped_values(root: Element, chance: _Chance) -> Iterable[str]:
    """Two facts silently stand under each other's label."""
    first, second = (
        ("Phone:", "Opened:"),
        ("Opened:", "Last updated:"),
        ("Cuisine:", "Opening hours:"),
    )[chance.seed % 3]
    ones, others = _values(root, first), _values(root, second)
    if ones and others:
        _swap_content(ones[0], others[0])
        return ()
    for label, other in ((first, second), (second, first)):
        for row in _rows(root):
            if row.name == label and not (ones and others):
                _empty(row.label)
                row.label.text = other
                return ()
    return ()


def _random_ids(root: Element, chance: _Chance) -> Iterable[str]:
    """Every id is another one at every request."""
    dice = chance.of_page()
    for element in root.xpath("//*[@id]"):
        element.set("id", f"x{dice.between(0, 16**8):08x}")
    return ()


def _renamed_labels(root: Element, chance: _Chance) -> Iterable[str]:
    """All labels have other words, or half of them, or a quarter."""
    share = (1, 0.5, 0.25)[chance.seed % 3]
    words = {
        old: new
        for old, new in {
            "Address:": "Where:",
            "Cuisine:": "Kitchen:",
            "Phone:": "Telephone:",
            "Average main:": "Typical dish:",
            "Opening hours:": "When:",
            "Opened:": "Since:",
            "E-mail:": "Write to:",
            "Website:": "On the web:",
            "Last updated:": "Checked on:",
        }.items()
        if chance.of_site(old).chance(share)
    }
    for element in root.xpath("//body//*[text()]"):
        label = normalize(element.text or "")
        if label in words:
            element.text = f"{words[label]} "
    return ()


def _changed_tags(root: Element, chance: _Chance) -> Iterable[str]:
    """Elements have other tag names."""
    choices = (
        {"h1": "h2"},
        {"strong": "b", "b": "strong"},
        {"div": "section"},
        {"dl": "div", "dt": "b", "dd": "span"},
        {"p": "div"},
        {"span": "em", "small": "span"},
    )
    tags = {old: new for choice in chance.of_site().sample(choices, 3) for old, new in choice.items()}
    for element in root.xpath("//body//*"):
        element.tag = tags.get(element.tag, element.tag)
    return ()


def _extra_column(root: Element, chance: _Chance) -> Iterable[str]:
    """Each fact has another cell before or behind its value."""
    is_before, words = ((True, "•"), (False, "Report a mistake"), (True, "Checked"))[chance.seed % 3]
    for row in _rows(root):
        cell = _new(_tag(row.value), {"class": chance.name("cell")})
        cell.text = words
        parent = row.value.getparent()
        assert parent is not None
        parent.insert(parent.index(row.value) + (not is_before), cell)
    return ()


def _new_row(root: Element, chance: _Chance) -> Iterable[str]:
    """One more fact, above the others or between them."""
    rows = _rows(root)
    if rows:
        before = rows[min(chance.seed, len(rows) - 1)]
        label, value = _new(_tag(before.label), dict(before.label.attrib)), _new(_tag(before.value))
        label.text, value.text = "Parking:", "On the street, free after six"
        if before.parts[0] is before.label:
            _insert_before(before.label, label)
            _insert_before(before.label, value)
        else:
            row = _new(_tag(before.parts[0]))
            row.extend([label, value])
            _insert_before(before.parts[0], row)
    return ()


def _inserted_ads(root: Element, chance: _Chance) -> Iterable[str]:
    """Advertisements between blocks, on each page elsewhere."""
    dice = chance.of_page()
    blocks = [
        block for path in ("//*[@id='main']", "//*[@id='side']", _RECORD) for block in root.xpath(path)[0]
    ]
    for block in dice.sample(blocks, dice.between(1, 4)):
        box = _new("div", {"class": "promo", "id": f"promo-{dice.between(0, 10**6)}"})
        etree.SubElement(box, "small").text = "Advertisement"
        etree.SubElement(box, "a", {"href": "https://ads.adloft.example/"}).text = dice.pick(
            (
                "Knives that stay sharp",
                "Insure your kitchen today",
                "0800 496 0777: book a chef",
                "From £9.99",
            )
        )
        _insert_before(block, box)
    return ()


# "nothing" is the control; the next nine are those that any monitor must cope with.
_KINDS: dict[str, Callable[[Element, _Chance], Iterable[str]]] = {
    "nothing": _nothing,
    "renamed classes": _renamed_classes,
    "wrapped nodes": _wrapped_nodes,
    "swapped blocks": _swapped_blocks,
    "removed attribute": _removed_attribute,
    "new banner": _new_banner,
    "reordered rows": _reordered_rows,
    "table to divs": _table_to_divs,
    "value to attribute": _value_to_attribute,
    "swapped values": _swapped_values,
    "random ids": _random_ids,
    "renamed labels": _renamed_labels,
    "changed tags": _changed_tags,
    "extra column": _extra_column,
    "new row": _new_row,
    "inserted ads": _inserted_ads,
}


def _rows(root: Element) -> list[_Row]:
    """The facts of the record, whether they stand in a list or a table."""
    rows = []
    for facts in root.xpath(_FACTS):
        for label in facts.xpath("./dt"):
            value = label.getnext()
            rows.append(_Row(label, value, (label, value)))
        for row in facts.xpath(".//tr"):
            label, value = row
            rows.append(_Row(label, value, (row,)))
    return rows


def _values(root: Element, label: str) -> list[Element]:
    """The elements that hold the value under a label."""
    if label == "Last updated:":
        return list(root.xpath(_STAMP))
    return [row.value for row in _rows(root) if row.name == label]


def _container(rows: Iterable[_Row]) -> Element:
    """The element whose children the rows are."""
    parent = next(iter(rows)).parts[0].getparent()
    assert parent is not None
    return parent


def _facts(container: Element) -> Element:
    """The list or table that a container of rows is, or is in."""
    element: Element = container.xpath("ancestor-or-self::*[contains(concat(' ', @class, ' '), ' facts ')]")[
        0
    ]
    return element


def _text(element: Element) -> str:
    return "".join(element.itertext())


def _looks(element: Element) -> str:
    return f"{_tag(element)} {element.get('class')}"


def _tag(element: Element) -> str:
    assert isinstance(element.tag, str)
    return element.tag


def _new(tag: str, attributes: dict[str, str] | None = None) -> Element:
    return etree.Element(tag, attributes or {})


def _arrange(container: Element, children: Iterable[Element]) -> None:
    """Children in this order; the text behind each goes with it."""
    for child in list(children):
        container.append(child)


def _insert_before(place: Element, element: Element) -> None:
    parent = place.getparent()
    assert parent is not None
    parent.insert(parent.index(place), element)


def _replace(old: Element, new: Element) -> None:
    new.tail, old.tail = old.tail, None
    parent = old.getparent()
    assert parent is not None
    parent.replace(old, new)


def _remove(elements: Iterable[Element]) -> None:
    for element in elements:
        parent = element.getparent()
        assert parent is not None
        parent.remove(element)


def _empty(element: Element) -> None:
    for child in list(element):
        element.remove(child)
    element.text = None


def _wrap(element: Element, tag: str, name: str) -> None:
    box = _new(tag, {"class": name})
    _replace(element, box)
    box.append(element)


def _wrap_content(element: Element, tag: str, name: str) -> None:
    box = _new(tag, {"class": name})
    box.text, element.text = element.text, None
    box.extend(list(element))
    element.append(box)


def _swap_content(one: Element, other: Element) -> None:
    texts, children = (one.text, other.text), (list(one), list(other))
    other.text, one.text = texts
    other.extend(children[0])
    one.extend(children[1])
