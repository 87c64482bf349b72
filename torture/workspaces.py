"""Workspaces to do the worst to: small, made by the verbs themselves, copied cheaply, and compared."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from contextlib import closing
from hashlib import blake2b
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import select

from siteloom.apps.demo.sites import directory_site, guide_site
from siteloom.core.settings import StoreSettings
from siteloom.store import schema
from siteloom.store.packs.pack_file import Pack
from siteloom.store.workspace_folder import open_store, workspace_exists
from torture.processes import SECONDS_TO_END, Ended, run, start, wait_for_change, write_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from siteloom.apps.demo.sites.built_in_page import BuiltinPage
    from siteloom.store.store import Store
    from torture.postgres import PostgresServer

GUIDE = "larkmoor-guide.example"
DIRECTORY = "tableatlas.example"
WORKSPACE = ".siteloom"
# Enough to be several shards and commits, few enough that a verb takes no longer than Python takes to start.
_OTHER_SITES = 7
_OTHER_PAGES = 700
_RESTAURANTS = 40
_OTHERS_OF_GUIDE = 10
_OF_DIRECTORY = 30
_EXAMPLES = 4
_SEEDS = 40


class Place(NamedTuple):
    """A folder with a workspace in it, or without one yet; its tables may be a PostgreSQL database."""

    folder: Path
    server: PostgresServer | None = None
    database: str = ""

    @property
    def settings(self) -> StoreSettings:
        """How to open its store."""
        url = self.server.address(self.database) if self.server else ""
        return StoreSettings(str(self.folder / WORKSPACE), url)

    @property
    def options(self) -> tuple[str, ...]:
        """What the command line must be told of where the tables are."""
        return ("--store", self.settings.url) if self.server else ()

    def copy(self, folder: Path) -> Place:
        """Another that has all that this one has; no process may be at work in it."""
        shutil.copytree(self.folder, folder)
        if self.server is None:
            return Place(folder)
        return Place(folder, self.server, self.server.copy(self.database))

    def remove(self) -> None:
        """Remove it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.server is not None:
            self.server.drop(self.database)

    def run(self, *arguments: str) -> Ended:
        """Run a verb to its end."""
        return run(self.folder, *arguments, *self.options)


Facts = dict[str, Counter[Any]]
"""All that a store holds, by what it is, without the numbers and times that differ from run to run."""


class Stage(NamedTuple):
    """A verb that is called in a place: its name for people, and its arguments."""

    name: str
    arguments: tuple[str, ...]
    writes: str = ""  # the file that it writes
    is_needed: bool = True  # by those behind it


STAGES = (
    Stage("ingest", ("ingest", "many.jsonl", "pages.jsonl", "-j", "2")),
    Stage("cluster", ("cluster",)),
    Stage("learn", ("learn", "--examples", "examples.jsonl")),
    Stage("extract", ("extract",)),
    Stage("extract -j 2", ("extract", "-j", "2"), is_needed=False),
    Stage("extract -o", ("extract", "-o", "records.jsonl"), "records.jsonl", is_needed=False),
    Stage("watch", ("watch",)),
    Stage("search", ("search", "thai"), is_needed=False),
    Stage("clean", ("clean", "-o", "clean.jsonl"), "clean.jsonl", is_needed=False),
    Stage("ingest again", ("ingest", "changed.jsonl")),
    Stage("monitor", ("monitor",)),
    Stage("relearn", ("relearn",)),
    Stage("seeds", ("seeds", "table.jsonl")),
    Stage("bootstrap", ("bootstrap", "--core", "name,address", "--site", DIRECTORY)),
    Stage("forget", ("forget", GUIDE, "--yes")),
)
"""The life of a workspace: each stage works on what those before it left."""


class Prepared(NamedTuple):
    """A place as it is before a stage, and what it holds before and after."""

    stage: Stage
    place: Place
    before: Facts
    after: Facts
    written: str
    seconds: float
    commits: int
    seconds_locked: float  # from when it first has the lock to its end; most of a run is what comes before


def new_place(folder: Path, server: PostgresServer | None) -> Place:
    """A place with the files that the stages need, and no workspace yet."""
    folder.mkdir(parents=True)
    _write_files(folder)
    return Place(folder, server, server.create()) if server else Place(folder)


