"""What it costs to learn a wrapper and to use it. P is as in `parsing`, over the very same pages."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evals.swde import swde_sites
from lxml import etree

import siteloom
from benchmarks.measure import ROUNDS, Figure, cpu_seconds
from siteloom.core.errors import ExampleNotFound
from siteloom.core.model import Example, Page
from siteloom.html.tag_scanner import scan_tags
from siteloom.learning.induction.learner import check_example

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evals.swde import SwdeSite

TITLE = "Learning"

_SITES = slice(0, None, 4)  # one site of each vertical
EXAMPLES = 5
_UNLABELLED = 100
_ATTRIBUTES = 4

_MANY_ATTRIBUTES = 1_000
_MANY_NODES = 50_000
_GENERATED = ("attributes", "nodes")


class Task(NamedTuple):
    """What a wrapper is learned from."""

    examples: list[Example]
    unlabelled: list[Page]

    @property
    def pages(self) -> list[Page]:
        """All pages."""
        return [*(example.page for example in self.examples), *self.unlabelled]


class _Costs(NamedTuple):
    """CPU seconds as shares of a bare parse of the same pages."""

    site: str
    learn: float
    sample: float
    extract: float


def figures(data: Path) -> list[Figure]:
    scan_tags(b"<p>")  # compiles, or loads what was compiled
    costs = [_costs(site) for site in list(swde_sites(data))[_SITES]]
    learned = f"`learn`, {EXAMPLES} examples, {_UNLABELLED} other pages, {_ATTRIBUTES} attributes"
    worst = max(costs, key=lambda cost: cost.learn)
    generated = {what: _in_own_process(what) for what in _GENERATED}
    return [
        Figure("sites", ", ".join(cost.site for cost in costs)),
        Figure(f"{learned}, median site", f"{statistics.median(cost.learn for cost in costs):.1f} P"),
        Figure(f"{learned}, worst site", f"{worst.learn:.1f} P ({worst.site})", "at most 20 P"),
        Figure(f"`sample` of {_UNLABELLED} pages, median site", _median([cost.sample for cost in costs])),
        Figure("`Wrapper.extract`, median site", _median([cost.extract for cost in costs])),
        Figure(
            f"`learn`, {_MANY_ATTRIBUTES:,} attributes, 1 example, 20 other pages",
            generated["attributes"],
            "well under a minute",
        ),
        Figure(
            f"`learn`, pages of {_MANY_NODES:,} nodes, {_ATTRIBUTES} attributes, 1 example, 5 other pages",
            generated["nodes"],
            "a few seconds",
        ),
    ]


def site_task(site: SwdeSite, unlabelled: int, attributes: int) -> Task:
    """The pages of a site, of which those that `sample` names are annotated."""
    numbers = site.evenly_spaced(unlabelled + EXAMPLES)
    pages = [site.page(number) for number in numbers]
    names = sorted({name for truth in site.truth.values() for name, values in truth.items() if values})
    chosen = siteloom.sample(pages, k=EXAMPLES)
    examples = [_example(pages[index], site.truth[numbers[index]], names[:attributes]) for index in chosen]
    return Task(examples, [page for index, page in enumerate(pages) if index not in chosen])


def _example(page: Page, truth: Mapping[str, tuple[str, ...]], names: Sequence[str]) -> Example:
    """A page with its values; an attribute whose true value does not stand there is left out."""
    values = {name: list(truth.get(name, ())) for name in names}
    while True:
        try:
            check_example(example := Example(page, values))
            return example
        except ExampleNotFound as error:
            del values[error.attribute]


def _costs(site: SwdeSite) -> _Costs:
    examples, unlabelled = task = site_task(site, _UNLABELLED, _ATTRIBUTES)
    wrapper = siteloom.learn(examples, unlabelled)
    seconds = cpu_seconds(
        {
            "P": partial(parse_bare, task.pages),
            "learn": lambda: siteloom.learn(examples, unlabelled),
            "P of others": partial(parse_bare, unlabelled),
            "sample": lambda: siteloom.sample(unlabelled, k=EXAMPLES),
            "extract": lambda: [None for page in unlabelled if wrapper.extract(page) is None],
        }
    )
    others = seconds["P of others"]
    return _Costs(
        site.full_name,
        learn=seconds["learn"] / seconds["P"],
        sample=seconds["sample"] / others,
        extract=seconds["extract"] / others,
    )


def parse_bare(pages: Sequence[Page]) -> None:
    for page in pages:
        etree.HTML(page.html)


def _median(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} P"


def _in_own_process(what: str) -> str:
    command = [sys.executable, "-m", "benchmarks.learning", what]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds, megabytes, found = json.loads(output)
    return f"{seconds:.1f} s, peak {megabytes:,.0f} MB, {found:,} of the values found"


def _generated_task(what: str) -> Task:
    """One example with many attributes, or of many nodes."""
    if what == "attributes":
        pages = [_definitions(number) for number in range(21)]
        values = {f"a{term}": [_value(0, term)] for term in range(_MANY_ATTRIBUTES)}
    else:
        pages = [_table(number) for number in range(6)]
        values = {f"a{column}": [_value(0, column)] for column in range(_ATTRIBUTES)}
    return Task([Example(pages[0], values)], pages[1:])


def _value(page: int, number: int) -> str:
    """Different for each attribute, and mostly from page to page."""
    return f"value {(page + 1) * (number + 7) * 2_654_435_761 % 999_983}"


def _definitions(page: int) -> Page:
    """A list of terms and what they mean on this page."""
    items = "".join(f"<dt>Term {term}:</dt><dd>{_value(page, term)}</dd>" for term in range(_MANY_ATTRIBUTES))
    return Page.from_text(f"http://x/{page}", f"<h1>Page {page}</h1><dl>{items}</dl>")


def _table(page: int) -> Page:
    """A few definitions, and a table of many rows; elements and texts are nodes."""
    items = "".join(f"<dt>Term {term}:</dt><dd>{_value(page, term)}</dd>" for term in range(_ATTRIBUTES))
    rows = "".join(
        f"<tr><td class=name>Name {row % 997}</td><td>{(row + page) * 31 % 10_007}</td>"
        f"<td><a href='/{row}'>more</a></td></tr>"
        for row in range(_MANY_NODES // 8)
    )
    return Page.from_text(f"http://x/{page}", f"<h1>Page {page}</h1><dl>{items}</dl><table>{rows}</table>")


def _print_run(what: str) -> None:
    scan_tags(b"<p>")
    examples, unlabelled = _generated_task(what)
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        wrapper = siteloom.learn(examples, unlabelled)
        times.append(time.process_time() - start)
    # Not getrusage, whose peak a process inherits from the one that started it.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (peak,) = re.findall(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    record = wrapper.extract(examples[0].page)
    found = sum(list(record.values.get(name, ())) == texts for name, texts in examples[0].values.items())
    print(json.dumps([statistics.median(times), int(peak) / 1e3, found]))


if __name__ == "__main__":
    _print_run(sys.argv[1])
