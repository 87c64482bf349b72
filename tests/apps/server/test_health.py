"""Health: what is wrong, since when and why; what became of it; and what runs counted over time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from shutil import copytree
from typing import Any
from urllib.parse import quote

import pytest
from lxml import html
from lxml.html import HtmlElement
from sqlalchemy import event

from siteloom.apps.server import create_app
from siteloom.apps.server.views.monitoring import streaks_of
from siteloom.apps.server.views.runs import POINTS_DRAWN
from siteloom.core.settings import Settings, StoreSettings
from siteloom.store.queries.runs import recorded_run
from siteloom.store.queries.watches_and_repairs import PastCheck
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.lived_in import DIRECTORY, GUIDE
from tests.store.helpers import day, page, put

HOSTILE = '<img src=x onerror="alert(1)">'
RESTAURANTS = f"{GUIDE}/1"
SHOP = "shop.example"


@pytest.fixture(scope="module")
def lived(lived_in_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The workspace in which much has happened, for tests that change nothing."""
    folder = copytree(lived_in_folder, tmp_path_factory.mktemp("health") / ".siteloom")
    with closing(open_store(StoreSettings(str(folder)))) as store:
        yield store


@pytest.fixture(scope="module")
def client(lived: Store) -> Browser:
    return Browser(create_app(lived, Settings()))


def tree(browser: Browser, path: str) -> HtmlElement:
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    return html.document_fromstring(answer.text)


def links(root: HtmlElement) -> set[str]:
    return {str(link) for link in root.xpath("//main//a/@href")}


def told(browser: Browser, path: str) -> Any:
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


# ---- what is wrong now


def test_the_worst_site_comes_first_with_what_is_wrong(client: Browser) -> None:
    guide, directory = told(client, "/api/monitoring")["sites"]
    assert (guide["site"], guide["health"], guide["next_step"]["kind"]) == (GUIDE, "broken", "review")
    assert RESTAURANTS in guide["sentence"]
    assert (directory["site"], directory["health"], directory["next_step"]["kind"]) == (
        DIRECTORY,
        "unchecked",
        "none",
    )
    shown = client.look("/monitoring")
    assert "1 of 2 sites needs attention." in shown
    assert shown.index(GUIDE) < shown.index(DIRECTORY)
    assert " ".join(guide["sentence"].split()) in shown


def test_an_alarm_has_evidence_from_before_and_after(client: Browser) -> None:
    alarm = told(client, f"/api/sites/{GUIDE}/health")["alarms"][0]
    assert (alarm["wrapper"], alarm["kind"], alarm["is_open"]) == (RESTAURANTS, "bellwethers", True)
    assert alarm["repair"]["state"] == "review"
    (seen,) = [
        one
        for change in alarm["changes"]
        if change["test"] == "null"
        for one in change["evidence"]
        if one["attribute"] == "phone"
    ][:1]
    assert seen["before"]
    assert seen["after"] == []
    assert seen["page"]
    root = tree(client, f"/sites/{GUIDE}/health")
    link = f"/pages/{seen['page']}/changes?wrapper={quote(RESTAURANTS)}&wrapper_version=1&attribute=phone"
    assert link in links(root)
    assert seen["before"][0] in root.text_content()
    assert client.get(link).status_code == 200


def test_a_repair_that_waits_is_one_click_away(client: Browser) -> None:
    alarm = told(client, f"/api/sites/{GUIDE}/health")["alarms"][0]
    link = f"/review?item=repair-{alarm['repair']['repair']}"
    for path in ("/monitoring", f"/sites/{GUIDE}/health", "/monitoring/alarms"):
        assert link in links(tree(client, path))
    assert client.get(link).status_code == 200


def test_alarms_can_be_filtered(client: Browser) -> None:
    every = told(client, "/api/alarms")
    assert every["count"] == len(every["alarms"]) >= 2
    assert told(client, f"/api/alarms?site={DIRECTORY}")["count"] == 0
    of_wrapper = told(client, f"/api/alarms?wrapper={quote(RESTAURANTS, safe='')}&open=true")
    assert {one["wrapper"] for one in of_wrapper["alarms"]} == {RESTAURANTS}
    (second,) = told(client, "/api/alarms?offset=1&limit=1")["alarms"]
    assert second == every["alarms"][1]
    assert "No such alarm" in client.look(f"/monitoring/alarms?site={DIRECTORY}")
    assert client.get("/api/alarms?limit=0").status_code == 422


