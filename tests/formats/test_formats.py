"""What any released version has written is opened by this one, and gives what it gave then."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from siteloom import Example, Wrapper, learn, monitor, read_records
from siteloom.apps.demo.sites import guide_site
from siteloom.core.database import connect, sqlite_url
from siteloom.core.errors import StoreTooNew, WatchError, WrapperError
from siteloom.core.settings import StoreSettings
from siteloom.engines.local_engine import LocalEngine
from siteloom.engines.whole_crawls.crawl_run import BulkRun
from siteloom.engines.whole_crawls.output_folder import OutputFolder
from siteloom.maintenance.watch_file import watch_from_json
from siteloom.sources.example_files import read_examples
from siteloom.store.workspace_folder import open_store
from siteloom.templates.signature import signature
from siteloom.wrappers.exports import standalone_extractor
from tests.formats import kept
from tests.formats.making import FINGERPRINT, MAKERS, main, records_of
from tests.formats.summary import summary


@pytest.fixture(autouse=True)
def _any_parser() -> Iterator[None]:
    """Kept wrappers were learned with the parser of their time, of which one is warned."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This wrapper was learned with", UserWarning)
        yield


def cases(kind: str) -> list[Path]:
    return [case for folder in kept.kept(kind) for case in sorted(folder.iterdir()) if case.is_dir()]


def named(path: Path) -> str:
    return str(path.relative_to(kept.FOLDER))


def told(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What stays the same for ever of records; confidence may be weighed anew."""
    return [{key: row[key] for key in ("url", "values", "typed", "provenance", "withheld")} for row in rows]


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_written_today_is_kept(kind: str) -> None:
    version = kept.current()[kind]
    assert (kept.FOLDER / f"{kind}-{version}").is_dir(), (
        f"Version {version} of the format {kind} is not kept: run scripts/keep-formats and add what it made."
    )


def test_every_format_has_a_maker() -> None:
    assert kept.current().keys() == MAKERS.keys()


def test_what_is_kept_is_never_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    for kind, version in kept.current().items():
        if kind != "files":
            (tmp_path / f"{kind}-{version}").mkdir()
    for _ in range(2):
        main()
    assert capsys.readouterr().out.count("is kept already.") == 2 * len(MAKERS) - 1
    assert {folder.name.rpartition("-")[0] for folder in tmp_path.iterdir() if any(folder.iterdir())} == {
        "files"
    }


@pytest.mark.parametrize("case", cases("wrapper"), ids=named)
def test_a_kept_wrapper_gives_the_records_that_it_gave(case: Path) -> None:
    wrapper = Wrapper.from_json((case / "wrapper.json").read_text(encoding="utf-8"))
    found = records_of(wrapper, kept.read_pages_of(case))
    assert told(json.loads(json.dumps(found))) == told(kept.read_lines(case / "records.jsonl"))
    assert Wrapper.from_json(wrapper.to_json()) == wrapper


@pytest.mark.parametrize("case", cases("xpath-json"), ids=named)
def test_a_kept_export_gives_the_texts_that_it_gave(case: Path) -> None:
    document = json.loads((case / "wrapper.json").read_text(encoding="utf-8"))
    found = [
        {"values": record}
        for page in kept.read_pages_of(case)
        for record in standalone_extractor.records(
            document, page.html.decode(), (signature(page.html) or b"").hex()
        )
    ]
    assert found == kept.read_lines(case / "records.jsonl")


@pytest.mark.parametrize("folder", kept.kept("watch"), ids=named)
def test_a_kept_watch_notices_a_change(folder: Path) -> None:
    watch = watch_from_json((folder / "watch.jsonl").read_text(encoding="utf-8"))
    unchanged = [one.page for one in watch.bellwethers]
    assert len(unchanged) == 3
    assert monitor(watch, unchanged) == []
    assert {change.test for change in monitor(watch, kept.read_pages_of(folder))} == {"shingle", "null"}


@pytest.mark.parametrize("folder", kept.kept("files"), ids=named)
def test_kept_examples_are_learned_from(folder: Path) -> None:
    examples = read_examples(str(folder / "examples.jsonl"))
    pages = {one.page.url: one.page for one in guide_site()}
    details = [line.on(pages[line.url]) for line in examples if line.values]
    (listing,) = [line for line in examples if line.records]
    assert [len(line.records) for line in examples if line.records] == [3]
    assert isinstance(listing.on(pages[listing.url]), Example)
    assert set(learn(details).attributes) == set(details[0].values)


@pytest.mark.parametrize("folder", kept.kept("files"), ids=named)
def test_kept_records_are_read(folder: Path) -> None:
    rows = kept.read_lines(folder / "records.jsonl")
    table = read_records(folder / "records.jsonl")
    assert table.column("url").to_pylist() == [row["url"] for row in rows]
    assert table.column("name").to_pylist() == [row["values"]["name"][0] for row in rows]


@pytest.mark.parametrize("folder", kept.kept("bulk"), ids=named)
def test_kept_folders_of_engines_go_on_where_they_were(folder: Path, tmp_path: Path) -> None:
    def resumed(name: str) -> BulkRun:
        place = shutil.copytree(folder / name, tmp_path / name)
        return BulkRun(LocalEngine(1), OutputFolder(str(place)), FINGERPRINT, 1, lambda *_: lambda _: None)

    def never(shard: object, lost: object, step: object, out: object) -> None:
        raise AssertionError("a shard that is marked is not done again")

    unfinished = resumed("unfinished")
    assert unfinished.finished is None
    assert unfinished.shards("read", lambda: never, ["the first shard"]) == [{"pages": 2}]
    assert [failure.reason for failure in unfinished.failures()] == ["no such page"]
    assert resumed("done").finished == {"pages": 2, "records": 1}
    assert read_records(tmp_path / "done").column("wrapper").to_pylist() == ["kept"]


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize("folder", kept.kept("workspace"), ids=named)
def test_a_kept_workspace_is_upgraded_and_holds_all_that_it_held(
    folder: Path, database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    settings = kept.unpack_workspace(folder, tmp_path / "workspace")
    if database == "postgres":
        step = folder.name.rpartition("-")[2]
        settings = kept.into_postgres(settings, request.getfixturevalue("postgres_url"), step)
    with closing(open_store(settings)) as store:
        found = json.loads(json.dumps(summary(store)))
        assert list(store.check()) == []
    known = json.loads((folder / kept.SUMMARY).read_text(encoding="utf-8"))
    for part, content in known.items():
        assert found[part] == content, part
    with closing(open_store(settings)) as store:
        assert store.backup is None  # it is upgraded once


def test_a_workspace_of_a_newer_version_is_refused(empty_workspace: Path, tmp_path: Path) -> None:
    place = shutil.copytree(empty_workspace, tmp_path / "workspace")
    engine = connect(sqlite_url(place))
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(StoreTooNew, match=r"newer version of Siteloom .*: upgrade Siteloom to open it"):
        open_store(StoreSettings(str(place)))


def test_a_wrapper_of_a_newer_version_is_refused() -> None:
    content = json.loads((cases("wrapper")[0] / "wrapper.json").read_text(encoding="utf-8"))
    with pytest.raises(WrapperError, match=r"newer Siteloom .*: update Siteloom"):
        Wrapper.from_json(json.dumps({**content, "version": 99}))


def test_a_watch_of_a_newer_version_is_refused() -> None:
    content = json.loads((kept.kept("watch")[0] / "watch.jsonl").read_text(encoding="utf-8"))
    with pytest.raises(WatchError, match=r"newer Siteloom .*: update Siteloom"):
        watch_from_json(json.dumps({**content, "version": 99}))
