"""Writes what today's Siteloom writes, to be opened by every later one: see `scripts/keep-formats`."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

from sqlalchemy import func, select

from siteloom import Attribute, Example, Failure, Page, Wrapper, learn
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.model import Footprint, Seed, Validators
from siteloom.core.settings import StoreSettings
from siteloom.engines.local_engine import LocalEngine
from siteloom.engines.whole_crawls.crawl_run import BulkRun, Outbox, row_schema
from siteloom.engines.whole_crawls.output_folder import OutputFolder
from siteloom.extraction.record_formats import record_tables
from siteloom.extraction.record_rows import record_row
from siteloom.maintenance.watch_file import watch_to_json
from siteloom.maintenance.watched_pages import watch
from siteloom.operations.cluster import cluster_store
from siteloom.operations.page_import import import_pages
from siteloom.operations.relearn import mend_wrappers
from siteloom.operations.search import update_index
from siteloom.operations.watch import check_watches, watch_wrappers
from siteloom.sources.example_files import ExampleLine
from siteloom.sources.page_source import Items
from siteloom.store import schema
from siteloom.store.queries.accounts import Passwords
from siteloom.store.queries.entities import LinkedEntity
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from siteloom.wrappers.exports.xpath_json import as_texts, to_xpath_json
from siteloom.wrappers.rule_features import (
    AttributeRules,
    Feature,
    Kind,
    RecordRule,
    Rule,
    RuleSupport,
    Scorer,
    ValuePart,
)
from siteloom.wrappers.value_contract import learned_contract
from tests.apps.demo.sites import directory, guide, of_kind
from tests.formats import kept
from tests.formats.summary import ACCOUNT, PASSWORD, summary
from tests.maintenance.guide import CHANGING, restaurants, truth
from tests.operations.calls import annotate_pages, extract_records, learn_wrappers
from tests.operations.contexts import context_of

_BEGIN = datetime(2026, 10, 1, 6, tzinfo=UTC)
_SURE = 1.01  # no repair is so sure that it is put in force by itself
FINGERPRINT = "kept"
_EVIDENCE = RuleSupport(5, 0, 1.0, 0.0)


def main() -> None:
    """Write the folders that are missing."""
    for kind, version in kept.current().items():
        folder = kept.FOLDER / f"{kind}-{version}"
        if folder.exists():
            print(f"{folder.name} is kept already.")
            continue
        unfinished = kept.FOLDER / f".{folder.name}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        MAKERS[kind](unfinished)
        unfinished.rename(folder)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        print(f"{folder.name} is new: {size:,} bytes.")


# Wrappers


def wrappers(folder: Path) -> None:
    """Wrappers of every kind, and the records that each gives on its pages."""
    for name, (wrapper, pages) in _wrappers().items():
        place = folder / name
        place.mkdir()
        (place / "wrapper.json").write_text(wrapper.to_json(), encoding="utf-8")
        kept.write_pages(place, pages)
        kept.write_lines(place / "records.jsonl", records_of(wrapper, pages))


def records_of(wrapper: Wrapper, pages: Sequence[Page]) -> list[dict[str, Any]]:
    """What a wrapper gives on pages, as `siteloom extract` writes it."""
    return [record_row(record, "kept", 1) for page in pages for record in wrapper.extract_all(page)]


def _wrappers() -> dict[str, tuple[Wrapper, list[Page]]]:
    places, lists = restaurants()[:12], of_kind(guide(), "list")[:6]
    fresh = {one.entity: one for one in of_kind(guide("redesign"), "restaurant")}
    redesigned = [fresh[one.entity] for one in places]
    old = _learned(places)
    new = _learned(redesigned)
    accepted = tuple(sorted({*new.footprint.accepted, *old.footprint.accepted}))
    layouts = replace(new, earlier=(old,), footprint=replace(new.footprint, accepted=accepted))
    listing = learn([Example(lists[0].page, {}, lists[0].records[:3])], [one.page for one in lists])
    by_paper = learn(
        [Example(one.page, truth(one)) for one in places[:4]],
        [one.page for one in places],
        CHANGING,
        "vertex",
    )
    return {
        "details": (old, _pages(places[8:9])),
        "list": (listing, _pages(lists[3:4])),
        "layouts": (layouts, [*_pages(places[8:9]), *_pages(redesigned[9:10])]),
        "vertex": (by_paper, _pages(places[8:9])),
        "every-kind": (_every_kind(), [_PAGE_OF_EVERY_KIND]),
        "records-that-run-on": (_running_on(), [_PAGE_OF_EVERY_KIND]),
    }


def _learned(places: Sequence[BuiltinPage]) -> Wrapper:
    return learn([Example(one.page, truth(one)) for one in places[:4]], _pages(places), CHANGING)


def _pages(some: Sequence[BuiltinPage]) -> list[Page]:
    return [one.page for one in some]


_PAGE_OF_EVERY_KIND = Page.from_text(
    "https://inn.example/1",
    """<!DOCTYPE html><html><head><title>Blue Fern</title></head><body>
