"""How fast Siteloom is beside what people would use instead; writes its parts of docs/evaluation.md.

Contestants take turns. Each other program runs in an environment of its own, and times itself there.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from evals import text_words
from evals.comparison_page import OWN, Measure, Part, contestants_of, keep, left_out
from evals.peers import Peer, PeerFailed
from evals.swde import swde_sites
from evals.titles import RAPIDFUZZ, SPARSE_DOT

from benchmarks.extraction import extract_rows, wrapped_site
from benchmarks.learning import EXAMPLES
from benchmarks.measure import ROUNDS, Figure, cpu_time
from siteloom.core.model import Failure
from siteloom.core.sequences import evenly_spaced
from siteloom.extraction.extractor import Extractor
from siteloom.extraction.main_text import clean_text, main_text
from siteloom.html.parser import parse
from siteloom.html.visible_text import text_nodes
from siteloom.learning.known_records.string_similarity import LONGEST, WEAKLY_SIMILAR, WeakIndex
from siteloom.learning.known_records.text_normalisation import folded
from siteloom.templates.template_text import SegmentTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from evals.comparison_sections import Name
    from evals.swde import SwdeSite

    from benchmarks.extraction import WrappedSite
    from siteloom.core.model import Page
    from siteloom.wrappers.wrapper import Wrapper

TITLE = "Against other programs"

_SITES = slice(0, None, 2)  # every second site: two of each vertical
_LIBRARIES = {
    "lxml": Peer("lxml", ("lxml==6.1.3",), "lxml.etree", "markup"),
    "parsel": Peer("parsel", ("parsel==1.12.1", "lxml==6.1.3"), "parsel", "markup"),
    "selectolax": Peer("selectolax", ("selectolax==1.0.2",), "selectolax.lexbor", "markup"),
}
_SAME_PATHS = f"{OWN}, the same paths"
_PARSED = "milliseconds a page, parsed"
_EXTRACTED = "milliseconds a page, extracted"
_ATTRIBUTES = 5

_VALUES = 40_000
_TEXTS = 20_000
_PAGES_FOR_TEXTS = 32  # of each site
_LEAST_LENGTH = 4
_MOST_VALUES = {"sparse_dot_topn, top 10": 10, "sparse_dot_topn, top 5,000": 5_000}
_RAPIDFUZZ = "RapidFuzz, `ratio` from 60 on"
_CUTOFF = 60
_TEXTS_OF_RAPIDFUZZ = 2_000

_WITHOUT_TEMPLATE = f"{OWN}, without template"


class _Run(NamedTuple):
    """The CPU seconds of each step of a contestant, and what it found."""

    seconds: Mapping[str, float]
    found: Any = None


def figures(data: Path) -> list[Figure]:
    measured: dict[Name, Callable[[Path], Part]] = {"markup": _markup, "join": _join, "text-speed": _text}
    parts: dict[Name, Part] = {}
    for name, measure in measured.items():
        parts[name] = measure(data)
        print(keep(name, parts[name]))
    return [
        _ratio(parts["markup"], _EXTRACTED, _SAME_PATHS, "lxml", "at most 1.5"),
        _ratio(parts["markup"], _EXTRACTED, _SAME_PATHS, "parsel", "at most 1"),
        _ratio(parts["markup"], _EXTRACTED, _SAME_PATHS, "selectolax"),
        _ratio(parts["join"], "seconds, all", OWN, "sparse_dot_topn, top 5,000", "at most 1"),
        _ratio(parts["join"], "seconds, all", OWN, _RAPIDFUZZ, "at most 1"),
        _ratio(parts["text-speed"], "milliseconds a page", OWN, text_words.ALONE),
    ]


def _ratio(part: Part, what: str, one: str, other: str, goal: str = "") -> Figure:
    (measure,) = [measure for measure in part.measures if measure.what == what]
    values = {
        contestant.name: value for contestant, value in zip(part.contestants, measure.values, strict=True)
    }
    mine, theirs = values.get(one), values.get(other)
    ratio = f"{mine / theirs:.2f} times" if mine and theirs else "not measured"
    return Figure(f"{one}, {what}, over {other}", ratio, goal)


def _in_turns(
    contestants: Mapping[str, Callable[[], _Run]],
) -> tuple[dict[str, _Run], dict[str, str]]:
    """The median seconds of each contestant's steps with what it found, and why some have none."""
    runs: defaultdict[str, list[_Run]] = defaultdict(list)
    failed: dict[str, str] = {}
    for _ in range(ROUNDS):
        for name, run in contestants.items():
            if name not in failed:
                try:
                    runs[name].append(run())
                except PeerFailed as error:
                    failed[name] = str(error)
    return {
        name: _Run(
            {step: statistics.median(run.seconds[step] for run in of_name) for step in of_name[0].seconds},
            of_name[0].found,
        )
        for name, of_name in runs.items()
        if name not in failed
    }, failed


# Parsing and extracting


