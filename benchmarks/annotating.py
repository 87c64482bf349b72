"""How long a person waits after a click while annotating. P is as in `parsing`, over the sample pages.

A click says the values of one attribute of a page or record. They are kept in a store, a wrapper is learned
again, and all that the person is shown of the sample pages is written as JSON.
"""

from __future__ import annotations

import statistics
from contextlib import closing
from functools import partial
from html import escape
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from evals.swde import swde_sites
from pydantic import TypeAdapter

from benchmarks.learning import EXAMPLES, parse_bare, site_task
from benchmarks.measure import ROUNDS, Figure, cpu_time
from siteloom.core.model import Attribute, Cluster, Page, Template
from siteloom.core.settings import StoreSettings
from siteloom.html.tag_scanner import scan_tags
from siteloom.learning.annotation.annotation_questions import Sheet
from siteloom.operations.annotation.session_registry import Workbenches
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.workspace_folder import open_store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evals.swde import SwdeSite

    from siteloom.learning.annotation.clicked_nodes import Pick
    from siteloom.operations.annotation.annotation_session import Workbench
    from siteloom.operations.annotation.sample_pages import SamplePage
    from siteloom.store.store import Store

TITLE = "Annotating"

_SITES = slice(0, None, 4)  # one site of each vertical
_PAGES = 10
_ANNOTATED = 3
_ATTRIBUTES = 5
_ELEMENTS = 10_000
_GOAL = "at most 5 P"
_SITE = "things.example"
_SHEET = TypeAdapter(Sheet)
_WORDS = (
    "amber basin cedar delta ember fjord grove haven inlet juniper kelp larch maple north olive pine quartz "
    "ridge slate tulip umber vale willow yarrow zinc"
).split()


class _Kind(NamedTuple):
    """What list pages are like: how many elements they have, and how many records."""

    elements: int
    cards: int


# In the last there are more records than are learned from.
_LISTS = (_Kind(1_000, 50), _Kind(_ELEMENTS, 50), _Kind(_ELEMENTS, 200))


class _Click(NamedTuple):
    """What is said: of which page, of which of its records, of which attribute, and the values."""

    page: int
    record: int | None
    attribute: str
    values: Sequence[str]


class _Task(NamedTuple):
    """The sample pages, and the clicks."""

    pages: list[Page]
    clicks: list[_Click]


class _Waits(NamedTuple):
    """What opening the pages and each click cost, as shares of a bare parse of the same pages."""

    opening: float
    clicks: list[float]


def figures(data: Path) -> list[Figure]:
    scan_tags(b"<p>")  # compiles, or loads what was compiled
    details = _waits(_detail_task())
    lists = {kind: _waits(_list_task(kind)) for kind in _LISTS}
    real = {site.full_name: _waits(_real_task(site)) for site in list(swde_sites(data))[_SITES]}
    slowest = max(real, key=lambda name: max(real[name].clicks))
    clicks = [click for waits in real.values() for click in waits.clicks]
    big = f"{_PAGES} pages of {_ELEMENTS:,} elements, {_ATTRIBUTES} attributes"
    return [
        Figure(f"opening {big}", f"{details.opening:.1f} P"),
        Figure(f"click, {big}, median", f"{statistics.median(details.clicks):.1f} P", _GOAL),
        Figure(f"click, {big}, worst", f"{max(details.clicks):.1f} P", _GOAL),
        *(figure for kind, waits in lists.items() for figure in _list_figures(kind, waits)),
        Figure(f"click, {_PAGES} real pages, median", f"{statistics.median(clicks):.1f} P", _GOAL),
        Figure(f"click, {_PAGES} real pages, worst ({slowest})", f"{max(real[slowest].clicks):.1f} P"),
    ]


def _list_figures(kind: _Kind, waits: _Waits) -> list[Figure]:
    lists = f"{_PAGES} list pages of {kind.elements:,} elements, {kind.cards} records"
    # With the first click it becomes known where the records are.
    first, *others = waits.clicks
    # Of small pages there is little to parse, but their records take as long as those of large ones.
    goal = _GOAL if kind.elements >= _ELEMENTS else ""
    return [
        Figure(f"click, {lists}, median", f"{statistics.median(waits.clicks):.1f} P", goal),
        Figure("click, likewise, worst but the first", f"{max(others):.1f} P", goal),
        Figure("click, likewise, the first", f"{first:.1f} P", goal),
    ]


def _waits(task: _Task) -> _Waits:
    rounds = [_round(task) for _ in range(ROUNDS)]
    parse, opening, *clicks = (statistics.median(times) for times in zip(*rounds, strict=True))
    return _Waits(opening / parse, [click / parse for click in clicks])


def _round(task: _Task) -> list[float]:
    """CPU seconds: of a bare parse, of opening a workbench, and of each click."""
    with (
        TemporaryDirectory() as folder,
        closing(open_store(StoreSettings(folder), create=True)) as store,
    ):
        cluster = _clustered(store, task.pages)
        times = [cpu_time(lambda: parse_bare(task.pages))]
        benches = Workbenches(store)
        times.append(cpu_time(lambda: benches.bench(cluster)))
        bench = benches.bench(cluster)
        shown = {page.page.url: page for page in bench.pages}
        for name in dict.fromkeys(click.attribute for click in task.clicks):
            bench.describe(name, Attribute(), "", seen=bench.sheet().schema_revision)
        for click in task.clicks:
            page = shown[task.pages[click.page].url]
            picks = [page.value(text, None).pick for text in click.values]
            said = {click.attribute: [pick for pick in picks if pick is not None]}
            times.append(cpu_time(partial(_say, bench, page, said, click.record)))
        return times


