"""Pages of the store, counted once and cleaned by all that is known."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Barrier, Thread

import numpy as np
import pytest

from siteloom.core.errors import PackError
from siteloom.core.model import Failure, Page
from siteloom.core.settings import ParseSettings
from siteloom.extraction.clean_pages import CleanedForm, CleanedPage
from siteloom.operations import clean as clean_pages
from siteloom.operations.clean import CleanRequest, clean_store, count_versions, segment_table
from siteloom.operations.cluster import ClusterRequest, cluster
from siteloom.operations.extraction_shards import Plan
from siteloom.operations.search import update_index
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from siteloom.templates.template_text import SegmentCounts, SegmentTable
from tests.operations.contexts import context_of
from tests.store.helpers import day, put


def page(number: int, text: str = "", on_day: int = 0, host: str = "a.example") -> Page:
    html = f"<body><ul><li>Home</li></ul><p>Item {number}{text}</p></body>"
    return Page(f"http://{host}/{number}", html.encode(), day(on_day))


def counts_of(pages: list[Page]) -> SegmentCounts:
    table = SegmentTable(living=None)
    for one in pages:
        table.add(one)
    return table.counts()


def assert_counted(store: Store, site: str, pages: list[Page]) -> None:
    """The table of a site is that of these pages, each counted once, in their order."""
    found, expected = store.counted_segments(site).counts, counts_of(pages)
    assert found.pages == len(pages)
    for column, its_twin in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(column, its_twin)


def texts(store: Store, **options: object) -> dict[str, str | None]:
    found = list(clean_store(store, **options))  # type: ignore[arg-type]
    return {one.url: one.text for one in found if isinstance(one, CleanedPage)}


def test_pages_are_counted_before_the_first_is_cleaned(store: Store) -> None:
    put(store, *(page(number) for number in range(8)))
    assert texts(store) == {f"http://a.example/{number}": f"Item {number}" for number in range(8)}


def test_only_what_is_new_is_counted(store: Store) -> None:
    first, second = [page(number) for number in range(6)], [page(number) for number in range(6, 9)]
    put(store, *first)
    texts(store)
    assert_counted(store, "a.example", first)
    texts(store)
    assert_counted(store, "a.example", first)
    put(store, *second, first[0])
    told: list[int] = []
    assert len(texts(store, counted=told.append)) == 9
    assert sum(told) == 3
    assert_counted(store, "a.example", [*first, *second])


def test_every_version_counts_and_the_newest_is_cleaned(store: Store) -> None:
    old, new = page(1, " old"), page(1, " new", on_day=1)
    others = [page(number) for number in range(2, 8)]
    put(store, old, *others)
    put(store, new)
    assert texts(store)["http://a.example/1"] == "Item 1 new"
    assert_counted(store, "a.example", [old, *others, new])


def test_each_site_has_a_table_of_its_own(store: Store) -> None:
    put(store, *(page(number) for number in range(6)), page(1, host="b.example"))
    assert texts(store)["http://b.example/1"] == "Home\nItem 1"
    assert set(texts(store, site="b.example")) == {"http://b.example/1"}
    assert segment_table(store, "a.example").pages == 6


def test_counts_made_in_parts_are_those_of_one_table(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean_pages, "COUNTED_AT_A_TIME", 3)
    pages = [page(number, " a" * (number % 3)) for number in range(10)]
    put(store, *pages)
    count_versions(store, "a.example")
    assert_counted(store, "a.example", pages)


def test_two_that_count_at_once_lose_and_double_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean_pages, "COUNTED_AT_A_TIME", 4)
    pages = [page(number) for number in range(30)]
    put(store, *pages)
    start = Barrier(2)

    def count() -> None:
        start.wait()
        count_versions(store, "a.example")

    workers = [Thread(target=count) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert_counted(store, "a.example", pages)


def test_counts_that_came_too_late_are_refused(store: Store) -> None:
    put(store, page(1), page(2))
    before = store.counted_segments("a.example")
    versions = store.uncounted_versions("a.example", 0, 10)
    later = counts_of([page(1), page(2)])
    assert store.add_segments("a.example", later, counted=before, counted_to=versions[-1].id)
    assert not store.add_segments("a.example", later, counted=before, counted_to=versions[-1].id)
    assert_counted(store, "a.example", [page(1), page(2)])


def test_a_table_in_the_store_forgets(store: Store) -> None:
    put(store, page(1), page(2))
    count_versions(store, "a.example")
    before = store.counted_segments("a.example")
    put(store, page(3))
    (version,) = store.uncounted_versions("a.example", before.counted_to, 10)
    long_after = counts_of([page(3)])._replace(pages=1_700)
    assert store.add_segments("a.example", long_after, counted=before, counted_to=version.id)
    # `Home` and its path stood on three pages; `Item 1` and `Item 2` on one each.
    assert store.counted_segments("a.example").counts.counts.tolist().count(1) == 0


def test_bad_pages_are_failures_and_are_not_tried_again(store: Store) -> None:
    bad = Page("http://a.example/bad", b"<p>" + b"x" * 500, day(0))
    put(store, bad, *(page(number) for number in range(6)))
    for _ in range(2):
        found = list(clean_store(store, limits=ParseSettings(max_bytes=300)))
        assert [one.reason for one in found if isinstance(one, Failure)] == ["page too large"]
        assert len(found) == 7
    assert store.uncounted_versions("a.example", store.counted_segments("a.example").counted_to, 9) == []


@pytest.mark.parametrize("form", ["text", "blocks", "html"])
def test_what_does_not_wait_is_parsed_again_with_the_same_result(
    store: Store, form: CleanedForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, *(page(number) for number in range(8)))
    monkeypatch.setattr(clean_pages, "_MOST_WAITING", 3)
    first, second = list(clean_store(store, form=form)), list(clean_store(store, form=form))
    assert first == second
    assert len(first) == 8
    for one in first:
        assert isinstance(one, CleanedPage)
        assert [block.text for block in one.blocks if block.is_template] == ["Home"]
        assert (one.html is None) == (form != "html")


def test_the_main_text_is_that_of_the_tree_that_the_limits_allow(store: Store) -> None:
    pytest.importorskip("trafilatura")
    large = f"<!-- {'x' * ParseSettings().max_bytes} --><p>A text."
    put(store, page(1), Page("http://a.example/large", large.encode(), day(0)))
    refused = [one for one in clean_store(store, form="main") if isinstance(one, Failure)]
    assert [one.reason for one in refused] == ["page too large"]
    found = texts(store, form="main", limits=ParseSettings(max_bytes=100_000_000))
    assert found["http://a.example/large"] == "A text."


def damage(store: Store, site: str) -> None:
    """Flip a byte of the last block of the pack of a site."""
    file = store.packs_folder / site / "000001.pack"
    content = bytearray(file.read_bytes())
    content[-3] ^= 0x10
    file.write_bytes(content)


def test_a_damaged_block_costs_its_own_pages_only(store: Store) -> None:
    first, second = [page(number) for number in range(6)], [page(number) for number in range(6, 8)]
    put(store, *first)
    put(store, *second)  # which makes a block of its own
    put(store, page(1, host="b.example"))
    damage(store, "a.example")
    for form in ("text", "html"):
        written = Written()
        result = clean_pages.clean(context_of(store), CleanRequest(form=form, output=written))
        assert (result.pages, result.failures) == (7, {"damaged in the store": 2})
        assert [row["url"] for row in written.rows] == [*(one.url for one in first), "http://b.example/1"]
    failures = [one for one in clean_store(store) if isinstance(one, Failure)]
    assert [one.url for one in failures] == [one.url for one in second]
    assert all("000001.pack is damaged in the block at byte" in one.detail for one in failures)
    assert [problem.place for problem in store.check()] == ["a.example/000001.pack"]


def test_a_damaged_block_stops_no_other_operation(store: Store) -> None:
    put(store, *(page(number) for number in range(6)))
    put(store, *(page(number) for number in range(6, 8)))
    damage(store, "a.example")
    damaged = ["http://a.example/6", "http://a.example/7"]
    result = cluster(context_of(store), ClusterRequest())
    assert (result.pages, result.failures) == (8, {"damaged in the store": 2})
    update = update_index(context_of(store))
    assert (update.added_pages, update.failures) == (6, {"damaged in the store": 2})
    assert update.run is not None
    assert [failure.url for failure in store.failures(update.run)] == damaged
    plan = Plan([], ParseSettings(), store.page_shards())
    failures = [failure for _, result in plan.results(1) for failure in result.failures]
    assert [one.reason for one in failures].count("damaged in the store") == 2
    with pytest.raises(PackError, match="is damaged in the block"):
        store.page(PageAddress("a.example", damaged[0]))


class Written:
    """Keeps the rows that are written."""

    def __init__(self) -> None:
        self.rows: list[Mapping[str, object]] = []

    def write(self, row: Mapping[str, object]) -> None:
        self.rows.append(row)


def test_the_result_tells_how_much_is_template(store: Store) -> None:
    put(store, *(page(number) for number in range(8)))
    result = clean_pages.clean(context_of(store), CleanRequest())
    assert result.sites.keys() == {"a.example"}
    assert result.text_share == len("Item 1") / len("HomeItem 1")
