"""Real sites whose markup is changed by a program: what breaks, is noticed and repaired.

A wrapper is learned from five of sixty pages of a site of SWDE, and some pages are watched; then all are met
again after a change. Their texts are the same, so every value can be found again.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import siteloom
from evals.change_page import Section, write_section
from evals.change_play import EXAMPLES
from evals.change_scores import BADLY_BROKEN, BROKEN, answers, broken_shares, score
from evals.changed_markup import CHANGES, UNCHANGED, with_changed_markup
from evals.learners import learned
from evals.learning_runs import PROCESSES, attributes_of
from evals.swde import swde_sites
from evals.tables import table
from siteloom.core.model import Example

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from evals.change_scores import Answer
    from evals.swde import SwdeSite
    from siteloom.core.model import Page
    from siteloom.wrappers.wrapper import Wrapper

    Truths = Mapping[str, Mapping[str, Sequence[str]]]

_PAGES_OF_A_SITE = 60
_MENDED = 1 - BROKEN

_SECTION = """\
{pages} evenly spaced pages of each of {sites} sites of SWDE (Hao et al., SIGIR 2011), met again after a
program has changed their markup but not their texts. An alarm is false if the values of each attribute are
the same as before on at least {same:.0%} of the pages. *Repaired* are changes that were noticed, said to be
repaired, and after which at least {mended:.0%} of the values are right that were right before. The last three
columns are of noticed changes that break something: right values, relative to those before the change, with
the old wrapper, with the new one, and with the new one on pages in their old markup, which a site may go on
serving for some time.

{by_change}

Rules hang on names, tags and levels, so most such changes break some attribute of most sites; its known
values lead to new rules. Breaks of more than {badly:.0%} without an alarm:

{unnoticed}"""


class Changed(NamedTuple):
    """A change of a site.

    `broken` has the share of each attribute that broke, `differs` is the largest share of pages on which
    another value of an attribute is extracted than before. The counts are of right values: `before` the
    change, after it with the old wrapper (`unrepaired`) and with the one in use then, on the `new` pages and
    on those of before (`old`), which are met again while a site has both.
    """

    site: str
    change: str
    broken: Mapping[str, float]
    differs: float
    tests: tuple[str, ...]
    outcome: str
    before: int
    unrepaired: int
    new: int
    old: int

    @property
    def worst_break(self) -> float:
        """The largest share of an attribute that broke."""
        return max(self.broken.values(), default=0.0)

    @property
    def is_false_alarm(self) -> bool:
        """Whether there was an alarm, though the same is extracted as before."""
        return bool(self.tests) and self.differs <= BROKEN

    @property
    def is_repaired(self) -> bool:
        """Whether it was found to be repaired and nearly all that was right is right again."""
        return self.outcome in ("reused", "repaired") and self.new >= _MENDED * self.before


def figures(data: Path) -> dict[str, float]:
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        found = [change for of_site in pool.map(_changes_of, swde_sites(data)) for change in of_site]
    section = _section(found)
    write_section(Section.CHANGED_SITES, section)
    print(section, "\n")
    print(_all_changes(found), "\n")
    badly = [change for change in found if change.worst_break > BADLY_BROKEN]
    noticed = [change for change in found if change.tests and change.broken]
    harmless = [change for change in found if change.differs <= BROKEN]
    measured = {
        "changed_sites_noticed": _mean([bool(change.tests) for change in badly]),
        "changed_sites_quiet": _mean([not change.tests for change in harmless]),
        "changed_sites_repaired": _mean([change.is_repaired for change in noticed]),
        "changed_sites_new_right": _relative(noticed, lambda change: change.new),
        "changed_sites_old_right": _relative(noticed, lambda change: change.old),
    }
    return {name: round(value, 4) for name, value in measured.items()}


def _changes_of(site: SwdeSite) -> list[Changed]:
    numbers = site.evenly_spaced(_PAGES_OF_A_SITE)
    served = {page.url: (page, number) for number in numbers for page in [site.page(number)]}
    attributes = attributes_of(site)
    truths: Truths = {
        url: {name: site.truth[number].get(name, ()) for name in attributes}
        for url, (_, number) in served.items()
    }
    pages = [with_changed_markup(page, UNCHANGED) for page, _ in served.values()]
    chosen = siteloom.sample(pages, k=EXAMPLES)
    examples = [Example(pages[place], truths[pages[place].url]) for place in chosen]
    wrapper, _ = learned(examples, [page for at, page in enumerate(pages) if at not in set(chosen)], "united")
    watch = siteloom.watch(wrapper, pages)
    records = [wrapper.extract(page) for page in pages]
    known = answers(records, truths)
    found = []
    for change in CHANGES:
        fresh = [with_changed_markup(page, change) for page, _ in served.values()]
        now = _answers(wrapper, fresh, truths)
        alarms = siteloom.monitor(watch, fresh)
        result = siteloom.relearn(wrapper, records, fresh) if alarms else None
        mended = result.wrapper if result else wrapper
        found.append(
            Changed(
                site.full_name,
                change,
                broken_shares(attributes, known, now),
                max(_differing(name, known, now) for name in attributes),
                tuple(alarm.test for alarm in alarms),
                result.outcome if result else "",
                score(known, attributes).right,
                score(now, attributes).right,
                score(_answers(mended, fresh, truths), attributes).right,
                score(_answers(mended, pages, truths), attributes).right,
            )
        )
    return found


def _answers(wrapper: Wrapper, pages: Sequence[Page], truths: Truths) -> dict[str, Answer]:
    return answers((wrapper.extract(page) for page in pages), truths)


def _differing(attribute: str, before: Mapping[str, Answer], now: Mapping[str, Answer]) -> float:
    """The share of pages on which other values are found than before."""
    differing = [
        set(answer.found.get(attribute, ())) != set(now[url].found.get(attribute, ()))
        for url, answer in before.items()
    ]
    return sum(differing) / max(1, len(differing))


def _section(found: Sequence[Changed]) -> str:
    return _SECTION.format(
        pages=_PAGES_OF_A_SITE,
        sites=len({change.site for change in found}),
        same=1 - BROKEN,
        mended=_MENDED,
        by_change=_by_change(found),
        badly=BADLY_BROKEN,
        unnoticed="\n".join(
            f"- {change.site}, {change.change}: {', '.join(change.broken)}"
            for change in found
            if change.worst_break > BADLY_BROKEN and not change.tests
        )
        or "- none",
    )


def _by_change(found: Sequence[Changed]) -> str:
    rows = []
    for change in (*CHANGES, None):
        own = [one for one in found if change in (None, one.change)]
        badly = [one for one in own if one.worst_break > BADLY_BROKEN]
        partly = [one for one in own if 0 < one.worst_break <= BADLY_BROKEN]
        noticed = [one for one in own if one.tests and one.broken]
        harmless = [one for one in own if one.differs <= BROKEN]
        rows.append(
            [
                change or "**together**",
                _of([bool(one.tests) for one in badly]),
                _of([bool(one.tests) for one in partly]),
                _of([one.is_false_alarm for one in harmless]),
                _of([one.is_repaired for one in noticed]),
                *(
                    f"{_relative(noticed, count):.4f}" if noticed else ""
                    for count in (_unrepaired, _new, _old)
                ),
            ]
        )
    return table(
        [
            "change",
            f"noticed, more than {BADLY_BROKEN:.0%} broken",
            "noticed, less broken",
            "false alarms",
            "repaired",
            "right, unrepaired",
            "right, repaired",
            "right, old markup",
        ],
        rows,
    )


def _all_changes(found: Sequence[Changed]) -> str:
    """Every change that broke something or was reported; to be printed only."""
    return table(
        ["site", "change", "broke", "differs", "tests", "outcome", "before", "unrepaired", "new", "old"],
        [
            [
                one.site,
                one.change,
                ", ".join(f"{name} {share:.0%}" for name, share in one.broken.items()),
                f"{one.differs:.0%}",
                ", ".join(one.tests),
                one.outcome,
                *map(str, (one.before, one.unrepaired, one.new, one.old)),
            ]
            for one in found
            if one.broken or one.tests
        ],
    )


def _unrepaired(change: Changed) -> int:
    return change.unrepaired


def _new(change: Changed) -> int:
    return change.new


def _old(change: Changed) -> int:
    return change.old


def _relative(changes: Sequence[Changed], count: Callable[[Changed], int]) -> float:
    """Right values, relative to those before the change."""
    return sum(map(count, changes)) / max(1, sum(change.before for change in changes))


def _of(answers: Sequence[bool]) -> str:
    return f"{sum(answers)} of {len(answers)}" if answers else ""


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))