def test_what_became_of_an_alarm_is_told(lived_in: Store) -> None:
    from siteloom.operations.relearn import settle_review

    settle_review(lived_in, RESTAURANTS, accept=True)
    client = Browser(create_app(lived_in, Settings()))
    (alarm,) = [one for one in told(client, "/api/alarms")["alarms"] if one["kind"] == "bellwethers"]
    assert (alarm["is_open"], alarm["ended"]) == (False, "version 2 took its place")
    assert (alarm["repair"]["state"], alarm["repair"]["version_after"]) == ("applied", 2)
    assert "version 2 took its place" in client.look("/monitoring/alarms")


def test_only_those_who_may_see_buttons(lived_in: Store) -> None:
    people = People(create_app(lived_in, Settings()), lived_in)
    people.add("ana", "admin")
    paths = ("/monitoring", f"/sites/{GUIDE}/health", "/monitoring/alarms")
    viewer, editor = people.browser("vera", "viewer"), people.browser("ed", "editor")
    for path in paths:
        assert not tree(viewer, path).xpath("//main//form[@action = '/jobs']")
        assert tree(editor, path).xpath("//main//form[@action = '/jobs']")


@pytest.mark.parametrize("path", ["/monitoring", "/monitoring/alarms", f"/sites/{GUIDE}/health"])
def test_strangers_are_sent_away(lived: Store, path: str) -> None:
    app = create_app(lived, Settings())
    elsewhere = Browser(app, "http://siteloom.example", address="192.0.2.1")
    assert elsewhere.get(path).status_code in (303, 401, 403)
    assert elsewhere.get(f"/api{path}").status_code in (401, 403, 404)


# ---- how long something is wrong


def check(
    number: int, *, is_healthy: bool = False, version: int | None = 1, kind: str = "output"
) -> PastCheck:
    return PastCheck(number, number, "w", version, day(number), kind, is_healthy)


def test_checks_without_a_healthy_one_in_between_are_one_alarm() -> None:
    checks = [check(1), check(2), check(3, is_healthy=True), check(4), check(5, kind="bellwethers")]
    still, over = streaks_of(checks, {"w": 1})
    assert (still.first.id, [one.id for one in still.last], still.is_open) == (4, [5, 4], True)
    assert (over.first.id, [one.id for one in over.last], over.times, over.is_open) == (1, [2], 2, False)
    assert (over.ended, over.ended_at) == ("a check found it healthy", day(3))


def test_an_alarm_is_over_when_all_that_raised_it_are_healthy() -> None:
    checks = [check(1), check(2, kind="bellwethers"), check(3, kind="bellwethers", is_healthy=True)]
    (still,) = streaks_of(checks, {"w": 1})
    assert ([one.id for one in still.last], still.times, still.is_open) == ([1], 2, True)
    (over,) = streaks_of([*checks, check(4, is_healthy=True)], {"w": 1})
    assert (over.first.id, over.times, over.ended_at) == (1, 2, day(4))


def test_what_was_wrong_with_an_earlier_version_is_over() -> None:
    still, over = streaks_of([check(1), check(2, version=2)], {"w": 2})
    assert (still.first.id, still.is_open) == (2, True)
    assert (over.ended, over.ended_at) == ("version 2 took its place", day(2))
    (replaced,) = streaks_of([check(1)], {"w": 3})
    assert (replaced.is_open, replaced.ended) == (False, "version 3 took its place")
    (gone,) = streaks_of([check(1)], {})
    assert (gone.is_open, gone.ended) == (False, "the wrapper is out of force")
    (of_a_file,) = streaks_of([check(1, version=None)], {"w": 3})
    assert of_a_file.is_open


# ---- over time


class Clock:
    def __init__(self) -> None:
        self.now = day(0)

    def __call__(self) -> datetime:
        self.now += timedelta(hours=1)
        return self.now


@pytest.fixture
def shop(empty_store: Store) -> Store:
    """A site with a wrapper, and a clock that goes on."""
    store = replace(empty_store, clock=Clock())
    put(store, *(page(f"https://{SHOP}/{number}") for number in range(3)))
    store.save_wrapper(f"{SHOP}/1", SHOP, "{}", "learn")
    return store


