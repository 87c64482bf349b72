"""The review: what waits for a person, and why."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from lxml import html

from siteloom import Wrapper
from siteloom.apps.server.views.review import review_detail, review_queue
from siteloom.core.errors import NotFound, Overtaken
from siteloom.operations.cluster import cluster_store
from siteloom.store.queries.watches_and_repairs import RepairState
from siteloom.store.store import Store
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.apps.server.test_wrappers import LISTS, NAME, app, browser, buttons, do
from tests.apps.server.test_wrappers import path as path_of
from tests.lived_in import DIRECTORY, GUIDE

__all__ = ["app", "browser"]  # fixtures

EVENTS, PLACES = f"{GUIDE}/2", f"{DIRECTORY}/1"


def save_repair(
    store: Store,
    wrapper: str,
    state: RepairState,
    *,
    text: str | None = "{}",
    diff: dict[str, Any] | None = None,
    versions: tuple[int, int] | None = None,
    **attributes: str,
) -> int:
    """A repair that says what became of some attributes; `versions` if it is in force in part."""
    content: dict[str, Any] = {
        "reason": "" if attributes else "Nothing is known",
        "attributes": {
            attribute: {"state": one, "right": 3, "tested": 4, "reason": "<b>gone</b>"}
            for attribute, one in attributes.items()
        },
        "diff": diff or {"rules": [], "values": []},
        "annotate": [{"url": store.cluster_summaries(GUIDE)[2].ends[0], "records": []}],
    }
    outcome = "needs-annotation" if state == "annotation" else "repaired"
    before, after = versions or (store.wrapper(wrapper).version, None)
    with store.recording("relearn", {}) as run:
        return store.save_repair(run.id, wrapper, before, after, outcome, state, 0.5, text, content)


def keys(store: Store) -> list[str]:
    return [one.key for one in review_queue(store).items]


def test_repairs_come_before_templates(browser: Browser, lived_in: Store) -> None:
    (repair,) = lived_in.reviewing.repairs()
    found = browser.get("/api/review").json()
    assert found["counts"] == {"repair": 1, "examples": 0, "site": 0, "template": 2}
    assert [one["key"] for one in found["items"]] == [
        f"repair-{repair.id}",
        f"template-{PLACES}",
        f"template-{EVENTS}",
    ]
    assert found["items"][0]["told"] == "name, address, district and 9 more repaired; confidence 85\u202f%"
    assert lived_in.reviewing.count() == 1


def test_the_repair_of_more_records_comes_first(lived_in: Store) -> None:
    (repair,) = lived_in.reviewing.repairs()
    other = save_repair(lived_in, LISTS, "review", name="repaired")  # gives 59 records, the other none
    assert keys(lived_in)[:2] == [f"repair-{other}", f"repair-{repair.id}"]


def test_a_repair_is_shown_with_its_evidence(browser: Browser, lived_in: Store) -> None:
    (repair,) = lived_in.reviewing.repairs()
    told = browser.look("/review")
    assert "Its pages have changed. New rules were found: is that right?" in told
    assert "on up to 100 % of the pages" in told
    assert "All 60 values that were compared" in told
    tree = html.fromstring(browser.get("/review").text)
    assert "'Find it'" in tree.xpath("//ins/text()")
    before_and_after, annotate, skip = (
        tree.xpath(f"//a[@data-key='{key}']/@href")[0] for key in ("o", "e", "s")
    )
    assert before_and_after.endswith(f"/changes?wrapper={quote(NAME)}&proposed={repair.id}")
    assert browser.get(before_and_after).status_code == 200
    assert annotate == f"/clusters/{quote(NAME)}/annotate"
    assert skip == f"/review?item=template-{quote(PLACES, safe='')}"
    found = browser.get(f"/api/review/repair-{repair.id}").json()
    assert found["cluster"] == NAME
    assert [one["test"] for one in found["changes"]][:2] == ["shingle", "null"]
    assert found["changes"][1]["evidence"][0]["page"] is not None


def test_without_scripts_a_decision_is_a_job(browser: Browser, lived_in: Store) -> None:
    (repair,) = lived_in.reviewing.repairs()
    tree = html.fromstring(browser.get("/review").text)
    forms = {form.get("data-decision"): form for form in tree.xpath("//form[@data-decision]")}
    assert set(forms) == {"accept", "reject"}
    browser.look("/review")
    sent = dict(forms["accept"].form_values())
    assert browser.post("/jobs", sent).headers["location"].startswith("/jobs/")
    (job,) = lived_in.jobs.latest(1)
    assert (job.kind, job.arguments) == ("accept", {"wrapper": NAME, "repair": repair.id})


def test_who_needs_examples_is_led_to_the_workbench(browser: Browser, lived_in: Store) -> None:
    repair = save_repair(lived_in, LISTS, "annotation", name="vanished", price="kept")
    item = f"/review?item=repair-{repair}"
    assert "show it where the values are now" in browser.look(item)
    assert buttons(browser, item) == ["Go on without name w"]
    tree = html.fromstring(browser.get(item).text)
    assert tree.xpath("//a[@data-key='e']/@href") == [f"/clusters/{LISTS}/annotate"]
    assert "<b>gone" not in browser.get(item).text
    lived_in.save_wrapper(LISTS, GUIDE, lived_in.wrapper(LISTS).text, "learn")  # by a person, of examples
    assert f"repair-{repair}" not in keys(lived_in)


def test_what_a_site_has_no_more_can_be_left_out(browser: Browser, lived_in: Store) -> None:
    before = lived_in.wrapper(LISTS)
    *kept, lost = Wrapper.from_json(before.text).attributes
    states: dict[str, Any] = {**dict.fromkeys(kept, "kept"), lost: "vanished"}
    repair = save_repair(lived_in, LISTS, "annotation", text=before.text, **states)
    words = f"Go on without {lost}"
    assert f"{words} w" in buttons(browser, f"/review?item=repair-{repair}")
    assert words in buttons(browser, path_of(LISTS))
    done = do(lived_in, "leave_out", wrapper=LISTS, repair=repair)
    job = lived_in.jobs.add("leave_out", {"wrapper": LISTS, "repair": repair}, "ana")
    lived_in.jobs.end(job.id, "done", done)
    assert f"{LISTS} goes on without {lost}: that is its version 2" in browser.look(f"/jobs/{job.id}")
    assert "Undo: back to version 1" in buttons(browser, f"/jobs/{job.id}")
    assert (done["version"], done["version_before"], done["lost_attributes"]) == (2, 1, [lost])
    assert list(Wrapper.from_json(lived_in.wrapper(LISTS).text).attributes) == kept
    assert f"repair-{repair}" not in keys(lived_in)
    told = browser.look(path_of(LISTS))
    assert f"made by a person just now, without {lost}" in told
    undone = do(lived_in, "reopen", wrapper=LISTS, repair=repair)
    assert (undone["version"], undone["state"]) == (3, "annotation")
    assert lived_in.wrapper(LISTS).text == before.text
    assert f"repair-{repair}" in keys(lived_in)
    assert do(lived_in, "leave_out", wrapper=LISTS, repair=repair)["version"] == 4
    with pytest.raises(Overtaken, match="waits no more"):
        do(lived_in, "leave_out", wrapper=LISTS, repair=repair)


def test_who_watches_a_wrapper_that_does_not_fit_is_told(browser: Browser, lived_in: Store) -> None:
    """Its site was redesigned, and it is for the pages as they were."""
    (watched,) = do(lived_in, "watch", site=GUIDE)["watched"][:1]
    assert watched["wrapper"] == NAME
    assert watched["pages"] == watched["pages_without_record"] > 10
    job = lived_in.jobs.add("watch", {"site": GUIDE, "wrapper": None}, "ana")
    lived_in.jobs.end(job.id, "done", {"run": 1, "site": GUIDE, "watched": [watched]})
    shown = browser.look(f"/jobs/{job.id}")
    assert f"on {watched['pages_without_record']} of {watched['pages']} pages: repair it" in shown
    assert "Repair it" in buttons(browser, f"/jobs/{job.id}")


def test_what_is_in_force_of_a_repair_is_not_proposed_again(browser: Browser, lived_in: Store) -> None:
    (page,) = lived_in.cluster_summaries(GUIDE)[2].ends[:1]
    value = {"url": page, "known": ["x"], "before": []}
    diff = {
        "rules": [{"attribute": "name", "before": ["old rule"], "after": ["new rule"]}],
        "values": [
            {**value, "attribute": "name", "after": ["x"]},
            {**value, "attribute": "price", "after": []},
        ],
    }
    lived_in.save_wrapper(LISTS, GUIDE, lived_in.wrapper(LISTS).text, "needs-annotation")
    repair = save_repair(
        lived_in,
        LISTS,
        "annotation",
        name="repaired",
        price="vanished",
        text=None,
        diff=diff,
        versions=(1, 2),
    )
    address = f"/review?item=repair-{repair}"
    found = browser.get(f"/api/review/repair-{repair}").json()["repair"]
    assert (found["rules"], [one["attribute"] for one in found["values"]]) == ([], ["price"])
    tree = html.fromstring(browser.get(address).text)
    (table, *_) = tree.xpath("//table[contains(@class, 'value-diff')]")
    assert table.xpath(".//th[@scope='col']/text()") == ["Attribute", "Known", "Its rules find", "Page"]
    links = {link for link in tree.xpath("//main//a/@href") if "/changes" in link}
    assert links
    assert {browser.get(link).status_code for link in links} == {200}


def test_what_could_be_repaired_in_part_can_be_accepted(browser: Browser, lived_in: Store) -> None:
    repair = save_repair(lived_in, LISTS, "annotation", name="repaired", price="unrepaired")
    told = browser.look(f"/review?item=repair-{repair}")
    assert "for a part of it" in told
    assert "Accept a Reject r" in " ".join(buttons(browser, f"/review?item=repair-{repair}"))
    assert "name repaired, price not; confidence 50 %" in told


def test_a_template_is_shown_with_what_is_known_of_it(browser: Browser, lived_in: Store) -> None:
    address = f"/review?item=template-{quote(PLACES, safe='')}"
    told = browser.look(address)
    assert "14 pages were made from this template, 100 % of tableatlas.example" in told
    tree = html.fromstring(browser.get(address).text)
    links = {one.get("data-key"): one.get("href") for one in tree.xpath("//a[@data-key]")}
    assert links["e"] == f"/clusters/{PLACES}/annotate"
    assert links["d"] == f"/clusters/{PLACES}/discover"
    assert tree.xpath("//*[@class='review-card card' or contains(@class, 'review-card')]//svg")
    assert browser.get(f"/api/review/template-{PLACES}").json()["template"]["pages"] == 14


def test_what_is_not_worth_it_is_not_asked_about(lived_in: Store) -> None:
    do(lived_in, "dismiss", cluster=PLACES)
    assert f"template-{PLACES}" not in keys(lived_in)
    do(lived_in, "restore", cluster=PLACES)
    assert f"template-{PLACES}" in keys(lived_in)


def test_a_decision_about_a_template_is_none_about_another_of_its_name(
    browser: Browser, lived_in: Store
) -> None:
    address = f"/review?item=template-{quote(PLACES, safe='')}"
    (form,) = html.fromstring(browser.get(address).text).xpath("//form[@data-decision='dismiss']")
    edition = int(dict(form.form_values())["edition"])
    assert browser.get(f"/api/review/template-{PLACES}").json()["edition"] == edition
    cluster_store(lived_in, "vertex")
    for kind in ("dismiss", "restore"):
        with pytest.raises(Overtaken, match=f"found anew since you looked at {PLACES}"):
            do(lived_in, kind, cluster=PLACES, edition=edition)
    with pytest.raises(Overtaken):
        do(lived_in, "accept_columns", cluster=PLACES, names={"name": "title"}, edition=edition)
    assert f"template-{PLACES}" in keys(lived_in)
    do(lived_in, "dismiss", cluster=PLACES, edition=lived_in.cluster_edition(PLACES))
    assert f"template-{PLACES}" not in keys(lived_in)


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [("accept", "re-selected"), ("learn", "re-selected"), ("rollback", "changed")],  # it finds nothing now
)
def test_who_cancels_while_pages_to_watch_are_chosen_is_told_what_is_in_force(
    lived_in: Store, monkeypatch: pytest.MonkeyPatch, kind: str, verdict: str
) -> None:
    (repair,) = lived_in.reviewing.repairs()
    version = lived_in.wrapper(NAME).version
    if kind == "rollback":
        version = lived_in.save_wrapper(NAME, GUIDE, lived_in.wrapper(NAME).text, "learn")

    def cancel(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "page_shards", cancel)
    orders: dict[str, dict[str, object]] = {
        "accept": {"repair": repair.id},
        "rollback": {},
        "learn": {"cluster": NAME},
    }
    told = do(lived_in, kind, wrapper=NAME, **orders[kind])
    now = told["wrappers"][0]["version"] if kind == "learn" else told["version"]
    assert now == lived_in.wrapper(NAME).version == version + 1
    monkeypatch.undo()
    (check,) = do(lived_in, "monitor", wrapper=NAME)["checks"]
    assert (check["reason"] or check["state"]) == verdict


def test_sites_wrapped_from_known_records_wait_for_a_look(browser: Browser, lived_in: Store) -> None:
    content = {"records": 9, "attributes": {"name": {"verdict": "accepted", "reason": ""}}}
    lived_in.save_site_outcome(DIRECTORY, "wrapped", 1, 24, PLACES, 1, content)
    assert keys(lived_in)[1] == f"site-{DIRECTORY}"
    assert lived_in.reviewing.count() == 2
    told = browser.look(f"/review?item=site-{DIRECTORY}")
    assert "nobody has looked at it yet" in told


@pytest.mark.parametrize("key", ["repair-999", "repair-x", "template-<b>", "", "%00"])
def test_what_waits_no_more_is_said(browser: Browser, lived_in: Store, key: str) -> None:
    answer = browser.get(f"/review?item={quote(key)}")
    assert answer.status_code == 200
    assert "This waits no more" in answer.text
    assert "Look at what waits" in answer.text
    assert browser.get(f"/api/review/{quote(key)}").status_code in (404, 307) or not key


def test_nothing_waits_in_an_empty_workspace(empty_store: Store, app: FastAPI) -> None:
    from siteloom.apps.server import create_app
    from siteloom.core.settings import Settings

    told = Browser(create_app(empty_store, Settings())).look("/review")
    assert "Nothing waits for you" in told
    assert empty_store.reviewing.count() == 0


def test_viewers_look_and_decide_nothing(app: FastAPI, lived_in: Store) -> None:
    people = People(app, lived_in)
    people.add("ana", "admin")
    viewer = people.browser("vita", "viewer")
    (repair,) = lived_in.reviewing.repairs()
    for key in keys(lived_in):
        assert buttons(viewer, f"/review?item={quote(key, safe='')}") == []
    tree = html.fromstring(viewer.get("/review").text)
    assert tree.xpath("//a[@data-key='e']") == []
    viewer.look("/review")
    body: dict[str, Any] = {"kind": "accept", "arguments": {"wrapper": NAME, "repair": repair.id}}
    assert viewer.send("POST", "/api/jobs", body).status_code == 403
    assert json.loads(viewer.get("/api/review").text)["counts"]["repair"] == 1


def test_what_was_decided_since_the_queue_was_read_is_gone(browser: Browser, lived_in: Store) -> None:
    repair, template = (review_queue(lived_in).items[place] for place in (0, -1))
    site = repair.model_copy(update={"kind": "site", "key": f"site-{GUIDE}", "name": GUIDE})
    lived_in.close_repair(lived_in.reviewing.repairs()[0].id, "rejected")
    with pytest.raises(NotFound, match="does not wait for anyone, or not any more"):
        review_detail(lived_in, repair)
    with pytest.raises(NotFound, match="does not wait for anyone, or not any more"):
        review_detail(lived_in, site)
    with pytest.raises(NotFound, match="There is no template"):
        review_detail(lived_in, template.model_copy(update={"name": f"{GUIDE}/77"}))
    assert browser.get(f"/api/review/{repair.key}").status_code == 404
    assert "This waits no more" in browser.look(f"/review?item={repair.key}")


def test_what_an_unknown_test_has_noticed_is_left_out(browser: Browser, lived_in: Store) -> None:
    (repair,) = lived_in.reviewing.repairs()
    row = {"test": "of a later version", "attributes": ["name"], "share": 0.5, "evidence": []}
    with lived_in.recording("monitor", {}) as run:
        lived_in.save_check(run.id, NAME, repair.version_before, "bellwethers", False, {"changes": [row]})
    for shown in (f"/review?item=repair-{repair.id}", "/monitoring", "/monitoring/alarms"):
        assert browser.get(shown).status_code == 200, shown
