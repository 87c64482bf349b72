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
"""What stands in the place of a name that is forgotten."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>\\]+")
_BEHIND_A_URL = ".,;:!?)]}"  # what a sentence may have behind it
# No part of a longer name: data.example and a.example.org do not name a.example, but www.a.example may.
_BEFORE_A_SITE = r"(?<![\w.-])((?:[\w-]+\\?\.)*)"
_BEHIND_A_SITE = r"(?![\w-]|\\?\.\w)"


@dataclass(frozen=True)
class TextRedaction:
    """By what it is known in texts: names of sites, of their wrappers and clusters, and URLs.

    URLs of the sites need not be listed, as far as they tell their site themselves. `others` are names of
    what stays, whatever stands in them.
    """

    sites: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    urls: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    def is_about(self, url: str) -> bool:
        """Whether a URL is one of those that are forgotten."""
        return url in self.urls or (bool(self.sites) and site_of(url) in self.sites)

    def are_in(self, text: str) -> bool:
        """Whether a text names anything that is forgotten."""
        if text in self.names or text in self.urls or text in self._shapes:
            return True
        if text in self.others:
            return False
        if self._site is not None and any(map(self._is_site, self._site.finditer(text))):
            return True
        return any(map(self.is_about, _urls_in(text)))

    @cached_property
    def _shapes(self) -> frozenset[str]:
        """What the URLs look like, by which pages without a wrapper are counted: little may be left out."""
        return frozenset(map(url_shape, self.urls))

    @cached_property
    def _site(self) -> re.Pattern[str] | None:
        """A site by its name, as it is and as it stands in patterns of URLs, with what is before it."""
        if not self.sites:
            return None
        forms = {form for site in self.sites for form in (site, site.replace(".", r"\."))}
        return re.compile(f"{_BEFORE_A_SITE}(?:{'|'.join(map(re.escape, sorted(forms)))}){_BEHIND_A_SITE}")

    def _is_site(self, found: re.Match[str]) -> bool:
        """Whether it is a site by itself or with a subdomain; below some, such as github.io, are others."""
        return not found[1] or site_of("http://" + found[0].replace("\\", "")) in self.sites

    def without(self, value: Any) -> Any:
        """A value as JSON has it, without what names it; the keys of an outermost object are our own words.

        A row, which is a list or an object within a list, goes as a whole. A text is replaced by a mark
        rather than removed: nothing at all may mean everything.
        """
        if isinstance(value, dict):
            return {key: self._within(one) for key, one in value.items()}
        return self._within(value)

    def _within(self, value: Any) -> Any:
        if isinstance(value, str):
            return FORGOTTEN if self.are_in(value) else value
        if isinstance(value, list):
            return [self._within(one) for one in value if not self._is_row(one)]
        if isinstance(value, dict):
            return {key: self._within(one) for key, one in value.items() if not self.are_in(key)}
        return value

    def _is_row(self, value: Any) -> bool:
        """Whether a value within a list is a row that names it."""
        cells = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return any(isinstance(cell, str) and self.are_in(cell) for cell in cells)


def _urls_in(text: str) -> Iterator[str]:
    """The URLs within a text, each also without the marks behind it that a sentence may have."""
    for found in _URL.findall(text):
        yield found
        shorter = found.rstrip(_BEHIND_A_URL)
        if shorter != found:
            yield shorter


def json_lines_without(mentions: TextRedaction, content: bytes) -> bytes:
    """JSON Lines without what names it; a line goes if what it tells of is a row that does."""
    kept = []
    for line in content.split(b"\n"):
        try:
            told = json.loads(line)
            left = mentions.without(told)
            is_whole = len(left) == len(told)
        except (ValueError, TypeError):
            continue  # torn: what it told of is found out again
        if is_whole:
            kept.append(json.dumps(left, ensure_ascii=False).encode("utf-8", "replace"))
    return b"".join(b"\n" + line + b"\n" for line in kept)


_ROWS_AT_A_TIME = 1_000
UNFINISHED_JOBS = ("waiting", "running")


def forget_in_tables(connection: Connection, doomed: ErasureScope, mentions: TextRedaction) -> Counter[str]:
    """Remove all that is known of pages and sites but themselves; returns how much of each kind it was."""
    counts: Counter[str] = Counter()
    for step in STEPS:
        counts.update(step.forget(connection, doomed, mentions))
    for old in doomed.rows:
        counts[old.kind] += connection.execute(delete(old.table).where(old.condition)).rowcount
    return counts


def text_redaction_of(connection: Connection, doomed: ErasureScope) -> TextRedaction:
    """By what it is known in texts."""
    names = _names_of(connection, doomed.sites)
    sites = doomed.sites | _sites_of_urls(connection, doomed.sites)
    by_itself = TextRedaction(sites, names, doomed.addresses)
    urls = {url for url in _pages_alone(connection, doomed) if not by_itself.is_about(url)}
    return TextRedaction(sites, names, doomed.addresses | urls, _other_names(connection, doomed.sites))


def wrappers_to_relearn(connection: Connection, doomed: ErasureScope) -> tuple[str, ...]:
    """The wrappers of sites that stay that may quote pages that go.

    Annotated pages may have been learned from. And a value that only pages that go have may stand in a
    wrapper, however it was learned, as one of the choices or as a text of a rule.
    """
    urls, sites = schema.urls.c, schema.sites.c
    annotated = (
        select(sites.name)
        .join(schema.urls, urls.site_id == sites.id)
        .join(schema.annotations, schema.annotations.c.url_id == urls.id)
        .where(doomed.is_page, sites.name.not_in(doomed.sites))
    )
    query = select(schema.wrappers.c.name).where(schema.wrappers.c.site.in_(annotated)).distinct()
    return tuple(sorted({*connection.execute(query).scalars(), *_quoting_wrappers(connection, doomed)}))


def _quoting_wrappers(connection: Connection, doomed: ErasureScope) -> Iterator[str]:
    """The wrappers of sites that stay in which a value stands that only pages that go have."""
    records, wrappers = schema.records.c, schema.wrappers.c
    keys = {address_key(url) for url in doomed.addresses | _pages_alone(connection, doomed)}
    values: dict[str, set[str]] = {}
    for some in batches(keys, _ROWS_AT_A_TIME):
        query = select(records.wrapper, records.content).where(records.url_key.in_(some))
        for row in connection.execute(query):
            values.setdefault(row.wrapper, set()).update(_values(row.content))
    query = select(wrappers.name, wrappers.text).where(wrappers.site.not_in(doomed.sites))
    for row in connection.execute(query.order_by(wrappers.name)):
        own = values.get(row.name, set()) & set(_texts(_read(row.text)))
        if own and not own <= _values_elsewhere(connection, row.name, own, keys):
            yield row.name


def _values_elsewhere(connection: Connection, wrapper: str, values: set[str], keys: set[bytes]) -> set[str]:
    """Those of some values that records of other pages have, too."""
    columns = schema.records.c
    query = select(columns.id, columns.url_key, columns.content).where(columns.wrapper == wrapper)
    found: set[str] = set()
    for row in _rows(connection, query, columns.id):
        if bytes(row.url_key) not in keys:
            found.update(values.intersection(_values(row.content)))
            if found == values:
                break
    return found


def _values(record: str) -> Iterator[str]:
    read = _read(record)
    return _texts(read.get("values") if isinstance(read, dict) else None)


def _read(text: str) -> Any:
    """What a text is as JSON; None if it is none, as in a workspace that is damaged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _texts(value: Any) -> Iterator[str]:
    """All texts within a value as JSON has it, but for keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _rows(
    connection: Connection, query: Select[*tuple[Any, ...]], *key: Column[Any]
) -> Iterator[Row[*tuple[Any, ...]]]:
    return paged_rows(connection, query, key, _ROWS_AT_A_TIME)


def _pages_alone(connection: Connection, doomed: ErasureScope) -> set[str]:
    """The URLs of the pages that go, but for those that stand in another site, too, and stay there."""
    urls = select(schema.urls.c.url).execution_options(yield_per=_ROWS_AT_A_TIME)
    found = set(connection.execute(urls.where(doomed.is_page)).scalars())
    if found <= doomed.addresses:  # those go everywhere
        return found
    if connection.execute(select(func.count()).select_from(schema.sites)).scalar_one() > 1:
        for url in connection.execute(urls.where(~doomed.is_page)).scalars():
            found.discard(url)
    return found


def _sites_of_urls(connection: Connection, names: frozenset[str]) -> frozenset[str]:
    """The sites that the pages of named sites belong to by their URLs, if nothing of them stays.

    People give sites names of their own, but failures and counts tell of sites by URLs.
    """
    if not names:
        return frozenset()
    urls, sites = schema.urls.c, schema.sites.c
    is_of_them = urls.site_id.in_(select(sites.id).where(sites.name.in_(names)))
    query = select(urls.url).execution_options(yield_per=_ROWS_AT_A_TIME)
    found = {site_of(url) for url in connection.execute(query.where(is_of_them)).scalars()}
    found -= {*names, LOCAL_SITE}  # the latter stands for no host at all
    if found:
        found.difference_update(connection.execute(select(sites.name)).scalars())
        found.difference_update(map(site_of, connection.execute(query.where(~is_of_them)).scalars()))
    return frozenset(found)


def _sites_of_pages(connection: Connection, doomed: ErasureScope) -> frozenset[str]:
    urls, sites = schema.urls.c, schema.sites.c
    query = select(sites.name).where(sites.id.in_(select(urls.site_id).where(doomed.is_page)))
    return frozenset(connection.execute(query).scalars())


def _names_of(connection: Connection, sites: frozenset[str]) -> frozenset[str]:
    """What wrappers and clusters of sites are called."""
    wrappers, clusters = schema.wrappers.c, schema.clusters.c
    names: set[str] = set()
    for some in batches(sites, _ROWS_AT_A_TIME):
        for name, site in ((wrappers.name, wrappers.site), (clusters.name, clusters.site)):
            names.update(connection.execute(select(name).where(site.in_(some)).distinct()).scalars())
    return frozenset(names)


def _other_names(connection: Connection, sites: frozenset[str]) -> frozenset[str]:
    """What other sites are called, and their wrappers and clusters: a name may have that of a site in it."""
    if not sites:
        return frozenset()
    known = select(schema.sites.c.name).where(schema.sites.c.name.not_in(sites))
    others = frozenset(connection.execute(known).scalars())
    return others | _names_of(connection, others)


def _annotations(connection: Connection, doomed: ErasureScope, _: TextRedaction) -> dict[str, int]:
    table = schema.annotations
    gone = connection.execute(delete(table).where(table.c.url_id.in_(doomed.url_ids)))
    return {"annotations": gone.rowcount}


def _jobs(connection: Connection, doomed: ErasureScope, mentions: TextRedaction) -> dict[str, int]:
    """Those that have ended go if they name it, or the site of a page: what came of them may quote it."""
    columns = schema.jobs.c
    sites = _sites_of_pages(connection, doomed)
    wider_sites = mentions.sites | sites
    names = mentions.names | _names_of(connection, sites)
    wider = TextRedaction(wider_sites, names, mentions.urls, _other_names(connection, wider_sites))
    query = select(columns.id, columns.state, columns.arguments, columns.message, columns.result)
    count = 0
    for row in _rows(connection, query, columns.id):
        told = {"arguments": row.arguments, "message": row.message, "result": row.result}
        is_it = columns.id == row.id
        if row.state not in UNFINISHED_JOBS and wider.without(told) != told:
            count += connection.execute(delete(schema.jobs).where(is_it)).rowcount
        elif (left := mentions.without(told)) != told:
            connection.execute(update(schema.jobs).where(is_it).values(left))
    return {"jobs": count}


def _clusters(connection: Connection, doomed: ErasureScope, mentions: TextRedaction) -> dict[str, int]:
    """Those of a site go as a whole; others lose pages, and with them what they had of these alone."""
    clusters, members = schema.clusters.c, schema.cluster_pages.c
    lost = (
        select(members.cluster_id, func.count().label("pages"))
        .where(members.url_id.in_(doomed.url_ids))
        .group_by(members.cluster_id)
        .subquery()
    )
    query = (
        select(clusters.id, clusters.template, clusters.url_patterns, lost.c.pages)
        .join(lost, lost.c.cluster_id == clusters.id)
        .where(clusters.site.not_in(doomed.sites))
    )
    poorer = list(_rows(connection, query, clusters.id))
    connection.execute(delete(schema.cluster_pages).where(members.url_id.in_(doomed.url_ids)))
    for row in poorer:
        patterns = _patterns_of_pages(connection, row.id, row.url_patterns)
        left = {"template": _template_without(row.template, row.pages), "url_patterns": patterns}
        connection.execute(update(schema.clusters).where(clusters.id == row.id).values(left))
    described, dismissed = schema.cluster_schemas, schema.dismissed_clusters
    connection.execute(delete(described).where(described.c.cluster.in_(mentions.names)))
    has_page = exists().where(members.cluster_id == clusters.id)
    is_gone = or_(clusters.site.in_(doomed.sites), ~has_page)
    gone = select(clusters.id).where(is_gone)
    connection.execute(delete(dismissed).where(dismissed.c.cluster_id.in_(gone)))
    return {"clusters": connection.execute(delete(schema.clusters).where(is_gone)).rowcount}


def _template_without(template: dict[str, Any], pages: int) -> dict[str, Any]:
    """A template without the paths that so many pages may have been alone with."""
    return {**template, "essential": [path for path in template["essential"] if path[-1] > pages]}


def _patterns_of_pages(connection: Connection, cluster_id: int, patterns: Sequence[str]) -> list[str]:
    """Those patterns that match the URL of a page of a cluster."""
    urls, members = schema.urls.c, schema.cluster_pages.c
    query = select(urls.id, urls.url).join(schema.cluster_pages).where(members.cluster_id == cluster_id)
    left = set(patterns)
    for row in _rows(connection, query, urls.id):
        left = {pattern for pattern in left if not re.search(pattern, row.url)}
        if not left:
            break
    return [pattern for pattern in patterns if pattern not in left]


def _records(connection: Connection, doomed: ErasureScope, mentions: TextRedaction) -> dict[str, int]:
    """Those of the pages, in every run, and those that the wrappers of a site gave."""
    table, count = schema.records, 0
    for urls in batches(doomed.addresses | _pages_alone(connection, doomed), _ROWS_AT_A_TIME):
        is_of_page = table.c.url_key.in_([address_key(url) for url in urls])
        count += connection.execute(delete(table).where(is_of_page)).rowcount
    for names in batches(mentions.names, _ROWS_AT_A_TIME):
        # Without a version, it was no wrapper of the workspace.
        is_of_site = table.c.wrapper.in_(names) & table.c.wrapper_version.is_not(None)
        count += connection.execute(delete(table).where(is_of_site)).rowcount
    _scrub(connection, schema.extracted_shards, ["summary"], mentions)
    return {"records": count}


def _wrappers(connection: Connection, doomed: ErasureScope, mentions: TextRedaction) -> dict[str, int]:
    """All that is known of how to read a site; and what is watched, and was checked, of single pages."""
    counts: Counter[str] = Counter()
    for kind, table in (("wrappers", schema.wrappers), ("watches", schema.watches)):
        counts[kind] += connection.execute(delete(table).where(table.c.site.in_(doomed.sites))).rowcount
    for kind, table in (("watches", schema.watches), ("checks", schema.checks), ("repairs", schema.repairs)):
        for names in batches(mentions.names, _ROWS_AT_A_TIME):
            counts[kind] += connection.execute(delete(table).where(table.c.wrapper.in_(names))).rowcount
    counts["watched pages"] = _unwatch(connection, mentions)
    for table in (schema.checks, schema.repairs):
        _scrub(connection, table, ["content"], mentions)
    return counts


def _unwatch(connection: Connection, mentions: TextRedaction) -> int:
    """Watch pages no more, which are kept whole for it; returns how many."""
    columns = schema.watches.c
    count = 0
    for row in _rows(connection, select(columns.wrapper, columns.text), columns.wrapper):
        is_it = columns.wrapper == row.wrapper
        try:
            content = json.loads(row.text)
            watched = content["bellwethers"]
            left = [one for one in watched if not mentions.is_about(one["url"])]
        except (ValueError, KeyError, TypeError):  # it is no watch, and there is no telling what it quotes
            connection.execute(delete(schema.watches).where(is_it))
            continue
        if len(left) == len(watched):
            continue
        count += len(watched) - len(left)
        if left:
            text = json.dumps({**content, "bellwethers": left})
            connection.execute(update(schema.watches).where(is_it).values(text=text))
        else:
            connection.execute(delete(schema.watches).where(is_it))
    return count


def _seeds(connection: Connection, doomed: ErasureScope, mentions: TextRedaction) -> dict[str, int]:
    """Those that came from it, and what is quoted of them where sites were wrapped with their help."""
    seeds, grown = schema.seeds.c, schema.grown_sites.c
    sources = doomed.sites | _sites_of_pages(connection, doomed)
    query = select(seeds.id, seeds.source, seeds.url)
    count = 0
    for rows in batches(_rows(connection, query, seeds.id), _ROWS_AT_A_TIME):
        gone = [row for row in rows if row.source in doomed.sites or mentions.is_about(row.url)]
        sources |= {row.source for row in gone}
        is_gone = seeds.id.in_([row.id for row in gone])
        count += connection.execute(delete(schema.seeds).where(is_gone)).rowcount
    connection.execute(delete(schema.grown_sites).where(grown.site.in_(doomed.sites)))
    for row in _rows(connection, select(grown.site, grown.content), grown.site):
        left = mentions.without(row.content)
        if sources.intersection(row.content.get("sources", ())):
            # What was known stands beside what was found, and does not say from which page it is.
            left = {**left, "examples": {}, "disagreements": {}}
        if left != row.content:
            changed = update(schema.grown_sites).where(grown.site == row.site)
            connection.execute(changed.values(content=left))
    return {"seeds": count}


def _entities(connection: Connection, doomed: ErasureScope, mentions: TextRedaction) -> dict[str, int]:
    """All of them, if any is known from it: they were linked as a whole, and can be again."""
    columns = schema.entities.c
    for row in _rows(connection, select(columns.number, columns.content), columns.number):
        members = json.loads(row.content)["members"]
        if any(one["source"] in doomed.sites or mentions.is_about(one["url"]) for one in members):
            connection.execute(delete(schema.linkings))
            return {"entities": connection.execute(delete(schema.entities)).rowcount}
    _scrub(connection, schema.linkings, ["content"], mentions)
    return {}


def _segments(connection: Connection, doomed: ErasureScope, _: TextRedaction) -> dict[str, int]:
    """The counts of sites that lose pages: the pages that stay are counted anew."""
    sites, tables, marks = schema.sites.c, schema.segment_tables, schema.search_marks
    for names in batches(doomed.sites | _sites_of_pages(connection, doomed), _ROWS_AT_A_TIME):
        ids = select(sites.id).where(sites.name.in_(names))
        connection.execute(delete(tables).where(tables.c.site_id.in_(ids)))
        connection.execute(
            delete(marks).where(marks.c.name.in_([counted_pages_mark(name) for name in names]))
        )
    return {}


def _failures(connection: Connection, _: ErasureScope, mentions: TextRedaction) -> dict[str, int]:
    columns = schema.failures.c
    rows = _rows(connection, select(columns.id, columns.url, columns.detail), columns.id)
    gone = (row.id for row in rows if mentions.are_in(row.url) or mentions.are_in(row.detail))
    count = 0
    for ids in batches(gone, _ROWS_AT_A_TIME):
        count += connection.execute(delete(schema.failures).where(columns.id.in_(ids))).rowcount
    return {"failures": count}


def _runs(connection: Connection, _: ErasureScope, mentions: TextRedaction) -> dict[str, int]:
    """They stay, for others came of them, too; what they were asked for is not told any more."""
    _scrub(connection, schema.runs, ["arguments", "counts"], mentions)
    return {}


class Step(NamedTuple):
    """How some tables forget; it says how many rows of which kind that was."""

    tables: tuple[Table, ...]
    forget: Callable[[Connection, ErasureScope, TextRedaction], Mapping[str, int]]


STEPS = (
    Step((schema.annotations,), _annotations),
    # Before wrappers and clusters, by whose names jobs are known to be about a site.
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
"""All tables that tell of pages, but for those of the pages themselves."""


def _scrub(connection: Connection, table: Table, columns: Sequence[str], mentions: TextRedaction) -> None:
    """Replace what names it in columns of JSON."""
    key = list(table.primary_key.columns)
    for row in _rows(connection, select(*key, *(table.c[name] for name in columns)), *key):
        told = {name: getattr(row, name) for name in columns}
        left = {name: mentions.without(value) for name, value in told.items()}
        if left != told:
            is_it = and_(*(column == getattr(row, column.name) for column in key))
            connection.execute(update(table).where(is_it).values(left))
