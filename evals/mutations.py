"""Seeded changes of the built-in guide: what each breaks, whether it is noticed, and what is repaired.

A wrapper is learned from five of every second restaurant page, watched on these, and met half a year later by
the same pages after a change: prices, reviews and advertisements are others too. What breaks is found out by
extracting. The pages between are for nothing but the question how right the repaired wrapper is on pages
that it has never seen. Scrapling's adaptive selectors are asked for the values that broke on some of the same
pages, and held against Siteloom there by the same rule.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import siteloom
from evals import mutations_page, scrapling_peer
from evals.change_page import Section, write_section
from evals.change_play import BELLWETHERS, EXAMPLES, alarms
from evals.change_scores import (
    BADLY_BROKEN,
    BROKEN,
    Answer,
    answers,
    broken_share,
    broken_shares,
    fill_drop,
    score,
)
from evals.learning_runs import PROCESSES
from evals.mutating import mutated, mutations
from evals.mutations_outcome import OURS, PEER_PAGES, PEER_WAYS, Outcome, mean
from siteloom.apps.demo.sites import CHANGING_ATTRIBUTES, DEFAULT_SEED, guide_content, guide_original
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.model import Attribute, Example, Page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from evals.mutating import Mutation
    from siteloom.core.model import Record
    from siteloom.maintenance.watched_pages import Watch
    from siteloom.wrappers.wrapper import Wrapper


class Base(NamedTuple):
    """What is there before the change, and the pages after half a year, those of before and others."""

    schema: Mapping[str, Attribute]
    wrapper: Wrapper
    watch: Watch
    pages: Sequence[Page]
    records: Sequence[Record]
    known: Mapping[str, Answer]
    later: Sequence[BuiltinPage]
    unseen: Sequence[BuiltinPage]


@cache
def mutated_outcomes() -> tuple[list[Outcome], str | None]:
    """What came of each mutation, and why Scrapling is missing, if it is; made once in a process."""
    missing = scrapling_peer.PEER.why_missing()
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(_outcome, mutations(), [missing is None] * len(mutations()))), missing


def figures(data: Path) -> dict[str, float]:  # noqa: ARG001 - the pages are built in
    outcomes, missing = mutated_outcomes()
    section = mutations_page.section(outcomes, missing)
    write_section(Section.MUTATIONS, section)
    print(mutations_page.all_outcomes(outcomes), "\n")
    print(section, "\n")
    broken = [outcome for outcome in outcomes if outcome.must_be_found]
    harmless = [outcome for outcome in outcomes if outcome.is_harmless]
    repairable = [outcome for outcome in broken if outcome.broken]
    said = [outcome for outcome in repairable if outcome.outcome in ("reused", "repaired")]
    found = {
        "mutations_found": mean([bool(outcome.alarms) for outcome in broken]),
        "mutations_named": mean([is_named for outcome in broken for is_named in outcome.named]),
        "mutations_quiet": mean([not outcome.alarms for outcome in harmless]),
        "mutations_mended": mean([outcome.is_mended for outcome in repairable]),
        "mutations_mended_as_said": mean([outcome.is_mended for outcome in said]),
        "mutations_not_worse": mean([not outcome.worse for outcome in outcomes]),
        "mutations_again": mean([outcome.again or 0 for outcome in repairable]),
        "mutations_again_unseen": mean([outcome.again_unseen or 0 for outcome in repairable]),
    }
    return {name: round(value, 4) for name, value in found.items()}


@cache
def base() -> Base:
    """What all mutations start from; made once in a process."""
    old, later = guide(guide_content.FIRST_VISIT), guide(guide_content.AFTER_REDESIGN)
    seen = old[::2]
    pages = [page.page for page in seen]
    schema = guide_schema(seen)
    examples = [Example(seen[place].page, seen[place].truth) for place in siteloom.sample(pages, k=EXAMPLES)]
    wrapper = siteloom.learn(examples, unlabelled=pages, schema=schema)
    records = [wrapper.extract(page) for page in pages]
    return Base(
        schema,
        wrapper,
        siteloom.watch(wrapper, pages, k=BELLWETHERS),
        pages,
        records,
        answers(records, {page.page.url: page.truth for page in seen}),
        later[::2],
        later[1::2],
    )


def guide(visit: datetime) -> list[BuiltinPage]:
    """The restaurants of the guide in its first layout, at any time."""
    return [
        BuiltinPage(
            page=Page(
                guide_content.ORIGIN + page.path,
                guide_original.render_restaurant(page).encode(),
                visit,
                "utf-8",
            ),
            kind="restaurant",
            truth=page.truth(),
            entity=page.restaurant.key,
        )
        for page in guide_content.make_guide(DEFAULT_SEED, visit).restaurants
    ]


def guide_schema(pages: Sequence[BuiltinPage]) -> dict[str, Attribute]:
    """What is known of the guide's attributes: which of them change."""
    return {name: Attribute(constant=name not in CHANGING_ATTRIBUTES) for name in pages[0].truth}


