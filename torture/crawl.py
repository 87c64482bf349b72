"""A large crawl through ingest, cluster, extract and clean: all of it right, in bounded memory."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from siteloom.apps.demo.sites import guide_site
from torture.commands import Ran, run_siteloom
from torture.ordeals import Ordeal, Plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from siteloom.apps.demo.sites.built_in_page import BuiltinPage

TITLE = "A large crawl"

PAGES = 100_000
SITES = 10
_EXAMPLES = 5  # of each kind that has a wrapper, of each site
_JOBS = "2"
# Ten times the pages may take so much more memory: what is known of each page, and that is little.
_GROWTH_ALLOWED = 1.5
_MOST_MISSED = 0.05  # of the names; at K = 5 on real sites, one in a hundred values is missed or wrong
_SLACK = 100_000_000  # bytes: the flat part of design and of measurement noise


@dataclass(frozen=True, slots=True)
class Crawl:
    """Files of pages, examples for some of them, and what their restaurants are called."""

    files: list[str]
    examples: str
    pages: int
    names: dict[str, str]


class Step(NamedTuple):
    """A verb that was run, and what is wrong with what came of it."""

    verb: str
    ran: Ran
    fault: str


def ordeals(plan: Plan) -> Iterator[Ordeal]:
    """A tenth of the crawl first, to see how memory grows; then all of it."""
    peaks: dict[str, int] = {}
    for share in (0.1, 1.0):
        folder = plan.folder / f"{share:g}"
        folder.mkdir()
        crawl = write_crawl(folder, plan.times(round(PAGES * share)), plan.seed)
        for verb, ran, fault in steps(folder, crawl):
            before = peaks.setdefault(verb, ran.peak_bytes)
            is_bounded = ran.peak_bytes <= _GROWTH_ALLOWED * before + _SLACK
            per_page = 1_000 * ran.cpu_seconds / crawl.pages
            yield Ordeal(
                f"`{verb}`",
                f"{crawl.pages:,} pages of {SITES} sites, {_JOBS} processes",
                fault
                or f"all there and right; {per_page:.2f} CPU ms a page, "
                f"at most {ran.peak_bytes / 1e6:,.0f} MB a process",
                not fault and is_bounded,
                ran.seconds,
            )


def write_crawl(folder: Path, pages: int, seed: int) -> Crawl:
    """Write about so many pages: city guides of different content, several under one host."""
    files: list[str] = []
    names: dict[str, str] = {}
    examples: list[str] = []
    written = 0
    while written < pages:
        number = len(files)
        guide = [_moved(one, number) for one in guide_site(seed=seed + number)][: pages - written]
        file = f"crawl-{number:04}.jsonl.gz"
        with gzip.open(folder / file, "wt", encoding="utf-8", compresslevel=1) as lines:
            for one in guide:
                lines.write(json.dumps({"url": one.page.url, "html": one.page.html.decode()}) + "\n")
        places = [one for one in guide if one.kind == "restaurant"]
        names |= {one.page.url: one.truth["name"][0] for one in places}
        if number < SITES:
            told = ({"url": one.page.url, "values": one.truth} for one in places[:_EXAMPLES])
            examples += map(json.dumps, told)
        files.append(file)
        written += len(guide)
    (folder / "examples.jsonl").write_text("\n".join(examples) + "\n", encoding="utf-8")
    return Crawl(files, "examples.jsonl", written, names)


def _moved(one: BuiltinPage, number: int) -> BuiltinPage:
    """The page at another address: each guide a folder of one of the hosts."""
    path = urlsplit(one.page.url).path
    url = f"https://guide-{number % SITES}.example/city-{number // SITES}{path}"
    return replace(one, page=replace(one.page, url=url))


def steps(folder: Path, crawl: Crawl) -> Iterator[Step]:
    """Run the verbs one after the other, and look at what each gives."""
    ran = run_siteloom(folder, "ingest", *crawl.files, "-j", _JOBS)
    yield Step("siteloom ingest", ran, _failed(ran) or _kept_fault(folder, crawl))
    ran = run_siteloom(folder, "cluster", "-j", _JOBS)
    yield Step("siteloom cluster", ran, _failed(ran))
    ran = run_siteloom(folder, "learn", "--examples", crawl.examples, "-j", _JOBS)
    yield Step("siteloom learn", ran, _failed(ran))
    ran = run_siteloom(folder, "extract", "-o", "records.jsonl", "--failures", "failures.jsonl", "-j", _JOBS)
    yield Step("siteloom extract", ran, _failed(ran) or _records_fault(folder, crawl))
    ran = run_siteloom(folder, "clean", "-o", "texts.jsonl", "-j", _JOBS)
    yield Step("siteloom clean", ran, _failed(ran) or _texts_fault(folder, crawl))


def _failed(ran: Ran) -> str:
    return f"ended with status {ran.status}: {ran.said[-300:]}" if ran.status else ""


def _kept_fault(folder: Path, crawl: Crawl) -> str:
    ran = run_siteloom(folder, "status", "-o", "sites.jsonl")
    if fault := _failed(ran):
        return fault
    with (folder / "sites.jsonl").open(encoding="utf-8") as lines:
        kept = sum(json.loads(line)["pages"] for line in lines)
    return "" if kept == crawl.pages else f"{kept:,} pages are kept, not {crawl.pages:,}"


def _records_fault(folder: Path, crawl: Crawl) -> str:
    """Each page has a record or a failure with a reason, and no restaurant has the name of another.

    Few examples do not show all that pages are like, so some names may be missed, but not many.
    """
    found: dict[str, str] = {}
    twice = 0
    with (folder / "records.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            twice += record["url"] in found
            found[record["url"]] = record["values"].get("name", [""])[0]
    with (folder / "failures.jsonl").open(encoding="utf-8") as lines:
        failed = {failure["url"] for failure in map(json.loads, lines) if failure["reason"]}
    silent = crawl.pages - len(found.keys() | failed)
    names = [(name, crawl.names[url]) for url, name in found.items() if url in crawl.names]
    missed = sum(not name for name, _ in names)
    wrong = sum(name not in ("", true) for name, true in names)
    if silent or wrong or twice or missed > _MOST_MISSED * len(names):
        return (
            f"{silent:,} pages without record or reason, {wrong:,} wrong, {missed:,} of {len(names):,} names "
            f"missed, {twice:,} twice"
        )
    return ""


def _texts_fault(folder: Path, crawl: Crawl) -> str:
    without_name = 0
    urls = set()
    with (folder / "texts.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            page = json.loads(line)
            urls.add(page["url"])
            without_name += crawl.names.get(page["url"], "") not in page["text"]
    if len(urls) != crawl.pages or without_name:
        return f"{len(urls):,} texts of {crawl.pages:,} pages, {without_name:,} without their name"
    return ""