def counted(pages: int, name: float, *, on_site: bool = True) -> list[list[Any]]:
    """What a run counts that reads pages of the shop and of another site."""
    records = pages // 2
    own: dict[tuple[str, ...], int] = {
        ("pages",): pages,
        ("passed url",): 2 * pages,
        ("passed signature",): pages,
        ("unmatched",): pages // 4,
        ("failed", "no values"): pages // 4,
    }
    tally: dict[tuple[str, ...], int] = {
        ("pages",): 2 * pages,
        ("passed url",): 2 * pages,
        ("passed signature",): pages,
        ("records",): records,
        ("records of", f"{SHOP}/1"): records,
        ("filled", f"{SHOP}/1", "name"): int(records * name),
        ("unmatched", "other.example/*"): pages,
        ("failed", "no wrapper for the site"): pages,
        ("failed", "no values"): pages // 4,
    }
    if on_site:
        tally |= {("on", SHOP, *key): count for key, count in own.items()}
    return [[*key, count] for key, count in tally.items()]


def extract(store: Store, tally: list[list[Any]], site: str | None = None, *, cut: bool = False) -> None:
    with suppress(ZeroDivisionError), store.extracting({"site": site}, str(store.clock())) as extraction:
        extraction.commit(0, [], [], {"tally": tally})
        if cut:
            raise ZeroDivisionError


def test_runs_for_all_sites_tell_of_each_site(shop: Store) -> None:
    extract(shop, counted(100, 1.0))
    extract(shop, counted(200, 0.5), cut=True)
    client = Browser(create_app(shop, Settings()))
    one, two = told(client, f"/api/sites/{SHOP}/health")["over_time"]["runs"]
    assert (one["pages"], one["records"], one["unmatched"]) == (100, 50, 0.25)
    assert (one["passed_url"], one["passed_signature"]) == (2, 1)
    assert one["failures"] == {"no values": 25}
    assert [run["filled"] for run in (one, two)] == [
        {f"{SHOP}/1": {"name": 1.0}},
        {f"{SHOP}/1": {"name": 0.5}},
    ]
    assert (one["status"], two["status"]) == ("done", "failed")
    over_all, _ = told(client, "/api/monitoring")["over_time"]["runs"]
    assert (over_all["pages"], over_all["unmatched"]) == (200, 0.5)
    assert over_all["failures"] == {"no wrapper for the site": 100, "no values": 25}


def test_a_run_that_does_not_tell_of_the_site_leaves_a_gap(shop: Store) -> None:
    extract(shop, counted(100, 1.0, on_site=False))
    extract(shop, counted(100, 1.0, on_site=False), SHOP)
    extract(shop, counted(100, 1.0, on_site=False), "other.example")
    client = Browser(create_app(shop, Settings()))
    gap, own = told(client, f"/api/sites/{SHOP}/health")["over_time"]["runs"]
    assert (gap["pages"], gap["unmatched"], gap["records"]) == (None, None, 50)
    assert (own["pages"], own["unmatched"]) == (200, 0.5)


def test_charts_are_drawn_and_told_as_a_table(shop: Store) -> None:
    for name in (0.9, 0.8, 0.2):
        extract(shop, counted(100, name))
    root = tree(Browser(create_app(shop, Settings())), f"/sites/{SHOP}/health")
    captions = [" ".join(one.text_content().split()) for one in root.xpath("//figcaption")]
    assert captions == [
        "Pages read by each extraction 100",
        "Records 50",
        "Pages that no wrapper is for 25 %",
        "Wrappers per page",
        "Pages that gave no record 25",
        "name 20 %",
    ]
    assert "no values" in root.xpath("//*[@class = 'plain chart-keys']")[-1].text_content()
    assert all(one.get("aria-label") for one in root.xpath("//figure//svg"))
    table = root.xpath("//details[contains(@class, 'chart-table')]")[-1]
    assert [" ".join(one.text_content().split()) for one in table.xpath(".//td")] == [
        "20 %",
        "80 %",
        "90 %",
    ]
    assert not root.xpath("//@style")


def test_of_many_runs_some_are_drawn(shop: Store) -> None:
    for _ in range(POINTS_DRAWN + 15):
        extract(shop, counted(8, 1.0))
    client = Browser(create_app(shop, Settings()))
    found = told(client, f"/api/sites/{SHOP}/health")["over_time"]
    assert (len(found["runs"]), found["all_runs"]) == (POINTS_DRAWN, POINTS_DRAWN + 15)
    assert found["runs"][-1]["run"] == max(run.id for run in shop.run_history.runs())
    assert f"Of {POINTS_DRAWN + 15} runs {POINTS_DRAWN} are drawn" in client.look(f"/sites/{SHOP}/health")


