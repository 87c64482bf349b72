"""Kill -9 at any moment: nothing that was accepted is lost, nothing is there twice, the next start works."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from random import Random
from typing import TYPE_CHECKING, Literal, NamedTuple

from torture.ordeals import Ordeal, Plan
from torture.postgres import running_postgres
from torture.processes import SECONDS_TO_END, Started, start, wait_for_change
from torture.server_kills import server_ordeal
from torture.workspaces import (
    WORKSPACE,
    Place,
    Prepared,
    contents,
    facts,
    faults_at_end,
    faults_between,
    prepared_stages,
    soundness,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from torture.postgres import PostgresServer

TITLE = "kill -9 at any moment"

# So many kills of each stage at full effort, so that all stages and servers together make 300 a database.
KILLS = 15
MOST_COMMITS = 12  # before each of which a stage is killed once; few have more
SERVER_KILLS = 20
DATABASE_KILLS = 15
_KILLS_IN_A_ROW = 3  # at most, before a stage is let come to its end
_AT_ONCE = 2  # as many as this is meant to be run with cores
# Of all kills; the others fall where something is written.
_SHARE_AT_ANY_MOMENT = 0.25
_SHARE_OF_ONE_WORKER = 0.3  # of those where there are workers
_LONGEST_FAULT = 300

Moment = Literal["before", "within", "after"]


class Outcome(NamedTuple):
    """What came of some kills: when they fell, and what was wrong afterwards."""

    moments: Counter[Moment]
    faults: list[str]


def ordeals(plan: Plan) -> Iterator[Ordeal]:
    """All stages of a workspace's life and the server, on both databases."""
    yield from _all_killed(plan, "SQLite", None)
    with running_postgres() as server:
        yield from _all_killed(plan, "PostgreSQL", server)


def _all_killed(plan: Plan, database: str, server: PostgresServer | None) -> Iterator[Ordeal]:
    stages = prepared_stages(plan.folder / f"prepared in {database}", server)
    yield from killed_stages(plan, database, stages)
    yield server_ordeal(plan, database, plan.folder, stages, plan.times(SERVER_KILLS))
    if server is not None:
        yield killed_database(plan, server, stages)


