"""`siteloom learn` from end to end, on the built-in guide."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from typer.testing import CliRunner

from siteloom import Wrapper
from siteloom.apps.cli.main import app
from siteloom.apps.demo.sites import guide_site
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.model import Attribute
from siteloom.core.settings import StoreSettings
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.cli.command import Command, one_sentence

SITE = guide_site()
RESTAURANTS = [page for page in SITE if page.kind == "restaurant"][:20]
EVENTS = [page for page in SITE if page.kind == "event"][:10]
LISTS = [page for page in SITE if page.kind == "list"]
NAMES = ("name", "address", "cuisine", "phone")
EVENT_NAMES = ("venue", "performers")

Line = Mapping[str, Any]


def write_lines(file: Path, rows: Sequence[Line]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


@pytest.fixture
def crawl(siteloom: Command) -> str:
    pages = [*RESTAURANTS, *EVENTS, *LISTS[:4]]
    rows = [{"url": page.page.url, "html": page.page.html.decode()} for page in pages]
    return write_lines(siteloom.folder / "crawl.jsonl", rows)


def values(page: BuiltinPage, names: Sequence[str] = NAMES) -> dict[str, list[str]]:
    assert page.truth is not None
    return {name: list(page.truth[name]) for name in names}


def line(page: BuiltinPage, names: Sequence[str] = NAMES) -> dict[str, Any]:
    return {"url": page.page.url, "values": values(page, names)}


def examples(siteloom: Command, *rows: Line) -> str:
    return write_lines(siteloom.folder / "examples.jsonl", rows)


def wrapper_in(file: Path) -> Wrapper:
    return Wrapper.from_json(file.read_text(encoding="utf-8"))


def share_right(wrapper: Wrapper, pages: Sequence[BuiltinPage], names: Sequence[str] = NAMES) -> float:
    """The share of values that are right; none may be wrong."""
    right = count = 0
    for page in pages:
        found = wrapper.extract(page.page).values
        for name, known in values(page, names).items():
            assert set(found.get(name, ())) in (set(known), set()), (page.page.url, name)
            right += set(found.get(name, ())) == set(known)
            count += 1
    return right / count


def workspace(siteloom: Command) -> Store:
    return open_store(StoreSettings(str(siteloom.folder / ".siteloom")))


@pytest.fixture
def inside(siteloom: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The folder of a command as that of this process."""
    for name in [name for name in os.environ if name.startswith("SITELOOM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(siteloom.folder)
    return siteloom


def within(*arguments: str) -> CompletedProcess[str]:
    """A command in this very process, which takes less time."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)


# ---- a source


def test_a_wrapper_from_a_source(siteloom: Command, crawl: str) -> None:
    file = examples(siteloom, *map(line, RESTAURANTS[:4]))
    result = siteloom("learn", crawl, "--examples", file, "-o", "w.json")
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert "4 of 4" in result.stderr
    assert result.stderr.splitlines()[-1] == "The wrapper is in w.json."
    wrapper = wrapper_in(siteloom.folder / "w.json")
    assert list(wrapper.attributes) == list(NAMES)
    assert share_right(wrapper, RESTAURANTS) >= 0.9
    # Nothing else is left behind.
    assert sorted(path.name for path in siteloom.folder.iterdir()) == [
        "crawl.jsonl",
        "examples.jsonl",
        "w.json",
    ]


def test_a_wrapper_of_lists_by_a_schema_and_another_method(siteloom: Command, crawl: str) -> None:
    pages = [{"url": page.page.url, "html": page.page.html.decode()} for page in LISTS]
    lists = write_lines(siteloom.folder / "lists.jsonl", pages)
    records = [{name: list(texts) for name, texts in record.items()} for record in LISTS[0].records[:3]]
    file = examples(siteloom, {"url": LISTS[0].page.url, "records": records})
    schema = siteloom.folder / "schema.json"
    schema.write_text('{"price": {"type": "text", "mandatory": true}}')
    result = siteloom("learn", lists, "--examples", file, "--schema", str(schema), "-o", "list.json")
    assert result.returncode == 0, result.stderr
    wrapper = wrapper_in(siteloom.folder / "list.json")
    assert wrapper.record_rule is not None
    assert wrapper.attributes["price"].attribute.type == "text"
    for page in LISTS:
        names = [record.values["name"] for record in wrapper.extract_all(page.page)]
        assert names == [record["name"] for record in page.records]

    file = examples(siteloom, *map(line, RESTAURANTS[:3]))
    result = siteloom("learn", crawl, "--examples", file, "--method", "vertex", "-o", "vertex.json")
    assert result.returncode == 0, result.stderr
    found = wrapper_in(siteloom.folder / "vertex.json").extract(RESTAURANTS[0].page)
    assert list(found.values["name"]) == values(RESTAURANTS[0])["name"]


def test_a_contradiction_and_the_pages_to_look_at_next_are_told(siteloom: Command) -> None:
    def html(number: int) -> str:
        return f"<p class=a>A{number}</p><p class=b>B{number}</p>"

    pages = [{"url": f"https://shop.example/{n}", "html": html(n)} for n in range(12)]
    pages.append({"url": "https://shop.example/odd", "html": "<p class=b>odd</p><p class=b>x</p>"})
    crawl = write_lines(siteloom.folder / "crawl.jsonl", pages)
    rows = [{"url": f"https://shop.example/{n}", "values": {"x": f"A{n}"}} for n in range(4)]
    rows.append({"url": "https://shop.example/9", "values": {"x": "B9"}})
    result = siteloom("learn", crawl, "--examples", examples(siteloom, *rows), "-o", "w.json")
    assert result.returncode == 0, result.stderr
    assert (
        "https://shop.example/9: the example says x is 'B9', the wrapper finds 'A9', "
        "although the same rule is right on https://shop.example/0." in result.stderr
    )


# ---- the workspace


def test_examples_are_kept_and_wrappers_have_versions(inside: Command, crawl: str) -> None:
    within("init")
    within("ingest", crawl)
    within("cluster")
    first = within("learn", "--examples", examples(inside, *map(line, RESTAURANTS[:3])), "-o", "1.json")
    assert first.returncode == 0, first.stderr
    assert "3 examples are kept in the workspace." in first.stderr
    assert ", version 1" in first.stderr
    assert "3 of 3" in first.stderr
    assert first.stderr.splitlines()[-1] == "The wrapper is in 1.json, too."
    # One more, and all of them are used; the same one again does not count twice.
    more = examples(inside, line(RESTAURANTS[3]), line(RESTAURANTS[0]))
    second = within("learn", "--examples", more, "-o", "2.json")
    assert second.returncode == 0, second.stderr
    assert ", version 2" in second.stderr
    assert "4 of 4" in second.stderr
    # Without a file, those that are there; what is learned again is no new version.
    third = within("learn")
    assert third.returncode == 0, third.stderr
    assert ", version 2" in third.stderr
    assert share_right(wrapper_in(inside.folder / "2.json"), RESTAURANTS) >= 0.9
    store = workspace(inside)
    (site,) = [found.name for found in store.sites()]
    assert len(list(store.examples(site))) == 4
    store.close()


def test_what_no_example_tells_of_any_more_is_found_as_before(inside: Command, crawl: str) -> None:
    within("init")
    within("ingest", crawl)
    within("cluster")
    known = [line(page) for page in RESTAURANTS[:3]]
    assert "rollback" not in within("learn", "--examples", examples(inside, *known)).stderr
    fewer = [
        {"url": page.page.url, "values": {"name": list(values(page)["name"])}} for page in RESTAURANTS[:3]
    ]
    told = " ".join(within("learn", "--examples", examples(inside, *fewer)).stderr.split())
    assert "No example tells of address, cuisine, phone: found as before." in told
    with closing(workspace(inside)) as store:
        (stored,) = store.wrappers()
        (cluster,) = [one.name for one in store.cluster_summaries() if one.annotated]
        assert set(Wrapper.from_json(stored.text).attributes) == set(NAMES)
        store.apply_updates(cluster, [], "ana", schema_follows=0, attributes={"name": Attribute()})
    told = " ".join(within("learn").stderr.split())
    assert f"which the version before finds: siteloom rollback {stored.name} brings it back." in told
    assert within("rollback", stored.name).returncode == 0
    with closing(workspace(inside)) as store:
        assert set(Wrapper.from_json(store.wrapper(stored.name).text).attributes) == set(NAMES)


def test_examples_of_one_cluster_make_one_wrapper(inside: Command, crawl: str) -> None:
    """Whatever attributes each of them tells of."""
    within("init")
    within("ingest", crawl)
    within("cluster")
    with closing(workspace(inside)) as store:
        clusters, addresses = store.clusters()
    largest = {addresses[member].url for member in max(clusters, key=lambda found: found.size).members}
    pages = [page for page in RESTAURANTS if page.page.url in largest][:6]
    rows = [line(page, ("name",)) for page in pages[:3]] + [line(page, ("phone",)) for page in pages[3:]]
    result = within("learn", "--examples", examples(inside, *rows), "-o", "w.json")
    assert result.returncode == 0, result.stderr
    assert set(wrapper_in(inside.folder / "w.json").attributes) == {"name", "phone"}


def test_a_repair_is_not_undone_by_old_examples(inside: Command, crawl: str) -> None:
    within("init")
    within("ingest", crawl)
    within("cluster")
    first = within("learn", "--examples", examples(inside, *map(line, RESTAURANTS[:4])))
    assert first.returncode == 0, first.stderr
    for verb in ("extract", "watch"):
        assert within(verb).returncode == 0
    changed = [one for one in guide_site("mild-change") if one.kind == "restaurant"]
    urls = {one.page.url for one in RESTAURANTS}
    pages = [one for one in changed if one.page.url in urls]
    rows = [{"url": one.page.url, "html": one.page.html.decode()} for one in pages]
    write_lines(inside.folder / "later.jsonl", rows)
    assert within("ingest", "later.jsonl").returncode == 0
    with closing(workspace(inside)) as store:
        (stored,) = store.wrappers()
    assert within("relearn", "--wrapper", stored.name).returncode == 0
    again = within("learn", "-o", "wrapper.json")
    assert again.returncode == 0, again.stderr
    told = " ".join(again.stderr.split())
    assert f"{stored.name}: version 2 stays in force, for all examples are of a layout" in told
    with closing(workspace(inside)) as store:
        newest = store.wrapper(stored.name)
    assert (newest.version, newest.text) == (2, Path("wrapper.json").read_text(encoding="utf-8"))
    # With some as pages are now there is something to learn, and what is watched is of the new version.
    third = within("learn", "--examples", examples(inside, *map(line, pages[4:8])))
    told = " ".join(third.stderr.split())
    assert "pages are watched for changes" in told
    with closing(workspace(inside)) as store:
        assert store.wrapper(stored.name).version == 3
        assert store.watched() == {stored.name: 3}


def test_each_template_has_its_wrapper(inside: Command, crawl: str) -> None:
    within("init")
    within("ingest", crawl)
    within("cluster")
    rows = [line(page) for page in RESTAURANTS[:3]] + [line(page, EVENT_NAMES) for page in EVENTS[:3]]
    result = within("learn", "--examples", examples(inside, *rows))
    assert result.returncode == 0, result.stderr
    names = [told.split(",")[0] for told in result.stderr.splitlines() if ", version 1, for " in told]
    assert len(names) == 2
    # One of several is to be chosen for -o.
    sentence = one_sentence(within("learn", "-o", "w.json"))
    assert sentence.startswith("There are 2 wrappers to learn: choose one for -o with --cluster (")
    assert all(name in sentence for name in names)
    assert not (inside.folder / "w.json").exists()
    for name in names:
        assert within("learn", "--cluster", name, "-o", "w.json").returncode == 0
        found = list(wrapper_in(inside.folder / "w.json").attributes)
        assert found in (list(NAMES), list(EVENT_NAMES))


def test_nothing_is_kept_when_one_example_is_wrong(inside: Command, crawl: str) -> None:
    within("init")
    within("ingest", crawl)
    within("cluster")
    good = line(RESTAURANTS[0])
    wrong = {"url": RESTAURANTS[1].page.url, "values": {"name": ["No such name"]}}
    elsewhere = {"url": "https://elsewhere.example/", "values": {"name": ["A"]}}
    sentence = one_sentence(within("learn", "--examples", examples(inside, good, wrong)))
    assert sentence.startswith(f"The page {RESTAURANTS[1].page.url} has no name 'No such name': ")
    sentence = one_sentence(within("learn", "--examples", examples(inside, good, elsewhere)))
    assert sentence.startswith("There is an example of https://elsewhere.example/, but no such page: ")
    assert "No page is annotated: give --examples FILE" in one_sentence(within("learn"))
    store = workspace(inside)
    assert [example for site in store.sites() for example in store.examples(site.name)] == []
    store.close()


# ---- mistakes


def test_mistakes_without_a_workspace_are_told_in_a_sentence(inside: Command, crawl: str) -> None:
    name = values(RESTAURANTS[0])["name"][0]
    good = examples(inside, line(RESTAURANTS[0]))
    bad_json = write_lines(inside.folder / "bad.jsonl", [line(RESTAURANTS[0]), {"url": 1}])
    typo = write_lines(
        inside.folder / "typo.jsonl", [{"url": RESTAURANTS[0].page.url, "values": {"name": [f"{name}x"]}}]
    )
    schema = inside.folder / "schema.json"
    schema.write_text('{"name": {"type": "money"}}')
    no_object = inside.folder / "list.json"
    no_object.write_text("[]")
    learn = ("learn", crawl, "--examples")
    out = ("-o", "w.json")
    cases = [
        (("learn",), 2, "siteloom init"),
        (("learn", crawl), 2, "learn needs --examples FILE or --from-embedded, and -o FILE"),
        ((*learn, good), 2, "learn needs --examples FILE or --from-embedded, and -o FILE"),
        ((*learn, good, *out, "--cluster", "x"), 2, "a SOURCE or --cluster, but not both"),
        ((*learn, "none.jsonl", *out), 1, "The examples none.jsonl cannot be read: No such file"),
        ((*learn, bad_json, *out), 1, "Line 2 of "),
        ((*learn, typo, *out), 1, f"has no name '{name}x': the nearest text is "),
        (
            (*learn, good, *out, "--method", "magic"),
            2,
            "No method 'magic' to learn by: use one of united, vertex.",
        ),
        ((*learn, good, *out, "--schema", "none.json"), 2, "The schema none.json cannot be read"),
        ((*learn, good, *out, "--schema", str(no_object)), 2, 'must be an object such as {"cuisine"'),
        ((*learn, good, *out, "--schema", str(schema)), 2, "name is of type 'money': it can be text"),
        ((*learn, good, "-o", "none/w.json"), 1, "There is no folder none to write w.json to"),
        (("learn", "none.jsonl", "--examples", good, *out), 1, "none.jsonl"),
    ]
    for arguments, status, message in cases:
        result = within(*arguments)
        assert message in one_sentence(result), arguments
        assert result.returncode == status, arguments
    assert not (inside.folder / "w.json").exists()


def test_mistakes_in_a_workspace_are_told_in_a_sentence(inside: Command, crawl: str) -> None:
    within("init")
    within("ingest", crawl)
    assert one_sentence(within("learn")).startswith("No page is annotated: give --examples FILE")
    good = examples(inside, line(RESTAURANTS[0]))
    sentence = one_sentence(within("learn", "--examples", good))
    assert sentence == "The pages of the workspace are not clustered yet: run siteloom cluster first."
    result = within("learn", "--cluster", "none")
    assert one_sentence(result) == "There is no cluster none: siteloom cluster lists them."
    assert result.returncode == 2
    # The example was right, and is there once the pages are clustered.
    within("cluster")
    assert within("learn").returncode == 0
