"""Many people at once: some annotate, some read, and nothing that was answered well is lost."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import numpy as np
from lxml import etree

from siteloom.core.settings import StoreSettings
from siteloom.store.workspace_folder import open_store
from torture.commands import run_siteloom
from torture.crawl import write_crawl
from torture.ordeals import Ordeal, Plan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from siteloom.store.queries.accounts import Role

TITLE = "Many people at once"

USERS = 50
SECONDS = 300
_PAGES = 4_000
# People look at what they get before they go on: so long, in seconds, at least and at most.
_READING = (1.0, 5.0)
_POINTING = (2.0, 6.0)
_ANNOTATORS_OF_A_CLUSTER = 5
_PATIENCE = 60.0
_SECONDS_TO_START = 60
_PLACE = re.compile(r"http://[\d.:]+/")
_TREE = "{http://www.w3.org/1999/xhtml}"
_WORDS = ("street", "kitchen", "Monday", "garden", "quayside")


@dataclass(slots=True)
class Heard:
    """What was answered, and how long it took, by what was asked."""

    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    faults: Counter[str] = field(default_factory=Counter)
    overtaken: int = 0
    events: int = 0


class Said(NamedTuple):
    """What was last said of an attribute of a page, and was answered well: an element, or none any more."""

    cluster: str
    page: int
    attribute: str
    element: int | None


class _Person(NamedTuple):
    name: str
    key: str


def ordeals(plan: Plan) -> Iterator[Ordeal]:
    """Have people annotate and read for some minutes, then see what is there of what they said."""
    _make_workspace(plan)
    yield from visits(plan.folder, plan.times(USERS), plan.times(SECONDS), plan.seed)


def visits(folder: Path, users: int, seconds: float, seed: int) -> Iterator[Ordeal]:
    """Let so many people use the workspace of a folder for so long."""
    start = time.monotonic()
    annotators = _accounts(folder, "editor", users // 2)
    people = [*annotators, *_accounts(folder, "viewer", users - len(annotators))]
    heard = Heard()
    with serving(folder) as address:
        said = asyncio.run(_visited(address, people, seconds, seed, heard))
    with serving(folder) as address:  # another process, which knows only what was kept
        lost = _lost(address, people[0], said)
    asked = sum(map(len, heard.seconds.values()))
    faults = "; ".join(f"{count} x {fault}" for fault, count in heard.faults.most_common(5))
    yield Ordeal(
        "annotate and read",
        f"{users} people for {seconds:g} s, {asked:,} requests",
        f"{faults or 'no error'}; {heard.overtaken} overtaken by others, {heard.events:,} changes told; "
        f"{len(said):,} statements, {lost} lost",
        not heard.faults and not lost and bool(said),
        time.monotonic() - start,
    )
    for kind, times in sorted(heard.seconds.items()):
        median, most, nearly_all = np.quantile(times, (0.5, 0.95, 0.99))
        yield Ordeal(
            f"to {kind}",
            f"{len(times):,} requests",
            f"median {median * 1_000:,.0f} ms, 95% {most * 1_000:,.0f} ms, 99% {nearly_all * 1_000:,.0f} ms, "
            f"slowest {max(times) * 1_000:,.0f} ms",
            max(times) < _PATIENCE,
            sum(times),
        )


def _make_workspace(plan: Plan) -> None:
    crawl = write_crawl(plan.folder, plan.times(_PAGES, at_least=800), plan.seed)
    for command in (
        ("ingest", *crawl.files),
        ("cluster",),
        ("learn", "--examples", crawl.examples),
        ("extract", "-o", "records.jsonl"),
        ("search", "street", "-o", "hits.jsonl"),
    ):
        ran = run_siteloom(plan.folder, *command)
        if ran.status:
            raise RuntimeError(f"siteloom {command[0]}: {ran.said}")


def _accounts(folder: Path, role: Role, count: int) -> list[_Person]:
    people = []
    with closing(open_store(StoreSettings(str(folder / ".siteloom")))) as store:
        if not store.accounts.any_enabled():
            store.accounts.add("admin", "admin", "only to have one")
        for number in range(count):
            name = f"{role}-{number}"
            store.accounts.add(name, role, "signs in by key")
            people.append(_Person(name, store.accounts.add_key(name, "torture")))
    return people


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a real server in a process of its own."""
    command = [sys.executable, "-m", "siteloom", "serve", "--port", "0"]
    with (folder / "server.txt").open("w+", encoding="utf-8") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said)
        try:
            deadline = time.monotonic() + _SECONDS_TO_START
            while time.monotonic() < deadline and process.poll() is None:
                if found := _PLACE.search((folder / "server.txt").read_text(encoding="utf-8")):
                    break
                time.sleep(0.05)
            else:
                raise RuntimeError(f"The server does not start: {(folder / 'server.txt').read_text()}")
            yield found[0]
        finally:
            process.terminate()
            process.wait()


