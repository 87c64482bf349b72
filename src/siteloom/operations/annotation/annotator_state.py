"""Sample pages, attributes and annotations as one state for the annotator, and what changed under it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import TooMuchFound
from siteloom.core.model import Example, Record
from siteloom.learning.annotation.annotation_history import Version, as_list, statements
from siteloom.learning.annotation.annotation_questions import (
    ExternalValues,
    Inferred,
    Offer,
    SheetAttribute,
    SheetPage,
    Value,
    cell,
    remark,
)
from siteloom.wrappers.explanation import rule_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.core.model import Attribute
    from siteloom.learning.annotation.annotation_history import PageStatements, Statement, Statements
    from siteloom.learning.annotation.annotation_questions import Cell
    from siteloom.learning.induction.learning_session import ScopedRecord
    from siteloom.operations.annotation.sample_pages import SamplePage
    from siteloom.store.queries.annotations import Annotation
    from siteloom.wrappers.wrapper import Wrapper


class PageView:
    """A sample page with all that is to be shown of it."""

    def __init__(
        self,
        page: SamplePage,
        said: Said,
        attributes: Sequence[str],
        found: Sequence[ScopedRecord] | None,
        wrapper: Wrapper | None,
    ) -> None:
        self._page = page
        self._learned = frozenset[str]() if wrapper is None else wrapper.attributes.keys()
        self._said = said
        self._attributes = attributes
        self._found = found
        # The number of the found record that each topmost element of one belongs to.
        self._record_tops = {
            top: number
            for number, one in enumerate(found or ())
            if one.scope is not None
            for top in one.scope.tops
        }

    def sheet_page(self, known: Mapping[str, ExternalValues], *, is_list: bool) -> SheetPage:
        """The page as annotators see it; `known` is what is known of it from elsewhere."""
        page, said = self._page, self._said.statements
        found = self._found or ()
        places = [self._found_record(record) for record in said.records]
        cells: dict[str, Cell] = {}
        if is_list:
            is_settled = bool(said.records) and set(self._record_tops.values()) <= set(places)
        else:
            whole = found[0].record if found else None
            cells = {
                name: self._cell(name, said.values.get(name), whole, known.get(name))
                for name in self._attributes
            }
            is_settled = bool(cells) and all(one.is_settled for one in cells.values())
        listed = [one for one in found if one.scope is not None]
        return SheetPage(
            id=page.id,
            number=page.number,
            url=page.page.url,
            version=page.version,
            revision=self._said.revision,
            title=page.title,
            covered=page.covered,
            is_settled=is_settled,
            authors=sorted({statement.author for statement in said.all_statements}),
            cells=cells,
            records=[
                self._record_cells(record, place) for record, place in zip(said.records, places, strict=True)
            ],
            found_records=[
                {name: self._values(one.record, name) for name in one.record.values} for one in listed
            ],
            record_elements=[
                [page.numbers[top] for top in one.scope.tops] for one in listed if one.scope is not None
            ],
        )

    def _record_cells(self, record: Statements, place: int | None) -> dict[str, Cell]:
        found = None
        if self._found is not None:
            found = Record(self._page.page.url, {}, {}, {}) if place is None else self._found[place].record
        return {name: self._cell(name, record.get(name), found, None) for name in self._attributes}

    def _found_record(self, record: Statements) -> int | None:
        """The number of the found record in which a record that someone marked stands."""
        for statement in record.values():
            for text, node in statement.values:
                pick = self._page.value(text, node).pick
                element = None if pick is None else self._page.elements[pick.element]
                while element is not None:
                    if element in self._record_tops:
                        return self._record_tops[element]
                    element = element.getparent()
        return None

    def _cell(
        self, name: str, said: Statement | None, found: Record | None, known: ExternalValues | None
    ) -> Cell:
        finds = None if found is None or name not in self._learned else self._values(found, name)
        by_text = {value.text: value.pick for value in finds or ()}
        values = [
            # Of a text that stands on the page more than once, the one that rules find is more likely meant.
            Value(text, by_text[text]) if node is None and text in by_text else self._page.value(text, node)
            for text, node in (said.values if said is not None else ())
        ]
        return cell(said, values, finds, known)

    def _values(self, record: Record, name: str) -> list[Value]:
        origins = record.provenance.get(name, ())
        return [
            self._page.value(text, origin.node, round(origin.confidence, 3))
            for text, origin in zip(record.values.get(name, ()), origins, strict=True)
        ]


def sheet_attribute(
    name: str, told: Attribute, wrapper: Wrapper | None, pages: Sequence[SheetPage]
) -> SheetAttribute:
    """An attribute as annotators see it: what was said of it, learned, and found on the pages."""
    rules = None if wrapper is None else wrapper.attributes.get(name)
    cells = [part[name] for page in pages for part in (page.cells, *page.records) if name in part]
    listed = [record for page in pages for record in page.found_records]
    return SheetAttribute(
        name=name,
        multi=told.multi,
        mandatory=told.mandatory,
        constant=told.constant,
        type=told.type,
        learned=None if rules is None else Inferred(**asdict(rules.attribute)),
        rule=rule_words(rules.rules[0], multi=bool(rules.attribute.multi)) if rules and rules.rules else None,
        settled=sum(one.is_settled for one in cells),
        found=sum(name in record for record in listed) if listed else sum(bool(one.values) for one in cells),
        pages=len(listed) or len(cells),
        remark=remark(pages, name),
    )


def offers(known: Iterable[Mapping[str, ExternalValues]], attributes: Mapping[str, Attribute]) -> list[Offer]:
    """The attributes that are known from elsewhere and not asked for, those of most pages first."""
    found: dict[str, list[ExternalValues]] = {}
    for page in known:
        for name, one in page.items():
            if name not in attributes:
                found.setdefault(name, []).append(one)
    found_offers = [
        Offer(name, ones[0].source, len(ones), ones[0].values[0].text) for name, ones in found.items()
    ]
    return sorted(found_offers, key=lambda offer: -offer.pages)


def found_before(page: SamplePage, wrapper: Wrapper | None) -> dict[str, ExternalValues]:
    """What the wrapper in force finds on a page; nothing of lists, whose records are suggested as a whole."""
    if wrapper is None or wrapper.record_rule is not None:
        return {}
    try:
        (record,) = wrapper.records_of(page.page, page.root)
    except TooMuchFound:
        return {}
    return {
        name: ExternalValues(
            [
                page.value(text, origin.node, round(origin.confidence, 3))
                for text, origin in zip(texts, record.provenance[name], strict=True)
            ],
            "the wrapper in force",
        )
        for name, texts in record.values.items()
    }


class Said(NamedTuple):
    """What was said of a page that is shown: as it holds, and the newest annotation, whatever it is of."""

    statements: PageStatements
    newest: Annotation | None
    example: Example

    @property
    def parts(self) -> tuple[Statements, ...]:
        """What was said of the page as a whole, and of each of its records."""
        return self.statements.values, *self.statements.records

    @property
    def revision(self) -> int:
        """The id of the newest annotation of the page; 0 if it has none."""
        return self.newest.id if self.newest else 0

    @property
    def as_list(self) -> Said:
        """The same of a page of a template of lists."""
        return self._replace(statements=self.statements.as_list, example=as_list(self.example))


def said_of(page: SamplePage, annotations: Iterable[Annotation]) -> Said:
    """What was said of a page; what was said of other versions than the one that is shown holds no more."""
    own = [annotation for annotation in annotations if annotation.url_id == page.id]
    versions = [
        Version(one.id, one.author, one.at, _example(page, one)) for one in own if one.place == page.place
    ]
    newest = own[-1] if own else None
    is_shown = newest is not None and newest.place == page.place
    return Said(
        statements(versions if is_shown else ()),
        newest,
        versions[-1].example if is_shown else Example(page.page),
    )


def _example(page: SamplePage, annotation: Annotation) -> Example:
    told = annotation.example
    return Example(page.page, told["values"], told["records"], told["nodes"], told.get("record_nodes", ()))
