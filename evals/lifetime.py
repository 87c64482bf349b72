"""How long wrappers live: learned once and never repaired, they are played over all later visits.

A rule is dead as soon as it is right on less than 70 % of the share of pages on which it was right when it
was learned. The learner's preference for robust rules is checked against one XPath for each attribute
(`vertex`) and against absolute paths, on sites over time and on seeded changes of the built-in guide.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import siteloom
from evals.absolute_paths import AbsolutePaths
from evals.change_data import SETS, change_set
from evals.change_page import DOCS, Section, write_section
from evals.change_play import EXAMPLES
from evals.change_scores import Answer, score
from evals.learners import ABSOLUTE_PATHS, METHODS
from evals.learning_runs import PROCESSES
from evals.mutating import mutated, mutations
from evals.mutations import guide, guide_schema
from evals.tables import table
from siteloom.apps.demo.sites import guide_content
from siteloom.core.model import Example, Failure, Page
from siteloom.core.sequences import evenly_spaced
from siteloom.html.parser import parse
from siteloom.wrappers.explanation import rule_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from siteloom.core.model import Attribute
    from siteloom.html.parser import Element
    from siteloom.wrappers.wrapper import Wrapper

    Values = Mapping[str, Sequence[str]]
    Extract = Callable[[Element], Sequence[str]]

LEARNERS = (*METHODS, ABSOLUTE_PATHS)

_DEAD = 0.7
_STARTS = 3  # visits of each set from which it is followed
_WORDS_SHOWN = 90
_PLOT = "change-lifetime.svg"

_SECTION = """\
Wrappers are learned once, at {starts} visits of each of the four sites, and never repaired. An attribute is
dead once its rules are right on less than {dead:.0%} of the share of pages on which they were right when
learned. `united` is the default, `vertex` has one XPath for each attribute, and `absolute-paths` are those of
one example. An attribute that was never right never lived and is left out.

![Share of attributes alive over later visits]({plot})

{learners}

*Visits lived* is the mean share of later visits before the death. Attributes that died with any of them, and
how many later visits they lived to see; in brackets how right they were at first, if not on all pages:

{died}

The default must be judged by both columns, right at first and lived: what is wrong from the start has little
to lose. Seeded changes of the built-in guide are harder on it than on `vertex` where labels or classes get
other names, as its rules prefer these, and easier where a table turns into boxes. Share of attributes alive
after each kind of change:

