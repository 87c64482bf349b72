"""A workspace in which two sites left traces everywhere, and a search for words in all that it keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import zstandard
from sqlalchemy import inspect, text

from siteloom.apps.server.upload_folder import new_upload
from siteloom.core.model import Attribute, Failure, Page, Seed, Validators
from siteloom.operations.clean import count_versions
from siteloom.operations.cluster import cluster_store
from siteloom.operations.entities import LinkEntitiesRequest, link_entities
from siteloom.operations.relearn import mend_wrappers
from siteloom.operations.search import update_index
from siteloom.operations.watch import check_watches, watch_wrappers
from siteloom.sources.crawling.crawl_journal import CrawlJournal, DiscoveredLinks, DiscoveredUrl, FetchedUrl
from siteloom.sources.example_files import ExampleLine
from siteloom.store.store import Store
from tests.operations.calls import annotate_pages, extract_records, learn_wrappers
from tests.operations.contexts import context_of
from tests.store.helpers import day, opened_pack, put

LOST, KEPT = "quexolith.example", "brambleway.example"
"""The sites: the first word of each is on all of its pages, and in their values."""

PAGES = 12
_KINDS = ("guest house", "tea room", "bakery", "wine bar")


def url(site: str, number: int) -> str:
    return f"http://www.{site}/places/{own_word(site, number)}.html"


def own_word(site: str, number: int) -> str:
    """A word that only one page of a site has."""
    return f"{site[:6]}zq{'abcdefghijklmnop'[number]}vw"


def house_page(site: str, number: int, edition: int = 0) -> Page:
    word, own = site.partition(".")[0].title(), own_word(site, number)
    kind = _KINDS[number % len(_KINDS)]
    name = f"{word} {own} House"
    other = f"<p class='news'>New of {own}, edition {edition}</p>" if edition else ""
    box, heading = ("section", "h2") if edition else ("div", "h1")
    html = f"""<html><head><title>{name} - {word} places</title></head><body>
    <p class="top">All places of {word}</p>{other}
    <{box} class="place"><{heading} class="name">{name}</{heading}>
    <p class="phone"><b>Phone:</b> <span>01632 96{number:02}{edition}1</span></p>
    <p class="kind"><b>Kind:</b> <span>{kind} {own}</span></p></{box}>
    <p class="foot">{word} thanks you</p></body></html>"""
    return Page(url(site, number), html.encode(), day(edition), validators=Validators(f'"{own}"', ""))


def truth(site: str, number: int) -> dict[str, tuple[str, ...]]:
    word, own = site.partition(".")[0].title(), own_word(site, number)
    kind = f"{_KINDS[number % len(_KINDS)]} {own}"
    return {"name": (f"{word} {own} House",), "phone": (f"01632 96{number:02}01",), "kind": (kind,)}


def live(store: Store) -> None:
    """Let both sites leave traces in every table that has to do with pages, and in every folder."""
    both = (LOST, KEPT)
    first = [house_page(site, number) for site in both for number in range(PAGES)]
    failures = [Failure(f"http://www.{site}/gone", "status 404", f"{site} said so") for site in both]
    put(store, *first, *failures)
    cluster_store(store, "vertex")
    for site in both:
        annotate_pages(
            store, [ExampleLine(url(site, number), truth(site, number), (), {}) for number in range(6)]
        )
        learn_wrappers(store, _cluster(store, site))
        store.apply_updates(
            _cluster(store, site), [], "eve", schema_follows=0, attributes={"name": Attribute()}
        )
        store.reviewing.dismiss(_cluster(store, site))
    for asked_for in (None, *both):
        extract_records(store, asked_for)
    watch_wrappers(store)
    update_index(context_of(store))
    link_entities(context_of(store), LinkEntitiesRequest(core=("phone",)))
    _know(store)
    put(store, *(house_page(site, number, edition=1) for site in both for number in range(PAGES)))
    check_watches(store)
    mend_wrappers(store, accept=1.01)
    extract_records(store, None)
    for site in both:
        count_versions(store, site)
    _ask_the_server(store)
    store.accounts.add("eve", "admin", "what is kept of a password")
    store.accounts.open_session("eve")
    store.accounts.add_key("eve", "for tests")
    store.accounts.count_attempt("mallory", "192.0.2.1")


def _cluster(store: Store, site: str) -> str:
    (found,) = store.cluster_summaries(site)
    return found.name


def _know(store: Store) -> None:
    """Seeds of both sites, and what became of sites that were wrapped with them."""
    with store.recording("seeds", {"from_site": LOST}) as run:
        store.add_seeds(
            run.id, (Seed(truth(site, n), site, url(site, n)) for site in (LOST, KEPT) for n in range(3))
        )
        store.add_seeds(run.id, [Seed(truth(site, 4), "a table", url(site, 4)) for site in (LOST, KEPT)])
    for site, other in ((LOST, KEPT), (KEPT, LOST)):
        example = {
            "url": url(site, 1),
            "value": truth(other, 1)["name"][0],
            "text": truth(site, 1)["name"][0],
        }
        content = {"sources": {other: 2, site: 1}, "examples": {"name": [example]}, "disagreements": {}}
        store.save_site_outcome(site, "wrapped", 1, 6, f"{site}/1", 1, content)


def _ask_the_server(store: Store) -> None:
    """Jobs about each site, and a crawl and an upload that have not come to their end."""
    for site in (LOST, KEPT):
        job = store.jobs.add("discover", {"cluster": f"{site}/1"}, "eve")
        store.jobs.end(job.id, "done", {"rows": [{"url": url(site, 1), "name": truth(site, 1)["name"][0]}]})
        store.jobs.add("learn", {"cluster": f"{site}/1"}, "eve")
        found = tuple(DiscoveredUrl(url(site, number), 1) for number in range(3))
        journal = CrawlJournal(store.folder, f"crawls/{len(site)}.jsonl")
        journal.append([DiscoveredLinks(found), *(FetchedUrl(one.url, one.url, True) for one in found)])
        (new_upload(store.folder).files / "page.html").write_bytes(house_page(site, 1).html)


def _unheard(*_: object) -> None:
    """No one watches."""


def where_stands(store: Store, *words: str) -> list[str]:
    """Where any of some words stands in the workspace: in a row of a table, or in a file, packed or not."""
    return [*_in_tables(store, words), *_in_files(store.folder, words)]


def _in_tables(store: Store, words: Sequence[str]) -> Iterator[str]:
    with store.engine.connect() as connection:
        inspector = inspect(connection)
        for table in inspector.get_table_names():
            # FTS5 keeps its own tables, which hold terms in a form of their own; their bytes are in the file.
            columns = [column["name"] for column in inspector.get_columns(table)]
            for row in connection.execute(text(f'SELECT * FROM "{table}"')):
                for column, value in zip(columns, row, strict=True):
                    if _has(_as_text(value), words):
                        yield f"{table}.{column}: {_as_text(value)[:200]}"


def _as_text(value: Any) -> str:
    if isinstance(value, bytes | memoryview):
        content = bytes(value)
        with suppress(zstandard.ZstdError):
            content += zstandard.ZstdDecompressor().decompress(content)
        return content.decode("utf-8", "replace")
    return json.dumps(value, ensure_ascii=False, default=str)


def _in_files(folder: Path, words: Sequence[str]) -> Iterator[str]:
    for file in sorted(folder.rglob("*")):
        if _has(str(file.relative_to(folder)), words):
            yield f"the name of {file.relative_to(folder)}"
        if file.is_file():
            content = file.read_bytes()
            if file.suffix == ".pack":
                pack = opened_pack(file)
                for _, documents in pack.blocks():
                    content += b"".join(document.url.encode() + document.body for document in documents)
                pack.close()
            if _has(content.decode("utf-8", "replace"), words):
                yield f"{file.relative_to(folder)}"


def _has(content: str, words: Sequence[str]) -> bool:
    folded = content.casefold()
    return any(word.casefold() in folded for word in words)
