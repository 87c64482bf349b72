"""The protocol of wrapping from known records: leave one site out.

The known records are the true values of all pages of the vertical's other sites. No
page of the site itself is annotated. All of its pages are read, and from all of them
is extracted.
"""

from __future__ import annotations

import multiprocessing
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import siteloom
from siteloom.core.errors import UnreadablePage
from siteloom.core.model import Failure, Seed
from siteloom.core.sequences import evenly_spaced
from siteloom.html.page_text_arrays import TextCollector
from siteloom.html.parser import parse
from siteloom.learning.known_records.findattrpos import at_least, best_positions, strong_matches, weak_matches
from siteloom.learning.known_records.position_wrapper import positions_wrapper
from siteloom.learning.known_records.string_similarity import STRONGLY_SIMILAR

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evals.swde import SwdeSite
    from siteloom.core.model import Page
    from siteloom.html.page_text_arrays import PageTexts
    from siteloom.html.parser import Element
    from siteloom.learning.known_records.findattrpos import FoundPositions, Matches
    from siteloom.wrappers.wrapper import Wrapper

CORES = {
    "restaurant": ("name", "address"),
    "book": ("title", "author"),
    "university": ("name", "website"),
    "movie": ("title", "director"),
    "nbaplayer": ("name", "height"),
}
"""The attributes without which a record is of no use, for each vertical that is measured."""

OWN, STRONG, WEAK = "bits", "findattrpos", "findattrposw"
METHODS = (OWN, STRONG, WEAK)

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
SWEPT_VERTICAL = "restaurant"  # as in the paper
SEED_COUNTS = (1_000, 2_500)

_MOST_POINTS = 200
_ROWS_BETWEEN_POINTS = 10
PROCESSES = 2


class Score(NamedTuple):
    """How often an attribute was extracted from the pages of a site, and how often its first value was right.

    `true_pages` have a true value; if there are none, the site does not show the attribute.
    """

    site: str
    attribute: str
    method: str
    pages: int
    true_pages: int
    extracted: int
    right: int


class Coverage(NamedTuple):
    """On how many pages all core attributes were found."""

    site: str
    method: str
    pages: int
    covered: int


class Swept(NamedTuple):
    """What comes of another threshold on a site: pages covered, core values extracted and right ones."""

    variant: str
    threshold: float
    pages: int
    covered: int
    extracted: int
    right: int


class Seeded(NamedTuple):
    """The coverage of a site with so many known records."""

    method: str
    seeds: int
    pages: int
    covered: int


class Point(NamedTuple):
    """A known value and a text of a page: how similar they are, and whether the text is a true value."""

    attribute: str
    weak: float
    strong: float
    is_true: bool


class SiteResult(NamedTuple):
    """All that is measured on one site."""

    vertical: str
    site: str
    pages: int
    seeds: int
    scores: list[Score]
    coverages: list[Coverage]
    seconds: dict[str, float]
    positions_left: dict[str, tuple[Mapping[str, int], ...]]
    swept: list[Swept]
    seeded: list[Seeded]
    points: list[Point]
    notes: list[str]


class _Task(NamedTuple):
    site: SwdeSite
    others: tuple[SwdeSite, ...]
    most_pages: int | None
    is_swept: bool
    methods: tuple[str, ...]


def run(
    sites: Sequence[SwdeSite],
    wanted: Sequence[str] = (),
    most_pages: int | None = None,
    *,
    is_swept: bool = True,
    methods: Sequence[str] = METHODS,
) -> Iterator[SiteResult]:
    """All methods on every site whose vertical is measured, or on those wanted by their full names."""
    tasks = [
        _Task(
            site,
            tuple(other for other in sites if other.vertical == site.vertical and other != site),
            most_pages,
            is_swept and site.vertical == SWEPT_VERTICAL,
            tuple(methods),
        )
        for site in sites
        if site.vertical in CORES and (not wanted or {site.full_name, site.vertical} & set(wanted))
    ]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(PROCESSES, max(1, len(tasks))), context) as pool:
        yield from pool.map(_run_site, tasks)


