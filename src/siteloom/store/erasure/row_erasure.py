"""Delete rows by site and page id, cascades do the rest; redact URLs in job arguments and run details,
which have no id.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, delete, exists, func, or_, select, update

from siteloom.core.sequences import batches, paged_rows
from siteloom.core.urls import LOCAL_SITE, site_of, url_shape
from siteloom.store import schema
from siteloom.store.keys import address_key
from siteloom.store.queries.search_index import counted_pages_mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sqlalchemy import Column, Connection, Row, Select, Table

    from siteloom.store.erasure.erasure_scope import ErasureScope


FORGOTTEN = "(forgotten)"
"""Replaces an erased name."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>\\]+")
_BEHIND_A_URL = ".,;:!?)]}"  # punctuation that may follow a URL in a sentence
# Not part of a longer name: data.example and a.example.org do not name a.example, but www.a.example may.
_BEFORE_A_SITE = r"(?<![\w.-])((?:[\w-]+\\?\.)*)"
_BEHIND_A_SITE = r"(?![\w-]|\\?\.\w)"


@dataclass(frozen=True)
class TextRedaction:
    """The texts to redact: names of sites, of their wrappers and clusters, and URLs.

    URLs that show their site need not be listed. `other_names` are names of what stays, whatever they
    contain.
    """

    sites: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    urls: frozenset[str] = frozenset()
    other_names: frozenset[str] = frozenset()

    def is_about(self, url: str) -> bool:
        """Return whether a URL is erased."""
        return url in self.urls or (bool(self.sites) and site_of(url) in self.sites)

    def are_in(self, text: str) -> bool:
        """Return whether a text names anything erased."""
        if text in self.names or text in self.urls or text in self._shapes:
            return True
        if text in self.other_names:
            return False
        if self._site is not None and any(map(self._is_site, self._site.finditer(text))):
            return True
        return any(map(self.is_about, _urls_in(text)))

    @cached_property
    def _shapes(self) -> frozenset[str]:
        """The shapes of the URLs, by which pages without a wrapper are counted; they may differ little."""
        return frozenset(map(url_shape, self.urls))

    @cached_property
    def _site(self) -> re.Pattern[str] | None:
        """Matches the name of a site, also as written in URL patterns, with a subdomain before it."""
        if not self.sites:
            return None
        forms = {form for site in self.sites for form in (site, site.replace(".", r"\."))}
        return re.compile(f"{_BEFORE_A_SITE}(?:{'|'.join(map(re.escape, sorted(forms)))}){_BEHIND_A_SITE}")

    def _is_site(self, match: re.Match[str]) -> bool:
        """Return whether a match is an erased site or a subdomain of it that is no site of its own."""
        return not match[1] or site_of("http://" + match[0].replace("\\", "")) in self.sites

    def without(self, value: Any) -> Any:
        """Redact a JSON value; the keys of the outermost object are Siteloom's own.

        A row, which is a list or an object within a list, is removed as a whole. A text is replaced by a mark
        rather than removed, because a missing value may mean everything.
        """
        if isinstance(value, dict):
            return {key: self._within(item) for key, item in value.items()}
        return self._within(value)

    def _within(self, value: Any) -> Any:
        if isinstance(value, str):
            return FORGOTTEN if self.are_in(value) else value
        if isinstance(value, list):
            return [self._within(item) for item in value if not self._is_row(item)]
        if isinstance(value, dict):
            return {key: self._within(item) for key, item in value.items() if not self.are_in(key)}
        return value

    def _is_row(self, value: Any) -> bool:
        """Return whether a value within a list is a row that names anything erased."""
        cells = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return any(isinstance(cell, str) and self.are_in(cell) for cell in cells)


def _urls_in(text: str) -> Iterator[str]:
    """Yield the URLs within a text, each also without trailing punctuation."""
    for url in _URL.findall(text):
        yield url
        shorter = url.rstrip(_BEHIND_A_URL)
        if shorter != url:
            yield shorter


def json_lines_without(redaction: TextRedaction, content: bytes) -> bytes:
    """Redact JSON Lines; a line is removed if a row in it is."""
    lines = []
    for line in content.split(b"\n"):
        try:
            content_of_line = json.loads(line)
            redacted = redaction.without(content_of_line)
            is_complete = len(redacted) == len(content_of_line)
        except (ValueError, TypeError):
            continue  # a torn line, whose content is determined again
        if is_complete:
            lines.append(json.dumps(redacted, ensure_ascii=False).encode("utf-8", "replace"))
    return b"".join(b"\n" + line + b"\n" for line in lines)


