"""Sites over time: the same pages on many days or in many releases, with their true values.

Quirks of the sets, left as they are:

- nz_parliament_2016: the e-mail address is in `href="mailto:..."` only, and one page of the last day has
  none. Until 2016-08-20 electorate and party of one page (faafoi-kris, template "?") are missing in the file,
  though they are on the page: they count as unknown. The electorate of today is in the last row of a table in
  the old template and in the first row in the new one, and a quarter of the members have several rows.
- malta_parliament: the faction is the title and alternative text of an image, in several spellings. A page
  may have several e-mail addresses, some of them twice; 11 and 20 pages have no faction or e-mail.
- denmark_folketing: two pages have several e-mail addresses, one has none. A member has up to 20 periods.
- ipython_doc: behind the heading stands a link `¶` that is not part of the value, and in releases 1 to 3 the
  heading of most pages has two text nodes (`Module: config.application`, where there was
  `config.application` before). An index, a search page and a frame (`_downloads`) are among the pages;
  three to five of a release have no heading.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

from siteloom.core.model import Attribute, Page
from siteloom.html.visible_text import normalize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

Values = tuple[str, ...]

NZ, MALTA, DENMARK, IPYTHON = SETS = (
    "nz_parliament_2016",
    "malta_parliament",
    "denmark_folketing",
    "ipython_doc",
)

_DOCUMENTATION = "https://ipython.example/doc/"
_UNKNOWN_TEMPLATE = "?"
_ONE_VALUE = re.compile(r"(?!)")  # never splits
_ADDRESSES = re.compile(r"[;|]")
_LINES = re.compile(r"\|")


@dataclass(frozen=True)
class Fetch:
    """A page as it was on one visit, with its true values.

    An empty tuple says that the page has none; an attribute that is left out is unknown there.
    """

    url: str
    file: Path
    truth: Mapping[str, Values]

    @cached_property
    def page(self) -> Page:
        """The page, under an address that stays the same over all visits."""
        return Page(self.url, self.file.read_bytes())


@dataclass(frozen=True)
class Visit:
    """All pages of one day or release; `template` is the group, or groups, that the data set names."""

    name: str
    template: str
    fetches: Sequence[Fetch]

    @property
    def pages(self) -> list[Page]:
        """The pages alone."""
        return [fetch.page for fetch in self.fetches]

    @property
    def truths(self) -> dict[str, Mapping[str, Values]]:
        """The true values by address."""
        return {fetch.url: fetch.truth for fetch in self.fetches}


@dataclass(frozen=True)
class ChangeSet:
    """A site over time: its visits in order, and what is known of its attributes."""

    name: str
    schema: Mapping[str, Attribute]
    visits: Sequence[Visit] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Source:
    """How a set is read: its attributes, how several values are told apart in the file."""

    schema: Mapping[str, Attribute]
    separators: Mapping[str, re.Pattern[str]] = field(default_factory=dict)


_SOURCES = {
    NZ: _Source({name: Attribute(constant=True) for name in ("heading", "email", "electorate", "party")}),
    MALTA: _Source(
        {
            "heading": Attribute(constant=True),
            "faction": Attribute(constant=True),
            "email": Attribute(multi=True, constant=True),
        },
        {"email": _ADDRESSES},
    ),
    DENMARK: _Source(
        {
            "name": Attribute(constant=True),
            "email": Attribute(multi=True, constant=True),
            "member_period": Attribute(multi=True, constant=True),
        },
        {"email": _ADDRESSES, "member_period": _LINES},
    ),
    IPYTHON: _Source({"h1": Attribute(constant=True), "title": Attribute(constant=False)}),
}


def change_sets(data: Path) -> Iterator[ChangeSet]:
    """The four sets, in the order of `SETS`."""
    for name in SETS:
        yield change_set(data, name)


def change_set(data: Path, name: str) -> ChangeSet:
    """One set by its name."""
    source = _SOURCES[name]
    folder = data / "change" / name
    with (folder / "truth.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row.get("page_type", "") not in ("list", "other")]
    rows.sort(key=_visit_order)
    visits = []
    for _, group in groupby(rows, key=_visit_order):
        of_visit = list(group)
        visits.append(
            Visit(
                of_visit[0].get("snapshot_day") or of_visit[0]["version"],
                _templates(of_visit),
                [_fetch(folder, row, source) for row in of_visit],
            )
        )
    return ChangeSet(name, source.schema, visits)


def _fetch(folder: Path, row: Mapping[str, str], source: _Source) -> Fetch:
    truth = {
        name: _values(source.separators.get(name, _ONE_VALUE).split(row[name]))
        for name in source.schema
        if row[name] or row.get("template") != _UNKNOWN_TEMPLATE
    }
    return Fetch(row.get("url") or _DOCUMENTATION + row["page_id"], folder / row["file"], truth)


def _values(texts: Sequence[str]) -> Values:
    """Each value once, in order."""
    return tuple(dict.fromkeys(value for value in map(normalize, texts) if value))


def _templates(rows: Sequence[Mapping[str, str]]) -> str:
    """The groups of a visit, that of most pages first."""
    groups = [row.get("template") or row.get("template_group") or "" for row in rows]
    named = {group for group in groups if group not in ("", _UNKNOWN_TEMPLATE)}
    return "+".join(sorted(named, key=groups.count, reverse=True))


def _visit_order(row: Mapping[str, str]) -> tuple[int, ...]:
    """A day or a release, so that it sorts."""
    text = row.get("snapshot_day") or row["version"].removeprefix("rel-")
    return tuple(int(part) for part in text.replace("-", ".").split("."))