def _run_site(task: _Task) -> SiteResult:
    site = _LoadedSite(task.site, task.others, task.most_pages)
    wrappers: dict[str, Wrapper] = {}
    if OWN in task.methods:
        with site.timed("bits, all"):
            own = siteloom.bootstrap(site.seeds, site.pages, core=site.core)
        if own.wrapper is None:
            site.notes.append(f"{task.site.full_name}, {OWN}: {own.reason}")
        else:
            wrappers[OWN] = own.wrapper
    left: dict[str, tuple[Mapping[str, int], ...]] = {}
    swept: list[Swept] = []
    points: list[Point] = []
    if task.methods != (OWN,):
        with site.timed("texts"):
            texts = site.texts()
        with site.timed("weak similarity"):
            weak = weak_matches(site.seeds, texts)
        of_method = {WEAK: weak}
        if STRONG in task.methods:
            with site.timed("strong similarity"):
                strong = strong_matches(weak)
            of_method[STRONG] = at_least(strong, STRONGLY_SIMILAR)
            if task.is_swept:
                swept = list(_swept(site, weak, strong))
                points = list(_points(site, weak, strong))
        for method, matches in of_method.items():
            with site.timed(f"sets of positions, {method}"):
                found = best_positions(matches)
            left[method] = found.positions_left
            if found.positions:
                wrappers[method] = positions_wrapper(found, site.pages)
    with site.timed("extraction"):
        answers = site.extracted(wrappers)
    return SiteResult(
        task.site.vertical,
        task.site.full_name,
        len(site.pages),
        len(site.seeds),
        [score for method in task.methods for score in site.scores(method, answers[method])],
        [Coverage(task.site.full_name, method, *site.coverage(answers[method])) for method in task.methods],
        dict(site.seconds),
        left,
        swept,
        list(_seeded(site, task.methods)) if task.is_swept else [],
        points,
        site.notes,
    )


Answer = dict[str, tuple[str, ...]]


