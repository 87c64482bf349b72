"""What it costs to wrap a site from known records. P is as in `parsing`, over the very same pages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import numpy as np
from evals.swde import swde_sites

from benchmarks.learning import parse_bare
from benchmarks.measure import Figure
from siteloom.core.model import Seed
from siteloom.core.sequences import evenly_spaced
from siteloom.learning.known_records import aligned_pages, site_bootstrap
from siteloom.learning.known_records.record_arrays import SeedAttribute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

TITLE = "Wrapping from known records"

_SITES = {
    "restaurant-zagat": ("name", "address"),
    "book-barnesandnoble": ("title", "author"),
    "movie-rottentomatoes": ("title", "director"),
    "university-collegeboard": ("name", "website"),
}
_PAGES, _SEEDS = 2_000, 40_000
_MORE_SEEDS = (2_000, 10_000, 40_000, 200_000, 1_000_000)
_PAGES_FOR_MORE_SEEDS = 500
_MORE_PAGES = (250, 500, 1_000, 2_000)

# What is done to get from pages and seeds to a wrapper, and by which functions.
_STAGES: Sequence[tuple[str, object, str]] = (
    ("reading pages", site_bootstrap, "_read"),
    ("reading seeds", aligned_pages, "seed_table"),
    ("matching", SeedAttribute, "matches"),
    ("alignment", aligned_pages, "_aligned"),
    ("positions", aligned_pages, "find_slots"),
    ("learning and trial", site_bootstrap, "wrapped"),
)
_REST = "the rest"


class _Run(NamedTuple):
    """The CPU seconds of one wrapping, in a process of its own, and its memory before and at most."""

    pages: int
    parsing: float
    seconds: float
    of_stage: dict[str, float]
    megabytes_before: float
    megabytes: float
    accepted: list[str]

    @property
    def cost(self) -> float:
        """The time as a multiple of a bare parse of the same pages."""
        return self.seconds / self.parsing


def figures(data: Path) -> list[Figure]:
    by_site = {site: _in_own_process(data, site, _PAGES, _SEEDS) for site in _SITES}
    site = next(iter(_SITES))
    by_seeds = {seeds: _in_own_process(data, site, _PAGES_FOR_MORE_SEEDS, seeds) for seeds in _MORE_SEEDS}
    by_pages = {pages: _in_own_process(data, site, pages, _SEEDS) for pages in _MORE_PAGES}
    return [
        *(
            Figure(f"{site}, {run.pages:,} pages, {_SEEDS:,} seeds", _written(run), "at most 20 P")
            for site, run in by_site.items()
        ),
        *(Figure(f"{site}, time by stage", _stages(run)) for site, run in by_site.items()),
        *(
            Figure(f"{site}, {run.pages:,} pages, {seeds:,} seeds", _written(run))
            for seeds, run in by_seeds.items()
        ),
        Figure(f"{site}, {_MORE_SEEDS[-1]:,} seeds, time by stage", _stages(by_seeds[_MORE_SEEDS[-1]])),
        *(
            Figure(f"{site}, {run.pages:,} pages, {_SEEDS:,} seeds", _written(run))
            for run in by_pages.values()
        ),
        Figure(
            f"{site}, growth on doubling the pages",
            ", ".join(
                f"{after.seconds / before.seconds:.2f}" for before, after in pairwise(by_pages.values())
            ),
            "2 (linear)",
        ),
    ]


def _written(run: _Run) -> str:
    return (
        f"{run.cost:.1f} P ({run.seconds:.1f} s), peak {run.megabytes:,.0f} MB, of which pages and seeds "
        f"{run.megabytes_before:,.0f} MB, {len(run.accepted)} attributes"
    )


def _stages(run: _Run) -> str:
    return ", ".join(f"{stage} {seconds / run.parsing:.1f} P" for stage, seconds in run.of_stage.items())


def _in_own_process(data: Path, site: str, pages: int, seeds: int) -> _Run:
    command = [sys.executable, "-m", "benchmarks.bootstrapping", str(data), site, str(pages), str(seeds)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return _Run(*json.loads(output))


def seeds_of(truths: Sequence[tuple[str, Mapping[str, tuple[str, ...]]]], count: int) -> list[Seed]:
    """So many known records: true ones, and if these are too few, others that are put together from them.

    A record that is put together has each attribute from another record. As often as a value of the
    attribute is not had by others, one of its words is exchanged or its digits are.
    """
    known = [Seed({name: texts for name, texts in truth.items() if texts}, site) for site, truth in truths]
    if count <= len(known):
        return evenly_spaced(known, count)
    generator = np.random.default_rng(1)
    missing = count - len(known)
    columns = {
        name: list(_varied([seed.values.get(name, ()) for seed in known], missing, generator))
        for name in dict.fromkeys(name for seed in known for name in seed.values)
    }
    made = zip(*columns.values(), strict=True)
    return known + [
        Seed({name: texts for name, texts in zip(columns, row, strict=True) if texts}, "made") for row in made
    ]


def _varied(
    values: Sequence[tuple[str, ...]], count: int, generator: np.random.Generator
) -> Iterator[tuple[str, ...]]:
    texts = [text for several in values for text in several]
    words = sorted({word for text in texts for word in text.split()})
    distinct = len(set(texts)) / max(1, len(texts))
    drawn = generator.integers(0, len(values), count).tolist()
    is_varied = (generator.random(count) < distinct).tolist()
    for number, is_other in zip(drawn, is_varied, strict=True):
        yield tuple(_other(text, words, generator) if is_other else text for text in values[number])


def _other(text: str, words: Sequence[str], generator: np.random.Generator) -> str:
    """A text with other digits or, if it has few, with another word."""
    if sum(character.isdigit() for character in text) >= 0.3 * len(text):
        digits = iter(generator.integers(0, 10, len(text)).tolist())
        return re.sub(r"\d", lambda _: str(next(digits)), text)
    own = text.split()
    own[int(generator.integers(len(own)))] = words[int(generator.integers(len(words)))]
    return " ".join(own)


class _Clock:
    """The CPU seconds of stages; what runs within another stage counts as that one's."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {stage: 0.0 for stage, _, _ in _STAGES}
        self._is_running = False

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(*given: object) -> Any:
            if self._is_running:
                return function(*given)
            self._is_running = True
            start = time.process_time()
            try:
                return function(*given)
            finally:
                self.seconds[stage] += time.process_time() - start
                self._is_running = False

        return run