<h1 id="name" class="big title">Blue Fern</h1>
<p itemprop="cuisine">Thai / Vegan</p>
<div class="facts"><b>Phone:</b> <span>0117 496 0001</span> <i>(bar)</i></div>
<div class="facts"><b>Price:</b> <span>from $12.50 a dish</span></div>
<p>Opened: 12/03/2011</p>
<table><tr><td>Seats</td><td>40</td></tr><tr><td>Rooms</td><td>7</td></tr></table>
<a href="/map?id=7" rel="place">Map</a> <img src="/fern.png" alt="A fern">
<ul><li>First</li><li>Second</li><li>Last</li></ul>
<dl><dt>Monday</dt><dd>closed</dd><dt>Tuesday</dt><dd>11 to 23</dd></dl>
</body></html>""",
)

_RULES: dict[Kind, tuple[str, *tuple[Feature, ...]]] = {
    "text-before": ("text", Feature("text-before", 0, "Phone:")),
    "prefix": ("text", Feature("prefix", 0, "Opened:")),
    "text-number": ("text", Feature("text-number", 0, "1")),
    "shape": ("text", Feature("shape", 0, "digits")),
    "id": ("text", Feature("id", 0, "name")),
    "class": ("element", Feature("class", 0, "big title")),
    "class-word": ("text", Feature("class-word", 0, "title")),
    "attribute": ("text", Feature("attribute", 0, "itemprop=cuisine")),
    "tag": ("@href", Feature("tag", 0, "a")),
    "first-text": ("text", Feature("first-text", 1, "Price:")),
    "before": ("element", Feature("before", 0, "Seats")),
    "position": ("text", Feature("position", 0, "2"), Feature("tag", 0, "li")),
    "last-position": ("text", Feature("last-position", 0, "1"), Feature("tag", 0, "li")),
}


def _every_kind() -> Wrapper:
    """An attribute for each kind of feature, and for all else that wrapper files can say."""
    assert set(_RULES) == set(get_args(Kind))
    found: dict[str, AttributeRules] = {
        kind: AttributeRules(Attribute(multi=True), (_rule(*rule),), (), 1.0) for kind, rule in _RULES.items()
    }
    phone = _rule("text", Feature("text-before", 0, "Phone:"))
    price = _rule(*_RULES["first-text"])
    parts = {
        "anchored": ValuePart(left="from ", right=" a dish"),
        "matched": ValuePart(pattern=r"\$\d++"),
        "split": ValuePart(separator=" / "),
    }
    of_parts = {"anchored": price, "matched": price, "split": _rule(*_RULES["attribute"])}
    found |= {
        name: AttributeRules(Attribute(multi=True), (replace(of_parts[name], part=part),), (), 1.0)
        for name, part in parts.items()
    }
    scorer = Scorer((("position 2", 3.0), ("depth 3", 0.5)), -1.0, takes_all=True)
    chosen = replace(_rule("text", Feature("tag", 0, "li")), scorer=scorer)
    found["chosen"] = AttributeRules(Attribute(multi=True), (chosen,), (), 1.0)
    found["checked"] = AttributeRules(
        Attribute(multi=False, mandatory=True, constant=True),
        (_rule("text", Feature("class", 9, "nowhere")), phone),
        (_rule("text", Feature("tag", 0, "span"), Feature("text-number", 0, "1")), phone),
        0.97,
        ("digits", "mixed"),
        contract=learned_contract([f"0117 496 0{number:03}" for number in range(30)]),
    )
    seats = _rule(*_RULES["before"])
    found["seats"] = AttributeRules(Attribute(multi=False, type="number"), (seats,), (), 1.0)
    opened = replace(_rule(*_RULES["prefix"]), part=ValuePart(left="Opened:"))
    found["opened"] = AttributeRules(Attribute(multi=False, type="date"), (opened,), (), 1.0, day_first=True)
    return Wrapper(
        found,
        frozenset({"Phone:", "Price:"}),
        footprint=Footprint(
            ("inn.example",),
            (r"^https?://inn\.example/[^/?#]+$",),
            (("0123456789ab****", 12),),
            ("0123456789abcdef",),
        ),
    )


def _running_on() -> Wrapper:
    """Records that begin with an element and go on behind it, found by their names or without."""
    rule = RecordRule((Feature("class", 0, "day"),), True, (Feature("tag", 0, "dt"),), 2)
    return Wrapper(
        {
            "day": AttributeRules(Attribute(multi=False), (_rule("text", Feature("tag", 0, "dt")),), (), 1.0),
            "hours": AttributeRules(
                Attribute(multi=False), (_rule("text", Feature("tag", 0, "dd")),), (), 1.0
            ),
        },
        record_rule=rule,
    )


def _rule(target: str, *features: Feature) -> Rule:
    return Rule(target, tuple(sorted(features)), ValuePart(), _EVIDENCE)


# Other files


def watches(folder: Path) -> None:
    """What `siteloom watch -o` writes, and the pages as they were found later, changed."""
    places = restaurants()[:8]
    fresh = {one.entity: one for one in of_kind(guide("redesign"), "restaurant")}
    found = watch(_learned(places), _pages(places), 3, name="guide")
    (folder / "watch.jsonl").write_text(watch_to_json(found) + "\n", encoding="utf-8")
    watched = {one.page.url for one in found.bellwethers}
    kept.write_pages(folder, [fresh[one.entity].page for one in places if one.page.url in watched])


def xpath_json(folder: Path) -> None:
    """What `siteloom export --format xpath-json` writes, and the texts that it gives on pages."""
    for name, (wrapper, pages) in _wrappers().items():
        place = folder / name
        place.mkdir()
        (place / "wrapper.json").write_text(to_xpath_json(wrapper), encoding="utf-8")
        kept.write_pages(place, pages)
        texts = [
            {"values": dict(one.values)} for page in pages for one in as_texts(wrapper).extract_all(page)
        ]
        kept.write_lines(place / "records.jsonl", texts)


def files(folder: Path) -> None:
    """Files that say of no version: examples, as people write them, and records."""
    places = restaurants()[:6]
    lists = of_kind(guide(), "list")[:2]
    details = [{"url": one.page.url, "values": truth(one)} for one in places[:4]]
    listing = {"url": lists[0].page.url, "records": [dict(record) for record in lists[0].records[:3]]}
    kept.write_lines(folder / "examples.jsonl", [*details, listing])
    kept.write_lines(folder / "records.jsonl", records_of(_learned(places), _pages(places)))


def bulk(folder: Path) -> None:
    """A folder that an engine was killed in after one of two shards, and one that is done."""
    for name in ("unfinished", "done"):
        output = OutputFolder(str(folder / name))
        run = BulkRun(LocalEngine(1), output, FINGERPRINT, 1, lambda *_: lambda _: None)
        sent = Outbox(output, "read", 0, 1)
        sent.send("inn.example", 0)
        sent.failures.append(Failure("https://inn.example/2", "no such page"))
        sent.counts["pages"] = 2
        sent.close(row_schema())
        if name == "done":
            place = restaurants()[0]
            rows = records_of(_learned(restaurants()[:6]), [place.page])
            found = Outbox(output, "extract", 0, 1)
            found.write("larkmoor-guide.example", record_tables(list(rows[0]["values"]))(rows))
            found.close(None)
            run.finish({"pages": 2, "records": 1})


# A workspace


class _Days:
    """A clock that goes on by two seconds whenever it is read."""

    def __init__(self) -> None:
        self.now = _BEGIN

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=2)
        return self.now


def workspace(folder: Path) -> None:
    """A workspace in which every table is filled, and what is in it."""
    with tempfile.TemporaryDirectory() as made:
        settings = StoreSettings(made)
        with closing(open_store(settings, create=True, clock=_Days())) as store:
            _live_in(store)
            _check_filled(store)
            found = json.dumps(summary(store), ensure_ascii=False, indent=1)
        (folder / kept.SUMMARY).write_text(found + "\n", encoding="utf-8")
        with closing(sqlite3.connect(Path(made) / "siteloom.db")) as tables:
            tables.execute("VACUUM")
        kept.pack_workspace(Path(made), folder / kept.ARCHIVE)


def _live_in(store: Store) -> None:
    places, lists = restaurants()[:9], of_kind(guide(), "list")[:3]
    fresh = {one.entity: one for one in of_kind(guide("redesign"), "restaurant")}
    told = replace(places[0].page, validators=Validators('"1"', "Thu, 01 Oct 2026 06:00:00 GMT"))
    others = [one.page for one in (*lists, *of_kind(directory(), "restaurant")[:3])]
    broken = Failure("https://inn.example/2", "not HTML", "a picture")
    import_pages(store, [Items([told, *_pages(places[1:]), *others, broken])])
    cluster_store(store, "vertex")
    annotate_pages(store, [ExampleLine(one.page.url, one.truth, (), {}) for one in places[:4]])
    annotate_pages(store, [ExampleLine(lists[0].page.url, {}, lists[0].records[:3], {})])
    annotated = [one.name for one in store.cluster_summaries() if one.annotated]
    for name in annotated:
        learn_wrappers(store, name)
    store.apply_updates(
        annotated[0], [], ACCOUNT, schema_follows=0, attributes={"phone": Attribute(multi=False)}
    )
    store.reviewing.dismiss(next(one.name for one in store.cluster_summaries() if not one.annotated))
    extract_records(store, None)
    watch_wrappers(store, k=3)
    update_index(context_of(store))
    known = [
        Seed({name: values for name, values in one.truth.items() if values}, "guide", one.page.url)
        for one in places
    ]
    with store.recording("seeds", {}) as run:
        store.add_seeds(run.id, known)
        store.entities.replace(
            run.id, {"core": ["name"]}, [LinkedEntity(1, 2, ("phone",), ("Blue Fern",), {"entity": 1})]
        )
    store.save_site_outcome("tableatlas.example", "poor", 1, len(known), content={"reason": "too few"})
    import_pages(
        store, [Items([replace(fresh[one.entity].page, fetched_at=store.clock()) for one in places])]
    )
    check_watches(store)
    mend_wrappers(store, accept=_SURE)
    store.accounts.add(ACCOUNT, "admin", Passwords().hashed(PASSWORD))
    store.accounts.open_session(ACCOUNT)
    store.accounts.add_key(ACCOUNT, "nightly export")
    store.accounts.count_attempt("mallory", "192.0.2.7")
    job = store.jobs.add("extract", {"site": "larkmoor-guide.example"}, ACCOUNT)
    store.jobs.start(job.id)
    store.jobs.end(job.id, "done", {"records": 9})
    store.jobs.add("cluster", {"site": None}, ACCOUNT)


def _check_filled(store: Store) -> None:
    with store.engine.connect() as connection:
        counts = {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in schema.metadata.sorted_tables
        }
    empty = sorted(name for name, count in counts.items() if not count)
    if empty:
        sys.exit(f"Nothing is in these tables, so no later version would show that it keeps them: {empty}")


def _unheard(*_: object) -> None:
    """No one watches."""


MAKERS: dict[str, Callable[[Path], None]] = {
    "wrapper": wrappers,
    "watch": watches,
    "xpath-json": xpath_json,
    "workspace": workspace,
    "files": files,
    "bulk": bulk,
}


if __name__ == "__main__":
    main()