{survived}"""


class Rule(NamedTuple):
    """A rule of an attribute, or all of them together."""

    learner: str
    attribute: str
    name: str = ""
    words: str = ""


class Life(NamedTuple):
    """How right a rule was at first, and at which visit it died, after `lived` of `visits` later ones."""

    site: str
    first: str
    rule: Rule
    right: float
    died: str
    lived: int
    visits: int


class Survival(NamedTuple):
    """How many attributes are still alive after a mutation, of those that were right before."""

    learner: str
    kind: str
    alive: int
    attributes: int


class _Known(NamedTuple):
    page: Page
    truth: Values


def figures(data: Path) -> dict[str, float]:
    from evals.plots import plot_lifetime  # noqa: PLC0415 - the processes of the pool need it not

    starts = [
        (data, name, first)
        for name in SETS
        for first in evenly_spaced(range(len(change_set(data, name).visits) - 1), _STARTS)
    ]
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        followed = [pool.submit(_lives_from, *start) for start in starts]
        survived = [pool.submit(_survivals, learner) for learner in LEARNERS]
        lives = [life for future in followed for life in future.result()]
        survivals = [survival for future in survived for survival in future.result()]
    plot_lifetime({learner: _alive_over_visits(lives, learner) for learner in LEARNERS}, DOCS / _PLOT)
    section = _section(lives, survivals)
    write_section(Section.LIFETIME, section)
    print(_rule_table(lives), "\n")
    print(section, "\n")
    own, *others = LEARNERS
    lived = {learner: _lived(lives, learner) for learner in LEARNERS}
    alive = {learner: _alive(survivals, learner) for learner in LEARNERS}
    return {
        "lifetime_lived": round(lived[own], 4),
        "lifetime_survived": round(alive[own], 4),
        **{f"lifetime_lived_over_{other}": round(lived[own] - lived[other], 4) for other in others},
        **{f"lifetime_survived_over_{other}": round(alive[own] - alive[other], 4) for other in others},
    }


def _lives_from(data: Path, name: str, place: int) -> list[Life]:
    """What becomes of each rule after a visit; one that is right nowhere at that visit never lived."""
    site = change_set(data, name)
    first, *later = (
        (visit.name, [_Known(fetch.page, fetch.truth) for fetch in visit.fetches])
        for visit in site.visits[place:]
    )
    rules = {
        rule: extract
        for learner in LEARNERS
        for rule, extract in _rules(learner, _learned(learner, first[1], site.schema))
    }
    at_first = _shares(first[1], rules)
    rules = {rule: extract for rule, extract in rules.items() if at_first[rule]}
    deaths: dict[Rule, int] = {}
    for number, (_, known) in enumerate(later):
        for rule, share in _shares(known, rules).items():
            if share < _DEAD * at_first[rule]:
                deaths.setdefault(rule, number)
    return [
        Life(
            name,
            first[0],
            rule,
            at_first[rule],
            later[deaths[rule]][0] if rule in deaths else "",
            deaths.get(rule, len(later)),
            len(later),
        )
        for rule in rules
    ]


def _survivals(learner: str) -> list[Survival]:
    """What every mutation of the built-in guide leaves alive."""
    old, new = guide(guide_content.FIRST_VISIT)[::2], guide(guide_content.AFTER_REDESIGN)[::2]
    known = [_Known(page.page, page.truth) for page in old]
    rules = {
        rule: extract
        for rule, extract in _rules(learner, _learned(learner, known, guide_schema(old)))
        if not rule.name
    }
    before = _shares(known, rules)
    survivals = []
    for mutation in mutations():
        pages = [mutated(page, mutation) for page in new]
        now = _shares([_Known(page.page, page.truth) for page in pages], rules)
        there = {rule for rule in rules if any(page.truth[rule.attribute] for page in pages)}
        alive = [now[rule] >= _DEAD * before[rule] for rule in there if before[rule]]
        survivals.append(Survival(learner, mutation.kind, sum(alive), len(alive)))
    return survivals


def _learned(
    learner: str, known: Sequence[_Known], schema: Mapping[str, Attribute]
) -> Wrapper | AbsolutePaths:
    pages = [one.page for one in known]
    examples = [Example(*known[place]) for place in siteloom.sample(pages, k=EXAMPLES)]
    for method in METHODS:
        if learner == method:
            return siteloom.learn(examples, unlabelled=pages, schema=schema, method=method)
    return AbsolutePaths(examples)


def _rules(learner: str, wrapper: Wrapper | AbsolutePaths) -> Iterator[tuple[Rule, Extract]]:
    """All rules of an attribute together, and each of them as if it were the only one."""
    if isinstance(wrapper, AbsolutePaths):
        for attribute in wrapper.attributes:
            yield Rule(learner, attribute), partial(wrapper.values, attribute=attribute)
        return
    for attribute, rules in wrapper.attributes.items():
        yield Rule(learner, attribute), partial(_values, replace(wrapper, attributes={attribute: rules}))
        for role, several in (("rule", rules.rules), ("voter", rules.voters)):
            for number, rule in enumerate(several, 1):
                alone = replace(rules, rules=(rule,), voters=())
                words = rule_words(rule, multi=bool(rules.attribute.multi))
                yield (
                    Rule(learner, attribute, f"{role} {number}", words),
                    partial(_values, replace(wrapper, attributes={attribute: alone})),
                )


def _values(wrapper: Wrapper, root: Element) -> Sequence[str]:
    """What a wrapper with a single attribute finds."""
    return next((values for record in wrapper.records(root, "") for values in record.values.values()), ())


def _shares(known: Iterable[_Known], rules: Mapping[Rule, Extract]) -> dict[Rule, float]:
    """How right each rule is on some pages."""
    found: dict[Rule, dict[str, Answer]] = {rule: {} for rule in rules}
    for one in known:
        root = parse(one.page)
        if isinstance(root, Failure):
            continue
        for rule, extract in rules.items():
            found[rule][one.page.url] = Answer({rule.attribute: extract(root)}, one.truth)
    return {rule: score(of_pages, [rule.attribute]).share for rule, of_pages in found.items()}


def _whole(lives: Iterable[Life], learner: str) -> list[Life]:
    """The lives of attributes, all their rules together."""
    return [life for life in lives if life.rule.learner == learner and not life.rule.name]


def _alive_over_visits(lives: Iterable[Life], learner: str) -> list[float]:
    """The share alive after each number of visits (Kaplan and Meier): some are not followed for so long."""
    own = _whole(lives, learner)
    shares = [1.0]
    for number in range(max((life.visits for life in own), default=0)):
        followed = [life for life in own if life.lived >= number and life.visits > number]
        died = sum(life.lived == number for life in followed)
        shares.append(shares[-1] * (1 - died / max(1, len(followed))))
    return shares


def _lived(lives: Iterable[Life], learner: str) -> float:
    """The mean share of later visits that a learner's attributes live to see."""
    return _mean([life.lived / life.visits for life in _whole(lives, learner)])


