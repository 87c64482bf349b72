"""`siteloom explain`: which wrapper a page is for and why, and where each value came from."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from siteloom import Wrapper
from siteloom.core.settings import StoreSettings
from siteloom.operations.page_import import import_pages
from siteloom.operations.relearn import settle_review
from siteloom.sources.page_source import Items
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.cli.command import one_sentence, work_inside
from tests.apps.cli.verbs.test_learn import within
from tests.apps.demo.sites import guide, of_kind
from tests.extraction.test_extraction import RESTAURANTS, SHOP, lists, restaurants, shop

PAGE = RESTAURANTS[0].page
LIST = of_kind(guide(), "list")[0].page
EVENT = of_kind(guide(), "event")[0].page


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a page of each kind and two wrappers, and the page in a file."""
    folder = tmp_path_factory.mktemp("explain")
    with closing(open_store(StoreSettings(str(folder / ".siteloom")), create=True)) as store:
        import_pages(store, [Items([PAGE, LIST, EVENT])])
        store.save_wrapper("guide/1", "larkmoor-guide.example", restaurants().to_json(), "learn")
        store.save_wrapper("guide/2", "larkmoor-guide.example", lists().to_json(), "learn")
    (folder / "page.html").write_bytes(PAGE.html)
    (folder / "food.json").write_text(restaurants().to_json(), encoding="utf-8")
    (folder / "shop.json").write_text(shop().to_json(), encoding="utf-8")
    (folder / "blank.json").write_text(Wrapper({}).to_json(), encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def inside(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work_inside(place, monkeypatch)


def explained(*arguments: str) -> str:
    result = within("explain", *arguments)
    assert result.returncode == 0, result.stderr
    return result.stderr


def test_a_page_of_the_workspace() -> None:
    told = explained(PAGE.url)
    lines = [line.strip() for line in told.splitlines()]
    assert lines[0] == PAGE.url
    assert any(line.startswith("1. guide/1, version 1: Chosen: ") for line in lines)
    assert "2. guide/2, version 1: None of its URL patterns matches." in lines
    assert f"URL pattern {restaurants().footprint.url_patterns[0]}" in lines
    assert "By guide/1, version 1:" in lines
    record = restaurants().extract(PAGE)
    for name, texts in record.values.items():
        for value, origin in zip(texts, record.provenance[name], strict=True):
            place = lines.index(f"{name}: {value}")
            assert lines[place + 1].startswith(f"confidence {origin.confidence:.2f}; {origin.rule}: ")
            assert lines[place + 2] == f"at {origin.node}"
    assert "gives no record" not in told


def test_every_record_of_a_list_is_shown() -> None:
    told = explained(LIST.url)
    for number in range(1, len(lists().extract_all(LIST)) + 1):
        assert f"By guide/2, version 1, record {number}:" in told


def test_a_page_that_is_for_no_wrapper() -> None:
    told = explained(EVENT.url)
    assert "1. guide/1, version 1: None of its URL patterns matches." in told
    assert "2. guide/2, version 1: None of its URL patterns matches." in told
    assert told.splitlines()[-1] == "The page gives no record: no wrapper for the URL."


def test_a_file_with_and_without_its_address() -> None:
    found = explained("page.html", "--url", PAGE.url, "--wrapper", "food.json")
    assert "1. food: Chosen: " in found
    assert f"name: {restaurants().extract(PAGE).values['name'][0]}" in found
    # The wrappers of the workspace are taken if none is named.
    assert "1. guide/1, version 1: Chosen: " in explained("page.html", "--url", PAGE.url)
    elsewhere = explained("page.html", "--url", "https://b.example/x", "--wrapper", "food.json")
    assert "1. food: It is for larkmoor-guide.example, not for b.example." in elsewhere
    assert elsewhere.splitlines()[-1] == "The page gives no record: no wrapper for the site (b.example)."
    blank = explained("page.html", "--url", PAGE.url, "--wrapper", "blank.json")
    assert "1. blank: It has no footprint and so is for no page: learn it again." in blank


def test_values_that_are_withheld_are_shown(place: Path) -> None:
    html = SHOP[0].html.decode().replace("$0.50", "ask in the shop")
    (place / "odd.html").write_text(html, encoding="utf-8")
    told = explained("odd.html", "--url", SHOP[0].url, "--wrapper", "shop.json")
    assert "  name: Item 0\n" in told
    assert "  price: withheld, " in told
    assert ": ask in the shop\n" in told


def test_wrappers_considered_as_data() -> None:
    result = within("-q", "explain", PAGE.url, "-o", "-")
    assert result.stderr == ""
    first, second = map(json.loads, result.stdout.splitlines())
    assert (first["rank"], first["wrapper"], first["version"]) == (1, "guide/1", 1)
    assert first["url_pattern"] in restaurants().footprint.url_patterns
    assert second["verdict"] == "None of its URL patterns matches."


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("https://a.example/none",), 1, "The workspace has no page https://a.example/none, and"),
        ((f"https://a.example/{'x' * 3000}",), 1, "The workspace has no page https://a.example/xxx"),
        (("none.html", "--url", PAGE.url), 2, "There is no file none.html that could have the URL"),
        (("food.json",), 1, "Cannot tell what food.json is"),
        (("page.html", "--wrapper", "none.json"), 1, "There is no wrapper none.json: check the path."),
        ((PAGE.url, "--workspace", "none"), 2, "siteloom init"),
    ],
)
def test_mistakes_are_told_in_a_sentence(arguments: tuple[str, ...], status: int, message: str) -> None:
    result = within("explain", *arguments)
    assert message in one_sentence(result)
    assert result.returncode == status


def test_a_file_must_have_one_page(place: Path) -> None:
    row = json.dumps({"url": PAGE.url, "html": PAGE.html.decode()})
    for rows, many in (("", "no page"), (f"{row}\n{row}\n", "more than one page")):
        (place / "pages.jsonl").write_text(rows, encoding="utf-8")
        sentence = one_sentence(within("explain", "pages.jsonl", "--wrapper", "food.json"))
        assert sentence == f"pages.jsonl has {many}: explain takes one, such as an HTML file."


def test_rules_of_a_layout_that_pages_had_before_are_told_too(
    lived_in: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = next(one.wrapper for one in lived_in.repairs() if one.state == "review")
    settle_review(lived_in, wrapper, accept=True)
    (watched,) = (one for one in lived_in.newest_checks(wrapper) if one.kind == "bellwethers")
    url = watched.content["changes"][0]["evidence"][0]["url"]
    before, _ = lived_in.versions(url)
    (tmp_path / "before.html").write_bytes(before.html)
    monkeypatch.chdir(tmp_path)
    assert re.search(r"name#\d+@2: the text", explained("before.html", "--url", url))
