"""Upkeep of a workspace: wrappers are watched, checked, mended and rolled back, and every step is kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from siteloom import Page, Wrapper
from siteloom.core.errors import Overtaken, StoreError
from siteloom.core.settings import ParseSettings, StoreSettings
from siteloom.extraction.extraction_counts import ExtractionCounts
from siteloom.extraction.output_health import output_changes
from siteloom.maintenance.repair_result import Relearned
from siteloom.maintenance.watch_file import watch_from_json, watch_to_json
from siteloom.maintenance.watched_pages import bellwether
from siteloom.maintenance.wrapper_repair import relearn
from siteloom.operations.extract import keep_output_checks, output_before
from siteloom.operations.extraction_shards import Plan, StoreJournal, run_extraction
from siteloom.operations.relearn import (
    ACCEPTED_FROM,
    Mended,
    _reused_other,
    changed_wrappers,
    leave_out,
    lost_attributes,
    mend_wrappers,
    reopen_review,
    roll_back,
    settle_review,
)
from siteloom.operations.stored_wrappers import last_good_records, lineage, wrappers_of_store
from siteloom.operations.watch import check_watches, watch_again, watch_wrappers
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from siteloom.templates.clustering.methods import cluster
from siteloom.templates.footprint import footprint
from siteloom.templates.signature import signature
from tests.maintenance import guide, inns
from tests.store.helpers import put

SITE = "larkmoor-guide.example"
NAME = f"{SITE}/restaurants"


def workspace(folder: Path) -> Store:
    return open_store(StoreSettings(str(folder)), create=not folder.exists())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store; what databases differ in is tested elsewhere."""
    with closing(workspace(tmp_path / "workspace")) as opened:
        yield opened


