"""The protocol of learning: which pages of a site are annotated, and what is extracted from the others.

Of 120 evenly spaced pages every second one is for the learner: the first that
`siteloom.sample` names are annotated with all true values, the others are
unlabelled. The pages between them are for testing.
"""

from __future__ import annotations

import multiprocessing
import unicodedata
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import siteloom
from evals import autoscraper_peer, css_selectors, mlscraper_peer
from evals.learners import ABSOLUTE_PATHS, METHODS, AbsolutePathVote, Answers, Found, Siteloom
from evals.learning_scores import Answer, Row
from evals.peers import PeerFailed
from evals.reachable import page_texts
from siteloom.core.errors import SiteloomError
from siteloom.core.model import Example
from siteloom.html.visible_text import normalize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evals.learners import Learner
    from evals.peers import Peer
    from evals.swde import SwdeSite
    from siteloom.core.model import Page

PAGES_OF_A_SITE = 120
PROCESSES = 2
PEERS: dict[str, Peer] = {
    autoscraper_peer.NAME: autoscraper_peer.PEER,
    mlscraper_peer.NAME: mlscraper_peer.PEER,
}

# Which methods learn from how many examples.
Plan = dict[str, tuple[int, ...]]


class Failed(NamedTuple):
    """Why a peer learned nothing from so many examples, for a site or for an attribute of one."""

    method: str
    examples: int
    reason: str


class SiteResult(NamedTuple):
    """The rows of a site, what a reader should know besides, and what peers could not do."""

    rows: list[Row]
    notes: list[str]
    failed: list[Failed]


class Task(NamedTuple):
    """A site, and what is to be learned on it."""

    site: SwdeSite
    plan: Plan


def run(sites: Sequence[SwdeSite], plan: Plan) -> Iterator[SiteResult]:
    """Every method of the plan on every site, in the order of sites, in two processes."""
    tasks = [Task(site, plan) for site in sites]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(PROCESSES, len(tasks)), context) as pool:
        yield from pool.map(run_site, tasks)


def attributes_of(site: SwdeSite) -> list[str]:
    """The attributes that have a true value anywhere on the site."""
    return sorted(
        {attribute for truth in site.truth.values() for attribute, values in truth.items() if values}
    )


def run_site(task: Task) -> SiteResult:
    """Every method of the plan on one site."""
    site = LoadedSite(task.site, max(count for counts in task.plan.values() for count in counts))
    rows: list[Row] = []
    notes: list[str] = []
    failed: list[Failed] = []
    for method, counts in task.plan.items():
        learner = _learner(method)
        for count in counts:
            examples, unlabelled = site.examples(count)
            try:
                answers = learner(examples, unlabelled, site.tests)
            except SiteloomError as error:
                notes.append(f"{task.site.full_name}, {method}, {count} examples: nothing learned: {error}")
                answers = Answers([Found({}, {})] * len(site.tests))
            except PeerFailed as error:
                answers = Answers([Found({}, {})] * len(site.tests), failed=(str(error),))
            rows += site.rows(method, count, len(examples), answers.found)
            notes += [
                f"{task.site.full_name}, {method}, {count} examples: left out: {reason}"
                for reason in answers.left_out
            ]
            failed += [Failed(method, count, reason) for reason in answers.failed]
    return SiteResult(rows, notes, failed)


def _learner(method: str) -> Learner:
    if method == ABSOLUTE_PATHS:
        return AbsolutePathVote()
    if method == css_selectors.NAME:
        return css_selectors.CssSelectors()
    if method == autoscraper_peer.NAME:
        return autoscraper_peer.AutoScraper()
    if method == mlscraper_peer.NAME:
        return mlscraper_peer.MLScraper()
    (own,) = (name for name in METHODS if name == method)
    return Siteloom(own)


class LoadedSite:
    """A site's pages, read once for all methods and numbers of examples."""

    def __init__(self, site: SwdeSite, most_examples: int) -> None:
        numbers = site.evenly_spaced(PAGES_OF_A_SITE)
        self._site = site
        self._pool_numbers, self._test_numbers = numbers[::2], numbers[1::2]
        self._pool = [site.page(number) for number in self._pool_numbers]
        self.tests = [site.page(number) for number in self._test_numbers]
        self._attributes = attributes_of(site)
        # The next page is always added to those before it: so a smaller sample is the beginning of a larger.
        self._sampled = siteloom.sample(self._pool, k=most_examples)
        self._texts: dict[str, set[str]] = {}

    def examples(self, count: int) -> tuple[list[Example], list[Page]]:
        """So many annotated pages, fewer where the sample ends before, and the rest of the pool."""
        chosen = self._sampled[:count]
        examples = [Example(self._pool[index], self._truth(self._pool_numbers[index])) for index in chosen]
        return examples, [page for index, page in enumerate(self._pool) if index not in set(chosen)]

    def rows(self, method: str, count: int, annotated: int, found: Sequence[Found]) -> Iterator[Row]:
        """What was found on the test pages, held against the truth, for each attribute."""
        for attribute in self._attributes:
            answers = tuple(
                self._answer(method, attribute, number, page, of_page)
                for number, page, of_page in zip(self._test_numbers, self.tests, found, strict=True)
            )
            yield Row(self._site.vertical, self._site.full_name, attribute, method, count, annotated, answers)

    def _answer(self, method: str, attribute: str, number: str, page: Page, found: Found) -> Answer:
        truth = self._truth(number)[attribute]
        values = tuple(map(normalize, found.values.get(attribute, ())))
        is_possible = set(values) == set(truth) or set(truth) <= self._page_texts(page)
        if method == autoscraper_peer.NAME:  # it gives all texts in this form
            truth = [normalize(unicodedata.normalize("NFKD", value)) for value in truth]
        return Answer(page.url, tuple(truth), values, tuple(found.confidence.get(attribute, ())), is_possible)

    def _truth(self, number: str) -> Mapping[str, list[str]]:
        truth = self._site.truth[number]
        return {attribute: list(truth.get(attribute, ())) for attribute in self._attributes}

    def _page_texts(self, page: Page) -> set[str]:
        if page.url not in self._texts:
            self._texts[page.url] = page_texts(page) or set()
        return self._texts[page.url]
