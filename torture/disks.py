"""Full disks and disks that may only be read: a clear sentence, and all is well once there is room."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from siteloom.apps.demo.sites import guide_site
from torture.kills import finished_faults, state_faults
from torture.ordeals import Ordeal, Plan
from torture.postgres import running_postgres
from torture.processes import Ended, start
from torture.server_kills import ANNOTATORS, Served
from torture.workspaces import GUIDE, WORKSPACE, Place, facts, prepared_stages, soundness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torture.postgres import PostgresServer
    from torture.workspaces import Facts, Prepared

TITLE = "Full disks, and disks that may only be read"

# So many times each stage is run on a disk with another amount of room.
ROOMS = 8
_BYTES_OF_DISK = 24_000_000
_BLOCK = 4_096
# The last is what PostgreSQL says when it cannot even let anyone in.
_WORDS_FOR_FULL = ("full", "No space left", "could not write")
_IN_JOURNAL = "journal"
# Each verb that reads, and those that write; what they write elsewhere can be written.
READING = (
    ("status",),
    ("doctor",),
    ("history", f"{GUIDE}/1"),
    ("explain", guide_site()[0].page.url),
    ("search", "thai", "-o", "elsewhere.jsonl"),
    ("sample", "--cluster", f"{GUIDE}/1"),
    ("seeds",),
    ("user", "list"),
    ("config",),
)
WRITING = (
    ("ingest", "changed.jsonl"),
    ("cluster",),
    ("learn",),
    ("extract", "-o", "elsewhere.jsonl"),
    ("clean", "-o", "elsewhere.jsonl"),
    ("watch",),
    ("monitor",),
    ("relearn",),
    ("seeds", "table.jsonl"),
    ("serve", "--port", "0"),
)


OUTPUTS = {
    "clean.jsonl": ("clean",),
    "clean.csv": ("clean",),
    "clean.parquet": ("clean",),
    "records.jsonl": ("extract",),
    "records.csv": ("extract",),
    "hits.jsonl": ("search", "thai"),
    "wrapper.json": ("learn",),
}
"""Files, each with what writes it."""


class Disk(NamedTuple):
    """A small disk of its own, in memory."""

    folder: Path

    def leave(self, room: int) -> None:
        """Fill it, but for some bytes."""
        free = shutil.disk_usage(self.folder).free
        with suppress(OSError), (self.folder / "ballast").open("ab", buffering=0) as file:
            for _ in range(max(0, free - room) // _BLOCK):
                file.write(bytes(_BLOCK))

    def make_room(self) -> None:
        """Empty it of what it was filled with."""
        (self.folder / "ballast").unlink(missing_ok=True)

    def mount(self, how: str) -> None:
        """Let it be read only, by `ro`, or written again, by `rw`."""
        subprocess.run(["mount", "-o", f"remount,{how}", self.folder], check=True)


def can_mount() -> bool:
    """Whether this process may mount disks, as only the superuser may."""
    return os.geteuid() == 0


@contextmanager
def small_disk(size: int = _BYTES_OF_DISK) -> Iterator[Disk]:
    """A disk of a few megabytes."""
    with open_folder() as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
        try:
            yield Disk(folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user of this machine may look into."""
    with TemporaryDirectory(prefix="siteloom-disk-", dir="/tmp", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def ordeals(plan: Plan) -> Iterator[Ordeal]:
    """Workspaces, outputs, temporary files and databases without room, and places that cannot be written."""
    stages = prepared_stages(plan.folder / "prepared", None)
    for one in stages:
        yield timed(
            f"`{one.stage.name}` on a full disk, SQLite",
            lambda one=one: full_disk(plan, one),  # type: ignore[misc]
        )
    for what, done in (
        ("`-o` on a full disk", full_output),
        ("the temporary folder on a full disk", full_temporary_folder),
        ("`serve` on a full disk", full_server),
        ("a workspace that may only be read", read_only),
    ):
        yield timed(what, lambda done=done: done(plan, stages))  # type: ignore[misc]
    with running_postgres() as server:
        yield timed("the disk of PostgreSQL is full", lambda: full_database(plan, server))


def timed(what: str, done: Callable[[], tuple[str, list[str]]]) -> Ordeal:
    """What came of something that says how often it was done, and what was wrong."""
    begun = time.monotonic()
    how_often, faults = done()
    found = "a clear sentence, and all is well once there is room"
    if faults:
        found = f"{len(faults)} faults, such as: {faults[0]}"
    return Ordeal(what, how_often, found, not faults, time.monotonic() - begun)


def full_disk(plan: Plan, one: Prepared) -> tuple[str, list[str]]:
    """Run a stage on disks with other amounts of room, down to none."""
    random = Random(f"{plan.seed} disk {one.stage.name}")
    faults: list[str] = []
    refused = 0
    count = plan.times(ROOMS)
    with small_disk() as disk:
        for number in range(count):
            place = one.place.copy(disk.folder / "place")
            disk.leave(_room(random, number))
            ended = place_run(place, plan, one.stage.arguments)
            refused += ended.status != 0
            faults += refusal_faults(ended)
            disk.make_room()
            faults += state_faults(one, place) + finished_faults(one, place)
            place.remove()
    return f"{count} amounts of room, {refused} times too little", faults


def _room(random: Random, number: int) -> int:
    """None at all, or a few blocks, or up to a megabyte."""
    return 0 if number == 0 else int(10 ** random.uniform(3.6, 6))


def place_run(place: Place, plan: Plan, arguments: Sequence[str]) -> Ended:
    """Run a verb in a place; what it says is kept elsewhere."""
    said = plan.folder / f"said-{time.monotonic_ns()}"
    return start(place.folder, *arguments, *place.options, said=said).end()


def refusal_faults(ended: Ended, words: Sequence[str] = _WORDS_FOR_FULL) -> list[str]:
    """What is wrong with how a verb ended: well, or with a sentence that says why."""
    if ended.status == 0 or (ended.is_clear and any(word in ended.said for word in words)):
        return []
    return [f"it ended with {ended.status}: {ended.said.strip()[-300:]}"]


def full_output(
    plan: Plan, stages: Sequence[Prepared], names: Sequence[str] = tuple(OUTPUTS)
) -> tuple[str, list[str]]:
    """Results to a full disk: nothing under the name that was asked for, and nothing beside it."""
    place = stages[-1].place.copy(plan.folder / "output")
    faults: list[str] = []
    with small_disk() as disk:
        for name in names:
            target = disk.folder / name
            command = (*OUTPUTS[name], "-o", str(target))
            disk.leave(0)
            ended = place_run(place, plan, command)
            left = {file.name for file in disk.folder.iterdir()} - {"ballast"}
            if ended.status == 0:
                faults.append(f"{name} was written to a full disk")
            faults += refusal_faults(ended)
            if left:
                faults.append(f"{left} are left of {name}")
            disk.make_room()
            again = place_run(place, plan, command)
            if again.status != 0 or not target.exists():
                faults.append(f"{name} could not be written later: {again.said.strip()[-300:]}")
            target.unlink(missing_ok=True)
    faults += soundness(place)
    return f"{len(names)} files", faults


def full_temporary_folder(plan: Plan, stages: Sequence[Prepared]) -> tuple[str, list[str]]:
    """Verbs that work on files without a workspace, and have no room for what they need meanwhile."""
    place = stages[0].place.copy(plan.folder / "temporary")
    verbs = (
        ("cluster", "pages.jsonl"),
        ("search", "thai", "pages.jsonl"),
        ("clean", "pages.jsonl", "-o", "-"),
    )
    faults: list[str] = []
    with small_disk() as disk:
        disk.leave(0)
        for arguments in verbs:
            ended = start(place.folder, *arguments, environment={"TMPDIR": str(disk.folder)}).end()
            faults += refusal_faults(ended)
            if left := {file.name for file in disk.folder.iterdir()} - {"ballast"}:
                faults.append(f"{left} are left of {' '.join(arguments)}")
    return f"{len(verbs)} verbs", faults


def full_server(plan: Plan, stages: Sequence[Prepared]) -> tuple[str, list[str]]:
    """A server whose disk fills up while people annotate: they are told, and what it said yes to is there."""
    clustered = next(one.place for one in stages if one.stage.name == "learn")
    faults: list[str] = []
    rounds = plan.times(4)
    with small_disk() as disk:
        for _ in range(rounds):
            place = clustered.copy(disk.folder / "place")
            served = Served(place, said=plan.folder)
            faults += served.live_with(lambda: disk.leave(0), disk.make_room)
            faults += [
                f"it answers {status}: {text}"
                for status, text in served.refusals
                if status not in (503, 507) or not any(word in text for word in _WORDS_FOR_FULL)
            ]
            faults += served.last_life()
            place.remove()
    return f"{rounds} servers with {len(ANNOTATORS)} people", faults


def read_only(
    plan: Plan, stages: Sequence[Prepared], verbs: Sequence[tuple[str, ...]] = (*READING, *WRITING)
) -> tuple[str, list[str]]:
    """Every verb on a workspace that may only be read, after a good end and after kill -9."""
    faults: list[str] = []
    with small_disk() as disk:
        for is_killed in (False, True):
            place = stages[-1].place.copy(disk.folder / f"place {is_killed}")
            if is_killed:
                # What was committed is in SQLite's journal then, and not yet where it belongs.
                start(place.folder, "seeds", "table.jsonl", "--source", _IN_JOURNAL, dies_at_commit=3).end()
            before = facts(place.copy(plan.folder / f"to compare {is_killed}"))
            disk.mount("ro")
            said, found = _asked(place, verbs)
            disk.mount("rw")
            faults += found + _unchanged(place, before)
            if is_killed and _IN_JOURNAL not in said[("seeds",)]:
                faults.append("what is in the journal is not read")
    return f"{len(verbs)} verbs, after a good end and after kill -9", faults


def _asked(place: Place, verbs: Sequence[tuple[str, ...]]) -> tuple[dict[tuple[str, ...], str], list[str]]:
    """What verbs say where nothing can be written, and what is wrong with it.

    What they write goes elsewhere. A verb that has nothing to write may end well.
    """
    said: dict[tuple[str, ...], str] = {}
    faults: list[str] = []
    words = ("may only be read", "cannot be written", "Permission denied", "Read-only")
    with open_folder() as elsewhere:
        for file in place.folder.iterdir():
            if file.is_file():
                shutil.copy(file, elsewhere)
        for arguments in verbs:
            workspace = ("--workspace", str(place.folder / WORKSPACE))
            ended = start(elsewhere, *arguments, *workspace).end()
            said[arguments] = ended.said
            if arguments in READING and ended.status != 0:
                faults.append(f"{arguments[0]} did not read: {ended.said.strip()[-300:]}")
            faults += [f"{arguments[0]}: {fault}" for fault in refusal_faults(ended, words)]
    return said, faults


def _unchanged(place: Place, before: Facts) -> list[str]:
    now = facts(place)
    changed = [name for name in before if now.get(name) != before[name]]
    return [f"{name} have changed" for name in changed] + soundness(place)


def full_database(plan: Plan, server: PostgresServer) -> tuple[str, list[str]]:
    """Run stages while PostgreSQL has no room for its tables."""
    faults: list[str] = []
    refused = 0
    stages = prepared_stages(plan.folder / "prepared in PostgreSQL", server, ("ingest", "cluster", "extract"))
    rounds = plan.times(3)
    with small_disk(64_000_000) as disk:
        for number in range(rounds):
            for one in stages:
                with server.tables_in(disk.folder, one.place.database) as database:
                    place = Place(plan.folder / f"{one.stage.name} {number}", server, database)
                    shutil.copytree(one.place.folder, place.folder)
                    disk.leave(number * 200_000)
                    ended = place_run(place, plan, one.stage.arguments)
                    refused += ended.status != 0
                    faults += refusal_faults(ended)
                    disk.make_room()
                    faults += state_faults(one, place) + finished_faults(one, place)
    return f"{rounds * len(stages)} runs, {refused} without enough room", faults
