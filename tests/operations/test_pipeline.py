"""The stages in order: ingesting, with a record of what became of everything; learning, again and again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import select

from siteloom.apps.demo.sites import Layout
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.errors import StoreBusy
from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.core.settings import StoreSettings
from siteloom.operations.annotate import annotated_templates
from siteloom.operations.cluster import cluster_store
from siteloom.operations.learn import LearnedWrapper
from siteloom.operations.page_import import import_pages
from siteloom.operations.relearn import mend_wrappers
from siteloom.operations.watch import watch_wrappers
from siteloom.sources.example_files import ExampleLine
from siteloom.sources.open_sources import open_source
from siteloom.sources.page_source import SourceItem
from siteloom.store import schema
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from siteloom.wrappers.wrapper import Wrapper
from tests.maintenance import guide
from tests.operations.calls import annotate_pages, learned_template
from tests.patience import SECONDS

INGEST_UNTIL_STOPPED = """
import itertools, sys
from siteloom.core.settings import StoreSettings
from siteloom.core.model import Page
from siteloom.operations.page_import import import_pages
from siteloom.store.workspace_folder import open_store

class Endless:
    def read(self):
        for number in itertools.count():
            if number == 1_000:
                print("on its way", flush=True)
            yield Page(f"http://a.example/{number}", b"%d" % number)

store = open_store(StoreSettings(sys.argv[1], sys.argv[2]), create=True)
read = 0
def count(item):
    global read
    read += 1
try:
    import_pages(store, [Endless()], on_item=count)
except KeyboardInterrupt:
    print(read)
