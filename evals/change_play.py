"""Plays a wrapper over the visits to a site: it is watched, and repaired or learned anew when it breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import siteloom
from evals.change_scores import answers, broken_shares, constants, kept_urls, same_share, score
from siteloom.core.model import Example
from siteloom.maintenance.change_tests import check
from siteloom.maintenance.watched_pages import refilled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evals.change_data import ChangeSet, Visit
    from evals.change_scores import Answer, Score
    from evals.learners import Method
    from siteloom.core.model import Attribute, Change
    from siteloom.wrappers.wrapper import Wrapper

EXAMPLES = 5
BELLWETHERS = 20


class Alarm(NamedTuple):
    """A change as it was reported."""

    test: str
    attributes: tuple[str, ...]
    share: float


class Played(NamedTuple):
    """What happened at a visit.

    `broken` has the share of each attribute that the wrapper of the visit before
    gets wrong although it was right. `alone` are the alarms of `siteloom.monitor` with what was watched after
    the last repair, knowing nothing of the visits since. `outcome` is empty without an alarm;
    `score` is with the wrapper that is in use at the end of the visit.
    `kept` is the number of pages whose constant values are all the same as at the visit before, and
    `kept_score` that of their constant values. `same` is the share of the constant values found at the visit
    before that are found again.
    """

    visit: str
    template: str
    pages: int
    alarms: tuple[Alarm, ...]
    alone: tuple[Alarm, ...]
    broken: Mapping[str, float]
    outcome: str
    confidence: float | None
    kept: int
    kept_score: Score
    same: float
    score: Score
    by_attribute: Mapping[str, Score]

    @property
    def worst_break(self) -> float:
        """The largest share of an attribute that broke."""
        return max(self.broken.values(), default=0.0)


def play(site: ChangeSet) -> list[Played]:
    """Follow a site from its first visit to its last."""
    first, *later = site.visits
    wrapper = learned(first, site.schema)
    watch = last_watch = siteloom.watch(wrapper, first.pages, k=BELLWETHERS)
    before = first
    records = [wrapper.extract(page) for page in first.pages]
    known = answers(records, first.truths)
    played = [_quiet(site, first, known)]
    for visit in later:
        fresh = visit.pages
        alone = siteloom.monitor(last_watch, fresh)
        checkup = check(watch, fresh)
        # As the command line does: pages that are no more are watched no longer, but others in their place.
        watch = refilled(checkup.watch, {*checkup.gone, *checkup.missing}, fresh)
        now_records = [wrapper.extract(page) for page in fresh]
        now = answers(now_records, visit.truths)
        broken = broken_shares(site.schema, known, now)
        outcome, confidence = "", None
        if checkup.changes:
            result = siteloom.relearn(wrapper, records, fresh)
            outcome, confidence = result.outcome, result.confidence
            wrapper = learned(visit, site.schema) if outcome == "needs-annotation" else result.wrapper
            watch = last_watch = siteloom.watch(wrapper, fresh, k=BELLWETHERS)
            now_records = [wrapper.extract(page) for page in fresh]
            now = answers(now_records, visit.truths)
        kept = kept_urls(constants(site.schema), before.truths, visit.truths)
        played.append(
            _quiet(site, visit, now)._replace(
                alarms=alarms(checkup.changes),
                alone=alarms(alone),
                broken=broken,
                outcome=outcome,
                confidence=confidence,
                kept=len(kept),
                kept_score=score({url: now[url] for url in kept}, constants(site.schema)),
                same=same_share(constants(site.schema), known, now),
            )
        )
        before, records, known = visit, now_records, now
    return played


def learned(visit: Visit, schema: Mapping[str, Attribute], method: Method = "united") -> Wrapper:
    """A wrapper from the first pages that `sample` names; the others of the visit are unlabelled."""
    pages = visit.pages
    chosen = siteloom.sample(pages, k=EXAMPLES)
    examples = [Example(pages[place], visit.fetches[place].truth) for place in chosen]
    return siteloom.learn(examples, unlabelled=pages, schema=schema, method=method)


def alarms(changes: Sequence[Change]) -> tuple[Alarm, ...]:
    """The changes, without their evidence."""
    return tuple(Alarm(change.test, tuple(change.attributes), change.share) for change in changes)


def _quiet(site: ChangeSet, visit: Visit, now: Mapping[str, Answer]) -> Played:
    """A visit at which nothing was reported."""
    return Played(
        visit=visit.name,
        template=visit.template,
        pages=len(visit.fetches),
        alarms=(),
        alone=(),
        broken={},
        outcome="",
        confidence=None,
        kept=len(visit.fetches),
        kept_score=score(now, constants(site.schema)),
        same=1.0,
        score=score(now, site.schema),
        by_attribute={attribute: score(now, [attribute]) for attribute in site.schema},
    )