def _markup(data: Path) -> Part:
    swde = list(swde_sites(data))[_SITES]
    sites = [wrapped_site(site) for site in swde]
    truths = [_truths(site, wrapped) for site, wrapped in zip(swde, sites, strict=True)]
    learned, by_path = (
        [Extractor([getattr(site, kind)]) for site in sites] for kind in ("learned", "by_path")
    )
    pages = [page for site in sites for page in site.pages]
    texts = [[page.html.decode("utf-8", "replace") for page in site.pages] for site in sites]

    def own(extractors: Sequence[Extractor], wrappers: Sequence[Wrapper]) -> Callable[[], _Run]:
        values = [
            [_first_values(wrapper, page) for page in site.pages]
            for site, wrapper in zip(sites, wrappers, strict=True)
        ]

        def extract() -> None:
            for extractor, site in zip(extractors, sites, strict=True):
                extract_rows(extractor, site.pages)

        return lambda: _Run(
            {
                "parse": cpu_time(lambda: [None for page in pages if parse(page) is None]),
                "extract": cpu_time(extract),
            },
            values,
        )

    def peer(library: str) -> Callable[[], _Run]:
        paths = [
            list(map(css_of_path, site.xpaths)) if library == "selectolax" else site.xpaths for site in sites
        ]
        work = {
            "library": library,
            "sites": [{"pages": of_site, "paths": own} for of_site, own in zip(texts, paths, strict=True)],
        }

        def run() -> _Run:
            answer = _LIBRARIES[library].answer(work)
            values = [
                [dict(zip(site.by_path.wrapper.attributes, of_page, strict=True)) for of_page in of_site]
                for site, of_site in zip(sites, answer["values"], strict=True)
            ]
            return _Run({step: answer[step] for step in ("parse", "extract")}, values)

        return run

    runs, failed = _in_turns(
        {
            OWN: own(learned, [site.learned.wrapper for site in sites]),
            _SAME_PATHS: own(by_path, [site.by_path.wrapper for site in sites]),
            **{library: peer(library) for library in _LIBRARIES},
        }
    )
    parsed = (None if name == _SAME_PATHS else run.seconds["parse"] for name, run in runs.items())
    extracted = (run.seconds["extract"] for run in runs.values())
    return Part(
        contestants_of({name: _LIBRARIES.get(name) for name in runs}),
        (
            Measure(_PARSED, tuple(one and 1_000 * one / len(pages) for one in parsed), "less"),
            Measure(_EXTRACTED, tuple(1_000 * one / len(pages) for one in extracted), "less"),
            Measure("right", tuple(_right(truths, run.found) for run in runs.values())),
        ),
        {
            "pages": f"{len(pages):,}",
            "sites": str(len(sites)),
            "megabytes": f"{sum(len(page.html) for page in pages) / 1e6:.0f}",
            "attributes": str(_ATTRIBUTES),
            "examples": str(EXAMPLES),
        },
        left_out(failed),
    )


def css_of_path(xpath: str) -> str:
    """The same path in CSS, for the tree of an HTML5 parser: rows of a table stand in a `tbody` there."""
    anchor = re.match(r'//\*\[@id="(.*?)"\]', xpath)
    steps = re.findall(r"/(\w+)\[(\d+)\]", xpath[anchor.end() :] if anchor else xpath)
    css = f'[id="{anchor[1]}"]' if anchor else ""
    above = ""
    for tag, position in steps:
        step = f"{tag}:nth-of-type({position})"
        if tag == "tr" and above == "table":
            css = f"{css} > tbody > {step}"
        elif tag == "tr" and not above:  # what has the id may be a table or a part of one
            css = f"{css} {step}"
        else:
            css = f"{css} > {step}" if css else step
        above = tag
    return css


def _truths(site: SwdeSite, wrapped: WrappedSite) -> list[dict[str, tuple[str, ...]]]:
    """For each page the true values of the attributes that all contestants look for."""
    numbers = site.evenly_spaced(len(wrapped.pages) + EXAMPLES)
    by_url = {site.page(number).url: site.truth[number] for number in numbers}
    return [
        {name: by_url[page.url].get(name, ()) for name in wrapped.by_path.wrapper.attributes}
        for page in wrapped.pages
    ]


def _first_values(wrapper: Wrapper, page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in wrapper.extract(page).values.items() if values}


def _right(truths: Sequence[Sequence[Mapping[str, Sequence[str]]]], found: Any) -> float:
    """The share of attributes with a true value whose first value is one."""
    answers = [
        of_page.get(name) in values
        for truths_of_site, found_of_site in zip(truths, found, strict=True)
        for truth, of_page in zip(truths_of_site, found_of_site, strict=True)
        for name, values in truth.items()
        if values
    ]
    return sum(answers) / len(answers)


# Joining


