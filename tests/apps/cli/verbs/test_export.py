"""`siteloom export` from end to end, with and without a workspace."""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from lxml import etree

from siteloom import Wrapper
from siteloom.html.encoding import decode
from siteloom.sources.open_sources import read_pages
from siteloom.wrappers.exports import standalone_extractor
from siteloom.wrappers.exports.xpath_json import as_texts
from tests.apps.cli.changing import SITE, WRAPPER, Going, done, inside, stored
from tests.apps.cli.command import one_sentence
from tests.apps.cli.verbs.test_learn import within, write_lines
from tests.apps.demo.sites import guide, of_kind
from tests.extraction.test_extraction import restaurants


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a wrapper and some pages, which are files, too."""
    folder = tmp_path_factory.mktemp("exported")
    pages = of_kind(guide(), "restaurant")[:12]
    write_lines(
        folder / "original.jsonl", [{"url": one.page.url, "html": one.page.html.decode()} for one in pages]
    )
    text = restaurants().to_json()
    (folder / "food.json").write_text(text, encoding="utf-8")
    with inside(folder):
        done("ingest", "original.jsonl")
        with closing(stored()) as store:
            store.save_wrapper(WRAPPER, SITE, text, "learn")
    return folder


def written(*arguments: str) -> str:
    """What an export writes to standard output, where nothing else may stand."""
    result = within("export", *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_only_wrapper_of_a_workspace_is_exported(place: Path, go: Going) -> None:
    go(place)
    document = json.loads(written("--format", "xpath-json"))
    assert document["format"] == "siteloom xpath"
    assert document["sites"] == [SITE]
    with closing(stored()) as store:
        (kept,) = store.wrappers()
    wrapper = as_texts(Wrapper.from_json(kept.text))
    for page in list(read_pages("original.jsonl"))[:5]:
        (record,) = wrapper.extract_all(page)
        found = standalone_extractor.records(document, decode(page.html, page.charset))
        assert found == [{name: list(texts) for name, texts in record.values.items()}]
    assert written("--format", "scrapy", "--wrapper", WRAPPER).startswith('"""A spider for ')


def test_a_file_needs_no_workspace(place: Path, go: Going) -> None:
    folder = go(place)
    nowhere = ("--workspace", "none", "--wrapper", "food.json")
    etree.XSLT(
        etree.XML(written("--format", "xslt", *nowhere)), access_control=etree.XSLTAccessControl.DENY_ALL
    )
    assert done("export", "--format", "scrapy", *nowhere, "-o", "spider.py") == "food is in spider.py.\n"
    compile((folder / "spider.py").read_text(encoding="utf-8"), "spider.py", "exec")
    told = done("export", "original.jsonl", "--format", "web-poet", *nowhere, "-o", "pages")
    assert "tests of 5 pages" in told
    assert not (folder / "none").exists()


def test_the_pages_of_the_workspace_are_the_tests_of_a_page_object(place: Path, go: Going) -> None:
    folder = go(place)
    done("export", "--format", "web-poet", "-o", "deep/pages")
    fixtures = sorted((folder / "deep" / "pages" / "fixtures").glob("*/test-*/output.json"))
    assert len(fixtures) == 5
    assert {file.parent.parent.name for file in fixtures} == {
        "larkmoor_guide_example_1_page.LarkmoorGuideExample1Page"
    }
    # Again, and with what a person has put beside it.
    (folder / "deep" / "pages" / "mine.py").write_text("# mine")
    done("export", "--format", "web-poet", "-o", "deep/pages")
    assert sorted((folder / "deep" / "pages" / "fixtures").glob("*/test-*/output.json")) == fixtures
    assert (folder / "deep" / "pages" / "mine.py").exists()


OWN_FILES = ("pytest.ini", "pytest.ini.unfinished", "larkmoor_guide_example_1_page.py")
OWN_FOLDERS = ("fixtures", "fixtures/larkmoor_guide_example_1_page.LarkmoorGuideExample1Page")


@pytest.mark.parametrize("how", ["symlink_to", "hardlink_to"])
@pytest.mark.parametrize("name", OWN_FILES)
def test_no_page_object_is_written_through_a_link(place: Path, go: Going, name: str, how: str) -> None:
    folder = go(place)
    done("export", "--format", "web-poet", "-o", "pages")
    (folder / "pages" / name).unlink(missing_ok=True)
    victim = folder / "victim"
    victim.write_text("# Made by siteloom export: precious")  # so that it can be an export's own file
    getattr(folder / "pages" / name, how)(victim)
    with suppress(AssertionError):  # some are put in the place of the link, others refused
        done("export", "--format", "web-poet", "-o", "pages")
    assert victim.read_text() == "# Made by siteloom export: precious"


@pytest.mark.parametrize("name", OWN_FOLDERS)
def test_the_tests_of_a_page_object_are_not_removed_through_a_link(place: Path, go: Going, name: str) -> None:
    folder = go(place)
    done("export", "--format", "web-poet", "-o", "pages")
    shutil.rmtree(folder / "pages" / name)
    victim = folder / "victim" / Path(OWN_FOLDERS[1]).name / "precious"
    victim.parent.mkdir(parents=True)
    victim.write_text("precious")
    target = victim.parent if name == OWN_FOLDERS[1] else victim.parent.parent
    (folder / "pages" / name).symlink_to(target)
    before = sorted(target.rglob("*"))
    with suppress(AssertionError):
        done("export", "--format", "web-poet", "-o", "pages")
    assert sorted(target.rglob("*")) == before


