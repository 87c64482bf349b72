"""The terms of documents, in SQLite's FTS5 or in PostgreSQL's full text, behind one interface.

Which terms a text has is decided by `siteloom.core.word_tokenizer` alone: the databases are handed
nothing that they could
take apart in their own way, so both find the same. (But PostgreSQL counts places up to 16,383 only: of what
stands behind, it finds terms and no phrases.) The ranks differ. FTS5 has BM25; PostgreSQL weighs places and
not how rare a term is, so that is multiplied in.

Terms can always be made again from their documents, so FTS5 keeps no copy of them.
"""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, Protocol, get_args

from sqlalchemy import (
    REAL,
    bindparam,
    cast,
    column,
    delete,
    func,
    insert,
    literal_column,
    select,
    table,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, TSQUERY, TSVECTOR

from siteloom.core.errors import StoreError
from siteloom.core.model import Field
from siteloom.core.word_tokenizer import VERSION as VERSION_OF_WORDS
from siteloom.core.word_tokenizer import terms
from siteloom.store import schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection

    from siteloom.core.model import Passage

TABLE = "search_terms"
_VERSION = f"2 {VERSION_OF_WORDS}"  # changes when the same document may have other terms than before
_MODULE = "fts5"

_FIELDS: tuple[Field, ...] = get_args(Field)
_ATTRIBUTES = "attributes"
_FIELD_OF_ATTRIBUTES: Field = "heading"  # as whose terms those count that are looked for in an attribute
# On real sites, pages are found about as well with half or double of each: see docs/evaluation/search.md.
_WEIGHTS: dict[Field, float] = {"title": 8.0, "heading": 4.0, "text": 1.0, "common": 0.5}
_POSTGRES_LABELS: dict[Field, str] = {"title": "A", "heading": "B", "text": "C", "common": "D"}
_GAP = 10  # positions between two fields, so that no phrase begins in one and ends in the other
# PostgreSQL refuses what comes to 2 ** 20 bytes. Beside its letters, a term takes up to one to make them
# even, two for the number of its places, and two for each place. No page that someone reads is as long.
_MOST_BYTES = 1_000_000
_BESIDE_A_TERM = 5

Phrase = tuple[str, ...]
"""Terms that stand side by side; mostly one."""


class TermCondition(NamedTuple):
    """Which documents are looked for: with all or with any of some phrases, and with none of others.

    With an attribute, all that counts is what stands in the values of this attribute.
    """

    phrases: tuple[Phrase, ...]
    excluded_phrases: tuple[Phrase, ...]
    attribute: str | None
    takes_any: bool


class _Terms(NamedTuple):
    """The terms of a document by field, and once more with the attributes that they stand in."""

    fields: Mapping[Field, Sequence[str]]
    in_attributes: Sequence[str]


class TermIndex(Protocol):
    """What each database can do with terms.

    Its version changes when all documents must be indexed again.
    """

    version: str

    def make(self, connection: Connection) -> None:
        """Begin with no terms, whatever there was."""
        ...

    def add(self, connection: Connection, documents: Mapping[int, Sequence[Passage]]) -> None:
        """Take in the terms of documents."""
        ...

    def remove(self, connection: Connection, documents: Mapping[int, Sequence[Passage]]) -> None:
        """Take out the terms of documents, which must be as they were when they came."""
        ...

    def wipe(self, connection: Connection) -> None:
        """Leave no trace of terms that were taken out, but for what the database itself has yet to free."""
        ...

    def best(
        self, connection: Connection, condition: TermCondition, among: ColumnElement[bool], limit: int
    ) -> list[tuple[int, float]]:
        """The ids of the documents that fit best, with their scores: the higher the better."""
        ...


def term_index(dialect: str) -> TermIndex:
    """The one for a database."""
    return _Fts5() if dialect == "sqlite" else _Postgres()


class _Fts5:
    # What is taken out must have the very terms that it had when it came, and they depend on this, too.
    version = f"{_VERSION} {unicodedata.unidata_version}"
    _columns = (*_FIELDS, _ATTRIBUTES)
    # A column of the table's own name takes commands.
    _table = table(TABLE, column("rowid"), *map(column, _columns), column(TABLE))

    def make(self, connection: Connection) -> None:
        modules = text("SELECT count(*) FROM pragma_module_list WHERE name = :name")
        if not connection.execute(modules, {"name": _MODULE}).scalar_one():
            raise StoreError(
                "Searching needs SQLite with its module FTS5, which the SQLite of this Python lacks: "
                "use another Python, or a PostgreSQL database."
            )
        connection.execute(text(f"DROP TABLE IF EXISTS {TABLE}"))
        # To this tokenizer, marks of ASCII part words, and no term has such; all else is part of a word.
        options = "content='', tokenize='ascii'"
        connection.execute(
            text(f"CREATE VIRTUAL TABLE {TABLE} USING {_MODULE}({', '.join(self._columns)}, {options})")
        )

    def add(self, connection: Connection, documents: Mapping[int, Sequence[Passage]]) -> None:
        connection.execute(insert(self._table), [self._row(*document) for document in documents.items()])

    def remove(self, connection: Connection, documents: Mapping[int, Sequence[Passage]]) -> None:
        rows = [{**self._row(*document), TABLE: "delete"} for document in documents.items()]
        connection.execute(insert(self._table), rows)

    def wipe(self, connection: Connection) -> None:
        # What is taken out is only marked so, until all parts of the index are made one.
        connection.execute(insert(self._table), {TABLE: "optimize"})

    def _row(self, document: int, passages: Sequence[Passage]) -> dict[str, object]:
        document_terms = _terms(passages)
        row: dict[str, object] = {field: " ".join(document_terms.fields.get(field, ())) for field in _FIELDS}
        return {**row, "rowid": document, _ATTRIBUTES: " ".join(document_terms.in_attributes)}

    def best(
        self, connection: Connection, condition: TermCondition, among: ColumnElement[bool], limit: int
    ) -> list[tuple[int, float]]:
        weights = ", ".join(str(_WEIGHTS[field]) for field in (*_FIELDS, _FIELD_OF_ATTRIBUTES))
        rank: ColumnElement[float] = literal_column(f"bm25({TABLE}, {weights})")  # the lower the better
        documents, columns = schema.search_documents, self._table.c
        query = (
            select(columns.rowid, rank.label("place"))
            .select_from(self._table.join(documents, documents.c.id == columns.rowid))
            .where(text(f"{TABLE} MATCH :expression"), among)
            .order_by(text("place"), columns.rowid)
            .limit(limit)
        )
        rows = connection.execute(query, {"expression": self._expression(condition)})
        return [(document, -place) for document, place in rows]

    def _expression(self, condition: TermCondition) -> str:
        columns = " ".join(_FIELDS) if condition.attribute is None else _ATTRIBUTES
        included = (" OR " if condition.takes_any else " AND ").join(_quoted(condition.phrases, condition))
        if not condition.excluded_phrases:
            return f"{{{columns}}} : ({included})"
        excluded = " OR ".join(_quoted(condition.excluded_phrases, condition))
        return f"{{{columns}}} : (({included}) NOT ({excluded}))"


def _quoted(phrases: Iterable[Phrase], condition: TermCondition) -> list[str]:
    """Phrases as FTS5 wants them; terms have no quotes inside."""
    return [f'"{" ".join(_in_attribute(phrase, condition.attribute))}"' for phrase in phrases]


class _Postgres:
    # Pythons of different ages may share it; they differ in characters that hardly any page has.
    version = _VERSION
    _table = table(TABLE, column("document_id"), column("terms"), column("in_attributes"))

    def make(self, connection: Connection) -> None:
        connection.execute(text(f"DROP TABLE IF EXISTS {TABLE}"))
        connection.execute(
            text(
                f"CREATE TABLE {TABLE} (document_id bigint PRIMARY KEY, "
                "terms tsvector NOT NULL, in_attributes tsvector NOT NULL)"
            )
        )
        for name in ("terms", "in_attributes"):
            connection.execute(text(f"CREATE INDEX ix_{TABLE}_{name} ON {TABLE} USING gin ({name})"))

    def add(self, connection: Connection, documents: Mapping[int, Sequence[Passage]]) -> None:
        rows = []
        for document, passages in documents.items():
            document_terms = _terms(passages)
            in_attributes = _vector({_FIELD_OF_ATTRIBUTES: document_terms.in_attributes})
            rows.append({"id": document, "all": _vector(document_terms.fields), "attributes": in_attributes})
        row = insert(self._table).values(
            document_id=bindparam("id"),
            terms=cast(bindparam("all"), TSVECTOR),
            in_attributes=cast(bindparam("attributes"), TSVECTOR),
        )
        connection.execute(row, rows)

    def remove(self, connection: Connection, documents: Mapping[int, Sequence[Passage]]) -> None:
        connection.execute(delete(self._table).where(self._table.c.document_id.in_(documents)))

    def wipe(self, connection: Connection) -> None:
        """There is nothing left but what VACUUM frees."""

    def best(
        self, connection: Connection, condition: TermCondition, among: ColumnElement[bool], limit: int
    ) -> list[tuple[int, float]]:
        columns = self._table.c
        searched = columns.terms if condition.attribute is None else columns.in_attributes
        phrases = [_tsquery(_in_attribute(phrase, condition.attribute)) for phrase in condition.phrases]
        all_documents = connection.execute(select(func.count()).select_from(self._table)).scalar_one()
        # From the last label to the first; its own default for the first is one, too.
        weights = [_WEIGHTS[field] / max(_WEIGHTS.values()) for field in reversed(_FIELDS)]
        rank: ColumnElement[float] = literal_column("0.0")
        for phrase in phrases:
            counted = select(func.count()).select_from(self._table).where(_matches(searched, phrase))
            with_it = connection.execute(counted).scalar_one()
            rarity = math.log(1 + (all_documents - with_it + 0.5) / (with_it + 0.5))
            # 1: what stands in a long document counts less
            place = func.ts_rank(cast(weights, ARRAY(REAL)), searched, cast(phrase, TSQUERY), 1)
            rank = rank + rarity * place
        expression = (" | " if condition.takes_any else " & ").join(f"({phrase})" for phrase in phrases)
        fits = _matches(searched, expression)
        for excluded_phrase in condition.excluded_phrases:
            fits &= ~_matches(searched, _tsquery(_in_attribute(excluded_phrase, condition.attribute)))
        documents = schema.search_documents
        query = (
            select(columns.document_id, rank.label("place"))
            .select_from(self._table.join(documents, documents.c.id == columns.document_id))
            .where(fits, among)
            .order_by(text("place DESC"), columns.document_id)
            .limit(limit)
        )
        return [(document_id, float(place)) for document_id, place in connection.execute(query)]


def _matches(searched: ColumnElement[str], expression: str) -> ColumnElement[bool]:
    return searched.bool_op("@@")(cast(expression, TSQUERY))


def _tsquery(phrase: Sequence[str]) -> str:
    """A phrase as PostgreSQL wants it; terms have no quotes inside."""
    return " <-> ".join(f"'{term}'" for term in phrase)


def _vector(fields: Mapping[Field, Sequence[str]]) -> str:
    """Terms with their places and the labels of their fields, as PostgreSQL writes them."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    place = 1
    for field, field_terms in fields.items():
        for term in field_terms:
            places[term].append(f"{place}{_POSTGRES_LABELS[field]}")
            place += 1
        place += _GAP
    return " ".join(f"'{term}':{','.join(where)}" for term, where in places.items())


def _in_attribute(terms_of_text: Sequence[str], attribute: str | None) -> Sequence[str]:
    """Terms with the attribute that they stand in, whose name may be any text: as letters and digits."""
    if attribute is None:
        return terms_of_text
    prefix = blake2b(attribute.encode(errors="surrogatepass"), digest_size=6).hexdigest()
    return [prefix + term for term in terms_of_text]


def _terms(passages: Sequence[Passage]) -> _Terms:
    fields: defaultdict[Field, list[str]] = defaultdict(list)
    in_attributes: list[str] = []
    room = room_in_attributes = _MOST_BYTES
    for passage in passages:
        terms_of_text = terms(passage.text)
        fitting, room = _fitting(terms_of_text, room)
        fields[passage.field] += fitting
        if passage.attribute:
            fitting, room_in_attributes = _fitting(
                _in_attribute(terms_of_text, passage.attribute), room_in_attributes
            )
            in_attributes += fitting
    return _Terms(fields, in_attributes)


def _fitting(terms_of_text: Sequence[str], room: int) -> tuple[Sequence[str], int]:
    """As many of the first terms as there is room for, in bytes, and the room that is left."""
    room_left = room - len("".join(terms_of_text).encode()) - _BESIDE_A_TERM * len(terms_of_text)
    if room_left >= 0:
        return terms_of_text, room_left
    fitting = []
    for term in terms_of_text:
        room -= len(term.encode()) + _BESIDE_A_TERM
        if room < 0:
            break
        fitting.append(term)
    return fitting, 0
