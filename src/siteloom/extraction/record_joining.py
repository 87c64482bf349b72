"""One record out of the several pages of an entity: its details, its specification, its reviews."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing, contextmanager
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import OutputError, UsageError
from siteloom.core.sqlite_files import temporary_sqlite
from siteloom.core.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from siteloom.extraction.record_rows import Row


class JoinKey(NamedTuple):
    """What the rows of one entity have in common.

    It is the values of an attribute, or, with `url_pattern`, what the group of the
    pattern finds in the URL. The other one is None.
    """

    attribute: str | None
    url_pattern: re.Pattern[str] | None

    def of(self, row: Row) -> list[str]:
        """The key of a row, empty if it has none."""
        if self.url_pattern is None:
            return sorted(set(row["values"].get(self.attribute, ())))
        found = self.url_pattern.search(row["url"])
        return [found[1]] if found and found[1] else []


def parse_key(text: str) -> JoinKey:
    """A key as a person writes it: a regular expression on the URL if it has a `(`, else an attribute."""
    if "(" not in text:
        return JoinKey(text, None)
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UsageError(f"The pattern {text} for URLs is no regular expression: {error}.") from error
    if pattern.groups != 1:
        raise UsageError(
            f"The pattern {text} for URLs has {pattern.groups} groups: put parentheses around the one part "
            "that names the entity, and write (?:...) for any others."
        )
    return JoinKey(None, pattern)


def join_rows(rows: Iterable[Row], key: JoinKey) -> Iterator[Row]:
    """The rows with those joined into one that have the same key on the same site.

    A joined row has the URL, wrapper and version of the first of them, and stands in
    its place. Each attribute comes whole from the row that is surest of it, which is
    as sure as of its least sure value; of equals, from the first. What was withheld is
    kept from all. `pages` lists the URL, wrapper and version of each, and provenance
    says by `url` which page it speaks of. Rows without a key stay alone; they get
    `pages` too, so that all rows are alike.

    All rows are read before the first is given. They wait in a temporary file, so
    memory does not grow with them.
    """
    with closing(temporary_sqlite()) as spool:
        with _spool_errors():
            spool.execute("PRAGMA journal_mode = OFF")  # nothing is ever rolled back
            spool.execute("CREATE TABLE waiting (position INTEGER PRIMARY KEY, key BLOB, row TEXT)")
        for row in rows:
            waiting = (_digest(row, key.of(row)), json.dumps(row))
            with _spool_errors():
                spool.execute("INSERT INTO waiting (key, row) VALUES (?, ?)", waiting)
        for _, group in groupby(_in_groups(spool), itemgetter(0)):
            yield _joined(row for _, row in group)


_GROUPS = """
    SELECT coalesce(first, position), position
    FROM waiting LEFT JOIN (SELECT key, min(position) AS first FROM waiting GROUP BY key) USING (key)
    ORDER BY 1, 2
"""


def _in_groups(spool: sqlite3.Connection) -> Iterator[tuple[int, Row]]:
    """The waiting rows, those of a group together, each with the number of its group."""
    with _spool_errors():
        for group, position in spool.execute(_GROUPS):
            (text,) = spool.execute("SELECT row FROM waiting WHERE position = ?", (position,)).fetchone()
            yield group, json.loads(text)


@contextmanager
def _spool_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise OutputError(f"The file in which records wait to be joined cannot be used: {error}.") from error


def _digest(row: Row, key: list[str]) -> bytes | None:
    if not key:
        return None
    return blake2b(json.dumps([site_of(row["url"]), *key]).encode(), digest_size=16).digest()


def _joined(rows: Iterator[Row]) -> Row:
    joined = _with_page(next(rows))
    for row in map(_with_page, rows):
        joined["pages"] += row["pages"]
        for attribute, confidence in row["confidence"].items():
            if min(confidence) > min(joined["confidence"].get(attribute, _NO_CONFIDENCE)):
                _take(attribute, row, joined)
        for attribute, withheld in row["withheld"].items():
            joined["withheld"].setdefault(attribute, []).extend(withheld)
    return joined


_NO_CONFIDENCE = (-1.0,)  # less than any


def _with_page(row: Row) -> Row:
    """The row as one that was joined with no other."""
    url = row["url"]
    return {
        **row,
        "provenance": _with_url(row["provenance"], url),
        "withheld": _with_url(row["withheld"], url),
        "pages": [{"url": url, "wrapper": row["wrapper"], "version": row["version"]}],
    }


def _with_url(notes: dict[str, list[dict[str, str]]], url: str) -> dict[str, list[dict[str, str]]]:
    return {attribute: [{**note, "url": url} for note in listed] for attribute, listed in notes.items()}


def _take(attribute: str, source: Row, joined: Row) -> None:
    for part in ("values", "typed", "confidence", "provenance"):
        if attribute in source[part]:
            joined[part][attribute] = source[part][attribute]
        else:  # values that could not be read as their type have no typed ones
            joined[part].pop(attribute, None)
