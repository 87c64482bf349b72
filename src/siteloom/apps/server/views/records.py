"""Tables of records as values: what was asked for, and what is shown; pages and API are made of the same."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from pydantic import BaseModel, Field

from siteloom.apps.server.html_rendering import share
from siteloom.apps.server.result_cache import Choice
from siteloom.apps.server.views.runs import extraction_counts
from siteloom.core.errors import NotFound, WrapperError
from siteloom.store.queries.record_filters import Condition, RecordQuery, magnitude
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.store.queries.record_filters import Operator, RecordCount, RecordScope, Sorting, TableRow
    from siteloom.store.store import Store

ALL = "*"
"""In place of a wrapper's name: all of them."""

SORTS: Mapping[str, Sorting] = {"page": "page", "url": "url", "confidence": "confidence"}
"""What tables are sorted by, if not by an attribute."""

VALUE = "v."
"""How the names of parameters begin that say what the values of an attribute must be like."""

_COMPARING: tuple[tuple[str, Operator], ...] = (
    ("<=", "at most"),
    (">=", "at least"),
    ("<", "less"),
    (">", "greater"),
)
_BEHIND_SIGNS = {
    "<": "a number or a date, as in <10",
    ">": "a number or a date, as in >10",
    "~": "a share, as in ~0.8",
    "=": "a text, as in =thai",
    "!": "a text, as in !thai",
}
_SIGNS: dict[Operator, str] = {"less": "<", "greater": ">", "at most": "≤", "at least": "≥"}


@dataclass(frozen=True, slots=True)
class AskedTable:
    """What a table is asked for by a query string: `filters` has what was typed for each attribute."""

    site: str | None = None
    wrapper: str | None = None
    run: int | None = None
    words: str = ""
    url: str = ""
    filters: tuple[tuple[str, str], ...] = ()
    below: float | None = None
    sort: str = "page"
    descending: bool = False

    def query(self) -> RecordQuery:
        """Which records these are."""
        conditions = [read_filter(attribute, text) for attribute, text in self.filters]
        attribute = self.sort.removeprefix(VALUE) if self.sort.startswith(VALUE) else ""
        return RecordQuery(
            words=" ".join(self.words.split()),
            url=self.url.strip(),
            conditions=tuple(condition for condition in conditions if condition is not None),
            confidence_below=self.below,
            sort="attribute" if attribute else SORTS.get(self.sort, "page"),
            attribute=attribute,
            descending=self.descending,
        )

    def given(self) -> list[tuple[str, str]]:
        """The parameters of the query string that asks for it."""
        named: list[tuple[str, object]] = [
            ("site", self.site),
            ("wrapper", self.wrapper),
            ("run", self.run),
            ("words", self.words),
            ("url", self.url),
            *((f"{VALUE}{attribute}", text) for attribute, text in self.filters),
            ("below", None if self.below is None else f"{self.below:g}"),
            ("sort", None if self.sort == "page" else self.sort),
            ("order", "down" if self.descending else None),
        ]
        return [(name, str(value)) for name, value in named if value not in (None, "")]

    def parameters(self, **more: int) -> str:
        """That query string, and more behind it."""
        return urlencode([*self.given(), *more.items()], errors="replace")


class AttributeShare(BaseModel):
    """An attribute that records of a table may have."""

    name: str
    filled: float = Field(description="Share of the records that have a value.")


class RecordView(BaseModel):
    """A record."""

    id: int
    site: str
    url: str
    wrapper: str
    version: int | None = Field(description="The version of the wrapper; none if it is of a file.")
    place: int = Field(description="Its number among the records of its page, from 0.")
    values: dict[str, list[str]]
    confidence: dict[str, list[float]] = Field(description="How likely each value is right.")


class RecordsView(BaseModel):
    """Some of the records that were asked for."""

    total: int = Field(description="How many there are in all.")
    attributes: list[AttributeShare]
    records: list[RecordView]
    next: str | None = Field(description="Where the next ones are; none after the last.")


class Chip(NamedTuple):
    """A filter that is in force: in words, and how the table is asked for without it."""

    text: str
    without: str