def prepared_stages(
    folder: Path, server: PostgresServer | None, wanted: Iterable[str] | None = None
) -> list[Prepared]:
    """The stages of a workspace's life up to the last that is wanted, each to be done again and again."""
    names = [stage.name for stage in STAGES if wanted is None or stage.name in set(wanted)]
    found: list[Prepared] = []
    place = new_place(folder / "0", server)
    before: Facts = {}
    for number, stage in enumerate(STAGES, 1):
        if not names[len(found) :]:
            break
        if not stage.is_needed and stage.name not in names:
            continue
        following = place.copy(folder / str(number))
        started = start(following.folder, *stage.arguments, *following.options, dies_at_commit=0)
        wait_for_change(started.process, following.folder / WORKSPACE / "lock", SECONDS_TO_END)
        locked_at = time.monotonic()
        ended = started.end()
        seconds_locked = time.monotonic() - locked_at
        if ended.status != 0:
            raise RuntimeError(f"{stage.name}: {ended.said}")
        after = facts(following)
        written = contents(following, stage)
        if stage.name in names:
            found.append(
                Prepared(stage, place, before, after, written, ended.seconds, started.commits, seconds_locked)
            )
        place, before = following, after
    return found


def contents(place: Place, stage: Stage) -> str:
    """What is in the file that a stage writes; nothing if there is none."""
    file = place.folder / stage.writes
    return file.read_text(encoding="utf-8") if stage.writes and file.exists() else ""


def facts(place: Place) -> Facts:
    """What a place holds; nothing if it has no workspace."""
    if not workspace_exists(place.settings):
        return {}
    with closing(open_store(place.settings)) as store:
        return facts_of(store)


def facts_of(store: Store) -> Facts:
    """What a store holds."""
    sites, urls, versions, runs = (
        schema.sites.c,
        schema.urls.c,
        schema.versions.c,
        schema.runs.c,
    )
    checks, seeds, grown, found = schema.checks.c, schema.seeds.c, schema.grown_sites.c, {}
    where = schema.urls.join(schema.sites)
    queries = {
        "versions": select(sites.name, urls.url, versions.content_hash, versions.media_type).select_from(
            where.join(schema.versions)
        ),
        "wrappers": _select(schema.wrappers, "name site version text origin"),
        "watches": _select(schema.watches, "wrapper wrapper_version text"),
        "repairs": _select(schema.repairs, "wrapper version_before version_after outcome state"),
        "seeds": select(seeds.source, seeds.is_grown, seeds.content, seeds.url),
        "grown sites": select(grown.site, grown.state, grown.wrapper, grown.wrapper_version),
        "segments": select(sites.name, schema.segment_tables.c.content).join(schema.segment_tables),
        "searched": _select(schema.search_documents, "kind site url content"),
        "accounts": _select(schema.users, "name role"),
        "statements": select(urls.url, schema.annotations.c.example, schema.annotations.c.author).join(
            schema.annotations, schema.annotations.c.url_id == urls.id
        ),
        # A check that is made again is another, so that only what was seen counts.
        "checks": select(checks.wrapper, checks.wrapper_version, checks.kind, checks.is_healthy)
        .join(schema.runs)
        .where(runs.status == "done")
        .distinct(),
    }
    with store.engine.connect() as connection:
        for name, query in queries.items():
            found[name] = Counter(tuple(map(_short, row)) for row in connection.execute(query))
    clusters, addresses = store.clusters()
    found["clusters"] = Counter((one.id, addresses[member].url) for one in clusters for member in one.members)
    found["records"] = Counter((site, _short(json.dumps(row))) for site, row in store.records_in_force())
    found["annotations"] = Counter(
        (example.page.url, json.dumps({name: list(values) for name, values in example.values.items()}))
        for site in store.sites()
        for example in store.examples(site.name)
    )
    return found


def _select(table: Any, columns: str) -> Any:
    return select(*(table.c[name] for name in columns.split()))


