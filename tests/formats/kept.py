"""What earlier versions have written, as it is kept here: a folder for each version of each format.

`scripts/keep-formats` writes the folders that are missing for what is written today.
"""

from __future__ import annotations

import json
import lzma
import tarfile
from pathlib import Path
from typing import Any

from sqlalchemy import MetaData, insert, select, text

from siteloom import Page, __version__
from siteloom.core.database import connect, postgres_url, sqlite_url
from siteloom.core.settings import StoreSettings
from siteloom.maintenance import watch_file
from siteloom.store.migrate import newest_step, upgrade
from siteloom.wrappers import wrapper_json as wrapper_format
from siteloom.wrappers.exports import xpath_json

FOLDER = Path(__file__).with_name("kept")
ARCHIVE = "workspace.tar.xz"
SUMMARY = "summary.json"
PAGES = "pages.jsonl"


def current() -> dict[str, str]:
    """The version of each format that is written today; what has none of its own has that of Siteloom."""
    return {
        "wrapper": str(wrapper_format.VERSION),
        "watch": str(watch_file.VERSION),
        "xpath-json": str(xpath_json.VERSION),
        "workspace": newest_step(),
        "files": __version__,
        "bulk": __version__,
    }


def kept(kind: str) -> list[Path]:
    """The folders of all kept versions of a format, the oldest first."""
    return sorted(FOLDER.glob(f"{kind}-*"))


def write_pages(folder: Path, pages: list[Page]) -> None:
    write_lines(folder / PAGES, [{"url": page.url, "html": page.html.decode()} for page in pages])


def read_pages_of(folder: Path) -> list[Page]:
    return [Page.from_text(row["url"], row["html"]) for row in read_lines(folder / PAGES)]


def write_lines(file: Path, rows: list[dict[str, Any]]) -> None:
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    file.write_text("".join(lines), encoding="utf-8")


def read_lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def pack_workspace(workspace: Path, archive: Path) -> None:
    """Tables, packs and marker of a workspace in SQLite that no one has open, in one compressed file."""
    with (
        lzma.open(archive, "wb", preset=9 | lzma.PRESET_EXTREME) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name in ("workspace.json", "siteloom.db", "packs"):
            tar.add(workspace / name, name)


def unpack_workspace(folder: Path, target: Path) -> StoreSettings:
    """A kept workspace to be used, with its tables in SQLite."""
    with tarfile.open(folder / ARCHIVE) as tar:
        tar.extractall(target, filter="data")
    return StoreSettings(str(target))


def into_postgres(settings: StoreSettings, url: str, step: str) -> StoreSettings:
    """The same workspace with its tables in an empty database of PostgreSQL, at the same step."""
    workspace = Path(settings.workspace)
    source, target = connect(sqlite_url(workspace)), connect(postgres_url(url))
    upgrade(target, step)
    there, here = MetaData(), MetaData()
    here.reflect(source)
    there.reflect(target)
    with source.connect() as reading, target.begin() as writing:
        for table in there.sorted_tables:
            if table.name == "alembic_version":
                continue
            if rows := [dict(row) for row in reading.execute(select(here.tables[table.name])).mappings()]:
                writing.execute(insert(table), rows)
            if "id" in table.c and table.c.id.type.python_type is int:  # numbers go on behind the last one
                last = f"(SELECT coalesce(max(id), 0) + 1 FROM {table.name})"
                sequence = f"pg_get_serial_sequence('{table.name}', 'id')"
                writing.execute(text(f"SELECT setval({sequence}, {last}, false)"))
    source.dispose()
    target.dispose()
    marker = workspace / "workspace.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "database": "postgresql"}))
    for file in workspace.glob("siteloom.db*"):
        file.unlink()
    return StoreSettings(settings.workspace, url)
