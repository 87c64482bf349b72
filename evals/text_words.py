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

from evals.peers import Peer, PeerFailed
from siteloom.core.model import Page
from siteloom.extraction.main_text import clean_text, main_text
from siteloom.templates.template_text import SegmentTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from siteloom.templates.template_text import SegmentRule

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
PEERS = (
    Peer(ALONE, ("trafilatura==2.3.1", "lxml-html-clean==0.4.6"), "trafilatura", "text"),
    Peer("justext", ("justext==3.0.2", "lxml-html-clean==0.4.6"), "justext", "text"),
    Peer("resiliparse", ("resiliparse==1.1.0",), "resiliparse.extract.html2text", "text"),
)


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
    `missing` says why peers are, `failed` on how many pages each way to use them failed.
    """

    by_site: Mapping[str, Mapping[str, Scores]]
    by_pages: Mapping[str, Sequence[float]]
    missing: Mapping[str, str]
    failed: Mapping[str, int]

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


@cache
def words_kept(data: Path) -> WordResults:
    """All methods on all pages; made once in a process."""
    by_site: defaultdict[str, dict[str, Scores]] = defaultdict(dict)
    by_pages: defaultdict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in range(PAGES_OF_A_SITE)])
    sites = articles(data)
    extracted, missing = _extracted([decoded(one.page) for pages in sites.values() for one in pages])
    texts_of_pages = {method: iter(texts) for method, texts in extracted.items()}
    for site, pages in sites.items():
        final: defaultdict[str, list[Scores]] = defaultdict(list)
        for place, article in enumerate(pages):
            # The page itself first, as it is when it arrives, and then those before it in the circle.
            order = [pages[place - back].page for back in range(PAGES_OF_A_SITE)]
            for method, texts in _as_pages_arrive(order).items():
                scores = [score(text, article.gold) for text in texts]
                final[method].append(scores[-1])
                for seen, of_page in zip(by_pages[method], scores, strict=True):
                    seen.append(of_page.f1)
            for method, of_pages in texts_of_pages.items():
                final[method].append(score(next(of_pages) or "", article.gold))
        for method, of_site in final.items():
            by_site[method][site] = _mean(of_site)
    return WordResults(
        by_site,
        {method: [_average(of_pages) for of_pages in seen] for method, seen in by_pages.items()},
        missing,
        {method: texts.count(None) for method, texts in extracted.items()},
    )


def decoded(page: Page) -> str:
    """A page as the extractors are given it."""
    return page.html.decode("utf-8", "replace")


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


def _extracted(pages: Sequence[str]) -> tuple[dict[str, list[str | None]], dict[str, str]]:
    """What each way to use a peer makes of pages, and why some peers are missing."""
    texts: dict[str, list[str | None]] = {}
    missing: dict[str, str] = {}
    for peer in PEERS:
        try:
            texts |= peer.answer({"extractor": peer.name, "pages": pages})["texts"]
        except PeerFailed as error:
            missing[peer.name] = str(error)
    return texts, missing


def _mean(scores: Sequence[Scores]) -> Scores:
    return Scores(*(_average(column) for column in zip(*scores, strict=True)))


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values)
