"""Positions by known records: made-up sites, and the definition tried out in full."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Failure, Page, Seed
from siteloom.html.page_text_arrays import PageTexts, TextCollector
from siteloom.html.parser import parse
from siteloom.learning.known_records.findattrpos import find_attribute_positions, strong_matches, weak_matches
from siteloom.learning.known_records.position_wrapper import positions_wrapper
from siteloom.learning.known_records.string_similarity import WeakIndex
from tests.learning.known_records.plain_strong import WeakPair, strong_similarities

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.learning.known_records.findattrpos import Method

NAMES = (
    *("Golden Goose", "Blue Lagoon", "Casa Verde", "Old Mill", "Harbour Lights", "Saffron House"),
    *("Red Lantern", "Stone Oven", "Willow Garden", "Mountain View", "Trattoria Zucca", "Fox and Hound"),
    *("Pepper Tree", "Silver Spoon"),
)
CUISINES = ("Italian", "Mexican")


def address(number: int) -> str:
    return f"{17 * number + 3} {NAMES[-number - 1].split()[0]} Street"


def record(number: int, source: str = "guide") -> Seed:
    values = {
        "name": (NAMES[number],),
        "address": (address(number),),
        "cuisine": (CUISINES[number % 2],),
    }
    return Seed(values, source)


SEEDS = [record(number) for number in range(len(NAMES))]


def page(number: int, beside: str = "", opening: str = "") -> Page:
    return Page.from_text(
        f"https://eat.example/{number}",
        f"<html><body><ul><li>Home<li>Italian<li>Mexican</ul>{opening}<h1>{NAMES[number]}</h1>"
        f"<p><b>Address</b> {address(number)}<br>Open daily</p>"
        f"<p><b>Kitchen</b> <i>{CUISINES[number % 2]}</i></p>{beside}</body></html>",
    )


PAGES = [page(number) for number in range(len(NAMES))]
NAME = "/html[1]/body[1]/h1[1]/text()[1]"
ADDRESS = "/html[1]/body[1]/p[1]/text()[1]"
CUISINE = "/html[1]/body[1]/p[2]/i[1]/text()[1]"


def texts_of(pages: Iterable[Page]) -> PageTexts:
    collector = TextCollector()
    for one in pages:
        root = parse(one)
        assert not isinstance(root, Failure)
        collector.add(root)
    return collector.collected()


@pytest.mark.parametrize("method", ["findattrpos", "findattrposw"])
def test_positions_are_where_one_record_agrees_in_all_attributes(method: Method) -> None:
    found = find_attribute_positions(SEEDS, texts_of(PAGES), method)

    assert found.positions == {"name": NAME, "address": ADDRESS, "cuisine": CUISINE}
    assert found.support == len(PAGES)
    assert [(one.seed, one.page) for one in found.agreements[::3]] == [
        (number, number) for number in range(len(PAGES))
    ]
    assert found.filled == {"name": 1, "address": 1, "cuisine": 1}


def test_fewer_positions_are_left_the_more_attributes_must_agree() -> None:
    found = find_attribute_positions(SEEDS, texts_of(PAGES))

    assert found.positions_left == (
        {"name": 1, "address": 1, "cuisine": 3},  # of the menu, too
        {"name": 1, "address": 1, "cuisine": 1},
        {"name": 1, "address": 1, "cuisine": 1},
    )


@pytest.mark.parametrize("method", ["findattrpos", "findattrposw"])
def test_too_few_known_things_give_no_positions(method: Method) -> None:
    found = find_attribute_positions(SEEDS[:9], texts_of(PAGES), method)

    assert (set(found.positions), found.support) == ({"cuisine"}, 14)
    strangers = [Seed({"name": (f"Nobody {number}",)}, "x") for number in range(20)]
    none = find_attribute_positions(strangers, texts_of(PAGES), method)
    assert (none.positions, none.support, none.positions_left, none.agreements) == ({}, 0, (), ())


def test_no_seeds_and_no_pages_give_no_positions() -> None:
    assert not find_attribute_positions([], texts_of(PAGES)).positions
    assert not find_attribute_positions(SEEDS, texts_of([])).positions
    assert not find_attribute_positions([Seed({"name": ("",)})], texts_of(PAGES)).positions


def test_an_attribute_that_the_site_does_not_show_is_left_out() -> None:
    with_phones = [
        Seed({**seed.values, "phone": (f"{number:03}-555-{7 * number:04}",)}, seed.source)
        for number, seed in enumerate(SEEDS)
    ]

    found = find_attribute_positions(with_phones, texts_of(PAGES))

    assert found.positions.keys() == {"name", "address", "cuisine"}


def test_two_attributes_do_not_share_a_position() -> None:
    doubled = [Seed({"name": seed.values["name"], "title": seed.values["name"]}) for seed in SEEDS]

    found = find_attribute_positions(doubled, texts_of(PAGES))

    assert len(found.positions) == 1


def test_of_equally_supported_positions_the_one_with_less_besides_the_value_wins() -> None:
    wordy = [page(number, opening=f"<p>Restaurant {NAMES[number]}</p>") for number in range(len(NAMES))]

    found = find_attribute_positions(SEEDS, texts_of(wordy), "findattrposw")

    assert found.support == len(PAGES)
    assert found.positions["name"] == NAME


def test_weak_similarity_alone_is_taken_in_by_what_is_near() -> None:
    """Two pages lack the name, but all tell what is near the place: that has more support."""
    nearby = [page(number, beside=f"<p>Places near {NAMES[number]}</p>") for number in range(len(NAMES))]
    unnamed = [Page.from_text(one.url, one.html.decode().replace("h1>", "h2>")) for one in nearby[:2]]
    texts = texts_of([*unnamed, *nearby[2:]])

    weak = find_attribute_positions(SEEDS, texts, "findattrposw")
    strong = find_attribute_positions(SEEDS, texts, "findattrpos")

    assert (weak.positions["name"], weak.support) == ("/html[1]/body[1]/p[3]/text()[1]", len(NAMES))
    assert (strong.positions["name"], strong.support) == (NAME, len(NAMES) - 2)


def test_a_value_in_several_texts_is_found_as_an_inner_node() -> None:
    pages = [
        Page.from_text(
            f"https://eat.example/{number}",
            f"<h1>{NAMES[number]}</h1><div>{address(number).split()[0]} <br>"
            f"{' '.join(address(number).split()[1:])}</div>",
        )
        for number in range(len(NAMES))
    ]

    found = find_attribute_positions(SEEDS, texts_of(pages))

    assert found.positions == {"name": NAME, "address": "/html[1]/body[1]/div[1]"}
    wrapper = positions_wrapper(found, pages)
    assert wrapper.extract(pages[3]).values["address"] == (address(3),)


def test_a_wrapper_takes_what_stands_at_the_positions() -> None:
    found = find_attribute_positions(SEEDS, texts_of(PAGES), "findattrposw")

    wrapper = positions_wrapper(found, PAGES)

    for number, one in enumerate(PAGES):
        values = wrapper.extract(one).values
        assert values == {name: tuple(given) for name, given in SEEDS[number].values.items()}
    moved = wrapper.extract(page(0, opening="<h1>Advertisement</h1>")).values
    assert moved["name"] == ("Advertisement",)
    assert type(wrapper).from_json(wrapper.to_json()) == wrapper


def test_a_wrapper_counts_the_texts_that_are_seen() -> None:
    # The second text as XPath counts is the first that is seen.
    pages = [
        Page.from_text(
            f"https://eat.example/{number}", f"<p> <br>{NAMES[number]}</p><p>{address(number)}</p>"
        )
        for number in range(len(NAMES))
    ]
    found = find_attribute_positions(SEEDS, texts_of(pages), "findattrposw")
    assert found.positions["name"].endswith("/p[1]/text()[2]")

    assert positions_wrapper(found, pages).extract(pages[5]).values["name"] == (NAMES[5],)


WORDS = ("Golden Goose", "Golden Goose Inn", "The Goose", "Blue Lagoon", "Lagoon", "Stone")
cells = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)
known_values = st.fixed_dictionaries(
    {name: st.lists(st.sampled_from(WORDS), max_size=2).map(tuple) for name in ("name", "other", "third")}
)


@given(
    st.lists(cells, min_size=2, max_size=6),
    st.lists(st.builds(Seed, known_values, st.sampled_from(["a", "b"])), min_size=1, max_size=5),
)
def test_the_result_is_that_of_trying_all_sets(pages: list[list[str]], seeds: list[Seed]) -> None:
    texts = texts_of(
        Page.from_text("https://x.example", "".join(f"<p>{cell}</p>" for cell in one)) for one in pages
    )

    found = find_attribute_positions(seeds, texts, "findattrposw", beta=2)

    supports = supports_of_all_sets(seeds, texts)
    most = max((len(one) for one, support in supports.items() if support >= 2), default=0)
    best = max((support for one, support in supports.items() if len(one) == most), default=0)
    assert (len(found.positions), found.support) == ((most, best) if most else (0, 0))
    if most:
        assert supports[frozenset(found.positions.items())] == best
        assert len({one.page for one in found.agreements}) == best


def supports_of_all_sets(seeds: Sequence[Seed], texts: PageTexts) -> dict[frozenset[tuple[str, str]], int]:
    """The definition, word for word."""
    pairs: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for attribute in ("name", "other", "third"):
        values = sorted({value for seed in seeds for value in seed.values[attribute]})
        joined = WeakIndex(values).join(texts.texts) if values else None
        similar = set(zip(joined.text.tolist(), joined.value.tolist(), strict=True)) if joined else set()
        for path, one_page, text in zip(
            texts.path.tolist(), texts.page.tolist(), texts.text.tolist(), strict=True
        ):
            for number, seed in enumerate(seeds):
                if any((text, values.index(value)) in similar for value in seed.values[attribute]):
                    pairs.setdefault((attribute, texts.path_text(path)), set()).add((number, one_page))
    supports: dict[frozenset[tuple[str, str]], int] = {}
    for size in (1, 2, 3):
        for items in combinations(pairs, size):
            attributes, positions = zip(*items, strict=True)
            if len(set(attributes)) == len(set(positions)) == size:
                common = set.intersection(*(pairs[item] for item in items))
                supports[frozenset(items)] = len({one_page for _, one_page in common})
    return supports


SEGMENTED = (
    "Golden Goose, Inn",
    "Golden Goose (Inn), Bar",
    "Goose, The Golden",
    "Inn, Blue Lagoon",
    "Lagoon (Bar)",
)


@given(
    st.lists(st.lists(st.sampled_from(SEGMENTED), min_size=1, max_size=2), min_size=2, max_size=6),
    st.lists(st.tuples(st.sampled_from(SEGMENTED), st.sampled_from(["a", "b"])), min_size=1, max_size=4),
)
def test_strong_similarities_are_those_of_the_pairs_one_by_one(
    pages: list[list[str]], known: list[tuple[str, str]]
) -> None:
    seeds = [Seed({"name": (value,)}, source) for value, source in known]
    texts = texts_of(
        Page.from_text("https://x.example", "".join(f"<p>{cell}</p>" for cell in one)) for one in pages
    )
    index = WeakIndex(list(dict.fromkeys(value for value, _ in known)))

    for candidate in strong_matches(weak_matches(seeds, texts, beta=1), alpha=0.4).candidates:
        pairs: list[WeakPair] = []
        similarities: list[float] = []
        values = candidate.similar.known_values
        for page_number, text, place in zip(
            candidate.page.tolist(), candidate.text.tolist(), candidate.place.tolist(), strict=True
        ):
            similarities += candidate.similar.similarities(place).tolist()
            pairs += [
                WeakPair(
                    values.values[values.value_of[saying]],
                    texts.texts[text],
                    page_number,
                    str(values.source_of[saying]),
                )
                for saying in candidate.similar.statements.of(place).tolist()
            ]
        assert similarities == pytest.approx(strong_similarities(pairs, index, alpha=0.4), abs=1e-6)
