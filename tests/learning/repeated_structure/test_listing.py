"""Records inside list pages: found whole, one by one, whatever the markup."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from random import Random
from time import process_time
from typing import TYPE_CHECKING, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.apps.demo.sites import directory_site, guide_site
from siteloom.core.model import Page
from siteloom.html.parser import Element, parse
from siteloom.html.visible_text import visible_text
from siteloom.learning.repeated_structure.repeated_records import Listing, find_listed_records, main_listing
from siteloom.learning.repeated_structure.tree_arrays import Looks
from tests.learning.discovery.pages import LAYOUTS as FACTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from siteloom.apps.demo.sites.built_in_page import BuiltinPage


@dataclass(frozen=True)
class Item:
    """A made-up record; each of its texts has a word that stands nowhere else, such as `w17x`."""

    name: str
    price: str = ""
    place: str = ""
    tags: tuple[str, ...] = ()
    text: str = ""

    @property
    def words(self) -> set[str]:
        return set(re.findall(r"w\d+x", " ".join((self.name, self.price, self.place, *self.tags, self.text))))


def make_items(count: int, dice: Random, *, complete: bool = False, start: int = 0) -> list[Item]:
    numbers = iter(range(100 * start, 100_000))

    def word(*before: str) -> str:
        return " ".join((*before, f"w{next(numbers)}x"))

    def maybe(text: str) -> str:
        return text if complete or dice.random() < 0.7 else ""

    return [
        Item(
            word(
                "The", dice.choice(("Golden", "Silver", "Wooden")), dice.choice(("Heron", "Trout", "Kettle"))
            ),
            maybe(word(f"£{dice.randint(5, 99)}")),
            maybe(word(str(dice.randint(1, 99)), "Long Street")),
            tuple(word("tag") for _ in range(2 if complete else dice.randint(0, 4))),
            maybe(
                word(
                    "A quiet place",
                    *dice.choices(("with", "a", "view", "of", "boats"), k=dice.randint(3, 20)),
                )
            ),
        )
        for _ in range(count)
    ]


def tag_list(item: Item) -> str:
    return f"<ul class=tags>{''.join(f'<li>{tag}</li>' for tag in item.tags)}</ul>" if item.tags else ""


def fields(item: Item) -> str:
    """The inside of a card; what the record has not is left out."""
    return "".join(
        (
            f"<h3><a href=/place>{item.name}</a></h3>",
            f"<b class=price>{item.price}</b>" if item.price else "",
            f"<div class=place>{item.place}</div>" if item.place else "",
            tag_list(item),
            f"<p>{item.text}</p>" if item.text else "",
        )
    )


def cards(items: Sequence[Item]) -> str:
    return (
        "<div class=results>" + "".join(f"<div class=card>{fields(item)}</div>" for item in items) + "</div>"
    )


def bare_list(items: Sequence[Item]) -> str:
    return "<ol>" + "".join(f"<li>{fields(item)}</li>" for item in items) + "</ol>"


def striped(items: Sequence[Item]) -> str:
    return "".join(
        f'<div class="item {"even" if number % 2 else "odd"}">{fields(item)}</div>'
        for number, item in enumerate(items)
    )


def coloured(items: Sequence[Item]) -> str:
    """Stripes that no word gives away."""
    return "".join(
        f'<div class="{"pale" if number % 2 else "dark"}">{fields(item)}</div>'
        for number, item in enumerate(items)
    )


def numbered(items: Sequence[Item]) -> str:
    """Every card has a class of its own."""
    return "".join(
        f'<article id=post-{number} class="post post-{number}">{fields(item)}</article>'
        for number, item in enumerate(items)
    )


def with_adverts(items: Sequence[Item]) -> str:
    """Adverts and headings stand between cards; some cards are promoted."""
    html = ""
    for number, item in enumerate(items):
        if number % 4 == 2:
            html += "<div class=ad><a href=/buy><img src=/ad.gif></a></div>"
        if number % 5 == 3:
            html += f"<h2>Part {number}</h2>"
        badge = "<em class=badge>Tip of the week</em>" if number % 3 == 1 else ""
        html += f"<div class=card>{badge}{fields(item)}</div>"
    return f"<div>{html}</div>"


def grid(items: Sequence[Item]) -> str:
    rows = [items[start : start + 3] for start in range(0, len(items), 3)]
    return "".join(
        "<div class=row>" + "".join(f"<div class=col>{fields(item)}</div>" for item in row) + "</div>"
        for row in rows
    )


def table_grid(items: Sequence[Item]) -> str:
    rows = [items[start : start + 3] for start in range(0, len(items), 3)]
    return (
        "<table>"
        + "".join("<tr>" + "".join(f"<td>{fields(item)}</td>" for item in row) + "</tr>" for row in rows)
        + "</table>"
    )


def sections(items: Sequence[Item]) -> str:
    parts = [items[:4], items[4:5], items[5:]]
    return "".join(
        f"<section><h2>Part {letter}</h2>"
        f"<ul>{''.join(f'<li>{fields(item)}</li>' for item in part)}</ul></section>"
        for letter, part in zip("ABC", parts, strict=True)
    )


def headed_cards(items: Sequence[Item]) -> str:
    """Headings of sections are siblings of the cards."""
    html = ""
    for number, item in enumerate(items):
        html += f"<h2>Section {number}</h2>" if number % 3 == 0 else ""
        html += f"<div class=card>{fields(item)}</div>"
    return f"<div>{html}</div>"


def table(items: Sequence[Item], header: str = "<tr><th>Name<th>Price<th>Where<th>Notes</tr>") -> str:
    return (
        f"<table>{header}"
        + "".join(
            f"<tr><td><a href=/x>{item.name}</a><td>{item.price}<td>{item.place}<td>{item.text}</tr>"
            for item in items
        )
        + "</table>"
    )


def ranking(items: Sequence[Item]) -> str:
    """A table without links, its rows numbered, with a row of sums."""
    return (
        "<table class=rank><thead><tr><td>Rank<td>Name<td>Price<td>Where</thead><tbody>"
        + "".join(
            f'<tr class="r{number % 2}"><td>{number}<td>{item.name}<td>{item.price}<td>{item.place}'
            for number, item in enumerate(items, 1)
        )
        + "</tbody></table>"
    )


def sectioned_table(items: Sequence[Item]) -> str:
    html = ""
    for number, item in enumerate(items):
        html += f"<tr><td colspan=3>Group {number}</td></tr>" if number % 4 == 0 else ""
        html += f"<tr><td><a href=/x>{item.name}</a></td><td>{item.price}</td><td>{item.place}</td></tr>"
    return f"<table>{html}</table>"


def row_pairs(items: Sequence[Item]) -> str:
    """A title row, a detail row."""
    return (
        "<table>"
        + "".join(
            f"<tr><td colspan=2><a href=/x>{item.name}</a></td></tr><tr><td>{item.price}<td>{item.text}</tr>"
            for item in items
        )
        + "</table>"
    )


def classed_row_pairs(items: Sequence[Item]) -> str:
    return (
        "<table>"
        + "".join(
            f"<tr class=title><td>{number}<td><a href=/x>{item.name}</a></tr>"
            f"<tr class=more><td><td><span>{item.price}</span> <a href=/go>Comments</a> {item.place}</tr>"
            for number, item in enumerate(items)
        )
        + "</table>"
    )


def flat(items: Sequence[Item]) -> str:
    return (
        "<div>"
        + "".join(f"<h3>{item.name}</h3><p>{item.text}</p><p>{item.price}</p>" for item in items)
        + "</div>"
    )


def uneven_flat(items: Sequence[Item]) -> str:
    return (
        "<div><h1>All of them</h1>"
        + "".join(
            f"<h3><a href=/x>{item.name}</a></h3>" + "".join(f"<p>{tag}</p>" for tag in item.tags)
            for item in items
        )
        + "<div class=pager><a href=/2>2</a> <a href=/3>3</a></div></div>"
    )


def definitions(items: Sequence[Item]) -> str:
    return (
        "<dl>" + "".join(f"<dt>{item.name}</dt><dd>{item.price} {item.text}</dd>" for item in items) + "</dl>"
    )


def ruled(items: Sequence[Item]) -> str:
    """Records of several siblings that begin in different ways, with rules between them."""
    return (
        "<div>"
        + "<hr>".join(
            (f"<p class=price>{item.price}</p>" if item.price else "")
            + f"<h4>{item.name}</h4>"
            + (f"<p>{item.text}</p>" if item.text else "")
            for item in items
        )
        + "</div>"
    )


Layout: TypeAlias = "Callable[[Sequence[Item]], str]"

LAYOUTS: tuple[Layout, ...] = (
    *(cards, bare_list, striped, coloured, numbered, with_adverts, grid, table_grid, sections),
    *(headed_cards, table, ranking, sectioned_table, row_pairs, classed_row_pairs, flat, uneven_flat),
    *(definitions, ruled),
)
OPTIONAL_FIELDS: tuple[Layout, ...] = (
    *(cards, bare_list, striped, coloured, numbered, with_adverts, grid, table_grid, sections, headed_cards),
    *(uneven_flat, ruled),
)
"""Layouts that leave out what a record has not; cells and rows are there in any case."""
TOLD_BY_OTHER_PAGES: tuple[Layout, ...] = (sectioned_table, flat, uneven_flat, definitions, ruled)
"""Layouts that may be about one thing as well, if there is a single page: they lead nowhere, or by turns."""


def page(body: str, number: int = 0) -> Element:
    """A page around a list: menu, heading, popular things, pager, footer."""
    menu = "".join(
        f"<li><a href=/{name}>{name.title()}</a></li>" for name in "news shops food music about".split()
    )
    popular = "".join(f"<li><a href=/q{number}{one}>Popular {number} {one}</a></li>" for one in "abcd")
    pager = "".join(f"<a href=?p={one}>{one}</a> " for one in range(1, 9) if one != number)
    root = parse(
        Page(
            f"https://list.example/{number}",
            (
                f"<html><head><title>List {number}</title></head>"
                f"<body class=page-{number}><div id=top><ul>{menu}</ul></div>"
                f"<div id=main><h1>Places, part {number}</h1>{body}<div class=pager>{pager}</div></div>"
                f"<div id=side><h2>Popular</h2><ul>{popular}</ul></div>"
                "<div id=footer><p>All rights reserved.</p></div></body></html>"
            ).encode(),
        )
    )
    assert isinstance(root, Element)
    return root


def words_of(listing: Listing | None, pages: int) -> list[list[set[str]]]:
    """The words of each record, page by page."""
    assert listing is not None
    found: list[list[set[str]]] = [[] for _ in range(pages)]
    for part in listing.records:
        text = " ".join(visible_text(element) for element in part.elements)
        found[part.page].append(set(re.findall(r"w\d+x", text)))
    return found


def shown(layout: Layout, items: Sequence[Item]) -> list[set[str]]:
    """The words of each record that a layout shows."""
    html = layout(items)
    return [{word for word in item.words if word in html} for item in items]


@pytest.mark.parametrize(
    ("layout", "pages"),
    [
        (layout, pages)
        for layout in LAYOUTS
        for pages in (1, 2, 6)
        if pages > 1 or layout not in TOLD_BY_OTHER_PAGES
    ],
)
def test_all_records_and_nothing_else(layout: Layout, pages: int) -> None:
    dice = Random(pages)
    lists = [
        make_items(dice.randint(7, 14), dice, complete=layout not in OPTIONAL_FIELDS, start=20 * number)
        for number in range(pages)
    ]
    roots = [page(layout(items), number) for number, items in enumerate(lists)]

    assert words_of(main_listing(roots), pages) == [shown(layout, items) for items in lists]


@given(
    layout=st.sampled_from((cards, bare_list, striped, numbered, with_adverts)),
    counts=st.lists(st.integers(3, 12), min_size=2, max_size=4),
    seed=st.integers(0, 10_000),
)
def test_whatever_fields_are_missing(layout: Layout, counts: list[int], seed: int) -> None:
    dice = Random(seed)
    lists = [make_items(count, dice, start=20 * number) for number, count in enumerate(counts)]
    roots = [page(layout(items), number) for number, items in enumerate(lists)]

    assert words_of(main_listing(roots), len(counts)) == [shown(layout, items) for items in lists]


@given(counts=st.lists(st.integers(1, 9), min_size=3, max_size=5), seed=st.integers(0, 10_000))
def test_pages_with_few_records(counts: list[int], seed: int) -> None:
    """A page that has but one or two is no worse off, as long as others have more."""
    counts = [5, 6, *counts]
    dice = Random(seed)
    lists = [make_items(count, dice, start=20 * number) for number, count in enumerate(counts)]
    roots = [page(cards(items), number) for number, items in enumerate(lists)]

    assert words_of(main_listing(roots), len(counts)) == [shown(cards, items) for items in lists]


def test_header_row_of_plain_cells_is_told_by_other_pages() -> None:
    header = "<tr class=head><td>Name<td>Price<td>Where<td>Notes</tr>"
    lists = [make_items(8, Random(number), complete=True, start=20 * number) for number in range(4)]
    roots = [page(table(items, header), number) for number, items in enumerate(lists)]

    assert words_of(main_listing(roots), 4) == [shown(table, items) for items in lists]


def test_a_promoted_record_that_is_on_every_page_is_a_record() -> None:
    promoted = make_items(1, Random(0), complete=True, start=900)
    lists = [[*promoted, *make_items(6, Random(number), start=20 * number)] for number in range(5)]
    roots = [
        page(cards(items).replace("<div class=card>", "<div class=sponsored>", 1), number)
        for number, items in enumerate(lists)
    ]

    assert words_of(main_listing(roots), 5) == [shown(cards, items) for items in lists]


def test_links_that_lead_on_are_no_record() -> None:
    lists = [make_items(7, Random(number), start=20 * number) for number in range(5)]
    more = "<li class=more><a href=/more>See all places</a></li></ol>"
    roots = [page(bare_list(items).replace("</ol>", more), number) for number, items in enumerate(lists)]

    assert words_of(main_listing(roots), 5) == [shown(bare_list, items) for items in lists]


def test_lists_of_links_alone() -> None:
    """Nothing but names, yet they are what the pages are about."""

    def names(items: Sequence[Item]) -> str:
        return "<ul>" + "".join(f"<li><a href=/x>{item.name}</a></li>" for item in items) + "</ul>"

    lists = [make_items(12, Random(number), start=20 * number) for number in range(5)]
    roots = [page(names(items), number) for number, items in enumerate(lists)]

    assert words_of(main_listing(roots), 5) == [shown(names, items) for items in lists]


@pytest.mark.parametrize("layout", [cards, table, sections, row_pairs])
def test_what_is_known_of_some_pages_finds_the_records_of_others(layout: Layout) -> None:
    lists = [make_items(9, Random(number), complete=True, start=20 * number) for number in range(8)]
    roots = [page(layout(items), number) for number, items in enumerate(lists)]

    known = main_listing(roots[:4])

    assert known is not None
    others = Listing(find_listed_records(roots[4:], known.parents), known.parents)
    assert words_of(others, 4) == [shown(layout, items) for items in lists[4:]]
    assert find_listed_records(roots[4:], ("html", "body", "nowhere")) == ()


def detail_page(item: Item, number: int, body: str) -> Element:
    rows = {"Price": item.price, "Address": item.place, "Phone": f"0{number}9 {number}"}
    facts = "".join(f"<tr><th>{label}<td>{value}</tr>" for label, value in rows.items())
    return page(
        f"<h2>{item.name}</h2><p class=kind>{' '.join(item.tags)}</p><div class=about>{item.text}</div>"
        f"<p class=owner>Owner {number}</p><p class=since>Opened in {1900 + number}</p>"
        f"<table>{facts}</table>{body}",
        number,
    )


def test_detail_pages_have_no_main_listing() -> None:
    things = make_items(10, Random(1), complete=True, start=500)
    related = [make_items(5, Random(number), complete=True, start=20 * number) for number in range(10)]
    plain = [detail_page(item, number, "") for number, item in enumerate(things)]
    with_related = [detail_page(item, number, cards(related[number])) for number, item in enumerate(things)]

    assert main_listing(plain) is None
    assert main_listing(with_related) is None


def facts_of(number: int, layout: str) -> str:
    labels = "Born Height Weight Team College Position Drafted Country Salary Agent".split()
    facts = [(label, f"{label.lower()} of {number}") for label in labels]
    if layout == "items":
        return f"<ul>{''.join(f'<li>{label}: {text}' for label, text in facts)}</ul>"
    return FACTS[layout](facts)


@pytest.mark.parametrize("layout", [*sorted(FACTS), "items"])
@pytest.mark.parametrize("rows", [5, 15, 30])
def test_detail_pages_with_a_long_table_have_no_main_listing(layout: str, rows: int) -> None:
    """The facts have no class, and may be in a table that looks like the long one."""

    def body(number: int) -> str:
        seasons = "".join(
            f"<tr><td>{1980 + number + row}<td>Team w{number}x{row}<td>{7 * number + row}</tr>"
            for row in range(rows)
        )
        heads = "<tr><th>Year<th>Team<th>Points</tr>"
        return f"<h2>Player {number}</h2>{facts_of(number, layout)}<table>{heads}{seasons}</table>"

    assert main_listing([page(body(number), number) for number in range(12)]) is None


SECTIONS = ("Contact Details", "Member of", "Electoral History", "Delegations", "Curriculum Vitae", "Groups")


def test_facts_that_most_pages_have_few_of_are_no_listing() -> None:
    """Each page has other sections of its own, so that there are many names for the few of a page."""

    def body(number: int) -> str:
        names = [name for place, name in enumerate(SECTIONS) if number % 2 or place == number % 12 // 2]
        rows = "".join(
            f"<tr><td><p>{name}:</p><p>What {number} says of {name}</p><p>More of {number} {name}</p></tr>"
            for name in names
        )
        return f"<h2>Member {number}</h2><table>{rows}</table>"

    assert main_listing([page(body(number), number) for number in range(24)]) is None


@pytest.mark.parametrize("body", ["", "<p>One text alone.</p>"])
def test_nothing_repeats(body: str) -> None:
    root = parse(Page("https://one.example/", f"<html><body>{body}</body></html>".encode()))
    assert isinstance(root, Element)

    assert main_listing([root]) is None


def test_no_pages() -> None:
    assert main_listing([]) is None


def test_menus_are_not_what_pages_are_about() -> None:
    assert main_listing([page(f"<p>Text {number} of its own.</p>", number) for number in range(5)]) is None


@given(
    st.lists(
        st.lists(
            st.recursive(
                st.sampled_from(["a text", "17", "<br>", "<hr>", "<img src=/1.gif>", "<!-- no -->"]),
                lambda inside: st.builds(
                    lambda tag, inner: f"<{tag}>{''.join(inner)}</{tag}>",
                    st.sampled_from(
                        ["div", "p", "ul", "li", "a", "div class=x", "table", "tr", "td", "script"]
                    ),
                    st.lists(inside, max_size=5),
                ),
                max_leaves=12,
            ),
            max_size=6,
        ),
        min_size=1,
        max_size=3,
    )
)
def test_any_markup(bodies: list[list[str]]) -> None:
    """Parts are neighbours in one parent, and none stands in another."""
    roots = [
        page("".join(f"<p><b>w{number}.{m}</b> x{m}{item}" for m, item in enumerate(body)), number)
        for number, body in enumerate(bodies)
    ]

    listing = main_listing(roots)

    if listing is not None:
        assert [part.page for part in listing.records] == sorted(part.page for part in listing.records)
        seen: set[Element] = set()
        for part in listing.records:
            inside = {one for element in part.elements for one in element.iter()}
            assert not inside & seen
            seen |= inside
            assert len({element.getparent() for element in part.elements}) == 1


BUILTIN: dict[str, Callable[[], Sequence[BuiltinPage]]] = {
    "original": guide_site,
    "redesign": partial(guide_site, "redesign"),
    "directory": directory_site,
}


def test_where_looks_that_branch_much_have_their_text_is_found_at_once() -> None:
    looks = Looks()
    shape = looks.empty
    for _ in range(6):
        shape = looks.shape([(f"x{number}", shape) for number in range(25)])
    start = process_time()

    assert looks.lead(shape) == ""
    assert looks.lead(looks.shape([("b", shape), ("i", looks.text_alone)])) == "i/#text"
    assert process_time() - start < 1


INLINE = "a abbr b bdi big center cite code del dfn em font i ins kbd mark q s samp small".split()


def test_siblings_that_have_nothing_in_common_are_no_listing() -> None:
    """There may be more of them than anyone would compare with each other."""
    looks = [f"<div><{a}><{b}>w{n}x</{b}></{a}></div>" for n, (a, b) in enumerate(permutations(INLINE, 2))]
    assert len(looks) > 260
    assert main_listing([page("".join(looks).replace("x<", f".{n}x<"), n) for n in range(3)]) is None


@pytest.mark.parametrize("pages", [1, 2, 60])
@pytest.mark.parametrize("site", list(BUILTIN))
def test_built_in_list_pages(site: str, pages: int) -> None:
    own = [one for one in BUILTIN[site]() if one.kind == "list"][:pages]
    roots = [root for one in own if isinstance(root := parse(one.page), Element)]

    main = main_listing(roots)

    assert main is not None
    for number, one in enumerate(own):
        texts = [
            " ".join(visible_text(element) for element in part.elements)
            for part in main.records
            if part.page == number
        ]
        assert len(texts) == len(one.records)
        assert all(
            value in text
            for text, record in zip(texts, one.records, strict=True)
            for attribute, values in record.items()
            if attribute != "rating"  # an image tells it
            for value in values
        )


@pytest.mark.parametrize(
    ("site", "kind"),
    [
        *(("original", "restaurant"), ("original", "event"), ("redesign", "restaurant")),
        *(("redesign", "event"), ("directory", "restaurant")),
    ],
)
def test_built_in_detail_pages(site: str, kind: str) -> None:
    own = [one for one in BUILTIN[site]() if one.kind == kind][:30]

    assert main_listing([root for one in own if isinstance(root := parse(one.page), Element)]) is None