def read_filter(attribute: str, text: str) -> Condition | None:
    """What is typed over a column: a part of the text, or a sign before a text or a number.

    `=x` is the whole text, `!x` another one, `<5` and `>5` compare numbers and dates, `~0.8` is for what is
    less sure, `-` for no value, and `*` for any.
    """
    text = text.strip()
    if not text:
        return None
    if text == "-":
        return Condition(attribute, "is empty")
    if text == ALL:
        return Condition(attribute, "has a value")
    for sign, operator in _COMPARING:
        if text.startswith(sign):
            limit = text.removeprefix(sign).replace(",", "").replace(" ", "")
            if magnitude(limit) is not None:
                return Condition(attribute, operator, limit)
    if text.startswith("~") and (sure := magnitude(text[1:].removesuffix("%").strip())) is not None:
        return Condition(attribute, "unsure", f"{sure / 100 if sure > 1 else sure:f}")
    if text.startswith("=") and text != "=":
        return Condition(attribute, "is", text[1:].strip())
    if text.startswith("!") and text.strip("!="):
        return Condition(attribute, "is not", text[1:].removeprefix("=").strip())
    return Condition(attribute, "contains", text)


def misread(attribute: str, text: str) -> str | None:
    """A sentence about a filter that is a sign without anything that it could be about; None of others."""
    condition = read_filter(attribute, text)
    if condition is None or condition.operator != "contains":
        return None
    lacking = _BEHIND_SIGNS.get(condition.text[0])
    if lacking is None:
        return None
    return f"“{condition.text}” over {attribute} lacks {lacking}, so it is looked for as a text."


def told(condition: Condition) -> str:
    """A condition in words."""
    match condition.operator:
        case "contains":
            return f"{condition.attribute} contains “{condition.text}”"
        case "is" | "is not":
            return f"{condition.attribute} {condition.operator} “{condition.text}”"
        case "is empty" | "has a value":
            return f"{condition.attribute} {condition.operator}"
        case "unsure":
            return f"{condition.attribute} less sure than {share(float(condition.text))}"
        case operator:
            return f"{condition.attribute} {_SIGNS[operator]} {condition.text}"


def chips(asked: AskedTable) -> list[Chip]:
    """The filters that are in force."""
    found = []
    if asked.run is not None:
        found.append(Chip(f"run {asked.run}", replace(asked, run=None).parameters()))
    if asked.words.strip():
        found.append(Chip(f"with “{asked.words.strip()}”", replace(asked, words="").parameters()))
    if asked.url.strip():
        found.append(Chip(f"URL contains “{asked.url.strip()}”", replace(asked, url="").parameters()))
    for one in asked.filters:
        if (condition := read_filter(*one)) is not None:
            others = tuple(other for other in asked.filters if other != one)
            found.append(Chip(told(condition), replace(asked, filters=others).parameters()))
    if asked.below is not None:
        found.append(Chip(f"less sure than {share(asked.below)}", replace(asked, below=None).parameters()))
    return found


def chosen(asked: AskedTable, scope: RecordScope, counts: Sequence[RecordCount]) -> Choice:
    """The records that a table is made of; a site or wrapper without any is said to be so."""
    wrapper = None if asked.wrapper in (None, ALL) else asked.wrapper
    if wrapper is not None and not any(
        one.wrapper == wrapper and asked.site in (None, one.site) for one in counts
    ):
        raise NotFound(
            f"There are no records by a wrapper {wrapper}{f' of {asked.site}' * bool(asked.site)}."
        )
    return Choice(scope, asked.site, wrapper)


def attributes_of(store: Store, choice: Choice, counts: Iterable[RecordCount]) -> list[AttributeShare]:
    """The attributes of the wrappers of a choice in their order, and how many of its records have them."""
    scope, site, wrapper = choice
    records = sum(
        one.records for one in counts if site in (None, one.site) and wrapper in (None, one.wrapper)
    )
    in_force = scope.in_force
    filled: dict[str, int] = {}
    for stored in store.wrappers():
        if site in (None, stored.site) and wrapper in (None, stored.name):
            with suppress(WrapperError):  # one of a later version cannot be read, but its records can
                filled |= dict.fromkeys(Wrapper.from_json(stored.text).attributes, 0) | filled
    totals = extraction_counts(store, [run_id for _, run_id in scope.runs])
    for asked_for, run_id in scope.runs:
        if run_id not in totals:
            continue
        for name, of_wrapper in sorted(totals[run_id].most_records()):
            if wrapper not in (None, name):
                continue
            is_of_one_site = asked_for is not None or name in in_force.sites
            home = in_force.site_of(asked_for, name, "") if is_of_one_site else site or ""
            if home is not None and site in (None, home):
                for attribute, count in sorted(of_wrapper.filled.items()):
                    filled[attribute] = filled.get(attribute, 0) + count
    return [
        AttributeShare(name=name, filled=min(1.0, count / max(1, records))) for name, count in filled.items()
    ]


def record_view(row: TableRow) -> RecordView:
    """A record as programs see it."""
    return RecordView(**row._asdict())