_ROWS_AT_A_TIME = 1_000
UNFINISHED_JOBS = ("waiting", "running")


def forget_in_tables(connection: Connection, scope: ErasureScope, redaction: TextRedaction) -> Counter[str]:
    """Remove all data about pages and sites except themselves; returns the number of items by kind."""
    counts: Counter[str] = Counter()
    for step in STEPS:
        counts.update(step.forget(connection, scope, redaction))
    for expired_rows in scope.rows:
        counts[expired_rows.kind] += connection.execute(
            delete(expired_rows.table).where(expired_rows.condition)
        ).rowcount
    return counts


def text_redaction_of(connection: Connection, scope: ErasureScope) -> TextRedaction:
    """Return the redaction of texts for a scope."""
    names = _names_of(connection, scope.sites)
    sites = scope.sites | _sites_of_urls(connection, scope.sites)
    without_urls = TextRedaction(sites, names, scope.addresses)
    urls = {url for url in _erased_urls(connection, scope) if not without_urls.is_about(url)}
    return TextRedaction(sites, names, scope.addresses | urls, _other_names(connection, scope.sites))


def wrappers_to_relearn(connection: Connection, scope: ErasureScope) -> tuple[str, ...]:
    """Return the wrappers of remaining sites that may quote erased pages.

    Wrappers may have been learned from annotated pages. And a value that only erased pages have may be in a
    wrapper, however it was learned, as one of the choices or as a text of a rule.
    """
    urls, sites = schema.urls.c, schema.sites.c
    annotated = (
        select(sites.name)
        .join(schema.urls, urls.site_id == sites.id)
        .join(schema.annotations, schema.annotations.c.url_id == urls.id)
        .where(scope.is_page, sites.name.not_in(scope.sites))
    )
    query = select(schema.wrappers.c.name).where(schema.wrappers.c.site.in_(annotated)).distinct()
    return tuple(sorted({*connection.execute(query).scalars(), *_quoting_wrappers(connection, scope)}))


def _quoting_wrappers(connection: Connection, scope: ErasureScope) -> Iterator[str]:
    """Yield the wrappers of remaining sites with a value that only erased pages have."""
    records, wrappers = schema.records.c, schema.wrappers.c
    keys = {address_key(url) for url in scope.addresses | _erased_urls(connection, scope)}
    values: dict[str, set[str]] = {}
    for batch in batches(keys, _ROWS_AT_A_TIME):
        query = select(records.wrapper, records.content).where(records.url_key.in_(batch))
        for row in connection.execute(query):
            values.setdefault(row.wrapper, set()).update(_values(row.content))
    query = select(wrappers.name, wrappers.text).where(wrappers.site.not_in(scope.sites))
    for row in connection.execute(query.order_by(wrappers.name)):
        own = values.get(row.name, set()) & set(_texts(_read(row.text)))
        if own and not own <= _values_elsewhere(connection, row.name, own, keys):
            yield row.name


def _values_elsewhere(connection: Connection, wrapper: str, values: set[str], keys: set[bytes]) -> set[str]:
    """Return the values that records of other pages have, too."""
    columns = schema.records.c
    query = select(columns.id, columns.url_key, columns.content).where(columns.wrapper == wrapper)
    other_values: set[str] = set()
    for row in _rows(connection, query, columns.id):
        if bytes(row.url_key) not in keys:
            other_values.update(values.intersection(_values(row.content)))
            if other_values == values:
                break
    return other_values


def _values(record: str) -> Iterator[str]:
    read = _read(record)
    return _texts(read.get("values") if isinstance(read, dict) else None)