def _clustered(store: Store, pages: Sequence[Page]) -> str:
    """Put pages into a store as one cluster; returns its name."""
    addresses = [PageAddress(_SITE, page.url) for page in pages]
    with store.ingesting({}, 1) as (_, writer):
        for page in pages:
            writer.add(page, _SITE)
    cluster = Cluster(f"{_SITE}/1", _SITE, tuple(range(len(pages))), "", 0, (), 0.0, (), Template((), 0))
    with store.recording("cluster", {"site": None}) as run:
        store.save_clusters(run.id, [cluster], addresses)
    return cluster.id


def _say(bench: Workbench, page: SamplePage, said: Mapping[str, Sequence[Pick]], record: int | None) -> None:
    bench.say(page.id, said, "", version=page.version, record=record, seen={})
    _SHEET.dump_json(bench.sheet())


def _real_task(site: SwdeSite) -> _Task:
    """Pages of a real site."""
    task = site_task(site, _PAGES - EXAMPLES, _ATTRIBUTES)
    pages = {page.url: page for page in (*(example.page for example in task.examples), *task.pages)}
    numbers = {url: number for number, url in enumerate(pages)}
    clicks = [
        _Click(numbers[example.page.url], None, name, values)
        for example in task.examples[:_ANNOTATED]
        for name, values in example.values.items()
    ]
    return _Task(list(pages.values())[:_PAGES], clicks)


def _detail_task() -> _Task:
    """Pages on one thing each, with its values among very much else."""
    pages = [_detail_page(number) for number in range(_PAGES)]
    clicks = [
        _Click(number, None, name, values)
        for number in range(_ANNOTATED)
        for name, values in _values(number, number).items()
    ]
    return _Task(pages, clicks)


def _list_task(kind: _Kind) -> _Task:
    """Pages with many things each, of which two are said on each page, value by value."""
    pages = [_list_page(number, kind) for number in range(_PAGES)]
    clicks = [
        _Click(number, card, name, values)
        for number in range(_ANNOTATED)
        for card in range(2)
        for name, values in _values(number, number * kind.cards + card).items()
    ]
    return _Task(pages, clicks)


def _values(page: int, thing: int) -> dict[str, list[str]]:
    makers = _WORDS[thing % len(_WORDS)], _WORDS[(thing + page + 3) % len(_WORDS)]
    values = {
        "name": f"Thing {thing}",
        "price": f"${thing % 90 + 9}.{thing % 10}0",
        "maker": " & ".join(makers).title(),
        "weight": f"{thing * 7 % 50 + 1} kg",
        "code": f"C-{thing * 7_919 % 99_991:05}",
    }
    return {name: [value] for name, value in values.items()}


def _fields(page: int, thing: int) -> str:
    """The values of a thing, as they stand on its page or card."""
    name, price, maker, weight, code = (value for (value,) in _values(page, thing).values())
    return (
        f"<h2 class=title>{name}</h2><p class='price big'>{price} <small>incl. tax</small></p>"
        f"<table><tr><th>Made by</th><td>{escape(maker)}</td></tr><tr><th>Weight</th><td>{weight}</td></tr>"
        f"</table><p>Order no.: <b>{code}</b></p>"
    )


def _detail_page(number: int) -> Page:
    random = Random(number)
    body = f"<div id=thing>{_fields(number, number)}</div><div id=more>{_filling(random, _ELEMENTS)}</div>"
    return Page.from_text(f"http://things.example/thing/{number}", _document(body))


def _list_page(number: int, kind: _Kind) -> Page:
    random = Random(number)
    cards = "".join(
        f"<div class='card {'odd' if card % 2 else 'even'}'>{_fields(number, number * kind.cards + card)}"
        f"<div class=about>{_filling(random, kind.elements // kind.cards - 13)}</div></div>"
        for card in range(kind.cards)
    )
    return Page.from_text(f"http://things.example/list/{number}", _document(f"<div id=cards>{cards}</div>"))


def _document(body: str) -> str:
    return (
        "<!DOCTYPE html><html><head><title>Things</title></head><body><ul id=menu><li><a href=/>Home</a></li>"
        f"<li><a href=/all>All</a></li></ul>{body}<p class=foot>Imprint</p></body></html>"
    )


def _filling(random: Random, elements: int) -> str:
    """So many elements, never the same on two pages: paragraphs, lists, rows of tables, links, pictures."""
    parts: list[str] = []
    while elements > 0:
        kind = random.randrange(4)
        count = min(random.randrange(1, 9), elements)
        words = [" ".join(random.choices(_WORDS, k=random.randrange(1, 6))) for _ in range(count)]
        match kind:
            case 0:
                inside = "".join(f"<li class=c{len(one) % 4}>{one}</li>" for one in words)
                parts.append(f"<ul>{inside}</ul>")
            case 1:
                inside = "".join(f"{one} <a href='/w/{len(one)}'>{one[:5]}</a> " for one in words)
                parts.append(f"<p>{inside}</p>")
            case 2:
                inside = "".join(f"<span>{one}:</span> {random.randrange(10_000)}" for one in words)
                parts.append(f"<div class='box b{count}'>{inside}</div>")
            case _:
                inside = "".join(f"<img src='/i/{random.randrange(999)}.png' alt='{one}'>" for one in words)
                parts.append(f"<figure>{inside}</figure>")
        elements -= count + 1
    return "".join(parts)