@pytest.fixture(scope="module")
def watched_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose wrapper has extracted once and is watched."""
    folder = tmp_path_factory.mktemp("watched") / "workspace"
    with closing(workspace(folder)) as store:
        put(store, *guide.pages())
        store.save_wrapper(NAME, SITE, guide.wrapper().to_json(), "learn")
        extract(store)
        (found,) = watch_wrappers(store)
        assert found.watch is not None
        assert len(found.watch.bellwethers) == 20
    return folder


@pytest.fixture
def watched(watched_folder: Path, tmp_path: Path) -> Iterator[Store]:
    shutil.copytree(watched_folder, tmp_path / "copy")
    with closing(workspace(tmp_path / "copy")) as opened:
        yield opened


def extract(store: Store) -> ExtractionCounts:
    """A run of extract whose health nobody looks at."""
    plan = Plan(wrappers_of_store(store), ParseSettings(), store.page_shards())
    with store.extracting({}, plan.fingerprint()) as extraction:
        journal = StoreJournal(store, extraction)
        run_extraction(plan, journal, 1)
    assert store.last_extract_run() == extraction.run_id
    return journal.counts


def wrapper(store: Store, name: str = NAME) -> Wrapper:
    return Wrapper.from_json(store.wrapper(name).text)


def origins(store: Store, name: str = NAME) -> list[tuple[int, str]]:
    return [(one.version, one.origin) for one in store.wrapper_versions(name)]


def health(store: Store) -> list[bool]:
    return [one.is_healthy for one in store.checks(NAME)]


def only(mended: Sequence[Mended]) -> Mended:
    (one,) = mended
    return one


def repair_states(store: Store) -> list[tuple[str, str, int | None]]:
    return [(one.outcome, one.state, one.version_after) for one in store.repairs(NAME)]


# ---- from a change to a repair


def test_a_mild_change_is_noticed_and_mended_and_all_of_it_is_kept(watched: Store) -> None:
    (well,) = check_watches(watched)
    assert well.checkup.changes == ()
    assert mend_wrappers(watched) == []
    put(watched, *guide.pages("mild-change"))
    (ill,) = check_watches(watched)
    assert [(one.test, one.attributes) for one in ill.checkup.changes] == [("null", ("phone",))]
    assert [one.name for one in changed_wrappers(watched)] == [NAME]

    dry = only(mend_wrappers(watched, dry_run=True))
    assert (dry.state, dry.version_before, dry.version_after) == ("applied", 1, None)
    assert dry.row["diff"]["rules"][0]["attribute"] == "phone"
    assert origins(watched) == [(1, "learn")]
    assert watched.repairs() == []

    mended = only(mend_wrappers(watched))
    assert (mended.wrapper, mended.state, mended.version_before, mended.version_after) == (
        NAME,
        "applied",
        1,
        2,
    )
    assert mended.relearned.confidence >= ACCEPTED_FROM
    assert origins(watched) == [(1, "learn"), (2, "repaired")]
    assert watched.wrapper(NAME).note == "repaired: phone"
    assert guide.mistakes(wrapper(watched), guide.restaurants("mild-change")) == []
    assert guide.mistakes(wrapper(watched), guide.restaurants()) == []

    kept = watched.watch(NAME)
    assert kept is not None
    assert kept.version == 2
    assert watch_from_json(kept.text).wrapper == wrapper(watched)
    (again,) = check_watches(watched)
    assert again.checkup.changes == ()
    assert health(watched) == [True, False, True]
    assert [one.version for one in watched.checks(NAME)] == [2, 1, 1]
    assert mend_wrappers(watched) == []
    assert repair_states(watched) == [("repaired", "applied", 2)]
    verbs = [run.verb for run in watched.runs(9)]
    assert verbs == ["monitor", "relearn", "monitor", "ingest", "monitor", "watch", "extract", "ingest"]


def test_what_was_seen_is_kept_with_the_check(watched: Store) -> None:
    put(watched, *guide.pages("mild-change"))
    check_watches(watched)
    (check,) = watched.checks(NAME)
    assert (check.kind, check.version, check.is_healthy) == ("bellwethers", 1, False)
    assert check.content["compared"] == 20
    (change,) = check.content["changes"]
    assert (change["wrapper"], change["test"], change["attributes"], change["share"]) == (
        NAME,
        "null",
        ["phone"],
        1.0,
    )
    assert change["evidence"][0]["finding"].count("still stands at") == 1


def test_where_nothing_was_noticed_a_wrapper_that_is_named_is_left_as_it_is(watched: Store) -> None:
    first = only(mend_wrappers(watched, [NAME]))
    assert first.relearned.outcome == "reused"
    second = only(mend_wrappers(watched, [NAME]))
    assert (second.state, second.version_after) == ("unchanged", None)
    assert len(origins(watched)) <= 2


def test_vanished_values_are_queued_for_annotation(watched: Store) -> None:
    put(watched, *map(guide.without_phone, guide.pages()))
    check_watches(watched)
    mended = only(mend_wrappers(watched))
    assert (mended.state, mended.version_after) == ("annotation", None)
    assert repair_states(watched) == [("needs-annotation", "annotation", None)]
    (repair,) = watched.repairs(NAME)
    assert len(repair.content["annotate"]) == 5
    assert all("phone" not in one["values"] and one["values"]["name"] for one in repair.content["annotate"])
    assert origins(watched) == [(1, "learn")]


def test_what_still_waits_is_kept_once(watched: Store) -> None:
    put(watched, *map(guide.without_phone, guide.pages()))
    for _ in range(3):
        check_watches(watched)
        assert only(mend_wrappers(watched)).state == "annotation"
    assert repair_states(watched) == [("needs-annotation", "annotation", None)]


def test_what_changes_meanwhile_is_not_undone(watched: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(watched, *guide.pages("mild-change"))

    def slow(*given: Any) -> Relearned:
        watched.save_wrapper(NAME, SITE, guide.wrapper().to_json(), "learn", "by a person")
        return relearn(*given)

    monkeypatch.setattr("siteloom.operations.relearn.relearn", slow)
    mended = only(mend_wrappers(watched, [NAME]))
    assert (mended.state, mended.row["state"], mended.version_after) == ("outdated", "outdated", None)
    assert {origin for _, origin in origins(watched)} == {"learn"}
    assert watched.repairs() == []


def test_some_pages_that_look_different_need_no_new_version(watched: Store) -> None:
    with watched.recording("monitor", {}) as run:
        for drifted, is_changed in ((2, False), (3, True)):
            content = {"compared": 20, "drifted": ["https://a.example/"] * drifted, "changes": []}
            watched.save_check(run.id, NAME, 1, "bellwethers", True, content)
            assert bool(changed_wrappers(watched)) is is_changed


# ---- what a site has no more


def test_a_wrapper_can_go_on_without_what_its_site_has_no_more(watched: Store) -> None:
    put(watched, *map(guide.without_phone, guide.pages()))
    check_watches(watched)
    mend_wrappers(watched)
    (repair,) = watched.repairs(NAME)
    assert lost_attributes(repair) == ["phone"]
    assert leave_out(watched, NAME, repair.id) == 2
    watch_again(watched, NAME)
    assert origins(watched) == [(1, "learn"), (2, "edit")]
    assert watched.wrapper(NAME).note == "without phone"
    assert repair_states(watched) == [("needs-annotation", "applied", 2)]
    assert watched.reviewing.repairs() == []
    assert [*wrapper(watched).attributes] == [name for name in guide.NAMES if name != "phone"]
    (again,) = check_watches(watched)
    assert again.verdict == "healthy"
    assert mend_wrappers(watched) == []
    put(watched, *guide.pages("mild-change"))  # the phone is on the pages again, elsewhere
    check_watches(watched)
    assert mend_wrappers(watched) == []
    with pytest.raises(Overtaken, match="waits no more: look again"):
        leave_out(watched, NAME, repair.id)
    assert roll_back(watched, NAME) == (1, 3)
    assert "phone" in wrapper(watched).attributes


def test_what_is_left_out_is_left_out_of_earlier_layouts(watched: Store) -> None:
    put(watched, *guide.pages("mild-change"))
    mend_wrappers(watched, [NAME])
    found = wrapper(watched)
    assert found.earlier
    left = found.without(["phone", "email"])
    for layout, whole in zip(left.layouts, found.layouts, strict=True):
        assert [*layout.attributes] == [name for name in whole.attributes if name not in ("phone", "email")]
    without_earlier = replace(found, earlier=(found.without(set(guide.NAMES) - {"phone"}),)).without(
        ["phone"]
    )
    assert without_earlier.earlier == ()


def test_of_a_wrapper_something_must_be_lost_and_something_be_left(watched: Store) -> None:
    for states, problem in (
        (dict.fromkeys(guide.NAMES, "vanished"), "Nothing would be left"),
        (dict.fromkeys(guide.NAMES, "kept"), "has found all attributes"),
    ):
        content = {"attributes": {name: {"state": state} for name, state in states.items()}}
        text = watched.wrapper(NAME).text
        with watched.recording("relearn", {}) as run:
            repair = watched.save_repair(
                run.id, NAME, 1, None, "needs-annotation", "annotation", 0.5, text, content
            )
        with pytest.raises(StoreError, match=problem):
            leave_out(watched, NAME, repair)
    assert origins(watched) == [(1, "learn")]
    assert len(watched.reviewing.repairs()) == 1


# ---- review


@pytest.fixture(scope="module")
def review_folder(watched_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a repair that is not certain enough."""
    folder = tmp_path_factory.mktemp("review") / "workspace"
    shutil.copytree(watched_folder, folder)
    with closing(workspace(folder)) as store:
        put(store, *guide.pages("mild-change"))
        mended = only(mend_wrappers(store, [NAME], accept=0.999))
        assert (mended.state, mended.version_after) == ("review", None)
        assert repair_states(store) == [("repaired", "review", None)]
        assert origins(store) == [(1, "learn")]
    return folder