class _LoadedSite:
    """A site's pages and the records that are known from other sites."""

    def __init__(self, site: SwdeSite, others: Sequence[SwdeSite], most_pages: int | None) -> None:
        self._site = site
        self.numbers = sorted(site.truth) if most_pages is None else site.evenly_spaced(most_pages)
        self.pages = [site.page(number) for number in self.numbers]
        self.core = CORES[site.vertical]
        self.seeds = [
            Seed({name: values for name, values in truth.items() if values}, other.name)
            for other in others
            for truth in other.truth.values()
        ]
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.notes: list[str] = []

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Counts the time of a stage."""
        began = time.process_time()
        yield
        self.seconds[stage] += time.process_time() - began

    def texts(self) -> PageTexts:
        """The texts of all pages."""
        collector = TextCollector()
        for page in self.pages:
            collector.add(_tree(page))
        return collector.collected()

    def truth(self, page: int) -> Mapping[str, tuple[str, ...]]:
        """The true values of a page."""
        return self._site.truth[self.numbers[page]]

    def extracted(self, wrappers: Mapping[str, Wrapper]) -> dict[str, list[Answer]]:
        """What each wrapper finds on each page; a method without a wrapper finds nothing."""
        answers: dict[str, list[Answer]] = {method: [] for method in METHODS}
        for page in self.pages:
            root = _tree(page)
            for method, of_method in answers.items():
                wrapper = wrappers.get(method)
                records = wrapper.records_of(page, root) if wrapper is not None else ()
                of_method.append(dict(records[0].values) if records else {})
        return answers

    def scores(self, method: str, answers: Sequence[Answer]) -> Iterator[Score]:
        """The score of each attribute that is known from other sites."""
        for attribute in sorted({name for seed in self.seeds for name in seed.values}):
            true_pages = extracted = right = 0
            for page, answer in enumerate(answers):
                truth = self.truth(page).get(attribute, ())
                values = answer.get(attribute, ())
                true_pages += bool(truth)
                extracted += bool(values)
                right += bool(values) and values[0] in truth
            yield Score(self._site.full_name, attribute, method, len(answers), true_pages, extracted, right)

    def coverage(self, answers: Sequence[Answer]) -> tuple[int, int]:
        """The number of pages, and on how many of them all core attributes were found."""
        return len(answers), sum(all(name in answer for name in self.core) for answer in answers)


def _tree(page: Page) -> Element:
    root = parse(page)
    if isinstance(root, Failure):  # `evals.reachable` counts such pages: there is none
        raise UnreadablePage(root.url, root.reason)
    return root


def _swept(site: _LoadedSite, weak: Matches, strong: Matches) -> Iterator[Swept]:
    for threshold in THRESHOLDS:
        found = best_positions(at_least(strong, threshold))
        yield _outcome(site, "strong, over Ts", threshold, found, weak.texts)
        weaker = at_least(weak, threshold)
        found = best_positions(at_least(strong_matches(weaker), STRONGLY_SIMILAR))
        yield _outcome(site, "strong, over Tw", threshold, found, weak.texts)
        yield _outcome(site, "weak, over Tw", threshold, best_positions(weaker), weak.texts)


def _outcome(
    site: _LoadedSite, variant: str, threshold: float, found: FoundPositions, texts: PageTexts
) -> Swept:
    answers: list[Answer] = [{} for _ in site.pages]
    paths = {texts.path_text(path): path for path in np.unique(texts.path).tolist()}
    for attribute, position in found.positions.items():
        for row in np.flatnonzero(texts.path == paths[position]).tolist():
            answers[texts.page[row]][attribute] = (texts.texts[texts.text[row]],)
    core = [score for score in site.scores(STRONG, answers) if score.attribute in site.core]
    return Swept(
        variant,
        threshold,
        *site.coverage(answers),
        sum(score.extracted for score in core),
        sum(score.right for score in core),
    )


def _points(site: _LoadedSite, weak: Matches, strong: Matches) -> Iterator[Point]:
    """Evenly spaced pairs at the positions of core attributes."""
    pairs: list[Point] = []
    for one, other in zip(weak.candidates, strong.candidates, strict=True):
        if one.attribute in site.core:
            for row in range(0, len(one.page), _ROWS_BETWEEN_POINTS):
                is_true = weak.texts.texts[one.text[row]] in site.truth(int(one.page[row])).get(
                    one.attribute, ()
                )
                pairs += [
                    Point(one.attribute, round(before, 3), round(after, 3), is_true)
                    for before, after in zip(
                        one.similar.similarities(int(one.place[row])).tolist(),
                        other.similar.similarities(int(other.place[row])).tolist(),
                        strict=True,
                    )
                ]
    yield from evenly_spaced(sorted(set(pairs)), _MOST_POINTS)


def _seeded(site: _LoadedSite, methods: Sequence[str]) -> Iterator[Seeded]:
    texts = site.texts()
    for count in SEED_COUNTS:
        seeds = evenly_spaced(site.seeds, count)
        wrappers: dict[str, Wrapper] = {}
        if OWN in methods and (own := siteloom.bootstrap(seeds, site.pages, core=site.core).wrapper):
            wrappers[OWN] = own
        weak = weak_matches(seeds, texts)
        for method, matches in ((STRONG, at_least(strong_matches(weak), STRONGLY_SIMILAR)), (WEAK, weak)):
            if (found := best_positions(matches)).positions:
                wrappers[method] = positions_wrapper(found, site.pages)
        answers = site.extracted(wrappers)
        for method in methods:
            yield Seeded(method, count, *site.coverage(answers[method]))
