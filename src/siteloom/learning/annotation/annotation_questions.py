"""The sheet of a cluster: the annotated and found values of each sample page, and the questions to ask.

Its classes are sent to the browser as JSON; they use lists and dictionaries, which serialise fastest.
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

# Values with at least this confidence are hardly ever wrong, so they are asked for last.
_DOUBTFUL = 0.9
# An attribute that fewer of the pages have is usually absent on the others.
_USUAL = 0.5
# Another page that adds a smaller share to the coverage hardly teaches anything.
_HARDLY_MORE = 0.02
# Rules learned from fewer pages are unreliable, however similar the pages are.
_LEAST_SETTLED = 3


@dataclass(frozen=True, slots=True)
class Value:
    """A visible value, its selection on the page, and its confidence if rules found it."""

    text: str
    pick: Pick | None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """The state and values of an attribute on a page or in a record.

    `said` and `absent` are statements of a person, which the wrapper may contradict; `suggested` are values
    that the wrapper finds where there is no statement; `known` are values known from elsewhere. A cell is
    `empty` if the wrapper finds nothing, and `unknown` as long as nothing was learned.
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
    """A sample page: its cells, or those of its records, and the records that the wrapper finds."""

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
    """A question that a person can answer with yes or no."""

    page: int
    attribute: str | None
    record: int | None
    kind: QuestionKind
    text: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """The progress of annotation: the number of settled pages, and the share of variation that they cover."""

    settled: int
    pages: int
    covered: float
    sentence: str
    is_enough: bool


@dataclass(frozen=True, slots=True)
class ExternalValues:
    """The values of an attribute on a page that are known from elsewhere, and their source."""

    values: list[Value]
    source: str


@dataclass(frozen=True, slots=True)
class Offer:
    """An attribute known from elsewhere but not annotated: the number of pages with it, and one value."""

    name: str
    source: str
    pages: int
    example: str


@dataclass(frozen=True, slots=True)
class Inferred:
    """The inferred properties of an attribute."""

    multi: bool | None
    mandatory: bool | None
    constant: bool | None
    type: ValueType | None


@dataclass(frozen=True, slots=True)
class SheetAttribute:
    """An attribute: its declared and inferred properties, its rule, and its progress.

    A person settled it on `settled` of the pages, and `found` pages have a value; the remark names the first
    page with a problem.
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
    """Everything an annotator sees of a cluster; every change by anyone changes the revision."""

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
    """Build a cell from the statement with its visible values, the found values, and the known values."""
    if statement is not None:
        differs = finds is not None and _texts(finds) != _texts(values)
        state: CellState = "said" if values else "absent"
        return Cell(
            state=state,
            values=values,
            finds=finds,
            differs=differs,
            source=statement.author,
            at=statement.at,
            revision=statement.revision,
        )
    if finds:
        return Cell("suggested", finds, source="wrapper")
    if known_values is not None:
        return Cell("known", known_values.values, source=known_values.source)
    return Cell("unknown") if finds is None else Cell("empty", source="wrapper")


def _texts(values: Iterable[Value]) -> set[str]:
    return {fold(value.text) for value in values}


def questions(pages: Sequence[SheetPage], attributes: Sequence[str]) -> list[Question]:
    """Return the questions to ask, the most useful first: contradictions, gaps, doubts, then suggestions."""
    is_list = any(page.records for page in pages)
    usual = {name for name in attributes if _filled_share(pages, name) >= _USUAL}
    ranked_questions: list[tuple[int, Question]] = []
    for page in pages:
        for name, cell in page.cells.items():
            kind = _question_kind(cell)
            if kind is not None:
                rank = _RANKS[kind] if kind != "empty" or name in usual else _RANKS["suggested"]
                ranked_questions.append(
                    (
                        rank,
                        Question(
                            page=page.id,
                            attribute=name,
                            record=None,
                            kind=kind,
                            text=_question_text(page=page, name=name, cell=cell, kind=kind),
                        ),
                    )
                )
        if is_list:
            ranked_questions += _list_questions(page)
            if not (page.records or page.found_records):
                text = f"Page {page.number}: no records are found."
                ranked_questions.append(
                    (
                        _RANKS["empty"],
                        Question(page=page.id, attribute=None, record=None, kind="empty", text=text),
                    )
                )
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
                text = _question_text(page=page, name=name, cell=cell, kind="differs")
                yield (
                    _RANKS["differs"],
                    Question(page=page.id, attribute=name, record=number, kind="differs", text=text),
                )
    count = len(page.found_records)
    if count and not page.is_settled:
        counted = "1 record is" if count == 1 else f"{count} records are"
        text = f"Page {page.number}: {counted} found. Are these all?"
        yield (
            _RANKS["suggested"],
            Question(page=page.id, attribute=None, record=None, kind="suggested", text=text),
        )


def remark(pages: Sequence[SheetPage], name: str) -> str | None:
    """Return the most important problem with an attribute, if there is one."""
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
    """Return the progress of annotation.

    `covered` is the share of variation that the settled pages cover, `gain` what the next page would add;
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
    return Coverage(
        settled=settled,
        pages=len(pages),
        covered=covered,
        sentence=sentence,
        is_enough=hardly_more and not open_questions,
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"