@pytest.fixture
def in_review(review_folder: Path, tmp_path: Path) -> Iterator[Store]:
    shutil.copytree(review_folder, tmp_path / "copy")
    with closing(workspace(tmp_path / "copy")) as opened:
        yield opened


def test_the_report_of_a_repair_tells_rules_and_values_before_and_after(in_review: Store) -> None:
    (repair,) = in_review.repairs(NAME)
    row = repair.content
    assert (row["wrapper"], row["version"], row["state"], row["outcome"]) == (NAME, 1, "review", "repaired")
    (rules,) = row["diff"]["rules"]
    assert rules["attribute"] == "phone"
    assert any("'Phone:'" in words for words in rules["before"])
    assert rules["after"] != rules["before"]
    assert len(row["diff"]["values"]) == 5
    assert all(one["after"] == one["known"] != one["before"] for one in row["diff"]["values"])
    assert row["attributes"]["phone"]["state"] == "repaired"
    assert repair.text is not None
    assert (
        Wrapper.from_json(repair.text).attributes["phone"].rules != guide.wrapper().attributes["phone"].rules
    )


def test_a_repair_that_is_accepted_is_in_force(in_review: Store) -> None:
    assert settle_review(in_review, NAME, accept=True) == 2
    assert origins(in_review) == [(1, "learn"), (2, "repaired")]
    assert in_review.wrapper(NAME).note == "accepted by review"
    assert guide.mistakes(wrapper(in_review), guide.restaurants("mild-change")) == []
    assert repair_states(in_review) == [("repaired", "applied", 2)]
    (checked,) = check_watches(in_review)
    assert checked.checkup.changes == ()


def test_a_repair_that_is_rejected_is_not(in_review: Store) -> None:
    assert settle_review(in_review, NAME, accept=False) is None
    assert origins(in_review) == [(1, "learn")]
    assert repair_states(in_review) == [("repaired", "rejected", None)]
    with pytest.raises(StoreError, match=r"No repair of the wrapper .* waits for review"):
        settle_review(in_review, NAME, accept=True)