def _alive(survivals: Iterable[Survival], learner: str) -> float:
    own = [survival for survival in survivals if survival.learner == learner]
    return sum(survival.alive for survival in own) / max(1, sum(survival.attributes for survival in own))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def _section(lives: Sequence[Life], survivals: Sequence[Survival]) -> str:
    return _SECTION.format(
        starts=_STARTS,
        dead=_DEAD,
        plot=_PLOT,
        learners=_learner_table(lives, survivals),
        died=_death_table(lives),
        survived=_survival_table(survivals),
    )


def _learner_table(lives: Sequence[Life], survivals: Sequence[Survival]) -> str:
    return table(
        ["learner", "right at first", "attributes that died", "visits lived", "alive after seeded changes"],
        [
            [
                f"`{learner}`",
                f"{_mean([life.right for life in _whole(lives, learner)]):.4f}",
                f"{sum(bool(life.died) for life in _whole(lives, learner))} of {len(_whole(lives, learner))}",
                f"{_lived(lives, learner):.4f}",
                f"{_alive(survivals, learner):.4f}",
            ]
            for learner in LEARNERS
        ],
    )


def _rule_table(lives: Sequence[Life]) -> str:
    """Rules of the default learner, and when they died."""
    own = [life for life in lives if life.rule.learner == LEARNERS[0] and life.rule.name]
    return table(
        ["site", "learned", "attribute", "rule", "right at first", "died", "visits lived", "words"],
        [
            [
                life.site,
                life.first,
                life.rule.attribute,
                life.rule.name,
                f"{life.right:.2f}",
                life.died,
                f"{life.lived} of {life.visits}",
                life.rule.words[:_WORDS_SHOWN].replace("|", "\\|"),
            ]
            for life in own
        ],
    )


def _death_table(lives: Sequence[Life]) -> str:
    """Attributes that died with any learner, and how many of the later visits they lived to see."""
    whole = {
        (life.site, life.first, life.rule.attribute, life.rule.learner): life
        for life in lives
        if not life.rule.name
    }
    places = list(dict.fromkeys(place[:3] for place, life in whole.items() if life.died))
    return table(
        ["site", "learned", "attribute", *(f"`{learner}`" for learner in LEARNERS)],
        [[*place, *(_lived_words(whole.get((*place, learner))) for learner in LEARNERS)] for place in places],
    )


def _lived_words(life: Life | None) -> str:
    if life is None:
        return "nothing right"
    return f"{life.lived} of {life.visits}" + (f" ({life.right:.0%})" if life.right < 1 else "")


def _survival_table(survivals: Sequence[Survival]) -> str:
    kinds = list(dict.fromkeys(survival.kind for survival in survivals))
    return table(
        ["change", *(f"`{learner}`" for learner in LEARNERS)],
        [
            [
                kind,
                *(
                    f"{_alive([one for one in survivals if one.kind == kind], learner):.2f}"
                    for learner in LEARNERS
                ),
            ]
            for kind in kinds
        ],
    )
