"""What each verb costs on pages of real sites. P is as in `parsing`, over the same pages.

Verbs run in this process, after a first run of all of them on a few pages: start-up is no part of it.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evals.swde import swde_sites

from benchmarks.learning import EXAMPLES, parse_bare, site_task
from benchmarks.measure import Figure, cpu_seconds, cpu_time
from siteloom.apps.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evals.swde import SwdeSite

    from siteloom.core.model import Example, Page

TITLE = "Verbs"

_SITES = (
    "restaurant-fodors",
    "restaurant-zagat",
    "restaurant-gayot",
    "book-barnesandnoble",
    "job-careerbuilder",
    "movie-rottentomatoes",
    "nbaplayer-espn",
    "university-collegeboard",
)
_WRAPPED_FROM_KNOWN = "restaurant-fodors"
_KNOWN_RECORDS_OF = "restaurant"
_CORE = "name,address"
_PAGES = 60
_PAGES_OF_FIRST_RUN = 12
_ATTRIBUTES = 4

_NAMES = re.compile(r'\b(class|id)="([^"]+)"')


class _Verb(NamedTuple):
    """What is run, and over the pages of which file; None if it is about a single one, or none."""

    what: str
    arguments: Sequence[str]
    pages: str | None = "all"


_VERBS = (
    _Verb("ingest", ["ingest", "all.jsonl"]),
    _Verb("ingest, known pages", ["ingest", "all.jsonl"]),
    _Verb("status", ["status"], None),
    _Verb("cluster", ["cluster"]),
    _Verb("cluster --method text-max SOURCE", ["cluster", "all.jsonl", "--method", "text-max"]),
    _Verb("template", ["template"], None),
    _Verb("sample", ["sample"]),
    _Verb("learn", ["learn", "--examples", "examples.jsonl"]),
    _Verb("extract", ["extract", "-o", "records.jsonl"]),
    _Verb("explain", ["explain", "{url}"], None),
    _Verb("export", ["export", "--format", "xslt", "--wrapper", "fodors.com/1", "-o", "x.xslt"], None),
    _Verb("watch", ["watch"]),
    _Verb("clean", ["clean", "-o", "clean.jsonl"]),
    _Verb("search, and index", ["search", "steak house"]),
    _Verb("search", ["search", "pasta wine"], None),
    _Verb("discover", ["discover"]),
    _Verb("discover SOURCE", ["discover", "one.jsonl"], "one"),
    _Verb("seeds", ["seeds", "seeds.jsonl"], None),
    _Verb(
        "bootstrap SOURCE",
        ["bootstrap", "one.jsonl", "--seeds", "seeds.jsonl", "--core", _CORE, "-o", "wrapper.json"],
        "one",
    ),
    _Verb(
        "entities",
        ["entities", "records.jsonl", "seeds.jsonl", "--core", "name"],
    ),
    _Verb("ingest, changed pages", ["ingest", "changed.jsonl"]),
    _Verb("monitor", ["monitor"]),
    _Verb("relearn", ["relearn"]),
    _Verb("extract, repaired", ["extract"]),
)


class _Pages(NamedTuple):
    """The pages of the files."""

    all: list[Page]
    one: list[Page]


def figures(data: Path) -> list[Figure]:
    sites = {site.full_name: site for site in swde_sites(data.resolve())}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        _seconds(_written(sites, _PAGES_OF_FIRST_RUN), "first")
        pages = _written(sites, _PAGES)
        bare = cpu_seconds(
            {"all": lambda: parse_bare(pages.all), "one": lambda: parse_bare(pages.one)},
        )
        seconds = _seconds(pages, "workspace")
    seeds = sum(1 for _ in _known_records(sites.values()))
    return [
        Figure("pages", f"{len(pages.all):,} of {len(_SITES)} sites; {seeds:,} known records"),
        *(Figure(f"`{verb.what}`", _cost(verb, seconds[verb.what], pages, bare)) for verb in _VERBS),
    ]


def _cost(verb: _Verb, seconds: float, pages: _Pages, bare: Mapping[str, float]) -> str:
    if verb.pages is None:
        return f"{seconds * 1e3:,.0f} ms"
    count = len(getattr(pages, verb.pages))
    return f"{seconds / bare[verb.pages]:.2f} P ({seconds / count * 1e3:.2f} ms a page)"


def _seconds(pages: _Pages, workspace: str) -> dict[str, float]:
    """The CPU seconds of each verb in a new workspace."""
    return {
        verb.what: cpu_time(
            lambda: _run([one.format(url=pages.one[0].url) for one in verb.arguments], workspace)  # noqa: B023 - called at once
        )
        for verb in _VERBS
    }


def _run(arguments: Sequence[str], workspace: str) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = app([*arguments, "--workspace", workspace], standalone_mode=False)
    if code:
        raise RuntimeError(f"siteloom {' '.join(arguments)}: {said.getvalue()}")


def _written(sites: Mapping[str, SwdeSite], count: int) -> _Pages:
    """The files that the verbs read, of so many pages of each site."""
    tasks = {name: site_task(sites[name], count - EXAMPLES, _ATTRIBUTES) for name in _SITES}
    pages = _Pages([page for task in tasks.values() for page in task.pages], tasks[_WRAPPED_FROM_KNOWN].pages)
    _write("all.jsonl", map(_page_line, pages.all))
    _write("one.jsonl", map(_page_line, pages.one))
    _write("changed.jsonl", ({**line, "html": _renamed(line["html"])} for line in map(_page_line, pages.all)))
    _write("examples.jsonl", (_example_line(one) for task in tasks.values() for one in task.examples))
    _write("seeds.jsonl", _known_records(sites.values()))
    return pages


def _known_records(sites: Iterable[SwdeSite]) -> Iterator[object]:
    return (truth for site in sites if site.vertical == _KNOWN_RECORDS_OF for truth in site.truth.values())


def _write(file: str, lines: Iterable[object]) -> None:
    Path(file).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def _page_line(page: Page) -> dict[str, str]:
    return {"url": page.url, "html": page.html.decode("utf-8", "replace")}


def _example_line(example: Example) -> dict[str, object]:
    return {"url": example.page.url, "values": {name: list(texts) for name, texts in example.values.items()}}


def _renamed(html: str) -> str:
    """A page after its site has given all classes and ids other names."""
    return _NAMES.sub(
        lambda found: f'{found[1]}="{" ".join(f"new-{one}" for one in found[2].split())}"', html
    )