def _print_run(data: Path, name: str, pages_wanted: int, seeds_wanted: int) -> None:
    sites = {site.full_name: site for site in swde_sites(data)}
    site = sites[name]
    pages = [site.page(number) for number in evenly_spaced(sorted(site.truth), pages_wanted)]
    truths = [
        (other.name, truth)
        for other in sites.values()
        if other.vertical == site.vertical and other != site
        for truth in other.truth.values()
    ]
    seeds = seeds_of(truths, seeds_wanted)
    site_bootstrap.bootstrap(evenly_spaced(seeds, 2_000), pages[:100], _SITES[name])  # compiles, or loads
    before = _memory("VmRSS")
    parsing = _seconds(lambda: parse_bare(pages))
    clock = _Clock()
    with ExitStack() as stack:
        for stage, owner, function in _STAGES:
            stack.enter_context(patch.object(owner, function, clock.timed(stage, getattr(owner, function))))
        start = time.process_time()
        result = site_bootstrap.bootstrap(seeds, pages, _SITES[name])
        seconds = time.process_time() - start
    parsing = (parsing + _seconds(lambda: parse_bare(pages))) / 2
    of_stage = {**clock.seconds, _REST: seconds - sum(clock.seconds.values())}
    accepted = [name for name, found in result.attributes.items() if found.verdict == "accepted"]
    print(json.dumps([len(pages), parsing, seconds, of_stage, before, _memory("VmHWM"), accepted]))


def _seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _memory(what: str) -> float:
    """Megabytes. Not getrusage, whose peak a process inherits from the one that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (kilobytes,) = re.findall(rf"^{what}:\s+(\d+) kB", status, re.MULTILINE)
    return int(kilobytes) / 1e3


if __name__ == "__main__":
    _print_run(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
