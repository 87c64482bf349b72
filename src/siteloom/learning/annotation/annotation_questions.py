"""The sheet of a cluster: for each sample page and attribute what was said, what is found, and what to ask.

Its classes are what the browser is sent, as JSON; with lists and dictionaries, as these are written fastest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003 - read at run time, to describe the JSON
from typing import TYPE_CHECKING, Literal

from siteloom.core.model import ValueType  # noqa: TC001
from siteloom.learning.annotation.clicked_nodes import Pick  # noqa: TC001
from siteloom.learning.value_search.text_equality import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.learning.annotation.annotation_history import Statement

CellState = Literal["said", "absent", "suggested", "known", "empty", "unknown"]
QuestionKind = Literal["differs", "empty", "doubtful", "known", "suggested"]

# Of values that are found with at least this confidence hardly any is wrong, so they are asked for last.
_DOUBTFUL = 0.9
# An attribute that fewer of the pages have is rightly missing on the others, more often than not.
_USUAL = 0.5
# Another page that adds less than this to what was seen of the pages hardly teaches anything.
_HARDLY_MORE = 0.02
# Rules that were learned from fewer pages rest on too little, however alike the pages are.
_LEAST_SETTLED = 3


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it is seen, what of the page it is, and how likely it is right, if it was found by rules."""

    text: str
    pick: Pick | None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """What there is of an attribute on a page or in a record.

    `said` and `absent` are a person's words, and the wrapper may find something else there; `suggested` is
    what the wrapper finds where no one said anything, `known` what is known from elsewhere; where the wrapper
    finds nothing it is `empty`, and `unknown` as long as nothing was learned.
    """

    state: CellState
    values: list[Value] = field(default_factory=list)
    finds: list[Value] | None = None
    differs: bool = False
    source: str | None = None
    at: datetime | None = None
    revision: int = 0

    @property
    def is_settled(self) -> bool:
        """Whether a person decided it."""
        return self.state in ("said", "absent")


