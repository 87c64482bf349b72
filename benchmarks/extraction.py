"""What it costs to find the wrapper of a page and to extract its record. P is as in `parsing`."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evals.swde import swde_sites
from parsel import Selector

import siteloom
from benchmarks.learning import parse_bare, site_task
from benchmarks.measure import ROUNDS, Figure, cpu_seconds
from siteloom.apps.demo.sites import guide_site
from siteloom.core.model import Example, Failure, Footprint, Page
from siteloom.extraction.extractor import Extractor
from siteloom.extraction.record_rows import record_row
from siteloom.html.node_paths import find
from siteloom.html.parser import parse
from siteloom.html.tag_scanner import scan_tags
from siteloom.wrappers.matching import Matcher, NamedWrapper
from siteloom.wrappers.rule_features import Feature, Rule, RuleSupport, ValuePart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evals.swde import SwdeSite

    from siteloom.html.parser import Element
    from siteloom.wrappers.wrapper import Wrapper

TITLE = "Extraction"

_ATTRIBUTES = 5
_UNLABELLED = 60
_EVIDENCE = RuleSupport(examples=1, wrong=0, filled=1.0, repeated=0.0)
_MANY_SITES = 200
_WRAPPERS_OF_A_SITE = 5
_PAGES_OF_ENGINE = 4_000
_FILES_OF_ENGINE = 16
_EXAMPLES = 5
_FEW_PAGES, _MANY_PAGES = 1_000, 100_000


class WrappedSite(NamedTuple):
    """A site: its wrapper as learned, one by ids and paths, that as XPaths, and pages to extract from."""

    name: str
    learned: NamedWrapper
    by_path: NamedWrapper
    xpaths: tuple[str, ...]
    pages: list[Page]


class _Costs(NamedTuple):
    """CPU seconds, and those of a bare parse of the same pages."""

    labels: float
    paths: float
    parsel: float
    unmatched: float
    bare: float
    bare_of_strangers: float


def figures(data: Path) -> list[Figure]:
    scan_tags(b"<p>")  # compiles, or loads what was compiled
    sites = [wrapped_site(site) for site in swde_sites(data)]
    others = [*sites[1:], sites[0]]
    costs = [_costs(site, other) for site, other in zip(sites, others, strict=True)]
    what = "match, parse, extract and make the row"
    one, many = _matching_costs(sites)
    plain, two = _engine_costs()
    few_pages, many_pages = (_peak_megabytes(pages) for pages in (_FEW_PAGES, _MANY_PAGES))
    return [
        Figure("sites", f"{len(sites)}, {sum(len(site.pages) for site in sites):,} pages"),
        Figure(f"{what}, by labels and with voting", _shares(costs, "labels"), "at most 1.6 P"),
        Figure(f"{what}, by ids and paths", _shares(costs, "paths"), "at most 1.25 P"),
        Figure("parsel with the same XPaths as the latter", _shares(costs, "parsel"), "no less than ours"),
        Figure(
            "a page that no wrapper is for",
            _shares(costs, "unmatched", "bare_of_strangers"),
            "at most 0.15 P",
        ),
        Figure(
            f"matching with {_MANY_SITES * _WRAPPERS_OF_A_SITE:,} wrappers of {_MANY_SITES} sites loaded",
            f"{many / one:.2f} times that with one",
            "at most 1.2 times",
        ),
        Figure(
            f"`extract -j 2`, {_PAGES_OF_ENGINE:,} pages, start-up apart",
            f"{two / plain:.2f} times the CPU seconds of `-j 1`",
            "at most 1.10 times",
        ),
        Figure(
            f"peak memory of `extract`, {_FEW_PAGES:,} and {_MANY_PAGES:,} pages",
            f"{few_pages:,.0f} MB and {many_pages:,.0f} MB",
            "within 100 MB",
        ),
    ]


def _shares(costs: Sequence[_Costs], what: str, of: str = "bare") -> str:
    """What something costs over all pages together, and by site."""
    pairs = [(getattr(cost, what), getattr(cost, of)) for cost in costs]
    together = sum(seconds for seconds, _ in pairs) / sum(bare for _, bare in pairs)
    by_site = [seconds / bare for seconds, bare in pairs]
    return (
        f"{together:.2f} P; by site {statistics.median(by_site):.2f} P "
        f"({min(by_site):.2f} to {max(by_site):.2f})"
    )


def wrapped_site(site: SwdeSite) -> WrappedSite:
    """A site with the wrappers that are measured."""
    examples, unlabelled = site_task(site, _UNLABELLED, _ATTRIBUTES)
    wrapper = siteloom.learn(examples, unlabelled)
    by_path, xpaths = _path_wrapper(wrapper, unlabelled[0])
    return WrappedSite(
        site.full_name,
        NamedWrapper("learned", None, wrapper),
        NamedWrapper("by path", None, by_path),
        xpaths,
        unlabelled,
    )


def _path_wrapper(wrapper: Wrapper, page: Page) -> tuple[Wrapper, tuple[str, ...]]:
    """The wrapper with one rule an attribute, by its way from the nearest id; and the XPaths."""
    root = parse(page)
    assert not isinstance(root, Failure)
    attributes, xpaths = {}, []
    for name, origins in wrapper.extract(page).provenance.items():
        element = find(root, re.sub(r"/(?:text\(\)\[\d+\]|@\w+)$", "", origins[0].node))
        assert element is not None
        features, xpath = _way(element)
        rule = Rule("element", features, ValuePart(), _EVIDENCE)
        kept = wrapper.attributes[name]
        attribute = replace(kept.attribute, multi=False, mandatory=False)
        attributes[name] = replace(kept, attribute=attribute, rules=(rule,), voters=())
        xpaths.append(xpath)
    return replace(wrapper, attributes=attributes), tuple(xpaths)


def _way(element: Element) -> tuple[tuple[Feature, ...], str]:
    """From the nearest ancestor with an id, or from the root, down to an element."""
    features: list[Feature] = []
    steps: list[str] = []
    distance = 0
    above: Element | None = element
    while above is not None:
        tag = str(above.tag)
        if found := above.get("id"):
            features.append(Feature("id", distance, found))
            return tuple(features), "/".join([f'//*[@id="{found}"]', *reversed(steps)])
        position = 1 + sum(1 for _ in above.itersiblings(tag, preceding=True))
        features += [Feature("tag", distance, tag), Feature("position", distance, str(position))]
        steps.append(f"{tag}[{position}]")
        above = above.getparent()
        distance += 1
    return tuple(features), "/" + "/".join(reversed(steps))


def _costs(site: WrappedSite, other: WrappedSite) -> _Costs:
    learned, by_path = Extractor([site.learned]), Extractor([site.by_path])
    strangers = [
        Page(page.url, stranger.html, charset=stranger.charset)
        for page, stranger in zip(site.pages, cycle(other.pages), strict=False)
    ]
    matcher = Matcher([site.learned])
    seconds = cpu_seconds(
        {
            "P": partial(parse_bare, site.pages),
            "labels": partial(extract_rows, learned, site.pages),
            "paths": partial(extract_rows, by_path, site.pages),
            "parsel": partial(_parsel, site.xpaths, site.pages),
            "P of strangers": partial(parse_bare, strangers),
            "unmatched": lambda: [None for page in strangers if matcher.match(page).chosen],
        }
    )
    return _Costs(
        seconds["labels"],
        seconds["paths"],
        seconds["parsel"],
        seconds["unmatched"],
        seconds["P"],
        seconds["P of strangers"],
    )


def extract_rows(extractor: Extractor, pages: Sequence[Page]) -> None:
    """Records of pages, and the rows that they become."""
    for page in pages:
        found = extractor.extract(page)
        for record in found.records:
            record_row(record, "w", 1)


def _parsel(xpaths: Sequence[str], pages: Sequence[Page]) -> None:
    """What people write by hand: a dictionary of the normalised texts."""
    for page in pages:
        selector = Selector(text=page.html.decode("utf-8", "replace"))
        record = {"url": page.url}
        for number, xpath in enumerate(xpaths):
            record[str(number)] = " ".join(" ".join(selector.xpath(f"{xpath}//text()").getall()).split())


def _matching_costs(sites: Sequence[WrappedSite]) -> tuple[float, float]:
    """CPU seconds of matching the pages of a site with its wrapper alone, and with a thousand."""
    site = sites[0]
    alone = Matcher([site.learned])
    loaded = [site.learned, *islice(_wrappers_of_many_sites(sites), _MANY_SITES * _WRAPPERS_OF_A_SITE - 1)]
    among_many = Matcher(loaded)

    def run(matcher: Matcher) -> Callable[[], object]:
        return lambda: [None for _ in range(10) for page in site.pages if not matcher.match(page).chosen]

    seconds = cpu_seconds({"alone": run(alone), "among many": run(among_many)})
    return seconds["alone"], seconds["among many"]


def _wrappers_of_many_sites(sites: Sequence[WrappedSite]) -> Iterator[NamedWrapper]:
    """Wrappers as they were learned, each for a site of its own name."""
    for number, site in enumerate(cycle(sites)):
        wrapper = site.learned.wrapper
        name = f"shop{number % _MANY_SITES}.example"
        host = "^https?://" + name.replace(".", "[.]")
        patterns = tuple(
            re.sub(r"^\^https\?://[^/]*", host, pattern) for pattern in wrapper.footprint.url_patterns
        )
        footprint = Footprint((name,), patterns, wrapper.footprint.masks, wrapper.footprint.accepted)
        yield NamedWrapper(f"{name}-{number}", None, replace(wrapper, footprint=footprint))


def _engine_costs() -> tuple[float, float]:
    """CPU seconds a run with one process and with two, less those of a run of few pages."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        _write_wrapper(work)
        files = [f"{number}.jsonl" for number in range(_FILES_OF_ENGINE)]
        for file in files:
            _write_pages(work / file, _PAGES_OF_ENGINE // _FILES_OF_ENGINE)
        few = [f"few-{number}.jsonl" for number in range(2)]
        for file in few:
            _write_pages(work / file, 10)
        costs: dict[str, list[float]] = {"1": [], "2": []}
        for _ in range(ROUNDS):
            for jobs, found in costs.items():
                started = _run(work, few, jobs).cpu
                found.append(_run(work, files, jobs).cpu - started)
        return statistics.median(costs["1"]), statistics.median(costs["2"])


def _peak_megabytes(pages: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        _write_wrapper(work)
        _write_pages(work / "pages.jsonl", pages)
        return _run(work, ["pages.jsonl"], "1").peak_megabytes


class _Run(NamedTuple):
    cpu: float
    peak_megabytes: float


def _run(work: Path, sources: Sequence[str], jobs: str) -> _Run:
    """`siteloom extract` in a process of its own; those of its jobs count as well."""
    code = (
        "import json, resource, subprocess, sys;"
        "subprocess.run(sys.argv[1:], check=True);"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3]))"
    )
    command = [sys.executable, "-m", "siteloom", "extract", *sources, "--wrapper", "wrapper.json"]
    command += ["-o", f"{time.monotonic_ns()}.jsonl", "-q", "-j", jobs]
    output = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=work, capture_output=True, text=True, check=True
    ).stdout
    return _Run(*json.loads(output))


def _write_wrapper(work: Path) -> None:
    """A wrapper of the built-in guide's restaurants."""
    restaurants = [page for page in guide_site() if page.kind == "restaurant"]
    examples = [Example(page.page, page.truth) for page in restaurants[:_EXAMPLES]]
    wrapper = siteloom.learn(examples, [page.page for page in restaurants])
    (work / "wrapper.json").write_text(wrapper.to_json(), encoding="utf-8")


def _write_pages(file: Path, pages: int) -> None:
    """So many pages of restaurants, each under a URL of its own."""
    restaurants = [page.page for page in guide_site() if page.kind == "restaurant"]
    with file.open("w", encoding="utf-8") as output:
        for number, page in enumerate(islice(cycle(restaurants), pages)):
            url = page.url.replace(".html", f"-{number}.html")
            output.write(json.dumps({"url": url, "html": page.html.decode()}) + "\n")