def test_a_decision_that_is_cut_short_is_none(in_review: Store) -> None:
    def interrupt(_: object, __: object, statement: str, *___: object) -> None:
        if statement.startswith("UPDATE repairs"):
            raise KeyboardInterrupt

    event.listen(in_review.engine, "before_cursor_execute", interrupt)
    with pytest.raises(KeyboardInterrupt):
        settle_review(in_review, NAME, accept=True)
    event.remove(in_review.engine, "before_cursor_execute", interrupt)
    assert origins(in_review) == [(1, "learn")]
    assert repair_states(in_review) == [("repaired", "review", None)]
    assert settle_review(in_review, NAME, accept=True) == 2


@pytest.mark.parametrize("decision", ["accept", "reject", "reopen"])
def test_what_another_process_did_before_it_was_our_turn_is_seen(
    in_review: Store, monkeypatch: pytest.MonkeyPatch, decision: str
) -> None:
    (looked_at,) = in_review.repairs(NAME)
    if decision == "reopen":
        settle_review(in_review, NAME, accept=False)
    recording = Store.recording

    def after_another(store: Store, verb: str, arguments: Mapping[str, object]) -> Any:
        with recording(store, "relearn", {}) as run:
            content = looked_at.content
            store.save_repair(run.id, NAME, 1, None, "repaired", "review", 0.5, looked_at.text, content)
        return recording(store, verb, arguments)

    monkeypatch.setattr(Store, "recording", after_another)
    decide: dict[str, Callable[..., object]] = {
        "accept": partial(settle_review, accept=True),
        "reject": partial(settle_review, accept=False),
        "reopen": reopen_review,
    }
    with pytest.raises(Overtaken):
        decide[decision](in_review, NAME, repair=looked_at.id)
    assert origins(in_review) == [(1, "learn")]
    assert in_review.repairs(NAME)[0].state == "review"


def test_what_is_refused_is_no_run(in_review: Store) -> None:
    runs = in_review.runs(99)
    with pytest.raises(Overtaken):
        settle_review(in_review, NAME, accept=True, repair=10**6)
    with pytest.raises(Overtaken):
        reopen_review(in_review, NAME, 10**6)
    assert in_review.runs(99) == runs


def test_what_was_rejected_is_not_proposed_again(in_review: Store) -> None:
    settle_review(in_review, NAME, accept=False)
    for accept in (0.999, 0.5):
        mended = only(mend_wrappers(in_review, [NAME], accept=accept))
        assert (mended.state, mended.version_after) == ("rejected", None)
    assert repair_states(in_review) == [("repaired", "rejected", None)]
    assert origins(in_review) == [(1, "learn")]


def test_what_waits_for_review_is_kept_once(in_review: Store) -> None:
    assert only(mend_wrappers(in_review, [NAME], accept=0.999)).state == "review"
    assert repair_states(in_review) == [("repaired", "review", None)]


def test_a_repair_of_an_old_version_cannot_be_accepted(in_review: Store) -> None:
    in_review.save_wrapper(NAME, SITE, guide.wrapper().to_json(), "learn")
    with pytest.raises(StoreError, match="has version 2 by now, and the repair is of version 1"):
        settle_review(in_review, NAME, accept=True)
    assert repair_states(in_review) == [("repaired", "review", None)]


def test_another_try_puts_an_end_to_the_one_that_waits(in_review: Store) -> None:
    mend_wrappers(in_review, [NAME], accept=0.9)
    assert repair_states(in_review) == [("repaired", "applied", 2), ("repaired", "superseded", None)]


# ---- rolling back


def test_a_version_before_can_be_put_in_force_again(watched: Store) -> None:
    before = watched.wrapper(NAME).text
    put(watched, *guide.pages("mild-change"))
    mend_wrappers(watched, [NAME])
    assert roll_back(watched, NAME) == (1, 3)
    assert origins(watched) == [(1, "learn"), (2, "repaired"), (3, "rollback")]
    assert watched.wrapper(NAME).text == before
    assert watched.wrapper(NAME).note == "as version 1"
    assert roll_back(watched, NAME) == (2, 4)
    assert roll_back(watched, NAME, 1) == (1, 5)
    assert (
        guide.mistakes(Wrapper.from_json(watched.wrapper(NAME, 4).text), guide.restaurants("mild-change"))
        == []
    )


def test_there_must_be_something_to_go_back_to(watched: Store) -> None:
    with pytest.raises(StoreError, match="has only one version"):
        roll_back(watched, NAME)
    with pytest.raises(StoreError, match=r"Version 1 of the wrapper .* is in force already"):
        roll_back(watched, NAME, 1)
    with pytest.raises(StoreError):
        roll_back(watched, NAME, 7)
    with pytest.raises(StoreError):
        roll_back(watched, "no such wrapper")
    assert origins(watched) == [(1, "learn")]


# ---- what is known


