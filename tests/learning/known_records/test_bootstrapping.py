"""A wrapper from known records, end to end."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING

import pytest
from lxml import etree

import siteloom
from siteloom.core.errors import UsageError
from siteloom.core.model import Failure, Page, Seed
from siteloom.html.node_paths import find
from siteloom.html.parser import Element, parse
from siteloom.html.visible_text import normalize, visible_text
from siteloom.learning.known_records.site_bootstrap import as_seed
from siteloom.learning.known_records.text_normalisation import folded
from tests.learning.known_records import sites

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.learning.known_records.bootstrap_result import Bootstrapped, SeedMatch
    from siteloom.learning.known_records.site_bootstrap import Method


@cache
def whole_site() -> Bootstrapped:
    return siteloom.bootstrap(sites.seeds(), sites.pages(), sites.CORE)


def extracted(found: Bootstrapped, pages: Iterable[Page]) -> list[dict[str, tuple[str, ...]]]:
    assert found.wrapper is not None, found.reason
    return [dict(found.wrapper.extract(page).values) for page in pages]


def expected(names: Sequence[str] = sites.ATTRIBUTES) -> list[dict[str, tuple[str, ...]]]:
    return [{name: (one.values[name],) for name in names} for one in sites.ON_SITE]


def refused(
    seeds: Iterable[Seed | Mapping[str, object]], pages: Iterable[Page], core: Sequence[str] = sites.CORE
) -> Bootstrapped:
    found = siteloom.bootstrap(seeds, pages, core)
    assert found.wrapper is None
    assert found.reason.endswith(".")
    return found


def text_at(root: Element, position: str) -> str:
    """What stands at a position, as lxml finds it."""
    at = root.getroottree().xpath(position)
    assert isinstance(at, list)
    assert len(at) == 1
    return visible_text(at[0]) if isinstance(at[0], etree._Element) else normalize(str(at[0]))


def check_evidence(evidence: Iterable[SeedMatch], seeds: Sequence[Seed], pages: Iterable[Page]) -> None:
    """The page has the text where it is said to be, and the seed has the value."""
    roots = {page.url: parse(page) for page in pages}
    for match in evidence:
        root = roots[match.url]
        assert not isinstance(root, Failure)
        assert text_at(root, match.position) == match.text
        texts = seeds[match.seed].values[match.attribute]
        assert folded(match.value) in {folded(text) for text in (*texts, " ".join(texts))}
        assert 0.5 <= match.similarity <= 1


def test_values_are_right_on_all_pages_also_of_what_no_seed_knows() -> None:
    found = whole_site()

    assert extracted(found, sites.pages()) == expected()
    assert (found.reason, found.suggestions) == ("", ())
    assert (found.seeds, found.seeds_matched, found.pages, found.pages_matched) == (230, 30, 40, 30)
    assert found.urls == tuple(page.url for page in sites.pages())


def test_evidence_is_true() -> None:
    found, seeds = whole_site(), sites.seeds()

    check_evidence(found.evidence, seeds, sites.pages())
    assert {match.attribute for match in found.evidence} == set(sites.ATTRIBUTES)
    for match in found.evidence:
        restaurant = sites.ON_SITE[sites.number_of(match.url)]
        assert sites.seed(restaurant).values == seeds[match.seed].values
        assert match.text == restaurant.values[match.attribute]


def test_evidence_of_what_is_only_suggested_is_true() -> None:
    pages = sites.pages(without=("address",))
    found = siteloom.bootstrap(sites.seeds(), pages, ("name",))

    assert found.wrapper is not None
    assert "address" not in found.wrapper.attributes
    check_evidence(found.evidence, sites.seeds(), pages)


def test_attributes_have_verdicts() -> None:
    found = siteloom.bootstrap(sites.seeds(), sites.pages(without=("cuisine",)), sites.CORE)

    assert {name: evidence.verdict for name, evidence in found.attributes.items()} == {
        "name": "accepted",
        "address": "accepted",
        "phone": "accepted",
        "cuisine": "refused",
    }
    assert extracted(found, sites.pages(without=("cuisine",))) == expected(("name", "address", "phone"))


def test_suggestions_can_be_learned_from() -> None:
    pages = sites.pages(without=("cuisine",))
    suggestions = siteloom.bootstrap(sites.seeds(), pages, sites.CORE).suggestions

    wrapper = siteloom.learn(suggestions, unlabelled=pages)

    values = [dict(wrapper.extract(page).values) for page in pages]
    assert values == expected(("name", "address", "phone"))


def test_a_core_attribute_that_is_missing_is_named() -> None:
    found = refused(sites.seeds(), sites.pages(without=("cuisine",)), ("name", "cuisine"))

    assert found.reason.startswith(
        "Not enough overlap: 30 of 230 known records were found on 30 of 40 pages, but not cuisine ("
    )
    assert found.suggestions
    assert found.evidence
    assert (found.seeds_matched, found.pages_matched) == (30, 30)


def test_no_overlap() -> None:
    found = refused(sites.seeds(sites.EVERY[40:]), sites.pages())

    assert "0 of 40 pages" in found.reason
    assert (found.attributes, found.evidence, found.suggestions, found.urls) == ({}, (), (), ())
    assert (found.seeds, found.seeds_matched, found.pages, found.pages_matched) == (200, 0, 40, 0)


def test_fewer_than_ten_shared_pages() -> None:
    found = refused(sites.seeds((*sites.ON_SITE[:9], *sites.EVERY[40:])), sites.pages())

    assert "9 of 40 pages" in found.reason
    assert "at least 10" in found.reason


def test_one_attribute() -> None:
    found = refused([{"name": one.name} for one in sites.EVERY], sites.pages(), ["name"])

    assert "only name" in found.reason


def test_very_many_records_that_are_all_the_same() -> None:
    one = sites.ON_SITE[0]
    found = refused([{"name": one.name, "address": one.street}] * 20_000, sites.pages())

    assert "20,000 known records" in found.reason


def test_very_many_records_that_share_all_but_one_value() -> None:
    seeds = [{"name": "Golden Goose", "address": "Oakdale", "phone": f"415 555 {n:04}"} for n in range(5_000)]

    assert "Not enough overlap" in refused(seeds, sites.pages()).reason


def test_pages_in_another_language() -> None:
    greek = "εστιατόριο μας σερβίρει φρέσκο ψάρι και τοπικό κρασί κάθε βράδυ στην αυλή του".split()
    pages = [
        Page.from_text(
            f"https://tavernes.example/{number}",
            f"<h1>{greek[number % 13]} {greek[number % 11]}</h1><p>Οδός {greek[number % 7]} {number}</p>",
        )
        for number in range(40)
    ]

    assert "0 of 40 pages" in refused(sites.seeds(), pages).reason


def test_only_list_pages() -> None:
    found = refused(sites.seeds(), [sites.list_page(number) for number in range(20)])

    assert "pages list several" in found.reason


def test_lists_among_the_pages_do_no_harm() -> None:
    pages = [*map(sites.list_page, range(15)), *sites.pages()]
    found = siteloom.bootstrap(sites.seeds(), pages, sites.CORE)

    assert extracted(found, sites.pages()) == expected()
    assert all("/place/" in match.url for match in found.evidence)
    assert (found.pages, found.pages_matched) == (55, 30)


def test_no_pages_at_all() -> None:
    assert "0 of 0 pages" in refused(sites.seeds(), []).reason


def test_pages_that_cannot_be_parsed_are_passed_over() -> None:
    broken = [Page("https://eat.example/empty", b""), Page("https://eat.example/deep", b"<div>" * 5_000)]
    pages = [broken[0], *sites.pages()[:20], broken[1], *sites.pages()[20:]]
    assert all(isinstance(parse(page), Failure) for page in broken)

    found = siteloom.bootstrap(sites.seeds(), pages, sites.CORE)

    assert extracted(found, sites.pages()) == expected()
    assert (found.pages, found.pages_matched) == (40, 30)
    check_evidence(found.evidence, sites.seeds(), sites.pages())


@pytest.mark.parametrize("core", ["name", (), ""])
def test_core_is_several_names(core: Sequence[str]) -> None:
    with pytest.raises(UsageError, match="Name the attributes that must be found"):
        siteloom.bootstrap(sites.seeds(), sites.pages(), core)


def test_core_attributes_are_known_to_the_seeds() -> None:
    with pytest.raises(UsageError, match=r"No seed has the attribute stars, .*address, cuisine, name, phone"):
        siteloom.bootstrap(sites.seeds(), sites.pages(), ("name", "stars"))


@pytest.mark.parametrize("seeds", [[], [{}], [{"name": "", "address": None}, {"name": [], "_source": "x"}]])
def test_seeds_have_values(seeds: list[dict[str, object]]) -> None:
    with pytest.raises(UsageError, match="The seeds have no values"):
        siteloom.bootstrap(seeds, sites.pages(), sites.CORE)


def test_seeds_without_letters_or_digits_have_no_overlap() -> None:
    assert "0 of 40 pages" in refused([{"name": "---", "address": "?"}] * 20, sites.pages()).reason


def test_only_known_methods_are_used() -> None:
    method: Method = "guess"  # type: ignore[assignment]
    with pytest.raises(UsageError, match="No method 'guess' to bootstrap by: use one of bits, findattrpos"):
        siteloom.bootstrap(sites.seeds(), sites.pages(), sites.CORE, method=method)


def test_mappings_are_read_as_texts() -> None:
    given = {
        "name": "  Golden\n Goose ",
        "stars": 4,
        "tags": ["a", None, " ", 7],
        "_source": "a guide",
        "_x": "y",
        "no": None,
        "blank": " ",
    }

    assert as_seed(given) == Seed(
        {"name": ("Golden Goose",), "stars": ("4",), "tags": ("a", "7")}, source="a guide"
    )
    assert as_seed({"name": ("a", "b")}) == Seed({"name": ("a", "b")})
    seed = Seed({"name": ("a",)}, "x", "https://x.example/", 0.5)
    assert as_seed(seed) is seed


def test_seeds_may_be_mappings_with_numbers_and_gaps() -> None:
    def mapping(number: int, one: sites.Restaurant) -> dict[str, object]:
        values = sites.seed(one).values
        return {
            "name": list(values["name"]),
            "address": None if number % 5 == 0 else values["address"][0],
            "phone": int("".join(filter(str.isdigit, one.phone))),
            "cuisine": values["cuisine"],
            "_source": "guide",
        }

    seeds = [mapping(number, one) for number, one in enumerate(sites.EVERY)]
    found = siteloom.bootstrap(iter(seeds), iter(sites.pages()), sites.CORE)

    assert extracted(found, sites.pages()) == expected()


def test_the_same_input_gives_the_same_result() -> None:
    again = siteloom.bootstrap(sites.seeds(), sites.pages(), sites.CORE)

    assert again == whole_site()


@pytest.mark.parametrize("number", range(3))
def test_the_order_of_seeds_and_of_pages_does_not_matter(number: int) -> None:
    generator = random.Random(number)
    seeds, pages = sites.seeds(), sites.pages()
    generator.shuffle(seeds)
    generator.shuffle(pages)
    found = siteloom.bootstrap(seeds, pages, sites.CORE)

    assert extracted(found, sites.pages()) == expected()
    check_evidence(found.evidence, seeds, pages)
    assert {(match.url, match.attribute, match.text) for match in found.evidence} == {
        (match.url, match.attribute, match.text) for match in whole_site().evidence
    }
    assert {name: one.verdict for name, one in found.attributes.items()} == dict.fromkeys(
        sites.ATTRIBUTES, "accepted"
    )


@pytest.mark.parametrize("method", ["findattrpos", "findattrposw"])
def test_the_methods_of_the_paper_find_absolute_positions(method: Method) -> None:
    seeds = [as_seed(one.values) for one in (*sites.ON_SITE[:30], *sites.EVERY[40:])]
    pages = sites.pages(promotions=1)
    found = siteloom.bootstrap(seeds, pages, sites.CORE, method=method)

    assert extracted(found, pages) == expected()
    assert (found.reason, found.seeds_matched, found.pages, found.pages_matched) == ("", 30, 40, 30)
    assert {name: one.verdict for name, one in found.attributes.items()} == dict.fromkeys(
        sites.ATTRIBUTES, "accepted"
    )
    check_evidence(found.evidence, seeds, pages)
    assert len({match.position for match in found.evidence}) == len(sites.ATTRIBUTES)
    root = parse(pages[0])
    assert not isinstance(root, Failure)
    assert all(find(root, match.position.rpartition("/")[0]) is not None for match in found.evidence)


@pytest.mark.parametrize("method", ["findattrpos", "findattrposw"])
def test_the_methods_of_the_paper_refuse_what_is_missing(method: Method) -> None:
    pages = sites.pages(without=("phone",), promotions=1)
    seeds = [one.values for one in sites.EVERY]
    found = siteloom.bootstrap(seeds, pages, ("name", "phone"), method=method)

    assert found.wrapper is None
    assert found.reason.startswith("Not enough overlap: no positions of phone ")
    assert found.attributes["phone"].verdict == "refused"
    strangers = siteloom.bootstrap([one.values for one in sites.EVERY[40:]], pages, sites.CORE, method=method)
    assert strangers.wrapper is None


def test_only_bits_finds_what_shifts() -> None:
    seeds = [one.values for one in sites.EVERY]

    assert extracted(siteloom.bootstrap(seeds, sites.pages(), sites.CORE), sites.pages()) == expected()
    by_path = siteloom.bootstrap(seeds, sites.pages(), sites.CORE, method="findattrpos")
    assert by_path.wrapper is None or extracted(by_path, sites.pages()) != expected()


def test_a_schema_types_the_values() -> None:
    schema = {"name": siteloom.Attribute(multi=False, mandatory=True), "unheard": siteloom.Attribute()}
    found = siteloom.bootstrap(sites.seeds(), sites.pages(), sites.CORE, schema)

    assert found.wrapper is not None
    assert found.wrapper.attributes["name"].attribute.mandatory
    assert set(found.wrapper.attributes) == set(sites.ATTRIBUTES)


@pytest.mark.parametrize("number", [1, 4, 6, 7])
def test_cuisines_here_and_there_are_not_those_of_the_page(number: int) -> None:
    drawn = random.Random(number)
    pages = [
        sites.changed(
            page,
            "<p>Open daily</p>",
            "".join(
                f"<p class=t><b>{drawn.choice(['Try', 'Popular', 'Visitors like', 'New'])}</b> "
                f"<span>{drawn.choice(sites.CUISINES)}</span></p>"
                for _ in range(drawn.randint(1, 5))
            ),
        )
        for page in sites.pages(without=("cuisine",))
    ]
    found = siteloom.bootstrap(sites.seeds(), pages, ("name", "phone"))

    assert found.attributes["cuisine"].verdict != "accepted"


@pytest.mark.parametrize("number", range(5))
def test_an_answer_to_another_question_is_none(number: int) -> None:
    """Seeds know of a wifi, and some pages of a pool: yes or no."""
    drawn = random.Random(number)
    seeds = [Seed({**seed.values, "wifi": (drawn.choice(["Yes", "No"]),)}) for seed in sites.seeds()]
    with_pool = set(drawn.sample(range(30), 5))
    pages = [
        sites.changed(
            page, "<p>Open daily</p>", f"<div class=pool><i>{drawn.choice(['Yes', 'No'])}</i></div>"
        )
        if place in with_pool
        else page
        for place, page in enumerate(sites.pages())
    ]

    assert siteloom.bootstrap(seeds, pages, sites.CORE).attributes["wifi"].verdict != "accepted"


def test_a_table_of_many_columns() -> None:
    drawn = random.Random(0)
    more = {
        one.name: [f"{drawn.choice('ABCDEFGH')}{drawn.randint(1, 60)} u{n}" for n in range(30)]
        for one in sites.EVERY
    }
    seeds = [
        Seed({**sites.seed(one).values, **{f"column {n}": (text,) for n, text in enumerate(more[one.name])}})
        for one in [*sites.ON_SITE[:30], *sites.EVERY[40:]]
    ]
    pages = [
        sites.changed(
            page,
            "<p>Open daily</p>",
            "".join(f"<tr><td>L{n}</td><td>{text}</td></tr>" for n, text in enumerate(more[one.name])),
        )
        for one, page in zip(sites.ON_SITE, sites.pages(), strict=True)
    ]
    found = siteloom.bootstrap(seeds, pages, sites.CORE)

    assert {name for name, one in found.attributes.items() if one.verdict == "accepted"} >= set(
        sites.ATTRIBUTES
    )


def test_the_same_records_from_many_sources() -> None:
    seeds = [Seed(seed.values, f"source {number}") for number in range(40) for seed in sites.seeds()]

    assert extracted(siteloom.bootstrap(seeds, sites.pages(), sites.CORE), sites.pages()) == expected()


def test_gaps_in_tables_are_no_values() -> None:
    assert as_seed({"name": float("nan"), "rank": 4.0, "share": 0.5, "city": None}).values == {
        "rank": ("4",),
        "share": ("0.5",),
    }


@pytest.mark.parametrize("given", ["text", 7, None, ["name"]])
def test_what_is_no_mapping_is_no_seed(given: object) -> None:
    with pytest.raises(UsageError, match="must be a mapping of attributes"):
        siteloom.bootstrap([given], sites.pages(), sites.CORE)  # type: ignore[list-item]


def test_pages_that_cannot_be_read_are_told() -> None:
    found = siteloom.bootstrap(sites.seeds(), [*sites.pages(), Page("https://x.example/", b"")], sites.CORE)

    assert [failure.url for failure in found.failures] == ["https://x.example/"]


def test_a_column_that_repeats_another_does_no_harm() -> None:
    seeds = [
        Seed({**seed.values, "slug": ("-".join(seed.values["name"][0].lower().split()),)})
        for seed in sites.seeds()
    ]
    found = siteloom.bootstrap(seeds, sites.pages(), sites.CORE)

    assert extracted(found, sites.pages()) == expected()
    assert found.attributes["slug"].reason == "the seeds have the same values as for name"