async def _visited(
    address: str, people: Sequence[_Person], seconds: float, seed: int, heard: Heard
) -> list[Said]:
    """Let everybody come, and go when the time is over; returns what was said."""
    said: dict[tuple[str, int, str], Said] = {}
    async with _client(address, people[0]) as client:
        clusters = await _clusters_to_annotate(client)
        pages = [page["id"] for sheet in clusters.values() for page in sheet["pages"]]
        for cluster, sheet in clusters.items():
            revision = sheet["schema_revision"]
            for number in range(_ANNOTATORS_OF_A_CLUSTER):
                path = f"/api/clusters/{cluster}/attributes/attribute-{number}"
                revision = (await client.put(path, json={"seen": revision})).json()["schema_revision"]
    until = time.monotonic() + seconds
    async with asyncio.TaskGroup() as visits:
        for number, person in enumerate(people):
            random = Random(f"{seed} {number}")
            if person.name.startswith("editor"):
                cluster = list(clusters)[number // _ANNOTATORS_OF_A_CLUSTER % len(clusters)]
                attribute = f"attribute-{number % _ANNOTATORS_OF_A_CLUSTER}"
                visit = _annotates(address, person, cluster, attribute, until, random, heard, said)
                listening = _listens(address, person, cluster, until, heard)
                visits.create_task(listening)
            else:
                visit = _reads(address, person, list(clusters), pages, until, random, heard)
            visits.create_task(visit)
    return list(said.values())


@asynccontextmanager
async def _client(address: str, person: _Person) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {person.key}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=_PATIENCE) as client:
        yield client


