"""Forgetting: all that came from sites or from single pages is removed, and what stays is as sound as before.

The order makes it safe to kill. What is known of pages goes first, then the pages themselves, pack by pack.
Their names go last, so that the same can be asked for again until all is done; and a mark on the disk tells
of traces until there are none.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import delete, exists, func, select

from siteloom.core.confined_folder import ConfinedFolder
from siteloom.core.database import writing
from siteloom.core.errors import NotStored, StoreError
from siteloom.core.file_lock import packs_lock, verb_lock, wait_for_tables, write_lock
from siteloom.core.interrupts import held_back_interrupt
from siteloom.core.sequences import batches
from siteloom.core.wording import some_names
from siteloom.store import schema
from siteloom.store.erasure.disk_erasure import begin, finish, is_unfinished, remove_versions
from siteloom.store.erasure.erasure_scope import expired_scope, scope_of_names
from siteloom.store.erasure.row_erasure import (
    UNFINISHED_JOBS,
    forget_in_tables,
    json_lines_without,
    text_redaction_of,
    wrappers_to_relearn,
)
from siteloom.store.queries.runs import FORGET
from siteloom.store.queries.search_index import SearchIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sqlalchemy import ColumnElement, Connection, Engine

    from siteloom.core.settings import RetentionSettings
    from siteloom.store.erasure.erasure_scope import ErasureScope
    from siteloom.store.erasure.row_erasure import TextRedaction
    from siteloom.store.store import Store

    Report = Callable[[int, int | None, str], object]
    """Told how many pages are done, of so many if that is known, and what is being done."""

PAGES = (
    schema.search_documents,
    schema.packs,
    schema.versions,
    schema.validators,
    schema.urls,
    schema.sites,
)
"""The tables of the pages themselves."""

UNTOUCHED = (schema.workspace, schema.users, schema.sessions, schema.api_keys, schema.failed_sign_ins)
"""The tables that tell nothing of pages; sessions and failed sign-ins may be too old."""

_ROWS_AT_A_TIME = 1_000
_CRAWLS, _UPLOADS = "crawls", "uploads"


class ErasureResult(NamedTuple):
    """What was removed, in numbers by kind.

    The wrappers of `to_learn_again` stay, but may quote pages that are gone.
    """

    counts: dict[str, int]
    to_learn_again: tuple[str, ...]


def _unheard(_done: int, _total: int | None, _message: str) -> None:
    """No one listens."""


class ErasureTargets(NamedTuple):
    """What is named to be forgotten, as it stands in the store: whole sites, and URLs of pages."""

    sites: tuple[str, ...]
    urls: tuple[str, ...]


def erasure_targets(store: Store, names: Collection[str]) -> ErasureTargets:
    """What names mean; one that is neither a site nor a URL is a NotStored, as it is for `forget`."""
    doomed = _known(store, names)
    return ErasureTargets(tuple(sorted(doomed.sites)), tuple(sorted(doomed.addresses)))


def forget(store: Store, names: Collection[str], report: Report = _unheard) -> ErasureResult:
    """Remove all that came from sites, or from pages, which are named by their URLs.

    A name that is neither is a NotStored, unless the same was begun before and only traces are left.
    """
    return _forget(store, _known(store, names), report)


def _known(store: Store, names: Collection[str]) -> ErasureScope:
    doomed, unknown = scope_of_names(store.engine, names)
    if unknown and not is_unfinished(store.folder):
        raise _not_stored(store.engine, unknown[0])
    return doomed


def forget_expired(store: Store, retention: RetentionSettings, report: Report = _unheard) -> ErasureResult:
    """Remove what was kept for long enough; if there is nothing such, there is no run either."""
    doomed = expired_scope(retention, store.clock())
    if not doomed.is_anything(store.engine) and not is_unfinished(store.folder):
        return ErasureResult({}, ())
    return _forget(store, doomed, report)


def forget_after_work(store: Store, retention: RetentionSettings) -> tuple[ErasureResult, str]:
    """The same at the end of work that has gone well; also says what stood in the way, if anything did.

    That work is done all the same, and when pages come next, this is tried again.
    """
    try:
        return forget_expired(store, retention), ""
    except StoreError as error:
        return ErasureResult({}, ()), (
            "What was kept for long enough is not all removed yet; it will be tried again when pages come "
            f"next: {error}"
        )


def would_forget(store: Store, names: Collection[str]) -> ErasureResult:
    """What `forget` would remove; nothing is changed."""
    doomed, unknown = scope_of_names(store.engine, names)
    if unknown:
        raise _not_stored(store.engine, unknown[0])
    return _tried(store, doomed)


def would_forget_expired(store: Store, retention: RetentionSettings) -> ErasureResult:
    """What `forget_expired` would remove; nothing is changed."""
    return _tried(store, expired_scope(retention, store.clock()))


def _not_stored(engine: Engine, name: str) -> NotStored:
    with engine.connect() as connection:
        known = connection.execute(select(schema.sites.c.name).order_by(schema.sites.c.name)).scalars().all()
    sites = f"its sites are {some_names(known)}" if known else "it has no site"
    return NotStored(f"{name} is no site of this workspace, and no URL of a page in it: {sites}.")


def _tried(store: Store, doomed: ErasureScope) -> ErasureResult:
    """What would be removed: the tables are told to forget it, and then that they were."""
    with write_lock(store.folder, store.on_busy), writing(store.engine) as connection:
        counts = _counted(connection, doomed)
        learned = wrappers_to_relearn(connection, doomed)
        counts.update(forget_in_tables(connection, doomed, text_redaction_of(connection, doomed)))
        transaction = connection.get_transaction()
        assert transaction is not None
        transaction.rollback()
    return _told(counts, learned)


def _told(counts: Counter[str], learned: tuple[str, ...]) -> ErasureResult:
    return ErasureResult({kind: count for kind, count in counts.items() if count}, learned)


def _forget(store: Store, doomed: ErasureScope, report: Report) -> ErasureResult:
    with ExitStack() as held:
        if doomed.is_named:
            # What is being fetched would come when all was forgotten.
            for verb in ("crawl", "fetch"):
                held.enter_context(verb_lock(store.folder, verb))
        run = held.enter_context(store.recording(FORGET, {}))  # with arguments, it would tell what it was
        held.enter_context(packs_lock(store.folder, store.on_busy))
        begin(store.folder)
        with store.engine.connect() as connection:
            counts = _counted(connection, doomed)
            mentions = text_redaction_of(connection, doomed)
            learned = wrappers_to_relearn(connection, doomed)
        done, total = 0, counts["search documents"] + counts["versions"]
        for count in SearchIndex(store.engine).forget(doomed.is_document):
            done += count
            report(done, total, "Taking pages and records out of the search index")
        report(done, total, "Removing what is known of the pages")
        with held_back_interrupt(), writing(store.engine) as connection:
            wait_for_tables(connection)
            counts.update(forget_in_tables(connection, doomed, mentions))
        for count in remove_versions(store.engine, store.packs_folder, doomed.is_version, run.id):
            done += count
            report(done, total, "Removing the pages")
        if doomed.is_named:
            _forget_in_files(store, mentions)
        with held_back_interrupt(), writing(store.engine) as connection:
            counts["sites"] += _forget_names(connection, doomed)
        report(done, total, "Removing traces from the database")
        finish(store.folder, store.packs_folder, store.engine)
        run.counts.update(counts)
    return _told(counts, learned)


def _counted(connection: Connection, doomed: ErasureScope) -> Counter[str]:
    """How much there is of what is not counted as it is removed."""
    rows = {
        "pages": (schema.urls, doomed.is_page),
        "versions": (schema.versions, doomed.is_version),
        "search documents": (schema.search_documents, doomed.is_document),
    }
    found = {
        kind: connection.execute(select(func.count()).select_from(table).where(condition)).scalar_one()
        for kind, (table, condition) in rows.items()
    }
    return Counter(found)


def _forget_names(connection: Connection, doomed: ErasureScope) -> int:
    """Remove the addresses, and the sites of which neither a page nor a wrapper is left; returns how many."""
    urls, sites = schema.urls.c, schema.sites.c
    poorer = connection.execute(select(urls.site_id).where(doomed.is_page).distinct()).scalars().all()
    for table in (schema.cluster_pages, schema.annotations):  # someone may have said something just now
        connection.execute(delete(table).where(table.c.url_id.in_(doomed.url_ids)))
    connection.execute(delete(schema.urls).where(doomed.is_page))
    count = _forget_sites(connection, sites.name.in_(doomed.sites))
    for some in batches(poorer, _ROWS_AT_A_TIME):
        has_page = exists().where(urls.site_id == sites.id)
        is_bare = ~has_page & sites.name.not_in(select(schema.wrappers.c.site))
        count += _forget_sites(connection, sites.id.in_(some) & is_bare)
    return count


def _forget_sites(connection: Connection, is_gone: ColumnElement[bool]) -> int:
    gone = select(schema.sites.c.id).where(is_gone)
    for table in (schema.packs, schema.segment_tables):
        connection.execute(delete(table).where(table.c.site_id.in_(gone)))
    return connection.execute(delete(schema.sites).where(is_gone)).rowcount


def _forget_in_files(store: Store, mentions: TextRedaction) -> None:
    """Remove it from what is known of unfinished crawls, and all that was sent and that no job waits for."""
    jobs = schema.jobs.c
    query = select(jobs.arguments).where(jobs.state.in_(UNFINISHED_JOBS))
    with store.engine.connect() as connection:
        wanted = {row.arguments.get("upload") for row in connection.execute(query)}
    workspace = ConfinedFolder(store.folder)
    try:
        for journal in workspace.names(_CRAWLS):
            _forget_in_journal(workspace, f"{_CRAWLS}/{journal}", mentions)
        for upload in workspace.names(_UPLOADS):
            if upload not in wanted:
                workspace.remove_tree(f"{_UPLOADS}/{upload}")
    except OSError as error:
        raise StoreError(f"{error.filename} cannot be removed or written: {error.strerror}.") from error


def _forget_in_journal(workspace: ConfinedFolder, journal: str, mentions: TextRedaction) -> None:
    content = workspace.read(journal)
    left = json_lines_without(mentions, content)
    if not left or not journal.endswith(".jsonl"):  # the latter was left by a process that was killed here
        workspace.remove(journal)
    elif left != content:
        workspace.write(journal, left)
