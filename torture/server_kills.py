"""Kill -9 of the server while people annotate and jobs run: what it said yes to is there, once."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from contextlib import closing, contextmanager
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
from sqlalchemy import func, select

from siteloom.store import schema
from siteloom.store.workspace_folder import open_store
from torture.ordeals import Ordeal, Plan
from torture.processes import Started, start
from torture.workspaces import GUIDE, Place, Prepared, soundness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from siteloom.store.store import Store

CLUSTER = f"{GUIDE}/1"
ANNOTATORS = ("ana", "ben")
_SECONDS_TO_START = 60
_SECONDS_TO_ANSWER = 30
_LONGEST_LIFE = 3.0  # seconds that a server is let work, at most, before it is killed
_KILLS_OF_A_PLACE = 5
_JOB_EVERY = 7  # statements
_STATEMENTS_BEFORE = 4
_SHARE_WITH_A_STATEMENT = 0.8  # of all lives; the others may end before the first page is there
_SECONDS_AFTER_REFUSAL = 0.1


def server_ordeal(plan: Plan, database: str, folder: Path, stages: Sequence[Prepared], kills: int) -> Ordeal:
    """Kill servers of copies of a place in which pages are clustered, while people annotate them."""
    begun = time.monotonic()
    clustered = next(one.place for one in stages if one.stage.name == "learn")
    faults: list[str] = []
    said = jobs = 0
    for number in range(-(-kills // _KILLS_OF_A_PLACE)):
        place = clustered.copy(folder / f"server-{number}")
        random = Random(f"{plan.seed} {database} server {number}")
        kept = Served(place, folder)
        for _ in range(min(_KILLS_OF_A_PLACE, kills - number * _KILLS_OF_A_PLACE)):
            faults += kept.live_and_die(random.uniform(0, _LONGEST_LIFE), random)
        faults += kept.last_life()
        said += kept.accepted.total()
        jobs += len(kept.jobs)
        place.remove()
    found = f"all {said} statements and {jobs} jobs that were accepted are there, once"
    if faults:
        found = f"{len(faults)} faults, such as: {faults[0]}"
    seconds = time.monotonic() - begun
    return Ordeal(f"`serve` while people annotate, {database}", f"{kills} kills", found, not faults, seconds)


class Served:
    """A place that is served again and again, and all that its servers have said yes to."""

    def __init__(self, place: Place, said: Path) -> None:
        self.place = place
        self.said = said
        self.accepted: Counter[str] = Counter()
        self.unanswered: Counter[str] = Counter()
        self.jobs: set[int] = set()
        with closing(open_store(place.settings)) as store:
            store.accounts.add("the-admin", "admin", "no one signs in with it")
            for name in ANNOTATORS:
                store.accounts.add(name, "editor", "no one signs in with it")
            self.keys = {name: store.accounts.add_key(name, "torture") for name in ANNOTATORS}
        self.refusals: list[tuple[int, str]] = []

    def live_and_die(self, seconds: float, random: Random) -> list[str]:
        """Serve for some time, while people annotate, and be killed; what is wrong afterwards."""
        before = self.accepted.total()
        with self._living(whole_session=random.random() < 0.5) as faults:
            if not faults and random.random() < _SHARE_WITH_A_STATEMENT:
                faults.extend(self._until(lambda: self.accepted.total() > before))
            time.sleep(seconds)
        return faults + self._faults() + [f"a statement was refused: {one}" for one in self.refusals]

    def live_with(
        self, happening: Callable[[], object], undoing: Callable[[], object] | None = None
    ) -> list[str]:
        """Let something happen while a server works; it goes on afterwards.

        If there is something to undo, that is done as soon as people were refused.
        """
        with self._living(whole_session=True) as faults:
            if not faults:
                faults.extend(self._until(lambda: self.accepted.total() >= _STATEMENTS_BEFORE))
                happening()
                if undoing is not None:
                    faults.extend(self._until(lambda: len(self.refusals) >= _STATEMENTS_BEFORE))
                    undoing()
                goal = self.accepted.total() + _STATEMENTS_BEFORE
                faults.extend(self._until(lambda: self.accepted.total() >= goal))
        return faults + self._faults()

    @contextmanager
    def _living(self, *, whole_session: bool) -> Iterator[list[str]]:
        """A server that people annotate with, and that is killed in the end; what is wrong with its start."""
        server, address = self._start()
        if address is None:
            yield [f"the next server did not start: {server.end(0).said[-300:]}"]
            return
        annotators = [threading.Thread(target=self._annotate, args=(address, name)) for name in ANNOTATORS]
        for one in annotators:
            one.start()
        try:
            yield []
        finally:
            server.kill(whole_session=whole_session)
            for one in annotators:
                one.join()

    @staticmethod
    def _until(is_so: Callable[[], bool]) -> list[str]:
        deadline = time.monotonic() + _SECONDS_TO_START
        while not is_so():
            if time.monotonic() > deadline:
                return ["nothing more was answered"]
            time.sleep(0.01)
        return []

    def last_life(self) -> list[str]:
        """What the next server shows: the jobs of those before it have come to an end, if only as lost."""
        server, address = self._start()
        if address is None:
            return [f"the next server did not start: {server.end(0).said[-300:]}"]
        try:
            with self._client(address, ANNOTATORS[0]) as client:
                states = {job["id"]: job["state"] for job in client.get("/api/jobs?limit=1000").json()}
                sheet = client.get(f"/api/clusters/{CLUSTER}/workbench")
        finally:
            server.kill(whole_session=True)
        faults = [f"{len(self.jobs - states.keys())} jobs are lost"] if self.jobs - states.keys() else []
        unfinished = [job for job in self.jobs if states.get(job) in ("waiting", "running")]
        if unfinished:
            faults.append(f"{len(unfinished)} jobs of dead servers are said to go on")
        if sheet.status_code != 200:
            faults.append(f"the workbench answers {sheet.status_code}")
        return faults + self._faults()

    def _start(self) -> tuple[Started, str | None]:
        said = self.said / f"server-{time.monotonic_ns()}"
        server = start(self.place.folder, "serve", "--port", "0", *self.place.options, said=said)
        return server, address_of(server)

    def _client(self, address: str, name: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.keys[name]}"}
        return httpx.Client(base_url=address, headers=headers, timeout=_SECONDS_TO_ANSWER)

    def _annotate(self, address: str, name: str) -> None:
        """Say one thing after the other, until the server is dead."""
        try:
            with self._client(address, name) as client:
                # Another for each server: to say again what was said to the one before would be nothing new.
                attribute = f"{name} {urlsplit(address).port} {self.accepted[name]}"
                sheet = self._described(client, attribute)
                for number, statement in enumerate(_statements(sheet["pages"], attribute)):
                    self.unanswered[name] += 1
                    answer = client.put(**statement)
                    self.unanswered[name] -= 1
                    if answer.status_code == 200:
                        self.accepted[name] += 1
                    else:
                        self.refusals.append((answer.status_code, answer.text))
                        time.sleep(_SECONDS_AFTER_REFUSAL)
                    if number % _JOB_EVERY == 0:
                        order = {"kind": "cluster", "arguments": {"site": GUIDE}}
                        started = client.post("/api/jobs", json=order)
                        if started.status_code == 202:
                            self.jobs.add(started.json()["id"])
        except httpx.TransportError:
            return

    def _described(self, client: httpx.Client, attribute: str) -> dict[str, Any]:
        """The workbench, when it has an attribute."""
        while True:
            sheet = client.get(f"/api/clusters/{CLUSTER}/workbench").json()
            if attribute in [one["name"] for one in sheet["attributes"]]:
                return dict(sheet)
            told = {"seen": sheet["schema_revision"], "mandatory": False}
            client.put(f"/api/clusters/{CLUSTER}/attributes/{attribute}", json=told)

    def _faults(self) -> list[str]:
        with closing(open_store(self.place.settings)) as store:
            kept = _annotations_by_author(store)
            jobs = {job.id for job in store.jobs.latest(10_000)}
        faults = []
        for name in ANNOTATORS:
            least = self.accepted[name]
            if not least <= kept[name] <= least + self.unanswered[name]:
                faults.append(f"{name} was told of {least} statements that they are kept, {kept[name]} are")
        if self.jobs - jobs:
            faults.append(f"{len(self.jobs - jobs)} jobs are lost")
        return faults + soundness(self.place)


def _statements(pages: Sequence[Mapping[str, Any]], attribute: str) -> Iterator[dict[str, Any]]:
    """What to say of each page in turn: that it lacks an attribute, then that one had not meant that."""
    for number in count():
        page = pages[number % len(pages)]
        value: list[object] | None = None if number // len(pages) % 2 else []
        body = {"values": {attribute: value}, "seen": {}, "version": page["version"]}
        yield {"url": f"/api/clusters/{CLUSTER}/pages/{page['id']}/values", "json": body}


def _annotations_by_author(store: Store) -> Counter[str]:
    columns = schema.annotations.c
    query = select(columns.author, func.count()).group_by(columns.author)
    with store.engine.connect() as connection:
        return Counter({row[0]: row[1] for row in connection.execute(query)})


def address_of(server: Started) -> str | None:
    """Where a server is, once it says so; None if it does not start."""
    deadline = time.monotonic() + _SECONDS_TO_START
    while server.process.poll() is None and time.monotonic() < deadline:
        if found := re.search(r"http://\S+/", server.said.read_text(encoding="utf-8")):
            return found[0]
        time.sleep(0.01)
    return None
