"""Several processes at work in one workspace: each ends well, or says that another is at work."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import combinations_with_replacement
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from torture.ordeals import Ordeal, Plan
from torture.postgres import running_postgres
from torture.processes import Ended, Started, start
from torture.server_kills import Served, address_of
from torture.workspaces import DIRECTORY, Facts, Place, facts, prepared_stages, soundness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from torture.postgres import PostgresServer

TITLE = "Several processes at once in one workspace"

VERBS = {
    "ingest": ("ingest", "changed.jsonl"),
    "cluster": ("cluster",),
    "learn": ("learn", "--examples", "examples.jsonl"),
    "extract": ("extract",),
    "clean": ("clean", "-o", "clean-{}.jsonl"),
    "search": ("search", "thai"),
    "watch": ("watch",),
    "monitor": ("monitor",),
    "relearn": ("relearn",),
    "seeds": ("seeds", "table.jsonl"),
    "forget": ("forget", DIRECTORY, "--yes"),
    "status": ("status",),
    "doctor": ("doctor",),
    "user add": ("user", "add", "person-{}"),
    "serve": ("serve", "--port", "0"),
}
"""What is started together; {} is another number for each."""

CROWDS = 12
_OF_A_CROWD = 5
_AT_ONCE = 2
_BUSY = "Another "
# What a verb reads before it has the lock may be of before or after what another does, part by part.
_MEETINGS = 3  # times that each pair meets at full effort: which is first is a matter of chance


Numbered = tuple[str, int]
"""A verb, and a number that no other of those started together has."""
Meeting = tuple[int, list[str]]
"""How many were refused, and what was wrong."""


class _Alone(NamedTuple):
    """What is there in the beginning, and after each verb alone."""

    start: Facts
    after: dict[str, Facts]


def ordeals(plan: Plan) -> Iterator[Ordeal]:
    """All pairs of verbs, crowds of them, and a server that works meanwhile, on both databases."""
    yield from meetings(plan, "SQLite", None)
    with running_postgres() as server:
        yield from meetings(plan, "PostgreSQL", server)


def meetings(
    plan: Plan,
    database: str,
    server: PostgresServer | None,
    verbs: Sequence[str] = tuple(VERBS),
    before: str = "seeds",
) -> Iterator[Ordeal]:
    """Pairs, crowds and a server on one database, in a workspace as it is before a stage."""
    folder = plan.folder / database
    place = prepared_stages(folder / "prepared", server, (before,))[-1].place
    after = {verb: after_all(place, folder / f"{verb} alone", [(verb, 0)]) for verb in verbs}
    alone = _Alone(facts(place), after)
    random = Random(f"{plan.seed} {database} meetings")
    pairs = [pair for pair in combinations_with_replacement(verbs, 2) for _ in range(_MEETINGS)]
    chosen = random.sample(pairs, plan.times(len(pairs)))
    yield _ordeal(
        f"two verbs at once, {database}",
        "pairs",
        chosen,
        lambda pair, number: met(place, folder / f"pair-{number}", pair, alone),
    )
    crowds = [random.choices(verbs, k=_OF_A_CROWD) for _ in range(plan.times(CROWDS))]
    yield _ordeal(
        f"{_OF_A_CROWD} verbs at once, {database}",
        "crowds",
        crowds,
        lambda crowd, number: met(place, folder / f"crowd-{number}", crowd, None),
    )
    if "serve" in verbs:
        begun = time.monotonic()
        # What learn is told of a page takes the place of all that others have said of it.
        others = [verb for verb in verbs if verb not in ("serve", "learn")]
        said, faults = beside_a_server(place, folder, random.sample(others, plan.times(len(others))))
        yield _as_ordeal(
            f"verbs while a server works, {database}",
            f"{len(others)} verbs, {said} statements",
            faults,
            begun,
        )


def _ordeal(
    what: str, unit: str, groups: Sequence[Sequence[str]], meet: Callable[[Sequence[str], int], Meeting]
) -> Ordeal:
    begun = time.monotonic()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        outcomes = list(pool.map(meet, groups, range(len(groups))))
    refused = sum(count for count, _ in outcomes)
    faults = [fault for _, found in outcomes for fault in found]
    return _as_ordeal(what, f"{len(groups)} {unit}, {refused} told to wait", faults, begun)


def _as_ordeal(what: str, how_often: str, faults: Sequence[str], begun: float) -> Ordeal:
    found = "each ended well or said that another is at work"
    if faults:
        found = f"{len(faults)} faults, such as: {faults[0]}"
    return Ordeal(what, how_often, found, not faults, time.monotonic() - begun)


def met(place: Place, folder: Path, verbs: Sequence[str], alone: _Alone | None) -> Meeting:
    """Start verbs at the same time; how many were refused, and what is wrong.

    Of two, what is there afterwards must come of one after the other, or of the one that was not refused.
    """
    with ExitStack() as end:
        there = place.copy(folder)
        end.callback(there.remove)
        started = [_begin(there, verb, number) for number, verb in enumerate(verbs)]
        ended = _ends(verbs, started)
        faults = [
            fault for verb, one in zip(verbs, ended, strict=True) for fault in _refusal_faults(verb, one)
        ]
        faults += soundness(there)
        if alone is not None and not faults:
            done = [(verb, number) for number, verb in enumerate(verbs) if ended[number].status == 0]
            undecided = _undecided(verbs)
            now = {name: found for name, found in facts(there).items() if name not in undecided}
            faults += _order_faults(place, folder, now, done, alone)
        names = " and ".join(verbs)
        return sum(one.status != 0 for one in ended), [f"{names}: {fault}" for fault in faults]


def _undecided(verbs: Sequence[str]) -> set[str]:
    """What may be of an order that whole verbs cannot have.

    To learn takes two steps: it keeps the examples that it is given, even if it must then wait, and learns
    from them and from the pages that there are by then.
    """
    if "learn" not in verbs:
        return set()
    has_new_pages = not {"ingest", "forget"}.isdisjoint(verbs)
    return {"statements", "annotations"} | ({"wrappers", "watches"} if has_new_pages else set())


def _begin(place: Place, verb: str, number: int) -> Started:
    arguments = [part.format(number) for part in VERBS[verb]]
    password = place.folder / f"password-{number}"
    password.write_text("a password for no one\n", encoding="utf-8")
    return start(place.folder, *arguments, *place.options, stdin=password)


def _ends(verbs: Sequence[str], started: Sequence[Started]) -> list[Ended]:
    """How all ended; servers are stopped when the others have."""
    ended = {one: one.end() for verb, one in zip(verbs, started, strict=True) if verb != "serve"}
    for one in started:
        if one not in ended:
            if address_of(one) is not None:
                os.kill(one.process.pid, signal.SIGINT)
            ended[one] = one.end()
    return [ended[one] for one in started]


def _refusal_faults(verb: str, ended: Ended) -> list[str]:
    if ended.status == 0 or (ended.status == 1 and ended.is_clear and _BUSY in ended.said):
        return []
    return [f"{verb} ended with {ended.status}: {ended.said.strip()[-300:]}"]


def _order_faults(
    place: Place, folder: Path, now: Facts, done: Sequence[Numbered], alone: _Alone
) -> list[str]:
    """What is there that is there in no order of verbs."""
    known = [alone.start, *(alone.after[verb] for verb, _ in done)]
    if not (odd := _odd(now, known)):
        return []
    for name, order in (("forwards", done), ("backwards", done[::-1])):
        known.append(after_all(place, folder.with_name(f"{folder.name}-{name}"), order))
    return [f"the {name} are those of no order" for name in odd if name in _odd(now, known)]


def _odd(now: Facts, known: Iterable[Facts]) -> list[str]:
    known = list(known)
    return [name for name, there in now.items() if all(there != one.get(name) for one in known)]


def after_all(place: Place, folder: Path, verbs: Sequence[Numbered]) -> Facts:
    """What is there after some verbs, one after the other."""
    there = place.copy(folder)
    try:
        for verb, number in verbs:
            (ended,) = _ends([verb], [_begin(there, verb, number)])
            if ended.status != 0:
                raise RuntimeError(f"{verb}: {ended.said}")
        return facts(there)
    finally:
        there.remove()


def beside_a_server(place: Place, folder: Path, verbs: Sequence[str]) -> Meeting:
    """Run verbs one after the other while a server works and people annotate; how much these said."""
    there = place.copy(folder / "beside")
    served = Served(there, folder)
    faults: list[str] = []

    def run_all() -> None:
        for number, verb in enumerate(verbs):
            (ended,) = _ends([verb], [_begin(there, verb, number)])
            faults.extend(_refusal_faults(verb, ended))

    try:
        faults += served.live_with(run_all)
        # Who speaks of what a verb has just changed, or of a page that is no sample any more, is told so.
        faults += [f"a statement was refused: {one}" for one in served.refusals if one[0] not in (404, 409)]
        faults += served.last_life()
    finally:
        there.remove()
    return served.accepted.total(), faults