store.close()
"""


@dataclass(frozen=True)
class Items:
    """A source that holds what it is given, and breaks at its end if it is told to."""

    items: Sequence[SourceItem]
    error: BaseException | None = None

    def read(self) -> Iterator[SourceItem]:
        yield from self.items
        if self.error is not None:
            raise self.error

    def shards(self) -> Sequence[Items]:
        return (self,)


def page(url: str, text: str = "text") -> Page:
    return Page(url, text.encode())


def pages(count: int) -> list[Page]:
    return [page(f"http://a.example/{number}", str(number)) for number in range(count)]


def test_everything_that_is_read_is_counted_once(store: Store) -> None:
    first = Items([page("http://a.example/1"), page("http://a.example/2"), page("http://a.example/1")])
    second = Items(
        [
            page("http://a.example/2", "changed"),
            Resource("http://a.example/s.css", b"p{}", "text/css"),
            Failure("pages.jsonl:3", "no URL"),
            Failure("http://a.example/4", "no HTML", "the field html is missing"),
            Failure("http://a.example/5", "no HTML"),
            page("http://a.example/\0"),
            Skipped("http://a.example/6", "status 404"),
            Skipped("http://a.example/7", "status 404"),
            Skipped("http://a.example/8", "not HTML but text/plain"),
        ]
    )
    report = import_pages(store, [first, second])
    assert (report.new, report.changed, report.unchanged, report.kept) == (3, 1, 1, 5)
    assert report.bytes == 3 * len("text") + len("changed") + len("p{}")
    assert report.failures == {"no URL": 1, "no HTML": 2, "bad URL": 1}
    assert report.skipped == {"status 404": 2, "not HTML but text/plain": 1}
    (run,) = store.runs(5)
    assert run.id == report.run_id
    assert run.status == "done"
    assert run.counts == {"new": 3, "changed": 1, "unchanged": 1, "failed": 4, "skipped": 3}
    by_reason = Counter(failure.reason for failure in store.failures(run.id))
    assert by_reason == report.failures
    assert Failure("http://a.example/4", "no HTML", "the field html is missing") in store.failures(run.id)


def test_reading_the_same_again_changes_nothing(store: Store) -> None:
    import_pages(store, [Items(pages(300))])
    packs = {file: file.read_bytes() for file in store.packs_folder.glob("*/*")}
    again = import_pages(store, [Items(pages(300))])
    assert (again.new, again.changed, again.unchanged) == (0, 0, 300)
    assert {file: file.read_bytes() for file in store.packs_folder.glob("*/*")} == packs


def test_each_page_goes_to_the_site_of_its_url_unless_one_is_named(store: Store) -> None:
    mixed = [page("http://www.a.example/"), page("http://b.example/"), page("no address at all")]
    import_pages(store, [Items(mixed)])
    import_pages(store, [Items(mixed)], site="Mine")
    assert {site.name: site.pages for site in store.sites()} == {
        "Mine": 3,
        "a.example": 1,
        "b.example": 1,
        "localhost": 1,
    }


def test_a_run_remembers_which_sources_were_named(store: Store) -> None:
    import_pages(store, [Items([])], site="mine", names=["one.warc", "two"])
    with store.engine.connect() as connection:
        arguments = connection.execute(select(schema.runs.c.arguments)).scalar_one()
    assert arguments == {"sources": ["one.warc", "two"], "site": "mine"}


def test_a_source_with_nothing_in_it_gives_a_run_with_nothing_in_it(store: Store) -> None:
    report = import_pages(store, [Items([]), Items([])])
    assert (report.kept, report.bytes, report.failures, report.skipped) == (0, 0, {}, {})
    assert store.runs(1)[0].status == "done"


def test_on_item_sees_everything_in_the_order_it_is_read(store: Store) -> None:
    items: list[SourceItem] = [
        page("http://a.example/1"),
        Failure("x", "no URL"),
        Skipped("y", "status 404"),
        Resource("http://a.example/s", b"", "image/png"),
    ]
    seen: list[SourceItem] = []
    import_pages(store, [Items(items)], on_item=seen.append)
    assert seen == items


@pytest.mark.parametrize("jobs", [1, 4])
def test_ctrl_c_keeps_what_was_read_and_marks_the_run(store: Store, jobs: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        import_pages(store, [Items([*pages(500), Failure("x", "no URL")], KeyboardInterrupt())], jobs=jobs)
    (run,) = store.runs(1)
    assert run.status == "interrupted"
    assert run.counts == {"new": 500, "changed": 0, "unchanged": 0, "failed": 1, "skipped": 0}
    assert len(list(store.failures(run.id))) == 1
    assert sorted(p.url for p in store.pages()) == sorted(p.url for p in pages(500))


def test_a_real_ctrl_c_keeps_what_was_read(store_settings: StoreSettings) -> None:
    command = [sys.executable, "-c", INGEST_UNTIL_STOPPED, store_settings.workspace, store_settings.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "on its way\n"
        process.send_signal(signal.SIGINT)
        read = int(process.stdout.readline())
        assert process.wait(SECONDS) == 0
    store = open_store(store_settings)
    assert list(store.check()) == []
    (run,) = store.runs(1)
    assert run.status == "interrupted"
    assert run.counts["new"] == sum(site.pages for site in store.sites())
    # The page in hand when the signal came may or may not be in.
    assert run.counts["new"] in (read, read + 1)
    store.close()


def test_an_error_of_a_source_keeps_what_was_committed_and_marks_the_run(store: Store) -> None:
    with pytest.raises(OSError, match="cable pulled"):
        import_pages(store, [Items([*pages(500), Failure("x", "no URL")], OSError("cable pulled"))])
    (run,) = store.runs(1)
    assert run.status == "failed"
    assert run.counts["new"] == len(list(store.pages())) > 0
    assert len(list(store.failures(run.id))) == 1
    assert list(store.check()) == []
    report = import_pages(store, [Items(pages(500))])
    assert (report.new, report.unchanged) == (500 - run.counts["new"], run.counts["new"])


def test_a_store_that_is_being_written_gets_no_second_run(store: Store) -> None:
    other = open_store(StoreSettings(str(store.folder), store_url(store)))
    with store.ingesting({}, jobs=1), pytest.raises(StoreBusy):
        import_pages(other, [Items(pages(3))])
    assert len(store.runs(5)) == 1
    other.close()


def store_url(store: Store) -> str:
    url = store.engine.url
    return "" if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=False)


def test_a_file_with_good_and_bad_lines_gives_the_good_ones_and_names_the_bad(
    store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "pages.jsonl"
    lines = [
        json.dumps({"url": "http://a.example/1", "html": "one"}),
        "{",
        json.dumps({"html": "no address"}),
        json.dumps({"url": "http://a.example/\ud800", "html": "half a character"}),
        json.dumps({"url": "http://a.example/\0", "html": "an end of text"}),
        json.dumps({"url": "http://a.example/2", "html": "\ud800 in the page"}),
    ]
    file.write_text("\n".join(lines))
    report = import_pages(store, [open_source(file)])
    assert report.new == 2
    assert report.failures == {"not valid JSON": 1, "no URL": 1, "bad URL": 2}
    assert {p.url for p in store.pages()} == {"http://a.example/1", "http://a.example/2"}


# ---- learning


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Store]:
    """Restaurants with a wrapper, learned from examples of the original layout."""
    with closing(open_store(StoreSettings(str(tmp_path / "workspace")), create=True)) as store:
        appear(store, guide.restaurants())
        examples_of(store, guide.restaurants()[:5])
        assert learn(store).version == 1
        yield store


def appear(store: Store, pages: Sequence[BuiltinPage]) -> None:
    import_pages(store, [Items([one.page for one in pages])])
    cluster_store(store, "vertex")


def examples_of(store: Store, pages: Sequence[BuiltinPage]) -> None:
    annotate_pages(store, [ExampleLine(one.page.url, guide.truth(one), (), {}) for one in pages])


def learn(store: Store) -> LearnedWrapper:
    (template,) = annotated_templates(store)
    return learned_template(store, template)


def in_force(store: Store) -> Wrapper:
    (found,) = store.wrappers()
    return Wrapper.from_json(found.text)


def phones_right(store: Store, pages: Sequence[BuiltinPage]) -> bool:
    found = in_force(store)
    return all(found.extract(one.page).values.get("phone", ()) == one.truth["phone"] for one in pages)


@pytest.mark.parametrize("layout", ["mild-change", "redesign"])
def test_learning_again_with_nothing_new_changes_nothing(site: Store, layout: Layout) -> None:
    new = guide.restaurants(layout)
    appear(site, new)
    examples_of(site, new[5:10])
    versions = [learn(site).version for _ in range(4)]
    assert versions == [versions[0]] * 4
    assert phones_right(site, new)
    if layout == "redesign":
        assert phones_right(site, guide.restaurants())


def test_more_examples_of_the_new_layout_do_not_push_out_the_old_one(site: Store) -> None:
    new = guide.restaurants("redesign")
    appear(site, new)
    for start in (5, 8, 11, 14):
        examples_of(site, new[start : start + 3])
        learn(site)
    assert len(in_force(site).earlier) == 1
    assert phones_right(site, new)
    assert phones_right(site, guide.restaurants())


def test_the_name_of_an_attribute_says_nothing_of_the_layout(tmp_path: Path) -> None:
    """Rules of earlier layouts are named `phone#1@2`; an attribute may be called `a@b` as well."""
    old, new = guide.restaurants(), guide.restaurants("redesign")
    with closing(open_store(StoreSettings(str(tmp_path / "workspace")), create=True)) as store:
        for pages, annotated in ((old, old[:5]), (new, new[5:10])):
            appear(store, pages)
            lines = [ExampleLine(one.page.url, {"a@b": one.truth["phone"]}, (), {}) for one in annotated]
            annotate_pages(store, lines)
            learned = learn(store)
        again = learn(store)
        assert again.version == learned.version == 2
        # Examples of the new layout are not taken for ones of the layout before.
        assert again.learned is not None
        assert again.learned.report.attributes["a@b"].examples == 5
        found = in_force(store)
        assert len(found.earlier) == 1
        assert all(
            found.extract(one.page).values.get("a@b", ()) == one.truth["phone"] for one in (*old, *new)
        )


def test_learning_from_old_examples_does_not_undo_a_repair(site: Store) -> None:
    new = guide.restaurants("mild-change")
    watch_wrappers(site)
    appear(site, new)
    (mended,) = mend_wrappers(site, [site.wrappers()[0].name])
    assert mended.version_after == 2
    found = learn(site)
    assert (found.version, found.learned) == (2, None)
    assert [one.origin for one in site.wrapper_versions(found.name)] == ["learn", "repaired"]
    # With examples of the new layout there is something to learn, and the old one is known all the same.
    examples_of(site, new[5:10])
    assert learn(site).version == 3
    assert phones_right(site, new)
    assert phones_right(site, guide.restaurants())
    assert learn(site).version == 3


@pytest.mark.parametrize("html", [b"", b"Service unavailable", b"<p>" * 2_000_000])
def test_a_newest_version_without_tags_says_nothing_of_the_layout(site: Store, html: bytes) -> None:
    import_pages(site, [Items([Page(one.page.url, html) for one in guide.restaurants()[:4]])])
    examples_of(site, guide.restaurants()[5:6])
    found = learn(site)
    assert found.learned is not None
    assert found.learned.report.attributes["name"].examples == 6


def test_learning_settles_what_waits(site: Store) -> None:
    (wrapper,) = site.wrappers()
    for state, count, expected in (("annotation", 8, ("applied", 2)), ("review", 14, ("superseded", None))):
        with site.recording("relearn", {}) as run:
            site.save_repair(run.id, wrapper.name, 1, None, "repaired", state, 0.5, "{}", {})
        examples_of(site, guide.restaurants()[:count])
        learn(site)
        newest = site.repairs(wrapper.name)[0]
        assert (newest.state, newest.version_after) == expected