@dataclass(frozen=True, slots=True)
class SheetPage:
    """A sample page: its cells, or those of its records, and the records that are found there."""

    id: int
    number: int
    url: str
    version: str
    revision: int
    title: str
    covered: float
    is_settled: bool
    authors: list[str]
    cells: dict[str, Cell]
    records: list[dict[str, Cell]] = field(default_factory=list)
    found_records: list[dict[str, list[Value]]] = field(default_factory=list)
    record_elements: list[list[int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Question:
    """Something a person could settle by a yes or a no."""

    page: int
    attribute: str | None
    record: int | None
    kind: QuestionKind
    text: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far the work has come: how many pages are settled, how much of what varies they show."""

    settled: int
    pages: int
    covered: float
    sentence: str
    is_enough: bool


@dataclass(frozen=True, slots=True)
class ExternalValues:
    """The values of an attribute on a page that are known from elsewhere, and where from."""

    values: list[Value]
    source: str


@dataclass(frozen=True, slots=True)
class Offer:
    """An attribute that is known from elsewhere, but not asked for: on how many pages, and one value."""

    name: str
    source: str
    pages: int
    example: str


@dataclass(frozen=True, slots=True)
class Inferred:
    """What was learned of an attribute."""

    multi: bool | None
    mandatory: bool | None
    constant: bool | None
    type: ValueType | None


@dataclass(frozen=True, slots=True)
class SheetAttribute:
    """An attribute: what was said of it, what was learned, the rule that finds it, and how it fares.

    It was settled by a person on `settled` of the pages, and `found` have a value; the remark names the
    first page on which something is not as it should be.
    """

    name: str
    multi: bool | None
    mandatory: bool | None
    constant: bool | None
    type: ValueType | None
    learned: Inferred | None
    rule: str | None
    settled: int
    found: int
    pages: int
    remark: str | None


@dataclass(frozen=True, slots=True)
class Sheet:
    """All that an annotator sees of a cluster; the revision changes whenever anyone changes anything."""

    cluster: str
    site: str
    cluster_pages: int
    revision: str
    schema_revision: int
    is_list: bool
    attributes: list[SheetAttribute]
    offers: list[Offer]
    pages: list[SheetPage]
    questions: list[Question]
    coverage: Coverage
    problem: str | None


def cell(
    statement: Statement | None,
    values: list[Value],
    finds: list[Value] | None,
    known_values: ExternalValues | None,
) -> Cell:
    """The cell of an attribute: what was said, with its values as shown; what is found, and what is known."""
    if statement is not None:
        differs = finds is not None and _texts(finds) != _texts(values)
        state: CellState = "said" if values else "absent"
        return Cell(state, values, finds, differs, statement.author, statement.at, statement.revision)
    if finds:
        return Cell("suggested", finds, source="wrapper")
    if known_values is not None:
        return Cell("known", known_values.values, source=known_values.source)
    return Cell("unknown") if finds is None else Cell("empty", source="wrapper")


def _texts(values: Iterable[Value]) -> set[str]:
    return {fold(value.text) for value in values}


def questions(pages: Sequence[SheetPage], attributes: Sequence[str]) -> list[Question]:
    """What to ask, the most worthwhile first: contradictions, gaps, doubts, then all that is suggested."""
    is_list = any(page.records for page in pages)
    usual = {name for name in attributes if _filled_share(pages, name) >= _USUAL}
    ranked_questions: list[tuple[int, Question]] = []
    for page in pages:
        for name, cell in page.cells.items():
            kind = _question_kind(cell)
            if kind is not None:
                rank = _RANKS[kind] if kind != "empty" or name in usual else _RANKS["suggested"]
                ranked_questions.append(
                    (rank, Question(page.id, name, None, kind, _question_text(page, name, cell, kind)))
                )
        if is_list:
            ranked_questions += _list_questions(page)
            if not (page.records or page.found_records):
                text = f"Page {page.number}: no records are found."
                ranked_questions.append((_RANKS["empty"], Question(page.id, None, None, "empty", text)))
    ranked_questions.sort(
        key=lambda ranked_question: ranked_question[0]
    )  # stable: pages and attributes keep their order
    return [question for _, question in ranked_questions]


_RANKS: dict[QuestionKind, int] = {"differs": 0, "empty": 1, "doubtful": 2, "known": 3, "suggested": 4}


def _question_kind(cell: Cell) -> QuestionKind | None:
    if cell.is_settled:
        return "differs" if cell.differs else None
    if cell.state == "empty":
        return "empty"
    if cell.state == "known":
        return "known"
    if cell.state == "suggested":
        return "doubtful" if _min_confidence(cell) < _DOUBTFUL else "suggested"
    return None


def _filled_share(pages: Sequence[SheetPage], name: str) -> float:
    has_values = [bool(cell.values) for page in pages if (cell := page.cells.get(name)) is not None]
    return sum(has_values) / len(has_values) if has_values else 0.0


def _question_text(page: SheetPage, name: str, cell: Cell, kind: QuestionKind) -> str:
    where = f"Page {page.number}, {name}"
    shown = _quoted(cell.values)
    if kind == "differs":
        found_texts = _quoted(cell.finds or ()) or "nothing"
        statement = f"{shown} was said" if shown else "it was said to be absent"
        return f"{where}: {statement}, the wrapper finds {found_texts}."
    if kind == "empty":
        return f"{where}: no value is found. Is there none?"
    if kind == "known":
        return f"{where}: {shown}, as known from {cell.source}. Is that right?"
    if kind == "doubtful":
        return f"{where}: {shown}, only {_percent(_min_confidence(cell))} sure. Is that right?"
    return f"{where}: {shown}. Is that right?"


def _quoted(values: Sequence[Value]) -> str:
    return ", ".join(f"“{value.text}”" for value in values)


def _min_confidence(cell: Cell) -> float:
    return min((1.0 if value.confidence is None else value.confidence for value in cell.values), default=1.0)


def _list_questions(page: SheetPage) -> Iterable[tuple[int, Question]]:
    for number, record in enumerate(page.records):
        for name, cell in record.items():
            if cell.differs:
                text = _question_text(page, name, cell, "differs")
                yield _RANKS["differs"], Question(page.id, name, number, "differs", text)
    count = len(page.found_records)
    if count and not page.is_settled:
        counted = "1 record is" if count == 1 else f"{count} records are"
        text = f"Page {page.number}: {counted} found. Are these all?"
        yield _RANKS["suggested"], Question(page.id, None, None, "suggested", text)


def remark(pages: Sequence[SheetPage], name: str) -> str | None:
    """The first thing that is not as it should be with an attribute."""
    for kind, word in (("differs", "differs"), ("empty", "empty"), ("doubtful", "doubtful")):
        numbers = [
            page.number
            for page in pages
            if any(
                name in cells and _question_kind(cells[name]) == kind for cells in (page.cells, *page.records)
            )
        ]
        if numbers:
            further = f" and {len(numbers) - 1} more" if len(numbers) > 1 else ""
            return f"page {numbers[0]} {word}{further}"
    return None


def coverage(pages: Sequence[SheetPage], covered: float, gain: float, open_questions: int) -> Coverage:
    """How far the work has come.

    `covered` is the share of what varies that the settled pages show, `gain` what the next would add;
    open questions are contradictions, gaps and doubts.
    """
    settled = sum(page.is_settled for page in pages)
    sentence = f"{settled} of {len(pages)} sample pages {'is' if settled == 1 else 'are'} settled"
    hardly_more = settled >= min(_LEAST_SETTLED, len(pages)) and gain < _HARDLY_MORE
    if settled:
        sentence += f" and {'shows' if settled == 1 else 'show'} {_percent(covered)} of what varies"
    if hardly_more and open_questions:
        doubts = "1 doubt is" if open_questions == 1 else f"{open_questions} doubts are"
        sentence += f": another page would hardly teach anything, but {doubts} left."
    elif settled == len(pages):
        sentence += ": there is nothing more to annotate here."
    elif hardly_more:
        sentence += ": more would hardly teach anything."
    else:
        sentence += f"; the next would add {_percent(gain)}."
    return Coverage(settled, len(pages), covered, sentence, hardly_more and not open_questions)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"
