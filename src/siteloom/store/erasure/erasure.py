"""Erase everything that came from sites or pages, and keep the remaining data consistent.

The order makes it safe to kill. Data about pages is removed first, then the pages themselves, pack by pack.
Their names are removed last, so that the same erasure can be repeated until it is complete; a mark on the
disk records that there may be traces.
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
    """Called with the number of finished pages, the total if known, and the current step."""

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
"""The tables without data about pages; sessions and failed sign-ins may expire."""

_ROWS_AT_A_TIME = 1_000
_CRAWLS, _UPLOADS = "crawls", "uploads"


class ErasureResult(NamedTuple):
    """The number of removed items by kind.

    The wrappers of `to_learn_again` stay, but may quote pages that are gone.
    """

    counts: dict[str, int]
    to_relearn: tuple[str, ...]


def _ignore_progress(_finished: int, _total: int | None, _message: str) -> None:
    """Ignore progress."""


class ErasureTargets(NamedTuple):
    """The names to erase, as they are in the store: whole sites, and URLs of pages."""

    sites: tuple[str, ...]
    urls: tuple[str, ...]


def erasure_targets(store: Store, names: Collection[str]) -> ErasureTargets:
    """Resolve names; raises NotStored for one that is neither a site nor a URL, as `forget` does."""
    scope = _known_scope(store, names)
    return ErasureTargets(tuple(sorted(scope.sites)), tuple(sorted(scope.addresses)))


def forget(store: Store, names: Collection[str], report: Report = _ignore_progress) -> ErasureResult:
    """Remove everything that came from sites, or from pages given by their URLs.

    Raises NotStored for a name that is neither, unless an earlier erasure was interrupted and left only
    traces.
    """
    return _forget(store, _known_scope(store, names), report)


def _known_scope(store: Store, names: Collection[str]) -> ErasureScope:
    scope, unknown = scope_of_names(store.engine, names)
    if unknown and not is_unfinished(store.folder):
        raise _not_stored(store.engine, unknown[0])
    return scope


def forget_expired(
    store: Store, retention: RetentionSettings, report: Report = _ignore_progress
) -> ErasureResult:
    """Remove expired data; if there is none, no run is recorded."""
    scope = expired_scope(retention, store.clock())
    if not scope.is_anything(store.engine) and not is_unfinished(store.folder):
        return ErasureResult({}, ())
    return _forget(store, scope, report)


def forget_after_work(store: Store, retention: RetentionSettings) -> tuple[ErasureResult, str]:
    """Remove expired data after successful work; also returns what prevented it, if anything did.

    The work itself is done in any case, and the removal is repeated when pages are next imported.
    """
    try:
        return forget_expired(store, retention), ""
    except StoreError as error:
        return ErasureResult({}, ()), (
            "What was kept for long enough is not all removed yet; it will be tried again when pages come "
            f"next: {error}"
        )


def would_forget(store: Store, names: Collection[str]) -> ErasureResult:
    """Return what `forget` would remove, without changing anything."""
    scope, unknown = scope_of_names(store.engine, names)
    if unknown:
        raise _not_stored(store.engine, unknown[0])
    return _simulate_erasure(store, scope)


def would_forget_expired(store: Store, retention: RetentionSettings) -> ErasureResult:
    """Return what `forget_expired` would remove, without changing anything."""
    return _simulate_erasure(store, expired_scope(retention, store.clock()))


def _not_stored(engine: Engine, name: str) -> NotStored:
    with engine.connect() as connection:
        site_names = (
            connection.execute(select(schema.sites.c.name).order_by(schema.sites.c.name)).scalars().all()
        )
    sites = f"its sites are {some_names(site_names)}" if site_names else "it has no site"
    return NotStored(f"{name} is no site of this workspace, and no URL of a page in it: {sites}.")


def _simulate_erasure(store: Store, scope: ErasureScope) -> ErasureResult:
    """Return what would be removed, by removing it in a transaction that is rolled back."""
    with write_lock(store.folder, store.on_busy), writing(store.engine) as connection:
        counts = _count_scope(connection, scope)
        learned = wrappers_to_relearn(connection, scope)
        counts.update(forget_in_tables(connection, scope, text_redaction_of(connection, scope)))
        transaction = connection.get_transaction()
        assert transaction is not None
        transaction.rollback()
    return _erasure_result(counts, learned)


def _erasure_result(counts: Counter[str], learned: tuple[str, ...]) -> ErasureResult:
    return ErasureResult({kind: count for kind, count in counts.items() if count}, learned)


def _forget(store: Store, scope: ErasureScope, report: Report) -> ErasureResult:
    with ExitStack() as held:
        if scope.is_named:
            # Pages being fetched would be stored after the erasure.
            for verb in ("crawl", "fetch"):
                held.enter_context(verb_lock(store.folder, verb))
        run = held.enter_context(store.recording(FORGET, {}))  # arguments would reveal what was erased
        held.enter_context(packs_lock(store.folder, store.on_busy))
        begin(store.folder)
        with store.engine.connect() as connection:
            counts = _count_scope(connection, scope)
            redaction = text_redaction_of(connection, scope)
            learned = wrappers_to_relearn(connection, scope)
        finished, total = 0, counts["search documents"] + counts["versions"]
        for count in SearchIndex(store.engine).forget(scope.is_document):
            finished += count
            report(finished, total, "Taking pages and records out of the search index")
        report(finished, total, "Removing what is known of the pages")
        with held_back_interrupt(), writing(store.engine) as connection:
            wait_for_tables(connection)
            counts.update(forget_in_tables(connection, scope, redaction))
        for count in remove_versions(store.engine, store.packs_folder, scope.is_version, run.id):
            finished += count
            report(finished, total, "Removing the pages")
        if scope.is_named:
            _redact_files(store, redaction)
        with held_back_interrupt(), writing(store.engine) as connection:
            counts["sites"] += _erase_names(connection, scope)
        report(finished, total, "Removing traces from the database")
        finish(store.folder, store.packs_folder, store.engine)
        run.counts.update(counts)
    return _erasure_result(counts, learned)


def _count_scope(connection: Connection, scope: ErasureScope) -> Counter[str]:
    """Count what is not counted while it is removed."""
    rows = {
        "pages": (schema.urls, scope.is_page),
        "versions": (schema.versions, scope.is_version),
        "search documents": (schema.search_documents, scope.is_document),
    }
    counts = {
        kind: connection.execute(select(func.count()).select_from(table).where(condition)).scalar_one()
        for kind, (table, condition) in rows.items()
    }
    return Counter(counts)


def _erase_names(connection: Connection, scope: ErasureScope) -> int:
    """Remove the addresses, and the sites without a page or a wrapper left; returns the number of sites."""
    urls, sites = schema.urls.c, schema.sites.c
    shrunk_sites = connection.execute(select(urls.site_id).where(scope.is_page).distinct()).scalars().all()
    for table in (schema.cluster_pages, schema.annotations):  # rows may have been added meanwhile
        connection.execute(delete(table).where(table.c.url_id.in_(scope.url_ids)))
    connection.execute(delete(schema.urls).where(scope.is_page))
    count = _erase_sites(connection, sites.name.in_(scope.sites))
    for batch in batches(shrunk_sites, _ROWS_AT_A_TIME):
        has_page = exists().where(urls.site_id == sites.id)
        is_bare = ~has_page & sites.name.not_in(select(schema.wrappers.c.site))
        count += _erase_sites(connection, sites.id.in_(batch) & is_bare)
    return count


def _erase_sites(connection: Connection, is_gone: ColumnElement[bool]) -> int:
    gone = select(schema.sites.c.id).where(is_gone)
    for table in (schema.packs, schema.segment_tables):
        connection.execute(delete(table).where(table.c.site_id.in_(gone)))
    return connection.execute(delete(schema.sites).where(is_gone)).rowcount


def _redact_files(store: Store, redaction: TextRedaction) -> None:
    """Redact the journals of unfinished crawls, and remove all uploads that no job waits for."""
    jobs = schema.jobs.c
    query = select(jobs.arguments).where(jobs.state.in_(UNFINISHED_JOBS))
    with store.engine.connect() as connection:
        pending_uploads = {row.arguments.get("upload") for row in connection.execute(query)}
    workspace = ConfinedFolder(store.folder)
    try:
        for journal in workspace.names(_CRAWLS):
            _redact_journal(workspace, f"{_CRAWLS}/{journal}", redaction)
        for upload in workspace.names(_UPLOADS):
            if upload not in pending_uploads:
                workspace.remove_tree(f"{_UPLOADS}/{upload}")
    except OSError as error:
        raise StoreError(f"{error.filename} cannot be removed or written: {error.strerror}.") from error


def _redact_journal(workspace: ConfinedFolder, journal: str, redaction: TextRedaction) -> None:
    content = workspace.read(journal)
    redacted = json_lines_without(redaction, content)
    if not redacted or not journal.endswith(".jsonl"):  # other files remain from a process killed here
        workspace.remove(journal)
    elif redacted != content:
        workspace.write(journal, redacted)
