"""Wrappers: their rules in words, their versions, what differs between these, and their files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from lxml import html
from sqlalchemy import update

from siteloom.apps.server import create_app
from siteloom.apps.server.html_rendering import in_code
from siteloom.apps.server.views.wrappers import marked, marked_lists
from siteloom.apps.server.work import KINDS
from siteloom.core.errors import Overtaken, StoreError
from siteloom.core.settings import AlarmSettings, ChangeSettings, Settings, StoreSettings
from siteloom.store import schema
from siteloom.store.queries.wrappers import WITHDRAWN
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from siteloom.wrappers.wrapper import Wrapper
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.lived_in import GUIDE

NAME, LISTS = f"{GUIDE}/1", f"{GUIDE}/3"
HOSTILE = """<script>"o'x"</script> %2F ?#é/1"""


def settings_of(store: Store, **others: Any) -> Settings:
    return Settings(store=StoreSettings(str(store.folder)), **others)


def do(store: Store, kind: str, settings: Settings | None = None, /, **arguments: object) -> dict[str, Any]:
    """What comes of a job, done here and now."""
    known = KINDS[kind]
    whole = {name: arguments.get(name) for name in known.arguments}
    return known.run(store, settings or settings_of(store), whole, _unheard)


def _unheard(*_: object) -> None:
    """Nobody listens."""


@pytest.fixture
def app(lived_in: Store) -> FastAPI:
    return create_app(lived_in, settings_of(lived_in))


@pytest.fixture
def browser(app: FastAPI) -> Browser:
    return Browser(app)