def test_a_page_object_has_the_permissions_of_any_new_file(place: Path, go: Going) -> None:
    folder = go(place)
    umask = os.umask(0o022)
    try:
        done("export", "--format", "web-poet", "-o", "pages")
    finally:
        os.umask(umask)
    modes = {path.stat().st_mode & 0o777 for path in (folder / "pages").rglob("*") if path.is_file()}
    assert (modes, (folder / "pages/fixtures").stat().st_mode & 0o777) == ({0o644}, 0o755)


def test_that_exports_know_no_types_is_told(place: Path, go: Going) -> None:
    go(place)
    content = json.loads(Path("food.json").read_text(encoding="utf-8"))
    content["attributes"]["phone"]["type"] = "number"
    Path("typed.json").write_text(json.dumps(content), encoding="utf-8")
    assert done("export", "--format", "scrapy", "--wrapper", "typed.json").endswith(
        "It gives texts as they stand on the page: siteloom withholds those of phone (number) that it cannot "
        "read as such, the export does not.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ((), 2, "Say as what: --format is one of xslt, xpath-json, scrapy, web-poet."),
        (
            ("--format", "css"),
            2,
            "There is no format css: --format is one of xslt, xpath-json, scrapy, web-poet.",
        ),
        (
            ("--format", "xslt", "--wrapper", "nothing"),
            2,
            f"There is no wrapper nothing, nor such a file: the workspace has {WRAPPER}.",
        ),
        (
            ("--format", "xslt", "--workspace", "none"),
            2,
            "Give --wrapper FILE: there is no workspace with wrappers.",
        ),
        (
            ("--format", "xslt", "--wrapper", "x", "--workspace", "none"),
            2,
            "There is no file x, and no workspace with such a wrapper.",
        ),
        (
            ("--format", "web-poet"),
            2,
            "A page object for web-poet is a folder: say where to write it with -o FOLDER.",
        ),
        (
            ("--format", "web-poet", "-o", "full"),
            1,
            "The folder full has something else in it: give one that is empty or new.",
        ),
        (
            ("--format", "web-poet", "-o", "food.json"),
            1,
            "food.json is a file: a page object is written as a folder.",
        ),
        (
            ("--format", "web-poet", "--wrapper", "food.json", "--workspace", "none", "-o", "x"),
            2,
            "The tests of web-poet are made of pages: give some as SOURCE, there is no workspace.",
        ),
        (
            ("other.jsonl", "--format", "web-poet", "--wrapper", "food.json", "-o", "x"),
            2,
            "No page is for food, and web-poet's tests are made of such pages: give some as SOURCE.",
        ),
        (
            ("original.jsonl", "--format", "scrapy"),
            2,
            "Only --format web-poet takes a SOURCE, for its tests: leave it out.",
        ),
        (("--format", "scrapy", "-o", "full"), 1, "full is a folder: give the name of a file."),
        (
            ("--format", "scrapy", "-o", "none/spider.py"),
            1,
            "There is no folder none to write spider.py to: make it first.",
        ),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    place: Path, go: Going, arguments: tuple[str, ...], status: int, message: str
) -> None:
    folder = go(place)
    (folder / "full").mkdir()
    (folder / "full" / "pytest.ini").write_bytes(b"\xff mine")
    (folder / "other.jsonl").write_text('{"url": "https://other.example/1", "html": "<p>x"}\n')
    result = within("export", *arguments)
    assert (result.returncode, one_sentence(result)) == (status, message)
    assert not (folder / "x").exists()


def test_of_several_wrappers_one_must_be_chosen(place: Path, go: Going) -> None:
    folder = go(place)
    with closing(stored()) as store:
        store.save_wrapper("other.example/1", "other.example", (folder / "food.json").read_text(), "learn")
    message = f"The workspace has several wrappers: choose one with --wrapper, of {WRAPPER}, other.example/1."
    assert one_sentence(within("export", "--format", "xslt")) == message


def test_what_xslt_cannot_say_is_refused(place: Path, go: Going) -> None:
    go(place)
    with closing(stored()) as store:
        layered = replace(restaurants(), earlier=(restaurants(),))
        store.save_wrapper(WRAPPER, SITE, layered.to_json(), "relearn")
    assert one_sentence(within("export", "--format", "xslt", "-o", "x.xslt")) == (
        "Which of several layouts a page has cannot be said in XSLT 1.0: "
        "export it as xpath-json, scrapy or web-poet."
    )
    assert not Path("x.xslt").exists()


def test_without_web_poet_its_extra_is_named(place: Path, go: Going, monkeypatch: pytest.MonkeyPatch) -> None:
    go(place)
    monkeypatch.setitem(sys.modules, "web_poet", None)
    message = one_sentence(within("export", "--format", "web-poet", "-o", "x"))
    assert message == (
        "Exporting to web-poet needs the extra 'web-poet': install it with pip install 'siteloom[web-poet]'."
    )
    assert not Path("x").exists()
