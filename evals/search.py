"""Is a page found that someone looks for, and does it help to leave out the template text?

A query is made of what is known of a page: some words of what its record is called, and often some of another
value, as a person types who remembers this much. The pages of all sites are in one index, and the site is not
named. A page counts as found if it is the one, or has the same values.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy
from sqlalchemy.pool import StaticPool

from evals.search_page import Outcome, write_page
from evals.swde import swde_sites
from siteloom.core.model import Failure, IndexDocument, Passage
from siteloom.core.word_tokenizer import terms
from siteloom.extraction.search_documents import (
    AttributeCounts,
    common_segments,
    page_document,
    record_document,
)
from siteloom.extraction.search_query import LOOKED_AT, best_first
from siteloom.html.parser import parse
from siteloom.store import schema
from siteloom.store.queries.search_index import NewestVersion, SearchIndex
from siteloom.templates.template_text import SegmentTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from evals.swde import SwdeSite
    from siteloom.core.model import FoundDocument

_PAGES_OF_A_SITE = 100
_QUERIES_OF_A_SITE = 20
_SEED = 8
_FIRST_PAGE = 10

# What the record of each vertical is called.
_NAMES = {"auto": "model", "book": "title", "camera": "model", "job": "title", "movie": "title"}
_NAME = "name"
_MOST_NAME_WORDS = 5
_MOST_OTHER_WORDS = 2
_LONGEST_OTHER = 60  # characters; no one remembers words of a longer text than this
_KEPT_WORDS = 0.8  # of those of a name


class _Query(NamedTuple):
    text: str
    relevant: frozenset[str]


class _Indexed(NamedTuple):
    """Documents of all sites by how they are made."""

    name: str
    documents: list[IndexDocument]


def figures(data: Path) -> dict[str, float]:
    dice = random.Random(_SEED)
    plain = _Indexed("All text", [])
    without = _Indexed("All text but template text", [])
    default = _Indexed("The same, and less weight for what is common on a site", [])
    records: list[IndexDocument] = []
    queries: list[_Query] = []
    by_vertical: defaultdict[str, list[SwdeSite]] = defaultdict(list)
    for site in swde_sites(data):
        by_vertical[site.vertical].append(site)
    for vertical, sites in by_vertical.items():
        numbers = {site.name: site.evenly_spaced(_PAGES_OF_A_SITE) for site in sites}
        for site in sites:
            for place, document in zip(
                (plain, without, default), _documents(site, numbers[site.name]), strict=True
            ):
                place.documents.extend(document)
            records += _records(site, numbers[site.name])
        queries += _queries(vertical, sites, numbers, dice)
    unweighted = _Indexed("All text, all fields alike", [_alike(one) for one in plain.documents])
    name = "The same, with those first that have the words in their title or side by side"
    ranked = _Indexed(name, default.documents)
    both = _Indexed("The same, and records", [*default.documents, *records])
    outcomes = [
        *(_outcome(indexed, queries, is_ranked=False) for indexed in (unweighted, plain, without, default)),
        *(_outcome(indexed, queries, is_ranked=True) for indexed in (ranked, both)),
    ]
    write_page(
        outcomes,
        queries=len(queries),
        pages=len(default.documents),
        records=len(records),
        sites=sum(map(len, by_vertical.values())),
        of_a_site=_PAGES_OF_A_SITE,
        looked_at=LOOKED_AT,
    )
    names = ("unweighted", "all_text", "without_template", "unranked", "default", "with_records")
    return {
        f"search_{name}_{what}": round(value, 4)
        for name, outcome in zip(names, outcomes, strict=True)
        for what, value in (("mrr", outcome.reciprocal_rank), ("at_10", outcome.on_first_page))
    }


def _documents(
    site: SwdeSite, numbers: Sequence[str]
) -> tuple[list[IndexDocument], list[IndexDocument], list[IndexDocument]]:
    roots = {}
    table, nothing = SegmentTable(), SegmentTable()
    for number in numbers:
        page = site.page(number)
        root = parse(page)
        if not isinstance(root, Failure):
            roots[_address(site, number)] = root
            table.count(table.segments_of(root))
    common = common_segments(table.counts())
    plain, without, default = [], [], []
    for url, root in roots.items():
        plain.append(page_document(site.full_name, url, root, nothing, frozenset()))
        without.append(page_document(site.full_name, url, root, table, frozenset()))
        default.append(page_document(site.full_name, url, root, table, common))
    return plain, without, default


def _address(site: SwdeSite, number: str) -> str:
    return f"{site.full_name}/{number}"


def _records(site: SwdeSite, numbers: Sequence[str]) -> Iterator[IndexDocument]:
    """The true values of pages as records, as a wrapper without mistakes gives them."""
    counts = AttributeCounts()
    rows: list[dict[str, Any]] = [
        {
            "url": _address(site, number),
            "wrapper": site.full_name,
            "values": {name: texts for name, texts in sorted(site.truth[number].items()) if texts},
        }
        for number in numbers
    ]
    for row in rows:
        counts.add(row["wrapper"], row["values"])
    return (record_document(site.full_name, row, counts) for row in rows if row["values"])


def _queries(
    vertical: str, sites: Sequence[SwdeSite], numbers: dict[str, list[str]], dice: random.Random
) -> Iterator[_Query]:
    name = _NAMES.get(vertical, _NAME)
    all_pages = [(site, number) for site in sites for number in numbers[site.name]]
    for site in sites:
        for number in dice.sample(numbers[site.name], min(_QUERIES_OF_A_SITE, len(numbers[site.name]))):
            truth = site.truth[number]
            if not truth.get(name):
                continue
            used = {name: truth[name][0]}
            typed = _some(terms(used[name]), dice, _MOST_NAME_WORDS)
            others = [
                attribute
                for attribute, texts in sorted(truth.items())
                if attribute != name and texts and len(texts[0]) <= _LONGEST_OTHER
            ]
            if others and dice.random() < 2 / 3:
                attribute = dice.choice(others)
                used[attribute] = truth[attribute][0]
                typed += _some(terms(used[attribute]), dice, _MOST_OTHER_WORDS)
            relevant = {
                _address(other, page)
                for other, page in all_pages
                if all(_has(other.truth[page].get(attribute, ()), value) for attribute, value in used.items())
            }
            if typed:
                yield _Query(" ".join(typed), frozenset(relevant | {_address(site, number)}))


def _has(texts: Sequence[str], value: str) -> bool:
    return any(terms(text) == terms(value) for text in texts)


def _some(known: Sequence[str], dice: random.Random, most: int) -> list[str]:
    """Some words in their order; one at least."""
    kept = [word for word in known if dice.random() < _KEPT_WORDS] or list(known[:1])
    return kept[:most]


def _alike(document: IndexDocument) -> IndexDocument:
    passages = tuple(Passage(passage.text, "text", passage.attribute) for passage in document.passages)
    return IndexDocument(document.kind, document.site, document.url, passages)


def _outcome(indexed: _Indexed, queries: Sequence[_Query], *, is_ranked: bool) -> Outcome:
    engine = sqlalchemy.create_engine("sqlite://", poolclass=StaticPool)
    schema.metadata.create_all(engine)
    index = SearchIndex(engine)
    index.make_ready()
    pages = [document for document in indexed.documents if document.kind == "page"]
    index.add_pages(
        (NewestVersion(page.site, page.url, number, number), page) for number, page in enumerate(pages, 1)
    )
    index.replace_records(document for document in indexed.documents if document.kind == "record")
    ranks = [_rank(_best(index, query.text, is_ranked=is_ranked), query.relevant) for query in queries]
    with engine.connect() as connection:
        size = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        size *= connection.exec_driver_sql("PRAGMA page_size").scalar_one()
    engine.dispose()
    return Outcome(
        indexed.name,
        sum(1 / rank for rank in ranks if rank is not None) / len(ranks),
        sum(rank is not None and rank <= _FIRST_PAGE for rank in ranks) / len(ranks),
        size,
    )


def _best(index: SearchIndex, text: str, *, is_ranked: bool) -> list[FoundDocument]:
    wanted = tuple((word,) for word in text.split())
    found = index.search(wanted, limit=LOOKED_AT) or index.search(wanted, takes_any=True, limit=LOOKED_AT)
    return best_first(found, wanted) if is_ranked else found


def _rank(found: Iterable[FoundDocument], relevant: frozenset[str]) -> int | None:
    """The place of the first page that was looked for; a page and its records are one."""
    urls = list(dict.fromkeys(one.document.url for one in found))
    return next((place for place, url in enumerate(urls, 1) if url in relevant), None)