def test_the_last_good_records_are_those_from_before_the_change(watched: Store) -> None:
    put(watched, *guide.pages("mild-change"))
    counts = extract(watched)  # a run that nobody has looked at, without phones
    assert counts.wrappers[NAME].filled["phone"] == 0
    check_watches(watched)
    mended = only(mend_wrappers(watched))
    assert mended.state == "applied"
    assert mended.relearned.attributes["phone"].state == "repaired"
    known = sum(bool(one.truth["phone"]) for one in guide.restaurants())
    assert mended.relearned.attributes["phone"].tested > known / 2


def test_without_a_watch_the_last_output_that_was_well_counts(store: Store) -> None:
    put(store, *guide.pages())
    store.save_wrapper(NAME, SITE, guide.wrapper().to_json(), "learn")
    named = wrappers_of_store(store)
    for layout in ("original", "mild-change", "mild-change"):
        put(store, *guide.pages(layout))
        before = output_before(store)
        counts = extract(store)
        changes = output_changes(counts, {one.name: one.wrapper for one in named}, before)
        assert bool(changes) is (layout != "original")  # also of the second run without phones
        run = store.last_extract_run()
        assert run is not None
        keep_output_checks(store, run, named, changes)
    assert {one.kind for one in store.checks(NAME)} == {"output"}
    assert health(store) == [False, False, True]
    mended = only(mend_wrappers(store))
    assert (mended.state, mended.version_after) == ("applied", 2)
    assert guide.mistakes(wrapper(store), guide.restaurants("mild-change")) == []


def test_where_only_bellwethers_are_known_they_are_enough(store: Store) -> None:
    put(store, *guide.pages())
    store.save_wrapper(NAME, SITE, guide.wrapper().to_json(), "learn")
    watch_wrappers(store)
    put(store, *guide.pages("mild-change"))
    mended = only(mend_wrappers(store, [NAME], accept=0))
    assert mended.relearned.attributes["phone"].state == "repaired"
    assert guide.mistakes(wrapper(store), guide.restaurants("mild-change")) == []


def test_where_nothing_is_known_nothing_can_be_mended(store: Store) -> None:
    put(store, *guide.pages())
    store.save_wrapper(NAME, SITE, guide.wrapper().to_json(), "learn")
    with pytest.raises(StoreError, match="Nothing is known of the pages of"):
        mend_wrappers(store, [NAME])


def test_a_wrapper_of_which_nothing_is_known_does_not_stop_the_others(watched: Store) -> None:
    unknown = f"{SITE}/aa"
    watched.save_wrapper(unknown, SITE, guide.wrapper().to_json(), "learn")
    put(watched, *guide.pages("mild-change"))
    with watched.recording("extract", {}) as run:
        for name in (unknown, NAME):
            watched.save_check(run.id, name, 1, "output", False, {"changes": []})
    first, second = mend_wrappers(watched)
    assert (first.wrapper, first.relearned.outcome, first.state) == (
        unknown,
        "needs-annotation",
        "annotation",
    )
    assert first.row["reason"].startswith(f"Nothing is known of the pages of {unknown}")
    assert (second.wrapper, second.state) == (NAME, "applied")


def misled() -> str:
    """A wrapper that takes addresses for phones."""
    right = guide.wrapper()
    wrong = {"phone": replace(right.attributes["address"], contract=None)}
    return replace(right, attributes={**right.attributes, **wrong}).to_json()


def known_phones(store: Store) -> list[tuple[str, ...]]:
    found = last_good_records(store, store.wrapper(NAME))
    assert len(found) == len({record.url for record in found}) == 40
    return [record.values.get("phone", ()) for record in found]


def test_records_of_a_version_that_was_rolled_back_do_not_count(watched: Store) -> None:
    phones = sorted(known_phones(watched))
    watched.save_wrapper(NAME, SITE, misled(), "repaired")
    extract(watched)
    assert roll_back(watched, NAME) == (1, 3)
    assert sorted(known_phones(watched)) == phones
    roll_back(watched, NAME, 2)
    assert sorted(known_phones(watched)) != phones
    assert lineage(watched, NAME) == (1, 2, 4)
    roll_back(watched, NAME, 1)
    assert lineage(watched, NAME) == (1, 3, 5)
    assert sorted(known_phones(watched)) == phones


def test_without_a_watch_the_output_of_a_version_that_was_rolled_back_does_not_count(store: Store) -> None:
    put(store, *guide.pages())
    for number, text in enumerate((guide.wrapper().to_json(), misled()), 1):
        store.save_wrapper(NAME, SITE, text, "learn" if number == 1 else "repaired")
        extract(store)
        with store.recording("extract", {}) as run:
            store.save_check(run.id, NAME, number, "output", True, {"changes": []})
    roll_back(store, NAME)
    assert sorted(known_phones(store)) == sorted(one.values.get("phone", ()) for one in guide.records())