def _short(value: object) -> object:
    """A value, or what stands for it if it is long."""
    if isinstance(value, dict):
        value = json.dumps(value, sort_keys=True)
    if isinstance(value, str) and len(value) > 200:
        value = value.encode()
    return blake2b(value, digest_size=16).hexdigest() if isinstance(value, bytes) else value


# Of these a place holds what it held before or what it will hold, never some of both.
_SWITCHED = ("clusters", "records")
# What is under way there says nothing; when all is done, it must be as it is without a kill.
_ONLY_IN_THE_END = ("segments", "checks")


def faults_between(now: Facts, before: Facts, after: Facts, *, switches: bool = True) -> list[str]:
    """What a place holds that it should not, or lacks, when a stage stopped half way."""
    faults = []
    for name in after:
        then, there, goal = (one.get(name, Counter()) for one in (before, now, after))
        if name in _ONLY_IN_THE_END:
            continue
        if lost := (then & goal) - there:
            faults.append(f"{sum(lost.values())} {name} are lost: {next(iter(lost))}")
        if extra := there - (then | goal):
            faults.append(f"{sum(extra.values())} {name} are too many: {next(iter(extra))}")
        if switches and name in _SWITCHED and there not in (then, goal):
            faults.append(f"the {name} are neither those before nor those after")
    return faults


def faults_at_end(now: Facts, after: Facts) -> list[str]:
    """What a place holds otherwise than it does when a stage comes to its end undisturbed."""
    faults = []
    for name, goal in after.items():
        there = now.get(name, Counter())
        if lost := goal - there:
            faults.append(f"{sum(lost.values())} {name} are missing: {next(iter(lost))}")
        if extra := there - goal:
            faults.append(f"{sum(extra.values())} {name} are too many: {next(iter(extra))}")
    return faults


def soundness(place: Place) -> list[str]:
    """What is wrong with the packs of a place, or with how the tables know them."""
    if not workspace_exists(place.settings):
        return []
    with closing(open_store(place.settings)) as store:
        return unsound(store)


def unsound(store: Store) -> list[str]:
    """Where packs do not hold what the tables say, no more and no less."""
    faults = [f"{problem.place}: {problem.text}" for problem in store.check()]
    with store.engine.connect() as connection:
        packs = connection.execute(select(schema.packs.c.file, schema.packs.c.committed_bytes)).all()
        versions = len(connection.execute(select(schema.versions.c.id)).all())
    packed = 0
    for file, committed in packs:
        with closing(Pack(store.packs_folder, file)) as pack:
            packed += sum(len(documents) for _, documents in pack.blocks(committed))
    return faults if packed == versions else [*faults, f"{packed} pages are packed, {versions} are known"]


def _write_files(folder: Path) -> None:
    """The files that the stages read."""
    guide, changed = guide_site(), guide_site("mild-change")
    restaurants = [page for page in guide if page.kind == "restaurant"][:_RESTAURANTS]
    others = [page for page in guide if page.kind != "restaurant"][:_OTHERS_OF_GUIDE]
    known = {page.page.url for page in restaurants}
    _write_pages(folder / "pages.jsonl", [*restaurants, *others, *directory_site()[:_OF_DIRECTORY]])
    _write_pages(folder / "changed.jsonl", [page for page in changed if page.page.url in known])
    examples = [
        {"url": page.page.url, "values": {name: list(values) for name, values in page.truth.items()}}
        for page in restaurants[:_EXAMPLES]
    ]
    write_lines(folder / "examples.jsonl", examples)
    write_lines(folder / "table.jsonl", [_listed(page.truth) for page in restaurants[:_SEEDS]])
    random = Random(20250512)
    many = [
        {
            "url": f"http://site{number % _OTHER_SITES}.example/{number}",
            "html": random.randbytes(random.randrange(200, 1_500)).hex(),
            "fetched_at": "2025-05-12T10:00:00Z",
        }
        for number in range(_OTHER_PAGES)
    ]
    write_lines(folder / "many.jsonl", many)


def _listed(truth: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    return {name: list(values) for name, values in truth.items() if values}


def _write_pages(file: Path, pages: Iterable[BuiltinPage]) -> None:
    write_lines(file, [{"url": one.page.url, "html": one.page.html.decode()} for one in pages])
