"""Sites of a workspace are wrapped from known records, round by round, and can be withdrawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.errors import NotFound, Overtaken, StoreError, UsageError
from siteloom.core.model import Seed
from siteloom.core.progress import SILENT, Progress
from siteloom.core.settings import ParseSettings, StoreSettings
from siteloom.operations.bootstrap import (
    AcceptSiteRequest,
    BootstrapRequest,
    SiteOutcome,
    WithdrawRequest,
    WithdrawResult,
    accept_site,
    bootstrap,
    withdraw,
)
from siteloom.operations.extraction_shards import Plan, StoreJournal, run_extraction
from siteloom.operations.page_import import import_pages
from siteloom.operations.stored_wrappers import wrappers_of_store
from siteloom.sources.page_source import Items
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.demo import sites
from tests.apps.demo.sites import of_kind
from tests.operations.contexts import CountingProgress, context_of

CORE = ("name", "address")
DIRECTORY = "tableatlas.example"
GUIDE = "larkmoor-guide.example"
COUNT = 30  # restaurants on both sites; so many more are on the directory alone


@cache
def guide() -> tuple[BuiltinPage, ...]:
    """A part of the guide: the restaurants that are on both sites."""
    shared = {page.entity for page in of_kind(directory(), "restaurant")}
    return tuple(page for page in of_kind(sites.guide(), "restaurant") if page.entity in shared)


@cache
def directory() -> tuple[BuiltinPage, ...]:
    """A part of the directory: half of its restaurants are on the guide, too, and some pages are lists."""
    on_guide = {page.entity for page in of_kind(sites.guide(), "restaurant")}
    restaurants = of_kind(sites.directory(), "restaurant")
    shared = [page for page in restaurants if page.entity in on_guide][:COUNT]
    others = [page for page in restaurants if page.entity not in on_guide][:COUNT]
    return (*shared, *others, *of_kind(sites.directory(), "list")[:3])


def seeds_of(pages: list[BuiltinPage], source: str) -> list[Seed]:
    return [
        Seed({name: tuple(texts) for name, texts in page.truth.items() if texts}, source) for page in pages
    ]


def known_of(pages: tuple[BuiltinPage, ...], source: str) -> list[Seed]:
    return seeds_of(list(of_kind(pages, "restaurant")), source)


def filled(store: Store, seeds: list[Seed], *sites: tuple[BuiltinPage, ...]) -> None:
    import_pages(store, [Items(tuple(page.page for page in site)) for site in sites])
    given_now(store, seeds)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(StoreSettings(workspace=str(tmp_path / "workspace")), create=True)
    yield opened
    opened.close()


def tried(
    store: Store,
    core: Sequence[str],
    *,
    sites: Sequence[str] = (),
    progress: Progress = SILENT,
    extract: bool = False,
    **options: Any,
) -> tuple[SiteOutcome, ...]:
    """The outcomes of all attempts of a run."""
    request = BootstrapRequest(core=tuple(core), sites=tuple(sites), extract=extract, **options)
    return bootstrap(context_of(store, progress=progress), request).attempts


def withdrawn(store: Store, site: str) -> WithdrawResult:
    return withdraw(context_of(store), WithdrawRequest(site=site))


def others() -> list[Seed]:
    """Records that are on no site."""
    return [Seed({"name": (f"Bolt M{n}",), "address": (f"Shelf {n}",)}, "parts") for n in range(200)]


def given_now(store: Store, seeds: list[Seed], *sources: str) -> None:
    with store.recording("seeds", {}) as run:
        store.replace_seeds(run.id, seeds, sources)


def test_a_site_is_wrapped_from_records_of_another_and_its_own_join_them(store: Store) -> None:
    filled(store, known_of(guide(), "table"), directory())
    progress = CountingProgress()
    (one,) = tried(store, CORE, progress=progress)
    assert progress.messages == [f"Round 1, site 1 of 1: {DIRECTORY}"]
    assert (one.site, one.round, one.state, one.wrapper) == (DIRECTORY, 1, "wrapped", f"{DIRECTORY}/1")
    assert set(CORE) <= set(one.attributes)
    (stored,) = store.wrappers()
    assert (stored.name, stored.site, stored.origin) == (f"{DIRECTORY}/1", DIRECTORY, "bootstrap")
    seeds = list(store.seeds([DIRECTORY]))
    assert len(seeds) == one.records
    truth = {page.page.url: page.truth for page in of_kind(directory(), "restaurant")}
    assert len(seeds) >= 0.95 * len(truth)
    right = [seed.values["name"] == tuple(truth[seed.url]["name"]) for seed in seeds if seed.url in truth]
    assert sum(right) >= 0.98 * len(seeds)
    assert all(0.5 < seed.confidence <= 1 for seed in seeds)
    assert all(seed.values.keys() <= set(one.attributes) for seed in seeds)
    (kept,) = store.site_outcomes()
    assert kept.content["sources"].keys() == {"table"}
    # All is done: nothing is tried again, and nothing changes.
    assert tried(store, CORE) == ()
    assert len(store.wrapper_versions(stored.name)) == 1


def test_what_is_too_little_for_a_site_suffices_once_another_has_helped(store: Store) -> None:
    shared = {page.entity for page in of_kind(guide(), "restaurant")}
    # These are not on the guide: it can only be wrapped with what the directory tells.
    elsewhere = [page for page in of_kind(directory(), "restaurant") if page.entity not in shared]
    filled(store, seeds_of(elsewhere, "table"), guide(), directory())
    outcomes = tried(store, CORE)
    assert [(one.site, one.round, one.state) for one in outcomes] == [
        (GUIDE, 1, "poor"),
        (DIRECTORY, 1, "wrapped"),
        (GUIDE, 2, "wrapped"),
    ]
    sources = {one.site: one.content["sources"].keys() for one in store.site_outcomes()}
    assert DIRECTORY in sources[GUIDE]
    assert sources[DIRECTORY] == {"table"}
    # What came of a site is withdrawn with it.
    taken = withdrawn(store, DIRECTORY)
    assert taken.retried == (GUIDE,)
    assert sorted(taken.withdrawn) == sorted({one.wrapper for one in outcomes if one.wrapper})
    assert {seed.source for seed in store.seeds()} == {"table"}
    assert store.wrappers() == []
    assert [(one.site, one.state) for one in store.site_outcomes()] == [
        (GUIDE, "poor"),
        (DIRECTORY, "withdrawn"),
    ]
    # The site itself is left alone, and the other is tried without it.
    assert [(one.site, one.state) for one in tried(store, CORE)] == [(GUIDE, "poor")]
    with pytest.raises(StoreError, match="was wrapped from seeds: there are none"):
        withdrawn(store, DIRECTORY)
    # Named, it is wrapped again, and helps again.
    again = tried(store, CORE, sites=[DIRECTORY])
    assert [(one.site, one.state) for one in again] == [(DIRECTORY, "wrapped")]
    assert [(one.site, one.state) for one in tried(store, CORE)] == [(GUIDE, "wrapped")]


def test_a_site_with_nothing_in_common_is_poor_and_tried_again_only_when_more_is_known(store: Store) -> None:
    filled(store, others(), directory())
    (one,) = tried(store, CORE)
    assert (one.state, one.records, one.wrapper) == ("poor", 0, None)
    assert one.reason
    assert tried(store, CORE) == ()
    with store.recording("seeds", {}) as run:
        store.add_seeds(run.id, known_of(guide(), "table"))
    assert [one.state for one in tried(store, CORE)] == ["wrapped"]


def test_after_a_kill_a_site_is_done_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(store, known_of(guide(), "table"), directory())

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "save_wrapper", killed)
        with pytest.raises(KeyboardInterrupt):
            tried(store, CORE)
    # Its records are there already, but do not count as known.
    assert {seed.source for seed in store.seeds()} == {"table"}
    (one,) = tried(store, CORE)
    assert one.state == "wrapped"
    assert len(store.wrapper_versions(f"{DIRECTORY}/1")) == 1
    assert len(list(store.seeds([DIRECTORY]))) == one.records


def test_sites_that_seeds_are_of_and_those_with_a_wrapper_are_left_alone(store: Store) -> None:
    filled(store, known_of(guide(), GUIDE), guide(), directory())
    store.save_wrapper(f"{DIRECTORY}/1", DIRECTORY, "{}", "learn")
    assert tried(store, CORE) == ()
    # Named, a site gets a wrapper beside the one that a person made.
    outcomes: list[SiteOutcome] = []
    tried(store, CORE, sites=[DIRECTORY], on_outcome=outcomes.append)
    assert [(one.state, one.wrapper) for one in outcomes] == [("wrapped", f"{DIRECTORY}/2")]
    with pytest.raises(UsageError, match="it cannot be wrapped from itself"):
        tried(store, CORE, sites=[GUIDE])


def test_records_that_are_given_of_a_site_that_was_tried_count_and_stay(store: Store) -> None:
    filled(store, others(), directory(), guide())
    assert {one.state for one in tried(store, CORE)} == {"poor"}
    given_now(store, known_of(directory(), DIRECTORY))
    given = list(store.seeds([DIRECTORY]))
    assert [(one.site, one.state) for one in tried(store, CORE)] == [(GUIDE, "wrapped")]
    assert list(store.seeds([DIRECTORY])) == given
    # Nor does withdrawing touch them.
    withdrawn(store, GUIDE)
    assert list(store.seeds([DIRECTORY])) == given


def test_a_site_that_a_person_wrapped_since_is_left_alone(store: Store) -> None:
    filled(store, others(), directory())
    assert [one.state for one in tried(store, CORE)] == ["poor"]
    store.save_wrapper(f"{DIRECTORY}/1", DIRECTORY, "{}", "learn")
    given_now(store, known_of(guide(), "table"))
    assert tried(store, CORE) == ()
    assert [one.origin for one in store.wrappers()] == ["learn"]


def test_a_kill_after_the_wrapper_was_kept_leaves_nothing_that_cannot_be_withdrawn(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(store, known_of(guide(), "table"), directory())
    save = Store.save_wrapper

    def killed(*given: Any) -> None:
        save(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "save_wrapper", killed)
        with pytest.raises(KeyboardInterrupt):
            tried(store, CORE)
    assert withdrawn(store, DIRECTORY).withdrawn == (f"{DIRECTORY}/1",)
    assert store.wrappers() == []


def test_what_an_attempt_left_half_way_goes_if_the_next_finds_too_little(store: Store) -> None:
    filled(store, known_of(guide(), "table"), directory())
    assert [one.state for one in tried(store, CORE)] == ["wrapped"]
    store.save_site_outcome(DIRECTORY, "failed", 1, 0)  # as if it was stopped at the very end
    given_now(store, others(), "table")
    assert [one.state for one in tried(store, CORE)] == ["poor"]
    assert store.wrappers() == []
    assert store.withdraw_seeds(DIRECTORY) == 0  # and no word of seeds that were extracted


def test_a_poor_site_is_tried_again_once_anything_is_different(store: Store) -> None:
    def tries() -> list[int]:
        return [len(tried(store, CORE)) for _ in range(2)]

    filled(store, others(), directory()[:5])
    assert tries() == [1, 0]
    given_now(store, others()[1:])  # fewer
    assert tries() == [1, 0]
    import_pages(store, [Items(tuple(page.page for page in directory()[:8]))])
    assert tries() == [1, 0]
    store.withdraw_seeds("parts")
    given_now(store, [replace(seed, source="more") for seed in others()[1:]])  # as many
    assert tries() == [1, 0]
    assert len(tried(store, ["name"])) == len(tried(store, ["name"], method="findattrpos")) == 1
    assert {one.state for one in store.site_outcomes()} == {"poor"}


def test_records_of_a_site_that_was_withdrawn_are_listed_no_more(store: Store) -> None:
    filled(store, known_of(guide(), "table"), directory())
    tried(store, CORE)
    plan = Plan(wrappers_of_store(store), ParseSettings(), store.page_shards())
    with store.extracting({}, plan.fingerprint()) as extraction:
        run_extraction(plan, StoreJournal(store, extraction), 1)
    found = list(store.records())
    assert found
    (taken,) = withdrawn(store, DIRECTORY).withdrawn
    assert list(store.records()) == []
    # They are kept, though: a run that is named tells all that it found, and so do all if it is put back.
    assert list(store.records(extraction.run_id)) == found
    store.save_wrapper(taken, DIRECTORY, store.wrapper(taken).text, "rollback")
    assert list(store.records()) == found


def test_mistakes_are_told(store: Store) -> None:
    with pytest.raises(UsageError, match="There are no pages in the workspace"):
        tried(store, CORE)
    filled(store, [], directory())
    with pytest.raises(UsageError, match="There are no seeds to begin with"):
        tried(store, CORE)
    with store.recording("seeds", {}) as run:
        store.add_seeds(run.id, [Seed({"name": ("Blue Fern",)}, "table")])
    with pytest.raises(UsageError, match="No seed has the attribute address"):
        tried(store, CORE)
    with pytest.raises(UsageError, match="There is no site x among the pages: there are tableatlas"):
        tried(store, CORE, sites=["x"])
    with pytest.raises(UsageError, match="one round at least"):
        tried(store, CORE, rounds=0)
    with pytest.raises(StoreError, match="No site x was wrapped from seeds: there are none"):
        withdrawn(store, "x")


def test_wrapped_sites_are_extracted_if_that_is_wanted(store: Store) -> None:
    filled(store, known_of(guide(), "table"), directory())
    (one,) = tried(store, CORE, extract=True)
    assert len(list(store.records())) >= one.records > 0
    assert [run.verb for run in store.runs(2)] == ["extract", "bootstrap"]


def test_parse_limits_are_those_of_the_settings(store: Store) -> None:
    filled(store, known_of(guide(), "table"), directory())
    context = context_of(store, parse=ParseSettings(max_bytes=10))
    (one,) = bootstrap(context, BootstrapRequest(core=CORE)).sites
    assert one.state != "wrapped"
    assert "page too large" in one.reason


def test_a_site_is_accepted_by_whoever_asks(store: Store) -> None:
    filled(store, known_of(guide(), "table"), directory())
    tried(store, CORE)
    with pytest.raises(Overtaken):
        accept_site(context_of(store, author="ana"), AcceptSiteRequest(site=DIRECTORY, version=2))
    result = accept_site(context_of(store, author="ana"), AcceptSiteRequest(site=DIRECTORY, version=1))
    assert result.accepted_by == "ana"
    assert [one.accepted_by for one in store.site_outcomes()] == ["ana"]
    with pytest.raises(NotFound, match="x is not wrapped from known records"):
        accept_site(context_of(store), AcceptSiteRequest(site="x"))
