"""What whole crawls cost on engines: CPU seconds a page against a plain loop, and growth with the pages.

A crawl is made of the pages of SWDE, those of all sites mixed, in Parquet files; for more pages than there
are, they come again at other URLs. Each run is a process of its own, and all processes that it starts count,
Java's too. What is asked is the cost of a further page: so the cost of a small run is taken off.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from itertools import count, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from evals.swde import swde_sites

import siteloom
from benchmarks.bootstrapping import seeds_of
from benchmarks.learning import site_task
from benchmarks.measure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evals.swde import SwdeSite

    from siteloom.core.model import Page

TITLE = "Whole crawls"

_FEW, _MANY = 1_000, 10_000
_GROWING = (1_000, 10_000, 100_000)
_PAGES_OF_A_FILE = 1_000
_PAGES_OF_A_GROUP = 250
_UNLABELLED, _ATTRIBUTES = 40, 4
_SEEDED = "restaurant"  # the sites that something is known of
_SEEDS = 40_000  # as in the paper on content redundancy
_CORE = ("name", "address")
_MASTER = "local[2]"
_SECONDS_BETWEEN_LOOKS = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")
_HOUR = 3600
_GOAL = "at most 1.35 times"


class _Cost(NamedTuple):
    """CPU and wall seconds of a run, and the sum of its processes' memory at most."""

    cpu: float
    wall: float
    megabytes: float


class _Crawl(NamedTuple):
    """Files of pages; the wrappers and the known records are beside them."""

    folder: Path
    pages: int

    @property
    def files(self) -> list[str]:
        files = sorted(self.folder.glob("*.parquet"))
        return [str(file) for file in files[: self.pages // _PAGES_OF_A_FILE]]


def figures(data: Path) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="siteloom-bench-") as folder:
        work = Path(folder)
        _write_crawl(work, data, max(_GROWING))
        stages = {
            "extract": ["extract", *(f"--wrapper={file}" for file in sorted(work.glob("*.json")))],
            "cluster": ["cluster"],
            "clean": ["clean", "--format", "text"],
            "bootstrap": ["bootstrap", f"--seeds={work / 'seeds.jsonl'}", f"--core={','.join(_CORE)}"],
        }
        found = []
        for name, command in stages.items():
            loop = _further_page(partial(_plain, name), work)
            local = _further_page(partial(_engine, "local", command), work)
            spark = _further_page(partial(_engine, "spark", command), work)
            found += [
                Figure(f"{name}: a plain loop", f"{1e3 * loop:.2f} CPU ms a page"),
                Figure(f"{name}: `--engine local -j 2`", f"{local / loop:.2f} times", "at most 1.10 times"),
                Figure(f"{name}: `--engine spark`, two workers", f"{spark / loop:.2f} times", _GOAL),
                Figure(f"{name}: pages a core hour on Spark", f"{_HOUR / spark:,.0f}"),
            ]
        for name in ("extract", "cluster"):
            for pages in _GROWING:
                cost = _engine("spark", stages[name], _Crawl(work, pages))
                found.append(
                    Figure(
                        f"{name} of {pages:,} pages on Spark, start-up included",
                        f"{cost.cpu:,.0f} CPU s, {cost.wall:,.0f} s, {cost.megabytes:,.0f} MB",
                    )
                )
        return found


def _further_page(run: Callable[[_Crawl], _Cost], work: Path) -> float:
    """The CPU seconds that one page more takes."""
    few, many = (run(_Crawl(work, pages)).cpu for pages in (_FEW, _MANY))
    return (many - few) / (_MANY - _FEW)


def _engine(engine: str, command: Sequence[str], crawl: _Crawl) -> _Cost:
    output = crawl.folder / "out"
    shutil.rmtree(output, ignore_errors=True)
    choice = (
        ["--engine", "spark", "--master", _MASTER] if engine == "spark" else ["--engine", "local", "-j", "2"]
    )
    verb, *options = command
    return _measured(
        [sys.executable, "-m", "siteloom", verb, *crawl.files, *options, *choice, "-q", "-o", str(output)]
    )


def _plain(name: str, crawl: _Crawl) -> _Cost:
    return _measured([sys.executable, "-m", "benchmarks.bulk_loops", name, str(crawl.folder), *crawl.files])


def _measured(command: Sequence[str]) -> _Cost:
    """What a command takes with all processes that it starts."""
    start = time.monotonic()
    ticks: dict[int, int] = {}
    most = 0
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, start_new_session=True, stdout=said, stderr=said)
        while process.poll() is None:
            now = 0
            for pid, used, resident in _session(process.pid):
                ticks[pid] = used
                now += resident
            most = max(most, now)
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        if process.returncode:
            said.seek(0)
            sys.exit(f"{' '.join(command)} failed: {said.read().decode()[-2_000:]}")
    return _Cost(
        sum(ticks.values()) / _TICKS, time.monotonic() - start, most * os.sysconf("SC_PAGE_SIZE") / 1e6
    )


def _session(leader: int) -> Iterator[tuple[int, int, int]]:
    """The processes of a session: their CPU ticks and pages of memory."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader:
                yield int(entry.name), int(fields[11]) + int(fields[12]), int(fields[21])


def _write_crawl(folder: Path, data: Path, pages: int) -> None:
    sites = list(swde_sites(data))
    for site in sites:
        wrapper = siteloom.learn(*site_task(site, _UNLABELLED, _ATTRIBUTES))
        (folder / f"{site.full_name}.json").write_text(wrapper.to_json(), encoding="utf-8")
    truths = [
        (site.name, truth) for site in sites if site.vertical == _SEEDED for truth in site.truth.values()
    ]
    lines = [json.dumps({**seed.values, "_source": seed.source}) for seed in seeds_of(truths, _SEEDS)]
    (folder / "seeds.jsonl").write_text("\n".join(lines), encoding="utf-8")
    crawl = islice(_mixed(sites), pages)
    number = 0
    while some := list(islice(crawl, _PAGES_OF_A_FILE)):
        table = pa.table({"url": [page.url for page in some], "html": [page.html for page in some]})
        pq.write_table(
            table, folder / f"{number:04}.parquet", row_group_size=_PAGES_OF_A_GROUP, compression="zstd"
        )
        number += 1


def _mixed(sites: Sequence[SwdeSite]) -> Iterator[Page]:
    """The pages of all sites in turn, again and again, each time at another URL."""
    for again in count():
        fragment = f"#{again}" if again else ""
        for numbers in zip_longest(*(sorted(site.truth) for site in sites)):
            for site, number in zip(sites, numbers, strict=True):
                if number is not None:
                    page = site.page(number)
                    yield replace(page, url=page.url + fragment)