def test_a_period_looks_back_so_far(shop: Store) -> None:
    extract(shop, counted(100, 1.0))
    clock = shop.clock
    assert isinstance(clock, Clock)
    clock.now += timedelta(days=20)
    extract(shop, counted(100, 1.0))
    client = Browser(create_app(shop, Settings()))
    counts = {
        period: len(told(client, f"/api/monitoring?period={period}")["over_time"]["runs"])
        for period in ("week", "month", "year", "all")
    }
    assert counts == {"week": 1, "month": 2, "year": 2, "all": 2}
    assert client.get("/monitoring?period=never").status_code == 422


def test_an_extraction_that_was_killed_is_drawn_as_cut_short(shop: Store) -> None:
    run = recorded_run(shop.engine, shop.clock, "extract", {"site": None})
    run.__enter__()
    client = Browser(create_app(shop, Settings()))
    (killed,) = told(client, "/api/monitoring")["over_time"]["runs"]
    assert (killed["status"], killed["pages"]) == ("killed", None)
    assert "cut short" in client.look("/monitoring")


# ---- what is said is true, and said once


def changed(test: str, *attributes: str, url: str = "") -> dict[str, Any]:
    """A change as a check keeps it."""
    evidence = [
        {"url": url, "attribute": name, "before": ["x"], "after": [], "finding": f"{test} {url}"}
        for name in attributes or ("",)
    ]
    return {
        "wrapper": f"{SHOP}/1",
        "test": test,
        "attributes": list(attributes),
        "share": 0.5,
        "evidence": evidence,
    }


def save_check(store: Store, kind: str, *changes: dict[str, Any], version: int = 1) -> None:
    content: dict[str, Any] = {"changes": list(changes)}
    with store.recording("monitor", {}) as run:
        store.save_check(run.id, f"{SHOP}/1", version, kind, not changes, content)


def test_a_check_of_an_earlier_version_says_nothing_of_the_one_in_force(shop: Store) -> None:
    save_check(shop, "bellwethers", changed("null", "name", url="https://shop.example/1"))
    client = Browser(create_app(shop, Settings()))
    assert told(client, f"/api/sites/{SHOP}/health")["health"] == "broken"
    shop.save_wrapper(f"{SHOP}/1", SHOP, shop.wrapper(f"{SHOP}/1").text, "repaired")
    found = told(client, f"/api/sites/{SHOP}/health")
    assert found["sentence"] == f"{SHOP}/1 was not checked since version 2."
    assert (found["health"], found["checked_at"]) == ("unchecked", None)
    assert "Not checked since it changed" in client.look(f"/sites/{SHOP}/health")
    shop.save_wrapper(f"{SHOP}/2", SHOP, shop.wrapper(f"{SHOP}/1").text, "learn")
    save_check(shop, "bellwethers", version=2)
    sentence = told(client, f"/api/sites/{SHOP}/health")["sentence"]
    assert sentence.startswith("1 of its 2 wrappers was healthy when last checked, ")
    assert sentence.endswith(f"; {SHOP}/2 was not checked yet.")


def test_what_pages_and_records_show_is_one_alarm(shop: Store) -> None:
    save_check(shop, "bellwethers", changed("null", "name", url="https://shop.example/1"))
    save_check(shop, "output", changed("null", "name"), changed("null", "price"))
    found = told(Browser(create_app(shop, Settings())), f"/api/sites/{SHOP}/health")
    (alarm,) = found["alarms"]
    assert (found["open_alarms"], alarm["kind"], alarm["times"]) == (1, "bellwethers", 2)
    assert alarm["output_run"] == shop.runs(1)[0].id
    assert [one["sentence"].split(":")[0] for one in alarm["changes"]] == ["name", "price"]


def test_no_sentence_of_an_alarm_is_said_twice(shop: Store) -> None:
    save_check(shop, "output", changed("shingle"), changed("shingle"))
    client = Browser(create_app(shop, Settings()))
    (alarm,) = told(client, "/api/alarms")["alarms"]
    (change,) = alarm["changes"]
    assert len(change["evidence"]) == 2
    assert client.look("/monitoring/alarms").count("Many more pages than before give no record") == 1