@pytest.fixture(scope="module")
def repaired_folder(lived_in_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same workspace, the repair accepted."""
    folder = shutil.copytree(lived_in_folder, tmp_path_factory.mktemp("repaired") / ".siteloom")
    with closing(open_store(StoreSettings(str(folder)))) as store:
        (repair,) = store.reviewing.repairs()
        assert do(store, "accept", wrapper=NAME, repair=repair.id)["version"] == 2
    return folder


@pytest.fixture
def repaired(repaired_folder: Path, tmp_path: Path) -> Iterator[Store]:
    folder = shutil.copytree(repaired_folder, tmp_path / "repaired")
    with closing(open_store(StoreSettings(str(folder)))) as store:
        yield store


@pytest.fixture
def looking(repaired: Store) -> Browser:
    """A browser at the workspace whose repair was accepted."""
    return Browser(create_app(repaired, settings_of(repaired)))


def path(name: str = NAME) -> str:
    return f"/wrappers/{quote(name)}"


def buttons(browser: Browser, address: str) -> list[str]:
    tree = html.fromstring(browser.get(address).text)
    return [
        " ".join(one.text_content().split()) for one in tree.xpath("//main//form[@method='post']//button")
    ]


# ---- the rules


def test_rules_are_told_in_words_and_as_xpath(browser: Browser, lived_in: Store) -> None:
    told = browser.look(path())
    wrapper = Wrapper.from_json(lived_in.wrapper(NAME).text)
    assert "the text right after 'Address:'" in told
    assert "A page has several records" in browser.look(path(LISTS))
    found = browser.get(f"/api{path()}").json()
    assert [one["name"] for one in found["attribute_list"]] == list(wrapper.attributes)
    (address,) = (one for one in found["attribute_list"] if one["name"] == "address")
    (rule,) = address["rules"]
    assert " ".join(rule["xpath"].split()) in told
    assert rule["why"].startswith("it found 4 example values")
    assert (address["type"], address["multi"], address["mandatory"]) == ("text", False, True)
    assert address["filled"] == 1
    assert 0.9 < address["confidence"] <= 1
    assert "characters long" in address["contract"][0]
    assert found["cluster"] == NAME
    assert found["footprint"]["url_patterns"][0].startswith("^https?://")


def test_a_wrapper_can_be_tried_on_any_page(browser: Browser, lived_in: Store) -> None:
    tree = html.fromstring(browser.get(f"{path()}?version=1").text)
    (form,) = tree.xpath("//form[@action='/pages/at']")
    assert dict(form.form_values()) == {"wrapper": NAME, "wrapper_version": "1"}
    links = tree.xpath("//section[@id='try']//li/a/@href")
    assert links
    assert all(f"?wrapper={quote(NAME, safe='')}&wrapper_version=1" in link for link in links)
    assert browser.get(links[0]).status_code == 200


def test_all_wrappers_are_listed(browser: Browser, lived_in: Store) -> None:
    lived_in.save_wrapper("of/tomorrow", "b.example", '{"format": 999}', "learn")
    states = {one["name"]: one["state"] for one in browser.get("/api/wrappers").json()}
    assert states == {NAME: "repair waits", LISTS: "broken", "of/tomorrow": "in force"}
    assert NAME in browser.look("/wrappers")


@pytest.mark.parametrize(
    "address",
    ["/wrappers/no.example/1", f"{path()}?version=7", f"{path()}/diff?a=1&b=7", "/wrappers/a/download.json"],
)
def test_what_is_not_there_is_said(browser: Browser, address: str) -> None:
    answer = browser.get(address)
    assert answer.status_code == 404
    assert "There is no" in answer.text


@pytest.mark.parametrize("version", ["0", "-1", "x", str(2**70)])
def test_no_version_breaks_the_page(browser: Browser, version: str) -> None:
    assert browser.get(f"{path()}?version={version}").status_code == 422


def test_hostile_names_are_shown_as_they_are(browser: Browser, lived_in: Store) -> None:
    lived_in.save_wrapper(HOSTILE, "<b>site</b>", lived_in.wrapper(LISTS).text, "learn", "<i>note</i>")
    lived_in.save_wrapper(HOSTILE, "<b>site</b>", lived_in.wrapper(NAME).text, "learn")
    for address in ("", "?version=1", "/diff?a=1&b=2"):
        text = browser.get(path(HOSTILE) + address).text
        assert "<script>&#34;" not in text
        assert "<script>\"o'x" not in text
        assert "<i>note" not in text
    tree = html.fromstring(browser.get("/wrappers").text)
    (link,) = (one for one in tree.xpath("//main//td/../th/a") if one.text_content() == HOSTILE)
    assert browser.get(link.get("href")).status_code == 200
    file = browser.get(f"{path(HOSTILE)}/download.json")
    assert file.headers["content-disposition"] == "attachment; filename=script-o-x-script-2F-1-2.json"


# ---- versions


def test_versions_are_told_with_what_differs(looking: Browser, repaired: Store) -> None:
    told = looking.look(path())
    assert "Version 2 in force repaired" in told
    assert "accepted by review; confidence 85" in told
    newest, first = looking.get(f"/api{path()}").json()["versions"]
    assert (newest["version"], newest["origin"], newest["confidence"]) == (2, "repaired", 0.85)
    assert (first["version"], first["origin"], first["rules"]) == (1, "learn", [])
    assert {"attribute": "address", "before": ["the text right after 'Address:'"]}.items() <= {
        key: value for one in newest["rules"] if one["attribute"] == "address" for key, value in one.items()
    }.items()


def test_an_older_version_is_shown_as_it_was(looking: Browser, repaired: Store) -> None:
    told = looking.look(f"{path()}?version=1")
    assert "This is version 1. In force is version 2." in told
    assert "'Address:'" in told
    assert looking.get(f"/api{path()}?version=1").json()["shown_version"] == 1


def test_two_versions_side_by_side(looking: Browser, repaired: Store) -> None:
    tree = html.fromstring(looking.get(f"{path()}/diff?a=1&b=2").text)
    assert "'Address:'" in tree.xpath("//del/text()")
    assert "'Find it'" in tree.xpath("//ins/text()")
    found = looking.get(f"/api{path()}/diff?a=1&b=2").json()
    assert len(found["rules"]) == 12
    assert found["values"][0]["before"] != found["values"][0]["known"]
    assert found["values"][0]["page"] is not None
    backwards = looking.get(f"/api{path()}/diff?a=2&b=1").json()
    assert backwards["values"] == []
    assert backwards["rules"][0]["after"] == found["rules"][0]["before"]
    assert "Both have the same rules" in looking.look(f"{path()}/diff?a=1&b=1")


def test_files_are_what_the_library_writes(looking: Browser, repaired: Store) -> None:
    for version in (1, 2):
        wrapper = Wrapper.from_json(repaired.wrapper(NAME, version).text)
        answer = looking.get(f"{path()}/download.json?version={version}")
        assert answer.text == wrapper.to_json()
        assert answer.headers["content-type"] == "application/json"
        tree = html.fromstring(looking.get(f"{path()}?version={version}").text)
        sheets = tree.xpath("//section[@id='files']//a[contains(@href, 'xslt')]/@href")
        for layout, link in zip(wrapper.layouts, sheets, strict=True):
            sheet = looking.get(link)
            assert sheet.text == layout.to_xslt()
            assert f"-{version}.xslt" in sheet.headers["content-disposition"]
    assert looking.get(f"{path()}/download.xslt").status_code == 400  # it has two layouts
    assert looking.get(f"{path()}/download.xslt?layout=3").status_code == 404
    assert looking.get(f"{path()}/download.json").text == repaired.wrapper(NAME).text
    assert looking.get(f"{path()}/download.exe").status_code == 422


def test_a_withdrawn_wrapper_can_be_looked_at_and_put_back(browser: Browser, lived_in: Store) -> None:
    lived_in.save_wrapper(LISTS, GUIDE, lived_in.wrapper(LISTS).text, WITHDRAWN)
    told = browser.look(path(LISTS))
    assert "Withdrawn" in told
    assert "It is out of force" in told
    assert buttons(browser, path(LISTS)) == ["Roll back to it"]
    do(lived_in, "rollback", wrapper=LISTS, version=1)
    assert browser.get(f"/api{path(LISTS)}").json()["state"] == "in force"


def test_rolling_back_and_back_again(looking: Browser, repaired: Store) -> None:
    assert "Roll back to it" in buttons(looking, path())
    result = do(repaired, "rollback", wrapper=NAME, version=1)
    assert result["watched"]["wrapper"] == NAME
    del result["watched"]
    assert result == {
        "site": GUIDE,
        "wrapper": NAME,
        "restored_version": 1,
        "version": 3,
        "previous_version": 2,
        "can_undo": True,
    }
    assert repaired.wrapper(NAME).text == repaired.wrapper(NAME, 1).text
    do(repaired, "rollback", wrapper=NAME, version=2)
    assert repaired.wrapper(NAME).text == repaired.wrapper(NAME, 2).text
    with pytest.raises(StoreError, match="in force already"):
        do(repaired, "rollback", wrapper=NAME, version=4)


def test_viewers_see_no_buttons_and_may_press_none(looking: Browser, repaired: Store) -> None:
    people = People(looking.app, repaired)
    people.add("ana", "admin")
    viewer = people.browser("vita", "viewer")
    for address in (path(), f"{path()}?version=1", f"{path()}/diff?a=1&b=2"):
        assert buttons(viewer, address) == []
    viewer.look(path())
    answer = viewer.post("/jobs", {"kind": "rollback", "wrapper": NAME, "version": "1"})
    assert answer.status_code == 403
    assert repaired.jobs.latest(1) == []


# ---- jobs


def test_only_the_repair_that_was_seen_is_accepted(lived_in: Store) -> None:
    (seen,) = lived_in.reviewing.repairs()
    with lived_in.recording("relearn", {}) as run:
        newer = lived_in.save_repair(run.id, *seen[2:8], seen.text, seen.content)
    for kind in ("accept", "reject"):
        with pytest.raises(Overtaken, match="waits no more, for there is a newer one"):
            do(lived_in, kind, wrapper=NAME, repair=seen.id)
    assert [one.id for one in lived_in.reviewing.repairs()] == [newer]
    do(lived_in, "accept", wrapper=NAME, repair=newer)
    with pytest.raises(StoreError, match="No repair of the wrapper"):
        do(lived_in, "accept", wrapper=NAME, repair=newer)


def test_a_rejected_repair_is_put_back(lived_in: Store) -> None:
    (repair,) = lived_in.reviewing.repairs()
    with pytest.raises(Overtaken, match="is not what was decided last"):
        do(lived_in, "reopen", wrapper=NAME, repair=repair.id)
    do(lived_in, "reject", wrapper=NAME, repair=repair.id)
    assert lived_in.reviewing.repairs() == []
    do(lived_in, "reopen", wrapper=NAME, repair=repair.id)
    assert lived_in.reviewing.repairs() == [repair]
    do(lived_in, "reject", wrapper=NAME, repair=repair.id)
    lived_in.save_wrapper(NAME, GUIDE, lived_in.wrapper(NAME).text, "learn")
    with pytest.raises(Overtaken, match="another version by now"):
        do(lived_in, "reopen", wrapper=NAME, repair=repair.id)


def test_watched_compared_and_repaired_from_the_browser(lived_in: Store, tmp_path: Any) -> None:
    heard = tmp_path / "alarm.jsonl"
    loud = settings_of(
        lived_in, alarm=AlarmSettings(command=f"tee {heard}"), change=ChangeSettings(accept=100)
    )
    found = do(lived_in, "monitor", loud, site=GUIDE)
    states = {check["wrapper"]: check["state"] for check in found["checks"]}
    assert states == {NAME: "changed", LISTS: "healthy"}
    assert found["problems"] == []
    assert '"test": "null"' in heard.read_text()
    (repaired,) = do(lived_in, "relearn", loud, wrapper=NAME)["repairs"]
    assert (repaired["state"], repaired["outcome"]) == ("review", "repaired")
    assert repaired["attributes"]["name"]["state"] == "repaired"
    (watched,) = do(lived_in, "watch", wrapper=LISTS)["watched"]
    assert watched["watched_pages"] == 4


def test_jobs_about_nothing_say_so(lived_in: Store, empty_store: Store) -> None:
    with pytest.raises(StoreError, match=r"There is no wrapper for tableatlas\.example yet"):
        do(lived_in, "watch", site="tableatlas.example")
    lived_in.save_wrapper("b", "tableatlas.example", lived_in.wrapper(LISTS).text, "learn")
    with pytest.raises(StoreError, match=r"No page of tableatlas\.example is watched"):
        do(lived_in, "monitor", site="tableatlas.example")
    with pytest.raises(StoreError, match="There are no wrappers yet"):
        do(empty_store, "relearn")


def test_the_page_of_each_job_tells_what_came_of_it(browser: Browser, lived_in: Store) -> None:
    (repair,) = lived_in.reviewing.repairs()
    asked: list[tuple[str, dict[str, object], str]] = [
        ("reject", {"wrapper": NAME, "repair": repair.id}, "is rejected"),
        ("reopen", {"wrapper": NAME, "repair": repair.id}, "waits again"),
        ("accept", {"wrapper": NAME, "repair": repair.id}, "is in force as version 2"),
        ("rollback", {"wrapper": NAME, "version": 1}, "that is now its version 3"),
        ("watch", {"wrapper": LISTS}, "Pages watched"),
        ("monitor", {"wrapper": LISTS}, "healthy"),
        ("relearn", {"site": "tableatlas.example"}, "nothing was to be repaired"),
        ("dismiss", {"cluster": "tableatlas.example/1"}, "is not asked about any more"),
        ("restore", {"cluster": "tableatlas.example/1"}, "Look at it"),
    ]
    for kind, arguments, told in asked:
        job = lived_in.jobs.add(kind, arguments, "ana")
        lived_in.jobs.end(job.id, "done", do(lived_in, kind, **arguments))
        assert told in browser.look(f"/jobs/{job.id}"), kind


OLD_RESULTS: dict[str, dict[str, Any]] = {
    "watch": {
        "site": None,
        "wrapper": LISTS,
        "watched": [
            {
                "wrapper": LISTS,
                "version": 1,
                "bellwethers": 4,
                "reason": "",
                "pages": 8,
                "fruitless": 0,
                "warning": "",
            }
        ],
    },
    "monitor": {
        "site": None,
        "wrapper": LISTS,
        "checked": [
            {
                "wrapper": LISTS,
                "compared": 4,
                "gone": 0,
                "drifted": 0,
                "verdict": "changed",
                "changes": [{"test": "null", "attributes": ["name"], "share": 1.0}],
            }
        ],
        "problems": [],
    },
    "relearn": {
        "site": None,
        "wrapper": NAME,
        "mended": [
            {
                "wrapper": NAME,
                "version_before": 1,
                "version_after": 2,
                "state": "applied",
                "outcome": "repaired",
                "confidence": 0.95,
                "reason": "",
                "attributes": {"repaired": ["name"]},
            }
        ],
        "to_extract": [GUIDE],
    },
    "accept": {"site": GUIDE, "wrapper": NAME, "version": 2, "version_before": 1},
    "leave_out": {"site": GUIDE, "wrapper": NAME, "version": 2, "version_before": 1, "note": "without name"},
    "reject": {"wrapper": NAME, "version": 1, "repair": 1},
    "reopen": {"wrapper": NAME, "repair": 1},
    "rollback": {"site": GUIDE, "wrapper": NAME, "as_version": 1, "version": 3, "version_before": 2},
    "dismiss": {"cluster": f"{GUIDE}/2"},
    "restore": {"cluster": f"{GUIDE}/2"},
}
"""Results of jobs as version 1.0 stored them."""


@pytest.mark.parametrize("kind", OLD_RESULTS)
def test_the_page_of_a_job_of_version_1_0_opens(browser: Browser, lived_in: Store, kind: str) -> None:
    job = lived_in.jobs.add(kind, {}, "ana")
    lived_in.jobs.end(job.id, "done", OLD_RESULTS[kind])
    assert "done" in browser.look(f"/jobs/{job.id}")
    assert browser.get(f"/api/jobs/{job.id}").json()["result"] == OLD_RESULTS[kind]


def test_records_are_counted_once_however_often_sites_were_extracted(
    browser: Browser, lived_in: Store
) -> None:
    def counted() -> dict[str, int]:
        return {one["name"]: one["records"] for one in browser.get("/api/wrappers").json()}

    table = lived_in.record_table
    do(lived_in, "extract")
    do(lived_in, "extract", site=GUIDE)
    held = {one.wrapper: one.records for one in table.counts(table.scope())}
    assert {name: count for name, count in counted().items() if count} == held
    assert browser.get(f"/api/wrappers/{quote(NAME)}").json()["records"] == held.get(NAME, 0)
    concerns = {one["name"]: one["concerns"] for one in browser.get("/api/review").json()["items"]}
    assert concerns[NAME] == held.get(NAME) or not held.get(NAME)
    in_all = sum(one["records"] for one in browser.get("/api/sites").json())
    assert in_all == sum(held.values())


def test_a_run_that_kept_no_counts_is_in_nobodys_way(browser: Browser, lived_in: Store) -> None:
    with lived_in.engine.begin() as connection:
        connection.execute(update(schema.extracted_shards).values(summary={}))
    for path in ("/", "/review", "/wrappers", "/monitoring", "/seeds", "/entities", "/records"):
        assert browser.get(path).status_code == 200, path


def test_versions_are_the_same_only_if_nothing_differs(browser: Browser, lived_in: Store) -> None:
    """Whatever is changed of a wrapper is told, although the words of its rules stay."""
    first = lived_in.wrapper(NAME)
    wrapper = Wrapper.from_json(first.text)
    name, rules = next((name, one) for name, one in wrapper.attributes.items() if one.rules)

    def diff(changed: Wrapper) -> tuple[dict[str, Any], str]:
        version = lived_in.save_wrapper(NAME, GUIDE, changed.to_json(), "learn")
        query = f"/wrappers/{quote(NAME)}/diff?a={first.version}&b={version}"
        return browser.get(f"/api{query}").json(), browser.look(query)

    def with_rules(**changed: Any) -> Wrapper:
        return replace(wrapper, attributes={**wrapper.attributes, name: replace(rules, **changed)})

    told, shown = diff(replace(wrapper, footprint=replace(wrapper.footprint, accepted=())))
    assert (told["rules"], told["others"], told["layouts"]) == ([], [], [])
    assert "Both have the same rules." in shown
    for changed, words in (
        (with_rules(voters=()), "the rules that are asked whether they agree"),
        (with_rules(contract=None), "what right values are like"),
        (with_rules(attribute=replace(rules.attribute, mandatory=not rules.attribute.mandatory)), "must be"),
        (replace(wrapper, labels=frozenset({"Only a label"})), "other texts that name values"),
        (replace(wrapper, earlier=(replace(wrapper, earlier=()),)), "other layouts that the pages had"),
    ):
        told, shown = diff(changed)
        assert told["rules"] == [], words
        assert words in shown
        assert "Both have the same rules" not in shown
        assert (name in told["same"]) == ("other" in words)


# ---- words


@given(st.text("ab c`", max_size=12), st.text("ab c`", max_size=12))
def test_marked_words_are_the_words(before: str, after: str) -> None:
    pair = marked(before, after)
    assert "".join(one.text for one in pair.before) == before
    assert "".join(one.text for one in pair.after) == after
    same = ["".join(one.text for one in some if not one.is_changed) for some in pair]
    assert same[0] == same[1]
    assert (before == after) == (not any(one.is_changed for some in pair for one in some))


def test_lists_of_words_are_paired() -> None:
    first, second = marked_lists(["the text"], ["the link", "any"])
    assert [one.is_changed for one in first.before] == [False, True]
    assert second.before == []
    assert [one.text for one in second.after] == ["any"]


def test_code_is_code_and_nothing_else_is() -> None:
    assert in_code("class `a b` <i>") == "class <code>a b</code> &lt;i&gt;"
    assert in_code("class `a <b> ` c ` d") == "class `a &lt;b&gt; ` c ` d"