def _outcome(mutation: Mutation, is_peer_there: bool) -> Outcome:
    start = base()
    changed = [mutated(page, mutation) for page in start.later]
    unseen = [mutated(page, mutation) for page in start.unseen]
    fresh = [page.page for page in changed]
    now = _answers(start.wrapper, changed)
    broken = broken_shares(start.schema, start.known, now)
    dropped = {
        name: drop for name in start.schema if (drop := fill_drop(name, start.known, now)) > BADLY_BROKEN
    }
    changes = siteloom.monitor(start.watch, fresh)
    wrapper, outcome, confidence = start.wrapper, "", None
    if changes:
        result = siteloom.relearn(start.wrapper, start.records, fresh)
        wrapper, outcome, confidence = result.wrapper, result.outcome, result.confidence
    again, again_unseen = _answers(wrapper, changed), _answers(wrapper, unseen)
    return Outcome(
        str(mutation),
        mutation.kind,
        broken,
        dropped,
        alarms(changes),
        outcome,
        confidence,
        score(now, start.schema).share,
        score(again, start.schema).share,
        score(again_unseen, start.schema).share,
        score(again, broken).share if broken else None,
        score(again_unseen, broken).share if broken else None,
        tuple(
            name
            for name in start.schema
            if broken_share(name, start.known, again) > broken_share(name, start.known, now) + BROKEN
        ),
        _compared(start, changed, (now, again), list(broken), is_peer_there=is_peer_there),
    )


def _answers(wrapper: Wrapper, pages: Sequence[BuiltinPage]) -> dict[str, Answer]:
    return answers(
        (wrapper.extract(page.page) for page in pages), {page.page.url: page.truth for page in pages}
    )


def _compared(
    start: Base,
    changed: Sequence[BuiltinPage],
    ours: Sequence[Mapping[str, Answer]],
    broken: Sequence[str],
    *,
    is_peer_there: bool,
) -> dict[str, list[bool]]:
    """Whether each value that broke is right on some pages, for Siteloom and for Scrapling."""
    places = range(0, len(changed), max(1, len(changed) // PEER_PAGES))
    wanted = [(place, name) for place in places for name in broken if changed[place].truth[name]]
    right = {
        way: [answers[changed[place].page.url].is_right(name) for place, name in wanted]
        for way, answers in zip(OURS, ours, strict=True)
    }
    if wanted and is_peer_there:
        for way in PEER_WAYS:
            right[way] = _peer(start, changed, wanted, is_best=way == PEER_WAYS[1])
    return right


def _peer(
    start: Base, changed: Sequence[BuiltinPage], wanted: Sequence[tuple[int, str]], *, is_best: bool
) -> list[bool]:
    """What Scrapling gets right."""
    saved = [
        {
            name: [
                scrapling_peer.Saved(page, value, origin)
                for value, origin in zip(record.values[name], origins, strict=True)
            ]
            for name, origins in record.provenance.items()
        }
        for page, record in zip(start.pages, start.records, strict=True)
    ]
    first = {name: next(of_page[name] for of_page in saved if name in of_page) for _, name in wanted}
    asked = [
        scrapling_peer.Wanted(
            changed[place].page, {name: (is_best and saved[place].get(name)) or first[name]}, is_best
        )
        for place, name in wanted
    ]
    found = scrapling_peer.relocate(asked)
    return [
        Answer({name: sorted(texts[name])}, changed[place].truth).is_right(name)
        for (place, name), texts in zip(wanted, found, strict=True)
    ]