def test_what_is_left_of_a_repair_in_part_is_not_to_be_repaired_again(shop: Store) -> None:
    name = f"{SHOP}/1"
    shop.save_wrapper(name, SHOP, shop.wrapper(name).text, "needs-annotation")
    content: dict[str, Any] = {
        "reason": "",
        "attributes": {},
        "diff": {"rules": [], "values": []},
        "annotate": [],
    }
    with shop.recording("relearn", {}) as run:
        shop.save_repair(run.id, name, 1, 2, "needs-annotation", "annotation", 0.5, None, content)
    save_check(shop, "bellwethers", changed("null", "name", url="https://shop.example/1"), version=2)
    client = Browser(create_app(shop, Settings()))
    found = told(client, f"/api/sites/{SHOP}/health")
    (alarm,) = found["alarms"]
    assert (found["next_step"]["kind"], alarm["repair"]["state"]) == ("annotate", "annotation")
    shown = client.look(f"/sites/{SHOP}/health")
    assert "No repair was tried yet" not in shown
    assert "Repair it" not in shown


# ---- nothing, and what is hostile


def test_an_empty_workspace_says_what_to_do(app: Any, people: People) -> None:
    ana = people.browser("ana", "admin")
    assert "There are no sites yet." in ana.look("/monitoring")
    assert "/add" in links(tree(ana, "/monitoring"))
    assert "No alarm was ever raised" in ana.look("/monitoring/alarms")
    assert ana.get("/sites/none.example/health").status_code == 404
    assert ana.get("/api/sites/none.example/health").status_code == 404


def test_a_site_that_nothing_happened_to(shop: Store) -> None:
    client = Browser(create_app(shop, Settings()))
    found = told(client, f"/api/sites/{SHOP}/health")
    assert (found["health"], found["sentence"]) == ("unchecked", "Nothing was checked yet.")
    assert found["next_step"]["kind"] == "watch"
    assert "No records were extracted yet" in client.look(f"/sites/{SHOP}/health")


def test_what_pages_say_is_text(shop: Store) -> None:
    evidence = {
        "url": f"javascript:{HOSTILE}",
        "attribute": HOSTILE,
        "before": [HOSTILE],
        "after": [],
        "finding": HOSTILE,
    }
    change = {
        "wrapper": f"{SHOP}/1",
        "test": "null",
        "attributes": [HOSTILE],
        "share": 0.5,
        "evidence": [evidence],
    }
    with shop.recording("monitor", {}) as run:
        shop.save_check(run.id, f"{SHOP}/1", 1, "bellwethers", False, {"changes": [change]})
    extract(shop, [["pages", 4], ["failed", HOSTILE, 1]])
    client = Browser(create_app(shop, Settings()))
    for path in ("/monitoring", "/monitoring/alarms", f"/sites/{SHOP}/health"):
        root = tree(client, path)
        assert not root.xpath("//main//img | //main//script | //@onerror")
        assert not [link for link in links(root) if link.startswith("javascript")]
        assert HOSTILE in root.text_content()


# ---- many sites


def test_a_hundred_alarms_take_as_many_questions_as_one(lived_in: Store) -> None:
    browser = Browser(create_app(lived_in, Settings()))
    asked: list[str] = []
    event.listen(lived_in.engine, "before_cursor_execute", lambda *given: asked.append(given[2]))

    def questions() -> int:
        asked.clear()
        assert told(browser, "/api/monitoring")["open_alarms"]
        return len(asked)

    change = {"test": "value", "attributes": ["name"], "share": 0.5, "evidence": []}
    before = questions()
    put(lived_in, *(page(f"https://s{n}.example/") for n in range(100)))
    with lived_in.recording("monitor", {}) as run:
        for n in range(100):
            lived_in.save_wrapper(f"s{n}.example/1", f"s{n}.example", "{}", "learn")
            lived_in.save_check(run.id, f"s{n}.example/1", 1, "output", False, {"changes": [change]})
    # Of the first few alarms all is told; of all others only a sentence.
    assert questions() < before + 100


def test_the_repair_of_a_site_is_led_to_itself(client: Browser, lived: Store) -> None:
    (repair,) = lived.reviewing.repairs()
    path = f"/review?item=repair-{repair.id}"
    assert path in links(tree(client, f"/sites/{GUIDE}/health"))
    assert path in links(tree(client, "/monitoring"))
