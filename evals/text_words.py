"""How many words of an article's page are kept, and how many of them are the article's: big9_news.

Nine news sites in two eras, ten pages each, with the main text as a person marked it.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from siteloom.cleaning import main_text
from siteloom.cleaning.text import clean_text
from siteloom.model import Page
from siteloom.template import SegmentTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from siteloom.template import SegmentRule

    Extractor = Callable[[str], str]

PAGES_OF_A_SITE = 10

# The archive that kept the pages wrote a tool bar into them.
_TOOL_BAR = re.compile(
    rb"<!-- BEGIN WAYBACK TOOLBAR INSERT -->.*?<!-- END WAYBACK TOOLBAR INSERT -->", re.DOTALL
)
_WORD = re.compile(r"\w+")

DEFAULT = "segment table"
TABLES: dict[str, SegmentRule] = {DEFAULT: "share", 'segment table, `rule="paper"`': "paper"}
COMBINED = "segment table and trafilatura"
ALONE = "trafilatura"


class Article(NamedTuple):
    """A page and its main text."""

    page: Page
    gold: str


class Scores(NamedTuple):
    """The mean over pages of the F1, precision and recall of their words."""

    f1: float
    precision: float
    recall: float


class WordResults(NamedTuple):
    """The scores of each method on each site and era; tables have seen all ten pages.

    `by_pages` has the F1 over all pages for each method that learns from pages, by how many were seen.
    """

    by_site: Mapping[str, Mapping[str, Scores]]
    by_pages: Mapping[str, Sequence[float]]
    missing: tuple[str, ...]

    def total(self, method: str) -> Scores:
        """The mean over all sites."""
        return _mean(list(self.by_site[method].values()))


def articles(data: Path) -> dict[str, list[Article]]:
    """The pages of each site and era."""
    folder = data / "text" / "big9_news"
    sites: defaultdict[str, list[Article]] = defaultdict(list)
    with (folder / "truth.csv").open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            html = _TOOL_BAR.sub(b"", (folder / row["file"]).read_bytes())
            gold = (folder / row["gold"]).read_text(encoding="utf-8", errors="replace")
            page = Page(f"http://{row['site']}.example/{row['file']}", html, charset="utf-8")
            sites[f"{row['site']} {row['year']}"].append(Article(page, gold))
    return dict(sites)


def words_kept(data: Path) -> WordResults:
    """All methods on all pages."""
    by_site: defaultdict[str, dict[str, Scores]] = defaultdict(dict)
    by_pages: defaultdict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in range(PAGES_OF_A_SITE)])
    extractors, missing = _extractors()
    for site, pages in articles(data).items():
        final: defaultdict[str, list[Scores]] = defaultdict(list)
        for place, article in enumerate(pages):
            # The page itself first, as it is when it arrives, and then those before it in the circle.
            order = [pages[place - back].page for back in range(PAGES_OF_A_SITE)]
            for method, texts in _as_pages_arrive(order).items():
                scores = [score(text, article.gold) for text in texts]
                final[method].append(scores[-1])
                for seen, of_page in zip(by_pages[method], scores, strict=True):
                    seen.append(of_page.f1)
            text = article.page.html.decode("utf-8", "replace")
            for method, extract in extractors.items():
                final[method].append(score(extract(text), article.gold))
        for method, of_pages in final.items():
            by_site[method][site] = _mean(of_pages)
    return WordResults(
        by_site,
        {method: [_average(of_pages) for of_pages in seen] for method, seen in by_pages.items()},
        missing,
    )


def score(text: str, gold: str) -> Scores:
    """How well the words of a text, each as often as it occurs, are those of the gold text."""
    kept, true = (Counter(_WORD.findall(one.lower())) for one in (text, gold))
    both = (kept & true).total()
    return Scores(
        2 * both / max(1, kept.total() + true.total()),
        both / max(1, kept.total()),
        both / max(1, true.total()),
    )


def _as_pages_arrive(order: Sequence[Page]) -> dict[str, list[str]]:
    """The first page's texts by each method, cleaned again after each page that is added to the table."""
    texts: dict[str, list[str]] = {}
    has_extractor = find_spec(ALONE) is not None
    for method, rule in TABLES.items():
        table = SegmentTable(rule)
        alone: list[str] = []
        combined: list[str] = []
        for page in order:
            table.add(page)
            alone.append(clean_text(order[0], table))
            if rule == "share" and has_extractor:
                combined.append(main_text(order[0], table))
        texts[method] = alone
        if combined:
            texts[COMBINED] = combined
    return texts


def _extractors() -> tuple[dict[str, Extractor], tuple[str, ...]]:
    """What reads one page at a time, and the names of those that are not installed."""
    found: dict[str, Extractor] = {}
    missing = []
    makers = {ALONE: _trafilatura, "justext": _justext, "resiliparse": _resiliparse}
    for name, make in makers.items():
        if find_spec(name) is None:
            missing.append(name)
        else:
            found |= dict(make())
    return found, tuple(missing)


def _trafilatura() -> Iterator[tuple[str, Extractor]]:
    import trafilatura  # noqa: PLC0415 - may not be installed

    yield ALONE, lambda html: trafilatura.extract(html, include_comments=False) or ""
    yield (
        "trafilatura, `favor_precision`",
        lambda html: trafilatura.extract(html, include_comments=False, favor_precision=True) or "",
    )


def _justext() -> Iterator[tuple[str, Extractor]]:
    import justext  # noqa: PLC0415 - may not be installed

    @cache
    def stop_words() -> frozenset[str]:
        return frozenset(justext.get_stoplist("English"))

    yield (
        "justext",
        lambda html: "\n".join(
            paragraph.text
            for paragraph in justext.justext(html, stop_words())
            if not paragraph.is_boilerplate
        ),
    )


def _resiliparse() -> Iterator[tuple[str, Extractor]]:
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415 - as the others

    yield "resiliparse", lambda html: str(extract_plain_text(html, main_content=True))


def _mean(scores: Sequence[Scores]) -> Scores:
    return Scores(*(_average(column) for column in zip(*scores, strict=True)))


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values)