def killed_stages(plan: Plan, database: str, stages: Sequence[Prepared]) -> Iterator[Ordeal]:
    """Kill stages on one database."""
    folder = plan.folder / database
    for one in stages:
        begun = time.monotonic()
        kills = plan.times(KILLS)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            seeds = range(-(-kills // _KILLS_IN_A_ROW))
            each = [min(_KILLS_IN_A_ROW, kills - number * _KILLS_IN_A_ROW) for number in seeds]
            rounds = pool.map(
                lambda number, count, one=one: killed_round(
                    one,
                    folder / f"{one.stage.name}-{number}",
                    Random(f"{plan.seed} {database} {one.stage.name} {number}"),
                    count,
                ),
                seeds,
                each,
            )
            at_commits = pool.map(
                lambda commit, one=one: killed_at_commit(one, folder / f"{one.stage.name} {commit}", commit),
                deadly_commits(plan, one),
            )
            outcome = united([*rounds, *at_commits])
        yield as_ordeal(f"`{one.stage.name}`, {database}", outcome, time.monotonic() - begun)


def killed_round(one: Prepared, folder: Path, random: Random, kills: int) -> Outcome:
    """Kill a stage some times in a row, look at what is there, and let it come to its end."""
    place = one.place.copy(folder)
    try:
        moments: Counter[Moment] = Counter()
        faults: list[str] = []
        for _ in range(kills):
            moment, found = killed_once(one, place, random)
            moments[moment] += 1
            faults += found or state_faults(one, place)
        return Outcome(moments, faults + finished_faults(one, place))
    finally:
        place.remove()


def deadly_commits(plan: Plan, one: Prepared) -> list[int]:
    """Before which commits a stage is killed: with full effort each, or as many as can be told apart."""
    wanted = plan.times(min(one.commits, MOST_COMMITS), at_least=min(one.commits, 1))
    chosen = Random(f"{plan.seed} commits of {one.stage.name}").sample(range(1, one.commits + 1), wanted)
    return sorted(chosen)


def killed_at_commit(one: Prepared, folder: Path, commit: int) -> Outcome:
    """Kill a stage just before a commit: of what it does in steps, all before that are done."""
    place = one.place.copy(folder)
    try:
        started = start(place.folder, *one.stage.arguments, *place.options, dies_at_commit=commit)
        ended = started.end()
        faults = _orphan_faults(started)
        if ended.status != -signal.SIGKILL:
            faults.append(f"it ended with {ended.status} before commit {commit}")
        faults += state_faults(one, place) + finished_faults(one, place)
        told = [f"killed before commit {commit} of {one.commits}: {fault}" for fault in faults]
        return Outcome(Counter[Moment](["within"]), told)
    finally:
        place.remove()


def state_faults(one: Prepared, place: Place) -> list[str]:
    """What is wrong with a place in which a stage stopped half way."""
    # What is forgotten goes step by step; its records may go before its pages do.
    switches = one.stage.name != "forget"
    now = facts(place)
    faults = faults_between(now, one.before, one.after, switches=switches) if now else []
    if one.before and not now:
        faults.append("the workspace is gone")
    if contents(place, one.stage) not in ("", one.written):
        faults.append(f"{one.stage.writes} is there in part")
    return faults + soundness(place)


def finished_faults(one: Prepared, place: Place) -> list[str]:
    """What is wrong once a stage was run again, to its end."""
    is_done = not faults_at_end(facts(place), one.after)
    ended = place.run(*one.stage.arguments)
    # Who was killed just before the end has done all, and some verbs say so.
    if ended.status != 0 and not (is_done and ended.is_clear):
        return [f"the next run ended with {ended.status}: {ended.said.strip()[-_LONGEST_FAULT:]}"]
    faults = faults_at_end(facts(place), one.after) + soundness(place)
    if contents(place, one.stage) != one.written:
        faults.append(f"{one.stage.writes} is another than undisturbed")
    return faults


def killed_once(one: Prepared, place: Place, random: Random) -> tuple[Moment, list[str]]:
    """Start a stage and kill it, or one of its workers, at a moment of chance; what is wrong at once."""
    started = start(place.folder, *one.stage.arguments, *place.options)
    # The lock tells of runs; what is written without it is seen in SQLite's journal only.
    names = ("lock",) if place.server else ("lock", "siteloom.db-wal")
    trigger = place.folder / WORKSPACE / random.choice(names)
    if random.random() < _SHARE_AT_ANY_MOMENT:
        has_written = wait_for_change(started.process, trigger, random.uniform(0, 1.05 * one.seconds))
    else:
        has_written = wait_for_change(started.process, trigger, SECONDS_TO_END)
        _sleep_while_running(started, random.uniform(0, one.seconds_locked))
    workers = started.workers()
    if len(workers) > 1 and random.random() < _SHARE_OF_ONE_WORKER:
        with suppress(ProcessLookupError):
            os.kill(random.choice(workers), signal.SIGKILL)
        ended = started.end()
        fault = [] if ended.status == 0 else [f"a worker was killed: {ended.said[-_LONGEST_FAULT:]}"]
        return "within", fault + _orphan_faults(started)
    was_over = started.process.poll() is not None
    started.kill(whole_session=random.random() < 0.5)
    ended = started.end()
    faults = _orphan_faults(started)
    if was_over:
        if ended.status != 0:
            faults.append(f"it ended by itself with {ended.status}: {ended.said[-_LONGEST_FAULT:]}")
        return "after", faults
    return "within" if has_written else "before", faults


def _sleep_while_running(started: Started, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while started.process.poll() is None and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(left, 0.005))


def _orphan_faults(started: Started) -> list[str]:
    left = started.orphans()
    return [f"{len(left)} processes lived on"] if left else []


def killed_database(plan: Plan, server: PostgresServer, stages: Sequence[Prepared]) -> Ordeal:
    """Kill the PostgreSQL server, or all its connections, under some stages."""
    begun = time.monotonic()
    folder = plan.folder / "database"
    faults: list[str] = []
    moments: Counter[Moment] = Counter()
    kills = plan.times(DATABASE_KILLS)
    for number in range(kills):
        random = Random(f"{plan.seed} database {number}")
        one = stages[number % len(stages)]
        place = one.place.copy(folder / str(number))
        moment, found = database_killed_once(one, place, server, random)
        moments[moment] += 1
        faults += found or [*state_faults(one, place), *finished_faults(one, place)]
        place.remove()
    return as_ordeal("the PostgreSQL server itself", Outcome(moments, faults), time.monotonic() - begun)


def database_killed_once(
    one: Prepared, place: Place, server: PostgresServer, random: Random
) -> tuple[Moment, list[str]]:
    """Kill the server or its connections while a stage runs, which must say so in a sentence, or go on."""
    started = start(place.folder, *one.stage.arguments, *place.options)
    wait_for_change(started.process, place.folder / WORKSPACE / "lock", SECONDS_TO_END)
    _sleep_while_running(started, random.uniform(0, one.seconds_locked))
    was_over = started.process.poll() is not None
    with ExitStack() as again:
        if random.random() < 0.5:
            server.kill()
            again.callback(server.start)
        else:
            server.kill_connections(place.database)
        ended = started.end()
    if ended.status != 0 and not ended.is_clear:
        return "within", [f"it says {ended.said[-_LONGEST_FAULT:]}"]
    return "after" if was_over else "within", []


def united(outcomes: Iterable[Outcome]) -> Outcome:
    """What came of several rounds."""
    moments: Counter[Moment] = Counter()
    faults: list[str] = []
    for outcome in outcomes:
        moments += outcome.moments
        faults += outcome.faults
    return Outcome(moments, faults)


def as_ordeal(what: str, outcome: Outcome, seconds: float) -> Ordeal:
    """What came of kills, for people."""
    moments = outcome.moments
    when = f"{moments['within']} within its writing, {moments['before']} before, {moments['after']} after"
    found = "nothing lost, nothing twice"
    if outcome.faults:
        found = f"{len(outcome.faults)} faults, such as: {outcome.faults[0]}"
    return Ordeal(what, f"{moments.total()} kills: {when}", found, not outcome.faults, seconds)