def _read(text: str) -> Any:
    """Parse a text as JSON; None if that fails, as in a damaged workspace."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts within a JSON value, except keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _rows(
    connection: Connection, query: Select[*tuple[Any, ...]], *key: Column[Any]
) -> Iterator[Row[*tuple[Any, ...]]]:
    return paged_rows(connection, query, key, _ROWS_AT_A_TIME)


def _erased_urls(connection: Connection, scope: ErasureScope) -> set[str]:
    """Return the URLs of erased pages, except those that remain in another site."""
    urls = select(schema.urls.c.url).execution_options(yield_per=_ROWS_AT_A_TIME)
    erased = set(connection.execute(urls.where(scope.is_page)).scalars())
    if erased <= scope.addresses:  # those go everywhere
        return erased
    if connection.execute(select(func.count()).select_from(schema.sites)).scalar_one() > 1:
        for url in connection.execute(urls.where(~scope.is_page)).scalars():
            erased.discard(url)
    return erased


def _sites_of_urls(connection: Connection, names: frozenset[str]) -> frozenset[str]:
    """Return the sites of the URLs of pages in named sites, if nothing of them remains.

    Users may name sites freely, but failures and counts use the sites of URLs.
    """
    if not names:
        return frozenset()
    urls, sites = schema.urls.c, schema.sites.c
    is_of_them = urls.site_id.in_(select(sites.id).where(sites.name.in_(names)))
    query = select(urls.url).execution_options(yield_per=_ROWS_AT_A_TIME)
    url_sites = {site_of(url) for url in connection.execute(query.where(is_of_them)).scalars()}
    url_sites -= {*names, LOCAL_SITE}  # LOCAL_SITE is not a host
    if url_sites:
        url_sites.difference_update(connection.execute(select(sites.name)).scalars())
        url_sites.difference_update(map(site_of, connection.execute(query.where(~is_of_them)).scalars()))
    return frozenset(url_sites)


def _sites_of_pages(connection: Connection, scope: ErasureScope) -> frozenset[str]:
    urls, sites = schema.urls.c, schema.sites.c
    query = select(sites.name).where(sites.id.in_(select(urls.site_id).where(scope.is_page)))
    return frozenset(connection.execute(query).scalars())


def _names_of(connection: Connection, sites: frozenset[str]) -> frozenset[str]:
    """Return the names of wrappers and clusters of sites."""
    wrappers, clusters = schema.wrappers.c, schema.clusters.c
    names: set[str] = set()
    for batch in batches(sites, _ROWS_AT_A_TIME):
        for name, site in ((wrappers.name, wrappers.site), (clusters.name, clusters.site)):
            names.update(connection.execute(select(name).where(site.in_(batch)).distinct()).scalars())
    return frozenset(names)


def _other_names(connection: Connection, sites: frozenset[str]) -> frozenset[str]:
    """Return the names of other sites, wrappers and clusters, which may contain that of an erased site."""
    if not sites:
        return frozenset()
    other_sites = select(schema.sites.c.name).where(schema.sites.c.name.not_in(sites))
    other_names = frozenset(connection.execute(other_sites).scalars())
    return other_names | _names_of(connection, other_names)


def _annotations(connection: Connection, scope: ErasureScope, _: TextRedaction) -> dict[str, int]:
    table = schema.annotations
    gone = connection.execute(delete(table).where(table.c.url_id.in_(scope.url_ids)))
    return {"annotations": gone.rowcount}


def _jobs(connection: Connection, scope: ErasureScope, redaction: TextRedaction) -> dict[str, int]:
    """Delete ended jobs that name the scope or the site of a page, which they may quote; redact others."""
    columns = schema.jobs.c
    sites = _sites_of_pages(connection, scope)
    wider_sites = redaction.sites | sites
    names = redaction.names | _names_of(connection, sites)
    wider = TextRedaction(wider_sites, names, redaction.urls, _other_names(connection, wider_sites))
    query = select(columns.id, columns.state, columns.arguments, columns.message, columns.result)
    count = 0
    for row in _rows(connection, query, columns.id):
        texts = {"arguments": row.arguments, "message": row.message, "result": row.result}
        is_row = columns.id == row.id
        if row.state not in UNFINISHED_JOBS and wider.without(texts) != texts:
            count += connection.execute(delete(schema.jobs).where(is_row)).rowcount
        elif (redacted := redaction.without(texts)) != texts:
            connection.execute(update(schema.jobs).where(is_row).values(redacted))
    return {"jobs": count}


def _clusters(connection: Connection, scope: ErasureScope, redaction: TextRedaction) -> dict[str, int]:
    """Delete the clusters of sites; from others remove pages and what only these contributed."""
    clusters, members = schema.clusters.c, schema.cluster_pages.c
    lost_pages = (
        select(members.cluster_id, func.count().label("pages"))
        .where(members.url_id.in_(scope.url_ids))
        .group_by(members.cluster_id)
        .subquery()
    )
    query = (
        select(clusters.id, clusters.template, clusters.url_patterns, lost_pages.c.pages)
        .join(lost_pages, lost_pages.c.cluster_id == clusters.id)
        .where(clusters.site.not_in(scope.sites))
    )
    shrunk_clusters = list(_rows(connection, query, clusters.id))
    connection.execute(delete(schema.cluster_pages).where(members.url_id.in_(scope.url_ids)))
    for row in shrunk_clusters:
        patterns = _patterns_of_pages(connection, row.id, row.url_patterns)
        changes = {"template": _template_without(row.template, row.pages), "url_patterns": patterns}
        connection.execute(update(schema.clusters).where(clusters.id == row.id).values(changes))
    described, dismissed = schema.cluster_schemas, schema.dismissed_clusters
    connection.execute(delete(described).where(described.c.cluster.in_(redaction.names)))
    has_page = exists().where(members.cluster_id == clusters.id)
    is_gone = or_(clusters.site.in_(scope.sites), ~has_page)
    gone = select(clusters.id).where(is_gone)
    connection.execute(delete(dismissed).where(dismissed.c.cluster_id.in_(gone)))
    return {"clusters": connection.execute(delete(schema.clusters).where(is_gone)).rowcount}


def _template_without(template: dict[str, Any], pages: int) -> dict[str, Any]:
    """Remove the paths from a template that the given number of pages may have had alone."""
    return {**template, "essential": [path for path in template["essential"] if path[-1] > pages]}


def _patterns_of_pages(connection: Connection, cluster_id: int, patterns: Sequence[str]) -> list[str]:
    """Return the patterns that match the URL of a page of a cluster."""
    urls, members = schema.urls.c, schema.cluster_pages.c
    query = select(urls.id, urls.url).join(schema.cluster_pages).where(members.cluster_id == cluster_id)
    unmatched = set(patterns)
    for row in _rows(connection, query, urls.id):
        unmatched = {pattern for pattern in unmatched if not re.search(pattern, row.url)}
        if not unmatched:
            break
    return [pattern for pattern in patterns if pattern not in unmatched]


def _records(connection: Connection, scope: ErasureScope, redaction: TextRedaction) -> dict[str, int]:
    """Delete the records of the pages in every run, and those that the wrappers of a site extracted."""
    table, count = schema.records, 0
    for urls in batches(scope.addresses | _erased_urls(connection, scope), _ROWS_AT_A_TIME):
        is_of_page = table.c.url_key.in_([address_key(url) for url in urls])
        count += connection.execute(delete(table).where(is_of_page)).rowcount
    for names in batches(redaction.names, _ROWS_AT_A_TIME):
        # Without a version, it was no wrapper of the workspace.
        is_of_site = table.c.wrapper.in_(names) & table.c.wrapper_version.is_not(None)
        count += connection.execute(delete(table).where(is_of_site)).rowcount
    _scrub(connection, schema.extracted_shards, ["summary"], redaction)
    return {"records": count}


def _wrappers(connection: Connection, scope: ErasureScope, redaction: TextRedaction) -> dict[str, int]:
    """Delete the wrappers, watches, checks and repairs of sites; remove single pages from the others."""
    counts: Counter[str] = Counter()
    for kind, table in (("wrappers", schema.wrappers), ("watches", schema.watches)):
        counts[kind] += connection.execute(delete(table).where(table.c.site.in_(scope.sites))).rowcount
    for kind, table in (("watches", schema.watches), ("checks", schema.checks), ("repairs", schema.repairs)):
        for names in batches(redaction.names, _ROWS_AT_A_TIME):
            counts[kind] += connection.execute(delete(table).where(table.c.wrapper.in_(names))).rowcount
    counts["watched pages"] = _unwatch(connection, redaction)
    for table in (schema.checks, schema.repairs):
        _scrub(connection, table, ["content"], redaction)
    return counts


def _unwatch(connection: Connection, redaction: TextRedaction) -> int:
    """Remove watched pages, which watches store completely; returns how many."""
    columns = schema.watches.c
    count = 0
    for row in _rows(connection, select(columns.wrapper, columns.text), columns.wrapper):
        is_row = columns.wrapper == row.wrapper
        try:
            content = json.loads(row.text)
            watched = content["bellwethers"]
            remaining = [bellwether for bellwether in watched if not redaction.is_about(bellwether["url"])]
        except (ValueError, KeyError, TypeError):  # not a valid watch, so its content is unknown
            connection.execute(delete(schema.watches).where(is_row))
            continue
        if len(remaining) == len(watched):
            continue
        count += len(watched) - len(remaining)
        if remaining:
            text = json.dumps({**content, "bellwethers": remaining})
            connection.execute(update(schema.watches).where(is_row).values(text=text))
        else:
            connection.execute(delete(schema.watches).where(is_row))
    return count


def _seeds(connection: Connection, scope: ErasureScope, redaction: TextRedaction) -> dict[str, int]:
    """Delete the seeds of the scope, and their quotations in the results of wrapping other sites."""
    seeds, grown = schema.seeds.c, schema.grown_sites.c
    sources = scope.sites | _sites_of_pages(connection, scope)
    query = select(seeds.id, seeds.source, seeds.url)
    count = 0
    for rows in batches(_rows(connection, query, seeds.id), _ROWS_AT_A_TIME):
        gone = [row for row in rows if row.source in scope.sites or redaction.is_about(row.url)]
        sources |= {row.source for row in gone}
        is_gone = seeds.id.in_([row.id for row in gone])
        count += connection.execute(delete(schema.seeds).where(is_gone)).rowcount
    connection.execute(delete(schema.grown_sites).where(grown.site.in_(scope.sites)))
    for row in _rows(connection, select(grown.site, grown.content), grown.site):
        redacted = redaction.without(row.content)
        if sources.intersection(row.content.get("sources", ())):
            # Known values are stored next to those found, without the page that they come from.
            redacted = {**redacted, "examples": {}, "disagreements": {}}
        if redacted != row.content:
            changed = update(schema.grown_sites).where(grown.site == row.site)
            connection.execute(changed.values(content=redacted))
    return {"seeds": count}


def _entities(connection: Connection, scope: ErasureScope, redaction: TextRedaction) -> dict[str, int]:
    """Delete all entities if any comes from the scope: they can be linked again as a whole."""
    columns = schema.entities.c
    for row in _rows(connection, select(columns.number, columns.content), columns.number):
        members = json.loads(row.content)["members"]
        if any(member["source"] in scope.sites or redaction.is_about(member["url"]) for member in members):
            connection.execute(delete(schema.linkings))
            return {"entities": connection.execute(delete(schema.entities)).rowcount}
    _scrub(connection, schema.linkings, ["content"], redaction)
    return {}


def _segments(connection: Connection, scope: ErasureScope, _: TextRedaction) -> dict[str, int]:
    """Delete the segment counts of sites that lose pages; the remaining pages are counted again."""
    sites, tables, marks = schema.sites.c, schema.segment_tables, schema.search_marks
    for names in batches(scope.sites | _sites_of_pages(connection, scope), _ROWS_AT_A_TIME):
        ids = select(sites.id).where(sites.name.in_(names))
        connection.execute(delete(tables).where(tables.c.site_id.in_(ids)))
        connection.execute(
            delete(marks).where(marks.c.name.in_([counted_pages_mark(name) for name in names]))
        )
    return {}


def _failures(connection: Connection, _: ErasureScope, redaction: TextRedaction) -> dict[str, int]:
    columns = schema.failures.c
    rows = _rows(connection, select(columns.id, columns.url, columns.detail), columns.id)
    gone = (row.id for row in rows if redaction.are_in(row.url) or redaction.are_in(row.detail))
    count = 0
    for ids in batches(gone, _ROWS_AT_A_TIME):
        count += connection.execute(delete(schema.failures).where(columns.id.in_(ids))).rowcount
    return {"failures": count}


def _runs(connection: Connection, _: ErasureScope, redaction: TextRedaction) -> dict[str, int]:
    """Redact the arguments and counts of runs, which stay because other results depend on them."""
    _scrub(connection, schema.runs, ["arguments", "counts"], redaction)
    return {}


class Step(NamedTuple):
    """The erasure of rows of some tables; returns the number of rows by kind."""

    tables: tuple[Table, ...]
    forget: Callable[[Connection, ErasureScope, TextRedaction], Mapping[str, int]]


STEPS = (
    Step((schema.annotations,), _annotations),
    # Before wrappers and clusters, whose names show which site a job is about.
    Step((schema.jobs,), _jobs),
    Step(
        (schema.clusters, schema.cluster_pages, schema.cluster_schemas, schema.dismissed_clusters), _clusters
    ),
    Step((schema.records, schema.extracted_shards), _records),
    Step((schema.wrappers, schema.watches, schema.checks, schema.repairs), _wrappers),
    Step((schema.seeds, schema.grown_sites), _seeds),
    Step((schema.entities, schema.linkings), _entities),
    Step((schema.segment_tables, schema.search_marks), _segments),
    Step((schema.failures,), _failures),
    Step((schema.runs,), _runs),
)
"""All tables with data about pages, except those of the pages themselves."""


def _scrub(connection: Connection, table: Table, columns: Sequence[str], redaction: TextRedaction) -> None:
    """Redact columns of JSON."""
    key = list(table.primary_key.columns)
    for row in _rows(connection, select(*key, *(table.c[name] for name in columns)), *key):
        values = {name: getattr(row, name) for name in columns}
        redacted = {name: redaction.without(value) for name, value in values.items()}
        if redacted != values:
            is_row = and_(*(column == getattr(row, column.name) for column in key))
            connection.execute(update(table).where(is_row).values(redacted))