def _join(data: Path) -> Part:
    values, texts = _values(data), _texts(data)
    some = evenly_spaced(range(len(texts)), _TEXTS_OF_RAPIDFUZZ)
    work = {"texts": texts, "values": values, "threshold": WEAKLY_SIMILAR}
    exact = _exact(work)
    fuzzy = {
        "job": "join",
        "texts": [texts[number] for number in some],
        "values": values,
        "scorer": "ratio",
        "cutoff": _CUTOFF,
    }
    WeakIndex(values[:100]).join(texts[:100])  # compiles, or loads what was compiled

    def own() -> _Run:
        indexes: list[WeakIndex] = []
        index = cpu_time(lambda: indexes.append(WeakIndex(values)))
        joining = cpu_time(lambda: indexes[0].join(texts))
        joined = indexes[0].join(texts)
        pairs = joined.text.astype(int) * len(values) + joined.value
        return _Run({"index": index, "join": joining}, set(pairs.tolist()))

    def sparse(most: int) -> Callable[[], _Run]:
        def run() -> _Run:
            answer = SPARSE_DOT.answer({**work, "job": "join", "most": most})
            return _Run({"index": answer["vectors"], "join": answer["seconds"]}, set(answer["pairs"]))

        return run

    def rapidfuzz() -> _Run:
        answer = RAPIDFUZZ.answer(fuzzy)
        pairs = {some[pair // len(values)] * len(values) + pair % len(values) for pair in answer["pairs"]}
        return _Run({"join": answer["seconds"] * len(texts) / len(some)}, pairs)

    runs, failed = _in_turns(
        {OWN: own, **{name: sparse(most) for name, most in _MOST_VALUES.items()}, _RAPIDFUZZ: rapidfuzz}
    )
    of_some = set(some)
    exact_of_some = {pair for pair in exact if pair // len(values) in of_some}
    wanted = {name: exact_of_some if name == _RAPIDFUZZ else exact for name in runs}
    common = {name: len(run.found & wanted[name]) for name, run in runs.items()}
    peers = {**dict.fromkeys(_MOST_VALUES, SPARSE_DOT), _RAPIDFUZZ: RAPIDFUZZ}
    return Part(
        contestants_of({name: peers.get(name) for name in runs}),
        (
            Measure(
                "seconds, index or vectors",
                tuple(run.seconds.get("index") for run in runs.values()),
                "less",
                ".2f",
            ),
            Measure("seconds, join", tuple(run.seconds["join"] for run in runs.values()), "less", ".2f"),
            Measure("seconds, all", tuple(sum(run.seconds.values()) for run in runs.values()), "less", ".2f"),
            Measure("recall", tuple(_share(common[name], wanted[name]) for name in runs)),
            Measure("precision", tuple(_share(common[name], run.found) for name, run in runs.items())),
        ),
        {
            "texts": f"{len(texts):,}",
            "values": f"{len(values):,}",
            "pairs": f"{len(exact):,}",
            "threshold": f"{WEAKLY_SIMILAR:g}",
            "some": f"{len(some):,}",
        },
        left_out(failed),
    )


def _share(common: int, pairs: set[int]) -> float | None:
    return common / len(pairs) if pairs else None


def _exact(work: Mapping[str, object]) -> set[int]:
    """The pairs that are to be found; none if there is no program to tell them."""
    try:
        return set(SPARSE_DOT.answer({**work, "job": "exact"}))
    except PeerFailed:
        return set()


def _values(data: Path) -> list[str]:
    """Distinct true values of all sites, folded."""
    every = {
        folded(value)[:LONGEST]
        for site in swde_sites(data)
        for truth in site.truth.values()
        for values in truth.values()
        for value in values
    }
    return evenly_spaced(sorted(every - {""}), _VALUES)


def _texts(data: Path) -> list[str]:
    """Distinct texts of pages, folded."""
    every: set[str] = set()
    for site in swde_sites(data):
        for number in site.evenly_spaced(_PAGES_FOR_TEXTS):
            root = parse(site.page(number))
            if not isinstance(root, Failure):
                every.update(folded(node.text)[:LONGEST] for node in text_nodes(root))
    return evenly_spaced(sorted(text for text in every if len(text) >= _LEAST_LENGTH), _TEXTS)


# Main text


def _text(data: Path) -> Part:
    sites = list(text_words.articles(data).values())
    articles = [article for site in sites for article in site]
    pages = [text_words.decoded(article.page) for article in articles]
    clean = {OWN: main_text, _WITHOUT_TEMPLATE: clean_text}

    def own(name: str) -> Callable[[], _Run]:
        def run() -> None:
            for site in sites:
                table = SegmentTable()
                for article in site:
                    table.add(article.page)
                for article in site:
                    clean[name](article.page, table)

        run()  # compiles, or loads what was compiled
        return lambda: _Run({name: cpu_time(run)})

    def peer(one: Peer) -> Callable[[], _Run]:
        return lambda: _Run(one.answer({"extractor": one.name, "pages": pages})["seconds"])

    runs, failed = _in_turns(
        {**{name: own(name) for name in clean}, **{one.name: peer(one) for one in text_words.PEERS}}
    )
    peers = {one.name: one for one in text_words.PEERS}
    seconds = {way: taken for run in runs.values() for way, taken in run.seconds.items()}
    return Part(
        contestants_of({way: peers.get(way.partition(",")[0]) for way in seconds}),
        (
            Measure(
                "milliseconds a page",
                tuple(1_000 * taken / len(pages) for taken in seconds.values()),
                "less",
                ".1f",
            ),
        ),
        {"pages": str(len(pages))},
        left_out(failed),
    )
