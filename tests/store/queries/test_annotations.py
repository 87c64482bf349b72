"""Annotations: what was said of a page stays, with the page as it was when it was said."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from siteloom.core.errors import StoreError
from siteloom.core.model import Attribute, Example, Page, Resource
from siteloom.store import schema
from siteloom.store.queries.annotations import Annotation, OptimisticUpdate
from siteloom.store.queries.attribute_schemas import ClusterSchema
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from tests.store.helpers import assert_sound, day, page, put

CLUSTER = "a.example/1"
ODD_TEXT = "a\0b \ud800 c\udfff \N{SNAKE} \x1b \u2028 'quoted' \\u0041 \\"


def address(page: Page, site: str = "a.example") -> PageAddress:
    return PageAddress(site, page.url)


def save(store: Store, annotated: Page, name: str, on_day: int = 0) -> None:
    store.save_example(address(annotated), Example(annotated, {"name": [name]}), at=day(on_day))


def names(store: Store, site: str | None = None) -> list[tuple[str, bytes, str]]:
    """What the examples of a store say, and of which content."""
    return [(each.page.url, each.page.html, each.values["name"][0]) for each in store.examples(site)]


def test_a_store_without_annotations_has_no_examples(store: Store) -> None:
    put(store, page("http://a.example/1"))
    assert store.examples() == []
    assert store.annotated_pages() == []


def test_an_example_comes_back_as_it_was_given(store: Store) -> None:
    listed = Page("http://a.example/1", b"<p>\xe9</p>", day(0), "latin-1")
    put(store, listed)
    example = Example(
        listed,
        values={"name": ["Blue Fern"], "phone": [], "cuisine": ["Thai", "Vegan"]},
        records=({"name": ["A"], "price": ["$1"]}, {"name": ["B"]}),
        nodes={"name": ["/html[1]/body[1]/h1[1]/text()[1]"]},
        record_nodes=({"price": ["/html[1]/body[1]/p[1]/text()[1]"]}, {}),
    )
    store.save_example(address(listed), example)
    assert store.examples() == [example]
    (found,) = store.examples()
    assert list(found.values) == ["name", "phone", "cuisine"]


def test_annotations_from_before_records_had_nodes_are_read(store: Store) -> None:
    listed = page("http://a.example/1")
    put(store, listed)
    example = Example(listed, records=({"name": ["A"]},))
    store.save_example(address(listed), example)
    with store.engine.begin() as connection:
        (kept,) = connection.execute(select(schema.annotations.c.example)).scalars()
        old = {key: value for key, value in kept.items() if key != "record_nodes"}
        assert len(old) == len(kept) - 1
        connection.execute(update(schema.annotations).values(example=old))
    assert store.examples() == [example]


def test_any_text_comes_back_even_such_as_databases_refuse(store: Store) -> None:
    odd = page("http://a.example/1")
    put(store, odd)
    example = Example(odd, {ODD_TEXT: [ODD_TEXT, ""]}, ({ODD_TEXT: [ODD_TEXT]},), {ODD_TEXT: [ODD_TEXT]})
    store.save_example(address(odd), example, author="me\0")
    assert store.examples() == [example]


def test_any_mapping_of_any_sequences_is_an_example(store: Store) -> None:
    tuples = page("http://a.example/1")
    put(store, tuples)
    store.save_example(address(tuples), Example(tuples, {"name": ("A", "B")}, [{"name": ("C",)}]))
    assert store.examples() == [Example(tuples, {"name": ["A", "B"]}, ({"name": ["C"]},))]


def test_the_newest_annotation_holds_and_older_ones_are_kept(store: Store) -> None:
    first, second = page("http://a.example/1"), page("http://a.example/2")
    put(store, first, second)
    save(store, second, "early", on_day=1)
    save(store, first, "other", on_day=2)
    save(store, second, "late", on_day=4)
    save(store, second, "between, but told last", on_day=3)
    assert names(store) == [(second.url, second.html, "late"), (first.url, first.html, "other")]
    columns = schema.annotations.c
    with store.engine.connect() as connection:
        kept = connection.execute(select(columns.created_at, columns.format).order_by(columns.id)).all()
    assert [tuple(row) for row in kept] == [(day(number), 1) for number in (1, 2, 4, 3)]


def test_of_two_annotations_of_one_moment_the_second_holds(store: Store) -> None:
    twice = page("http://a.example/1")
    put(store, twice)
    save(store, twice, "first")
    save(store, twice, "second")
    assert names(store) == [(twice.url, twice.html, "second")]


def test_who_annotated_and_when_is_kept(store: Store) -> None:
    annotated = page("http://a.example/1")
    put(store, annotated)
    before = store.clock()
    store.save_example(address(annotated), Example(annotated), author="Ada")
    store.save_example(address(annotated), Example(annotated), at=day(1).replace(tzinfo=None))
    columns = schema.annotations.c
    with store.engine.connect() as connection:
        by_ada, by_none = connection.execute(
            select(columns.author, columns.created_at).order_by(columns.id)
        ).all()
    assert by_ada.author == "Ada"
    assert before <= by_ada.created_at <= store.clock()
    assert tuple(by_none) == ("", day(1))


def test_an_example_keeps_the_page_as_it_was_annotated(store: Store) -> None:
    old, new = page("http://a.example/1", "old"), page("http://a.example/1", "new", 1)
    put(store, old)
    save(store, old, "of old")
    put(store, new)
    assert names(store) == [(old.url, old.html, "of old")]
    save(store, new, "of new", on_day=1)
    assert names(store) == [(new.url, new.html, "of new")]
    save(store, old, "of old again", on_day=2)
    assert names(store) == [(old.url, old.html, "of old again")]
    assert_sound(store)


def test_examples_are_told_site_by_site(store: Store) -> None:
    one, other = page("http://a.example/1"), page("http://b.example/1")
    put(store, one, other)
    put(store, one, site="mine")
    save(store, one, "a")
    store.save_example(PageAddress("b.example", other.url), Example(other, {"name": ["b"]}))
    store.save_example(PageAddress("mine", one.url), Example(one, {"name": ["m"]}))
    assert [name for _, _, name in names(store)] == ["a", "b", "m"]
    assert names(store, "mine") == [(one.url, one.html, "m")]
    assert names(store, "b.example") == [(other.url, other.html, "b")]
    assert names(store, "c.example") == []
    assert [(site.name, site.annotated) for site in store.sites()] == [
        ("a.example", 1),
        ("b.example", 1),
        ("mine", 1),
    ]


def test_annotated_pages_are_counted_once(store: Store) -> None:
    pages = [page(f"http://a.example/{number}") for number in range(3)]
    put(store, *pages)
    for number, each in enumerate((*pages[:2], *pages[:2])):
        save(store, each, str(number), number)
    assert [(site.pages, site.annotated) for site in store.sites()] == [(3, 2)]
    assert store.annotated_pages() == [address(each) for each in pages[:2]]


def test_annotated_pages_are_told_by_site_and_url(store: Store) -> None:
    one, other = page("http://a.example/1"), page("http://a.example/2")
    put(store, one, other)
    put(store, one, other, site="mine")
    store.save_example(PageAddress("mine", one.url), Example(one, {"name": ["a"]}))
    save(store, other, "b")
    assert store.annotated_pages() == [PageAddress("a.example", other.url), PageAddress("mine", one.url)]
    put(store, page(one.url, "changed", 1), site="mine")
    assert PageAddress("mine", one.url) in store.annotated_pages()


@pytest.mark.parametrize(
    ("url", "html", "site"),
    [
        ("http://a.example/2", b"<p>text</p>", "a.example"),
        ("http://a.example/1", b"<p>other</p>", "a.example"),
        ("http://a.example/1", b"<p>text</p>", "other"),
        ("http://a.example/1\ud800", b"<p>text</p>", "a.example"),
        ("http://a.example/s.css", b"p{}", "a.example"),
    ],
)
def test_what_is_not_in_the_store_cannot_be_annotated(store: Store, url: str, html: bytes, site: str) -> None:
    put(store, page("http://a.example/1"), Resource("http://a.example/s.css", b"p{}", "text/css"))
    with pytest.raises(StoreError, match=r"^The page .* is not in the site .*: ingest it first\.$"):
        store.save_example(PageAddress(site, url), Example(Page(url, html)))
    assert store.examples() == []


def test_pages_can_be_annotated_while_others_are_written(store: Store) -> None:
    annotated = page("http://a.example/1")
    put(store, annotated)
    with store.ingesting({}, jobs=1) as (_, writer):
        for number in range(2, 200):
            writer.add(page(f"http://a.example/{number}", str(number)), "a.example")
            if number % 50 == 0:
                save(store, annotated, str(number), number)
    assert names(store) == [(annotated.url, annotated.html, "150")]


def amend(store: Store, of: Page, name: str | None, follows: Annotation | None, author: str = "ana") -> bool:
    example = Example(of, {} if name is None else {"name": [name]})
    return store.apply_updates(
        CLUSTER, [OptimisticUpdate(address(of), example, follows)], author, schema_follows=0
    )


def test_an_amendment_follows_the_newest_annotation_or_is_refused(store: Store) -> None:
    given = page("http://a.example/1")
    put(store, given)
    (number,) = store.page_ids([address(given)])

    assert amend(store, given, "a", None)
    assert not amend(store, given, "b", None, "ben")
    (seen,) = store.annotations([number])
    assert (seen.author, seen.example["values"]) == ("ana", {"name": ["a"]})
    assert amend(store, given, "b", seen, "ben")
    assert store.annotations([number])[-1].id == store.newest_annotation([number])
    assert [example.values for example in store.examples()] == [{"name": ["b"]}]
    assert not amend(store, given, "c", seen)


def test_an_empty_amendment_takes_back_what_was_said(store: Store) -> None:
    given = page("http://a.example/1")
    put(store, given)
    save(store, given, "a")
    (before,) = store.annotations(store.page_ids([address(given)]))

    assert amend(store, given, None, before)

    assert store.examples() == []
    assert store.annotated_pages() == []
    assert store.sites()[0].annotated == 0
    assert len(store.annotations(store.page_ids([address(given)]))) == 2


def test_an_amendment_holds_although_its_clock_is_late(store: Store) -> None:
    given = page("http://a.example/1")
    put(store, given)
    store.save_example(address(given), Example(given, {"name": ["a"]}), at=day(400_000))
    (before,) = store.annotations(store.page_ids([address(given)]))

    assert amend(store, given, "b", before)

    assert [example.values for example in store.examples()] == [{"name": ["b"]}]


def test_pages_and_schema_are_amended_together_or_not_at_all(store: Store) -> None:
    one, other = page("http://a.example/1"), page("http://a.example/2")
    put(store, one, other)
    amendments = [
        OptimisticUpdate(address(each), Example(each, {"name": ["a"]}), None) for each in (one, other)
    ]
    schema_now = {"name": Attribute()}
    save(store, other, "b")  # meanwhile

    assert not store.apply_updates(CLUSTER, amendments, "ana", schema_follows=0, attributes=schema_now)
    assert [(name, url) for url, _, name in names(store)] == [("b", other.url)]
    assert store.cluster_schema(CLUSTER).revision == 0

    (newest,) = store.annotations(store.page_ids([address(other)]))
    amendments[1] = amendments[1]._replace(replaces=newest)
    assert store.apply_updates(CLUSTER, amendments, "ana", schema_follows=0, attributes=schema_now)
    assert {name for _, _, name in names(store)} == {"a"}
    assert store.cluster_schema(CLUSTER) == ClusterSchema(1, schema_now)
    # Of a schema that has been changed since, nothing is said.
    (newest,) = store.annotations(store.page_ids([address(one)]))
    assert not amend(store, one, "c", newest)


def test_the_schema_of_a_cluster_is_kept_in_its_order_and_never_overwritten(store: Store) -> None:
    assert store.cluster_schema(CLUSTER) == ClusterSchema(0, {})
    first = {"price": Attribute(type="price"), "name": Attribute(mandatory=True)}
    assert store.apply_updates(CLUSTER, [], "ana", schema_follows=0, attributes=first)
    assert not store.apply_updates(CLUSTER, [], "ben", schema_follows=0, attributes={})
    kept = store.cluster_schema(CLUSTER)
    assert (kept.revision, list(kept.attributes.items())) == (1, list(first.items()))
    assert store.apply_updates(CLUSTER, [], "ben", schema_follows=1, attributes={"name": Attribute()})
    assert store.cluster_schema(CLUSTER) == ClusterSchema(2, {"name": Attribute()})
    assert store.cluster_schema("a.example/2").revision == 0


def test_pages_are_known_by_numbers(store: Store) -> None:
    one, other = page("http://a.example/1"), page("http://a.example/2")
    put(store, one, other)
    addresses = [address(other), address(one)]
    numbers = store.page_ids(addresses)

    found = [store.page_by_id(number) for number in numbers]

    assert [None if one is None else (one[0], one[1].html) for one in found] == [
        (addresses[0], other.html),
        (addresses[1], one.html),
    ]
    assert store.page_by_id(max(numbers) + 1) is None