def test_what_bellwethers_have_shown_since_is_newer_than_records(watched: Store) -> None:
    renumbered = [guide.changed(page, r"<dd>0\d{3}&nbsp;496", "<dd>0199&nbsp;496") for page in guide.pages()]
    kept = watched.watch(NAME)
    assert kept is not None
    found = watch_from_json(kept.text)
    fresh = {page.url: page for page in renumbered}
    ours = [
        bellwether(page, [guide.wrapper().extract(page)])
        for page in (fresh[one.page.url] for one in found.bellwethers)
    ]
    watched.save_watch(NAME, SITE, 1, watch_to_json(replace(found, bellwethers=tuple(ours))))
    new = sum(phone[0].startswith("0199") for phone in known_phones(watched) if phone)
    assert new == sum(bool(one.records[0].get("phone")) for one in found.bellwethers) > 0


# ---- the pages that a wrapper is for


def wall(page: Page) -> Page:
    """A page behind a log-in."""
    html = b"<html><body><form><p>Please log in</p><input></form></body></html>"
    return replace(page, html=html)


def test_a_mended_wrapper_is_not_for_pages_that_are_gone(watched: Store) -> None:
    pages = guide.pages("mild-change")
    put(watched, *pages[:28], *map(wall, pages[28:]))
    check_watches(watched)
    assert only(mend_wrappers(watched)).state == "applied"
    found = signature(wall(pages[0]).html)
    assert found is not None
    assert found.hex() not in wrapper(watched).footprint.accepted


# ---- watching and checking


def test_pages_given_are_compared_and_nothing_is_kept(watched: Store) -> None:
    text = watched.watches()[0].text
    (found,) = check_watches(watched, fresh=iter(guide.pages("mild-change")))
    assert [one.attributes for one in found.checkup.changes] == [("phone",)]
    assert watched.checks() == []
    assert watched.watches()[0].text == text


def test_pages_that_are_gone_are_replaced_by_others(watched: Store) -> None:
    before = watch_from_json(watched.watches()[0].text)
    gone = [one.page for one in before.bellwethers[:6]]
    put(watched, *(guide.within_frame(page, "404", "<p>Nicht gefunden.</p>") for page in gone))
    (found,) = check_watches(watched)
    assert found.checkup.changes == ()
    assert set(found.checkup.gone) == {page.url for page in gone}
    after = watch_from_json(watched.watches()[0].text)
    urls = {one.page.url for one in after.bellwethers}
    assert len(urls) == 20
    assert not urls & set(found.checkup.gone)
    (again,) = check_watches(watched)
    assert (again.checkup.changes, again.checkup.gone) == ((), ())


@pytest.mark.parametrize(("count", "verdict"), [(10, "healthy"), (11, "mostly gone")])
def test_pages_of_which_most_are_gone_are_never_healthy(watched: Store, count: int, verdict: str) -> None:
    bellwethers = watch_from_json(watched.watches()[0].text).bellwethers
    gone = [one.page for one in bellwethers[:count]]
    put(watched, *(guide.within_frame(page, "404", "<p>Nicht gefunden.</p>") for page in gone))
    (found,) = check_watches(watched)
    assert (len(found.checkup.gone), found.verdict, found.checkup.changes) == (count, verdict, ())
    assert health(watched) == [True] * (verdict == "healthy")
    (again,) = check_watches(watched)  # others have taken their place
    assert again.verdict == "healthy"


def test_a_change_of_the_few_that_are_left_is_kept_and_both_are_told(watched: Store) -> None:
    bellwethers = watch_from_json(watched.watches()[0].text).bellwethers
    gone = [one.page for one in bellwethers[:12]]
    put(watched, *guide.pages("mild-change"))
    put(watched, *(guide.within_frame(page, "404", "<p>Nicht gefunden.</p>") for page in gone))
    (found,) = check_watches(watched)
    assert (found.verdict, health(watched)) == ("changed", [False])
    assert found.warning.startswith(f"12 of 20 watched pages of {NAME} are gone: ")


def test_a_night_of_walls_says_nothing(watched: Store) -> None:
    text = watched.watches()[0].text
    put(watched, *map(wall, guide.pages()))
    (found,) = check_watches(watched)
    assert (len(found.checkup.gone), found.checkup.changes, found.is_telling) == (20, (), False)
    assert found.verdict == "mostly gone"
    assert watched.watches()[0].text == text
    assert watched.checks() == []
    put(watched, *guide.pages("mild-change"))
    (found,) = check_watches(watched)
    assert (len(found.checkup.changes), found.is_telling) == (1, True)
    put(watched, *(guide.changed(wall(page), "log in", "sign in") for page in guide.pages()))
    check_watches(watched)
    assert health(watched) == [False]
    assert [one.name for one in changed_wrappers(watched)] == [NAME]


