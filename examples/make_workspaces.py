"""Make the workspaces that README.md tells of, from the built-in sites.

    python examples/make_workspaces.py FOLDER

Each is made by the same commands as anyone's own would be; they are shown as they are given.
"""

from __future__ import annotations

import csv
import json
import os
import shlex
import shutil
import sys
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING

import siteloom
from siteloom.apps.cli.main import app
from siteloom.apps.demo.sites import directory_site, guide_site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from siteloom.apps.demo.sites.built_in_page import BuiltinPage

EXAMPLES = 5
RECORDS = 3
KNOWN = ("name", "address", "phone", "cuisine", "opened")


def main(folder: Path, every: int = 1) -> None:
    """Make the workspaces that are not there yet, with one in `every` things that the sites tell of."""
    for name in [name for name in os.environ if name.startswith("SITELOOM_")]:
        del os.environ[name]  # or they would be made in a workspace that someone works with
    for name, make in MAKERS.items():
        if (folder / name).exists():
            print(f"{folder / name} is there already. Remove it, and it will be made anew.")
            continue
        print(f"\n# {folder / name}", flush=True)
        unfinished = folder / f".{name}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        with chdir(unfinished):
            make(every)
        unfinished.rename(folder / name)


def guide(every: int) -> None:
    """The city guide with wrappers and records."""
    _wrap(_some(guide_site(), every))


def known_records(every: int) -> None:
    """The directory, of which nobody has annotated a page, and a table of restaurants."""
    _write_pages("crawl.jsonl", _some(directory_site(), every))
    _write_table("restaurants.csv", _restaurants(_some(guide_site(), every)))
    _follow("siteloom ingest crawl.jsonl")
    _follow("siteloom cluster")
    _follow("siteloom seeds restaurants.csv --several 'cuisine=;'")


def changed_site(every: int) -> None:
    """The restaurants of the city guide with a wrapper and records, watched, and then redesigned."""
    _wrap(_restaurants(_some(guide_site(), every)))
    _follow("siteloom watch")
    _write_pages("redesigned.jsonl", _restaurants(_some(guide_site("redesign"), every)))
    _follow("siteloom ingest redesigned.jsonl")


MAKERS: dict[str, Callable[[int], None]] = {
    "guide": guide,
    "known-records": known_records,
    "changed-site": changed_site,
}


def _some(site: Sequence[BuiltinPage], every: int) -> list[BuiltinPage]:
    """The pages of one in so many things, known by their names on all sites, and as many lists."""
    lists = [page.page.url for page in site if page.entity is None]
    named = sorted({page.entity for made in (guide_site(), directory_site()) for page in made if page.entity})
    wanted = {*named[::every], *lists[::every]}
    return [page for page in site if (page.entity or page.page.url) in wanted]


def _restaurants(pages: Iterable[BuiltinPage]) -> list[BuiltinPage]:
    return [one for one in pages if one.kind == "restaurant"]


def _wrap(pages: Sequence[BuiltinPage]) -> None:
    _write_pages("crawl.jsonl", pages)
    _write_examples("examples.jsonl", pages)
    _follow("siteloom ingest crawl.jsonl")
    _follow("siteloom cluster")
    _follow("siteloom learn --examples examples.jsonl")
    _follow("siteloom extract")


def _write_pages(name: str, pages: Iterable[BuiltinPage]) -> None:
    _write_lines(
        name,
        (
            {
                "url": one.page.url,
                "html": one.page.html.decode(),
                "fetched_at": f"{one.page.fetched_at:%Y-%m-%dT%H:%M:%SZ}",
            }
            for one in pages
        ),
    )


def _write_examples(name: str, pages: Sequence[BuiltinPage]) -> None:
    """A few pages of each template with the values that a person sees on them; of lists, a few records."""
    lines: list[dict[str, object]] = []
    for kind in ("restaurant", "event"):
        of_kind = [one for one in pages if one.kind == kind]
        chosen = siteloom.sample([one.page for one in of_kind], EXAMPLES)
        lines += [{"url": of_kind[one].page.url, "values": dict(of_kind[one].truth)} for one in chosen]
    lists = [one for one in pages if one.kind == "list"]
    lines += [{"url": one.page.url, "records": list(map(dict, one.records[:RECORDS]))} for one in lists[:1]]
    _write_lines(name, lines)


def _write_lines(name: str, rows: Iterable[dict[str, object]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    Path(name).write_text("".join(lines), encoding="utf-8")


def _write_table(name: str, pages: Iterable[BuiltinPage]) -> None:
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(KNOWN)
        for one in pages:
            table.writerow("; ".join(one.truth[name]) for name in KNOWN)


def _follow(line: str) -> None:
    print(line, flush=True)
    _, *words = shlex.split(line)
    app([*words, "--quiet"], standalone_mode=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