async def _clusters_to_annotate(client: httpx.AsyncClient) -> dict[str, Any]:
    """The workbench of the largest template of each site."""
    names = [one["site"] for one in (await client.get("/api/sites")).json()]
    clusters = [f"{name}/1" for name in names[: USERS // 2 // _ANNOTATORS_OF_A_CLUSTER]]
    return {name: (await client.get(f"/api/clusters/{name}/workbench")).json() for name in clusters}


async def _ask(
    client: httpx.AsyncClient, heard: Heard, kind: str, method: str, path: str, **more: Any
) -> httpx.Response | None:
    """The answer, unless it is a fault, which is counted."""
    start = time.monotonic()
    try:
        answer = await client.request(method, path, **more)
    except httpx.HTTPError as error:
        heard.faults[f"{kind}: {error!r}"] += 1
        return None
    heard.seconds[kind].append(time.monotonic() - start)
    if answer.status_code == httpx.codes.CONFLICT:
        heard.overtaken += 1
    elif answer.is_error:
        heard.faults[f"{kind}: {answer.status_code} {answer.text[:100]}"] += 1
        return None
    return answer


async def _annotates(
    address: str,
    person: _Person,
    cluster: str,
    attribute: str,
    until: float,
    random: Random,
    heard: Heard,
    said: dict[tuple[str, int, str], Said],
) -> None:
    """Point at something on one page after the other; now and then take it back."""
    workbench = f"/api/clusters/{cluster}/workbench"
    elements: dict[int, int] = {}
    async with _client(address, person) as client:
        while time.monotonic() < until:
            await asyncio.sleep(random.uniform(*_POINTING))
            answer = await _ask(client, heard, "open the workbench", "GET", workbench)
            if answer is None:
                continue
            page = random.choice(answer.json()["pages"])
            number = page["id"]
            if number not in elements:
                tree = await _ask(client, heard, "show a page", "GET", f"/pages/{number}/tree")
                if tree is None:
                    continue
                elements[number] = _element_to_point_at(tree.content, attribute)
            cell = page["cells"].get(attribute, {})
            takes_back = cell.get("state") == "said" and random.random() < 0.3
            element = None if takes_back else elements[number]
            picks = None if element is None else [{"element": element, "text": 1}]
            body = {
                "version": page["version"],
                "values": {attribute: picks},
                "seen": {attribute: cell.get("revision", 0)},
            }
            path = f"/api/clusters/{cluster}/pages/{number}/values"
            answer = await _ask(client, heard, "say what a value is", "PUT", path, json=body)
            if answer is not None and answer.is_success:
                said[cluster, number, attribute] = Said(cluster, number, attribute, element)


def _element_to_point_at(tree: bytes, attribute: str) -> int:
    """One that begins with a text: the name of the page for the first attribute, others further down."""
    root = etree.fromstring(tree)
    texts = [
        int(element.get("data-siteloom", "0"))
        for element in root.iterfind(f".//{_TREE}body//*")
        if element.text and element.text.strip() and element.get("data-siteloom")
    ]
    return texts[int(attribute.rpartition("-")[2]) * len(texts) // (2 * _ANNOTATORS_OF_A_CLUSTER)]


async def _listens(address: str, person: _Person, cluster: str, until: float, heard: Heard) -> None:
    """Hear of every change, as the page of an annotator does."""
    with suppress(TimeoutError):
        async with asyncio.timeout(until - time.monotonic()), _client(address, person) as client:
            while True:
                try:
                    async with client.stream("GET", f"/api/clusters/{cluster}/events") as stream:
                        if stream.is_error:
                            heard.faults[f"listen: {stream.status_code}"] += 1
                        async for line in stream.aiter_lines():
                            heard.events += line.startswith("event:")
                except httpx.HTTPError as error:
                    heard.faults[f"listen: {error!r}"] += 1
                await asyncio.sleep(1)


async def _reads(
    address: str,
    person: _Person,
    clusters: Sequence[str],
    pages: Sequence[int],
    until: float,
    random: Random,
    heard: Heard,
) -> None:
    async with _client(address, person) as client:
        while time.monotonic() < until:
            await asyncio.sleep(random.uniform(*_READING))
            cluster, page, word = random.choice(clusters), random.choice(pages), random.choice(_WORDS)
            kind, path = random.choice(
                (
                    ("see all sites", "/"),
                    ("see a site", f"/sites/{cluster.rpartition('/')[0]}"),
                    ("see a template", f"/clusters/{cluster}"),
                    ("see records", f"/records?words={word}"),
                    ("ask for records", f"/api/records?site={cluster.rpartition('/')[0]}&sort=confidence"),
                    ("search", f"/search?words={word}"),
                    ("see a page and its records", f"/pages/{page}"),
                    ("show a page", f"/pages/{page}/tree"),
                    ("see what waits", "/review"),
                )
            )
            await _ask(client, heard, kind, "GET", path)


def _lost(address: str, person: _Person, said: Sequence[Said]) -> int:
    """How many of the statements are not there as they were made."""
    found: dict[tuple[str, int, str], int | None] = {}
    with httpx.Client(
        base_url=address, headers={"Authorization": f"Bearer {person.key}"}, timeout=_PATIENCE
    ) as client:
        for cluster in {one.cluster for one in said}:
            for page in client.get(f"/api/clusters/{cluster}/workbench").json()["pages"]:
                for attribute, cell in page["cells"].items():
                    is_said = cell["state"] == "said"
                    element = cell["values"][0]["pick"]["element"] if is_said else None
                    found[cluster, page["id"], attribute] = element
    return sum(found.get((one.cluster, one.page, one.attribute)) != one.element for one in said)