def test_a_watch_of_another_version_is_renewed_and_its_checks_do_not_count(watched: Store) -> None:
    watch_wrappers(watched, k=7)
    put(watched, *guide.pages("mild-change"))
    check_watches(watched)
    assert len(changed_wrappers(watched)) == 1
    fixed = relearn(guide.wrapper(), guide.records(), guide.pages("mild-change")).wrapper
    watched.save_wrapper(NAME, SITE, fixed.to_json(), "learn")
    assert changed_wrappers(watched) == []
    (found,) = check_watches(watched)
    assert (found.is_renewed, found.checkup.changes, found.checkup.compared) == (True, (), ())
    assert health(watched) == [False]  # what is new is compared from the next time on
    kept = watched.watch(NAME)
    assert kept is not None
    assert (kept.version, len(watch_from_json(kept.text).bellwethers)) == (2, 7)
    (found,) = check_watches(watched)
    assert (found.is_renewed, found.checkup.changes, len(found.checkup.compared)) == (False, (), 7)
    assert changed_wrappers(watched) == []


def test_pages_are_chosen_anew_once_after_learning(watched: Store) -> None:
    assert watch_again(watched, NAME) is None
    watched.save_wrapper(NAME, SITE, guide.wrapper().to_json(), "learn")
    found = watch_again(watched, NAME)
    assert found is not None
    assert (found.version, watched.watched()) == (2, {NAME: 2})
    assert watch_again(watched, NAME) is None


def test_who_watches_a_wrapper_that_does_not_fit_is_told_on_how_many_pages(watched: Store) -> None:
    (well,) = watch_wrappers(watched)
    assert (well.pages, well.fruitless, well.warning) == (40, 0, "")
    put(watched, *map(wall, guide.pages()[:25]))
    (ill,) = watch_wrappers(watched)
    assert ill.watch is not None
    assert (ill.pages, ill.fruitless) == (40, 25)
    assert "on 25 of 40 pages: repair it" in ill.warning


def test_a_mended_wrapper_is_watched_as_it_was(watched: Store) -> None:
    watch_wrappers(watched, k=5)
    put(watched, *guide.pages("mild-change"))
    mend_wrappers(watched, [NAME])
    kept = watched.watch(NAME)
    assert kept is not None
    assert (kept.version, len(watch_from_json(kept.text).bellwethers)) == (2, 5)


def test_a_wrapper_that_is_not_watched_is_not_watched_when_it_is_mended(store: Store) -> None:
    put(store, *guide.pages())
    store.save_wrapper(NAME, SITE, guide.wrapper().to_json(), "learn")
    extract(store)
    put(store, *guide.pages("mild-change"))
    assert only(mend_wrappers(store, [NAME])).state == "applied"
    assert store.watches() == []


def test_no_older_version_of_a_page_is_read_to_compare_it(
    watched: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unwanted(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(Store, "versions", unwanted)
    monkeypatch.setattr(Store, "watches", unwanted)  # nor are all watches held at a time
    assert [one.checkup.missing for one in check_watches(watched)] == [()]


def test_wrappers_and_watches_must_be_there(store: Store) -> None:
    with pytest.raises(StoreError, match="There are no wrappers yet"):
        watch_wrappers(store)
    with pytest.raises(StoreError, match="No pages are watched yet"):
        check_watches(store)
    store.save_wrapper(NAME, SITE, guide.wrapper().to_json(), "learn")
    with pytest.raises(StoreError, match="There is no wrapper x: there are larkmoor"):
        watch_wrappers(store, ["x"])
    with pytest.raises(StoreError, match="No page of the wrapper x is watched"):
        check_watches(store, ["x"])
    (found,) = watch_wrappers(store)
    assert found.watch is None
    assert found.reason.startswith("None of the 0 pages can be watched: ")
    assert store.watches() == []


def test_the_history_of_pages_tells_which_values_change(store: Store) -> None:
    attributes = dict(inns.WRAPPER.attributes)
    for name in ("owner", "price"):
        about = replace(attributes[name].attribute, constant=None)
        attributes[name] = replace(attributes[name], attribute=about)
    known = footprint([(page.url, signature(page.html)) for page in inns.pages()])
    store.save_wrapper("inns", "inns.example", Wrapper(attributes, footprint=known).to_json(), "learn")
    for visit in range(3):
        put(
            store,
            *(
                inns.page(
                    one, [*inns.rows(one)[:2], ("Price:", f"£{(one.number * 7 + visit * 11) % 80 + 10}.00")]
                )
                for one in inns.INNS
            ),
        )
    (found,) = watch_wrappers(store)
    assert found.watch is not None
    assert found.watch.past["price"].mistaken > 60
    assert found.watch.past["owner"].mistaken == 0


# ---- another wrapper of the site


def pub(one: inns.Inn, url: str) -> Page:
    facts = f"<b>Ring:</b><i>{one.phone}</i>"
    frame = "".join(
        f"<section><{tag}>x</{tag}></section>" for tag in ("em", "q", "u", "s", "p", "h4", "h5", "aside")
    )
    return Page.from_text(url, f"<article><h2>{one.name}</h2><form><p>{facts}</p></form></article>{frame}")


def signed(attributes: Sequence[str], rules: Wrapper, pages: Sequence[Page]) -> str:
    known = footprint([(page.url, signature(page.html)) for page in pages])
    chosen = {name: rules.attributes[name] for name in attributes}
    return replace(rules, attributes=chosen, footprint=known).to_json()


@pytest.fixture
def two_templates(store: Store) -> Store:
    """Inns and pubs of one site, each with a wrapper."""
    pubs = Wrapper(
        {
            "name": inns.found_by(inns.within("tag", "h2"), constant=True, mandatory=True),
            "phone": inns.found_by(inns.after("Ring:"), constant=True),
        }
    )
    pub_pages = [pub(one, f"https://inns.example/pub/{one.number}") for one in inns.INNS[20:]]
    inn_pages = inns.pages(inns.INNS[:20])
    put(store, *inn_pages, *pub_pages)
    store.save_wrapper("inns", "inns.example", signed(["name", "phone"], inns.WRAPPER, inn_pages), "learn")
    store.save_wrapper("pubs", "inns.example", signed(["name", "phone"], pubs, pub_pages), "learn")
    extract(store)
    watch_wrappers(store)
    assert [one.checkup.changes for one in check_watches(store)] == [(), ()]
    return store


def test_pages_that_move_to_another_template_are_read_by_its_wrapper(two_templates: Store) -> None:
    store = two_templates
    put(store, *(pub(one, one.url) for one in inns.INNS[:20]))
    assert {one.wrapper: bool(one.checkup.changes) for one in check_watches(store)} == {
        "inns": True,
        "pubs": False,
    }
    mended = only(mend_wrappers(store))
    assert (mended.wrapper, mended.relearned.outcome, mended.state) == ("inns", "reused", "applied")
    assert origins(store, "inns") == [(1, "learn"), (2, "reused")]
    now, old = wrapper(store, "inns").layouts[:2]
    pubs = wrapper(store, "pubs")
    assert {name: rules.rules for name, rules in now.attributes.items()} == {
        name: rules.rules for name, rules in pubs.attributes.items()
    }
    assert old.attributes["phone"].rules == inns.WRAPPER.attributes["phone"].rules
    for one in inns.INNS[:20]:
        for page in (pub(one, one.url), inns.page(one)):
            values = wrapper(store, "inns").extract(page).values
            assert values == {"name": (one.name,), "phone": (one.phone,)}


def test_each_of_the_other_wrappers_is_tried_once(
    two_templates: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = wrappers_of_store(two_templates)
    pages = [pub(one, one.url) for one in inns.INNS[:20]]
    (found,) = cluster(pages, method="vertex").clusters
    tried: list[Wrapper] = []

    def failing(wrapper: Wrapper, *_: object) -> Relearned:
        tried.append(wrapper)
        return Relearned("needs-annotation", wrapper, 0.0, {})

    monkeypatch.setattr("siteloom.operations.relearn.relearn", failing)
    assert _reused_other(own, [other], [found] * 3, [], pages) is None
    assert len(tried) == 1


def test_each_page_still_has_its_own_wrapper_afterwards(two_templates: Store) -> None:
    store = two_templates
    put(store, *(pub(one, one.url) for one in inns.INNS[:20]))
    check_watches(store)
    mend_wrappers(store)
    counts = extract(store)
    assert (counts.wrappers["inns"].records, counts.wrappers["pubs"].records) == (20, 20)
    by_wrapper = [(row["wrapper"], row["url"]) for row in map(json.loads, store.records())]
    assert all(f"/{name[:-1]}/" in url for name, url in by_wrapper)


def test_records_of_runs_between_a_change_and_its_repair_do_not_count(watched: Store) -> None:
    assert [one.checkup.changes for one in check_watches(watched)] == [()]
    good = known_phones(watched)
    put(watched, *guide.pages("mild-change"))
    assert extract(watched).wrappers[NAME].filled["phone"] < len(good)  # phones are lost in this run
    assert check_watches(watched)[0].checkup.changes
    assert [one.state for one in mend_wrappers(watched)] == ["applied"]
    assert sorted(known_phones(watched)) == sorted(good)
