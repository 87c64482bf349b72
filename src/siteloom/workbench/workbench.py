"""A workbench: what people say of the sample pages of a cluster, and what is learned of it at once."""

from __future__ import annotations

from dataclasses import asdict
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple

from siteloom.annotating.sheet import (
    Inferred,
    Offer,
    Sheet,
    SheetAttribute,
    SheetPage,
    Value,
    cell,
    coverage,
    questions,
    remark,
)
from siteloom.annotating.statements import Version, amended, renamed, statements
from siteloom.errors import NotFound, Overtaken, SiteloomError, StoreBusy, UsageError
from siteloom.learning import check_example
from siteloom.learning.session import LearningSession
from siteloom.model import Attribute, Example
from siteloom.sampling import covered_share
from siteloom.workbench.known import known_values
from siteloom.workbench.sample_pages import page_of, sample_of
from siteloom.wrapper.explain import rule_words
from siteloom.wrapper.selection import records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from siteloom.annotating.picks import Pick
    from siteloom.annotating.sheet import Cell, Known
    from siteloom.annotating.statements import PageStatements, Statement, Statements
    from siteloom.model import Record
    from siteloom.store import Annotation, ClusterSchema, Store
    from siteloom.workbench.sample_pages import SamplePage
    from siteloom.wrapper import Wrapper
    from siteloom.wrapper.selection import Scope

# So often a change is tried again that another's change of something else has overtaken.
_ATTEMPTS = 20
_LONGEST_NAME = 100


class _Said(NamedTuple):
    """What was said of a page that is shown: as it holds, and the newest annotation, whatever it is of."""

    statements: PageStatements
    newest: Annotation | None
    example: Example


class _Learned(NamedTuple):
    """What was learned from what was said: a wrapper, or why there is none."""

    wrapper: Wrapper | None
    problem: str | None


class _FoundRecord(NamedTuple):
    scope: Scope | None
    record: Record


class Workbench:
    """The sample pages of a cluster, which people annotate together, each click followed by learning anew.

    What is said is kept in the store at once; pages, trees and what was learned are kept here, for speed.
    """

    def __init__(self, store: Store, cluster: str) -> None:
        self._store = store
        self.edition = store.cluster_edition(cluster)
        self._sample = sample_of(store, cluster)
        if not self._sample.pages:
            raise UsageError(f"None of the pages of {cluster} can be read, so there is nothing to annotate.")
        self._session = LearningSession([page.page for page in self.pages])
        self._session.prepare()  # now, while people still look, and not at their first click
        self._ids = [page.id for page in self.pages]
        self._lock = RLock()
        self._learned_of: object = None
        self._learned = _Learned(None, None)
        self._coverage: dict[frozenset[str], tuple[float, float]] = {}
        self._known: dict[int, Mapping[str, Known]] | None = None

    @property
    def pages(self) -> Sequence[SamplePage]:
        """The pages to annotate, in the order of their worth."""
        return self._sample.pages

    @property
    def revision(self) -> str:
        """What changes whenever anyone changes anything."""
        schema = self._store.cluster_schema(self._sample.cluster.id)
        return _revision(self._store.newest_annotation(self._ids), schema)

    def last_author(self) -> str | None:
        """Who annotated last."""
        annotations = self._store.annotations(self._ids)
        return max(annotations, key=lambda one: one.id).author if annotations else None

    def look_up_known(self) -> None:
        """Find out what is known of the pages from seeds, embedded data and earlier records."""
        known = known_values(self._store, self._sample)
        with self._lock:
            self._known = known

    def sheet(self) -> Sheet:
        """What there is now; learns if anything was said since it was last asked for."""
        with self._lock:
            return self._sheet()

    def say(
        self,
        page_id: int,
        values: Mapping[str, Sequence[Pick] | None],
        author: str,
        *,
        record: int | None = None,
        seen: Mapping[str, int],
    ) -> None:
        """Keep what someone says of attributes of a page: their values, none, or that nothing is said.

        `seen` are the revisions of the cells that the person looked at: if another has changed one of these
        meanwhile, nothing is kept.
        """
        page = page_of(self.pages, page_id)
        names = self._attributes(self._store.cluster_schema(self._sample.cluster.id), self._all_said())
        if unknown := [name for name in values if name not in names]:
            raise NotFound(f"There is no attribute {unknown[0]} here: add it first.")
        picked = {
            name: None if picks is None else [page.picked(pick) for pick in picks]
            for name, picks in values.items()
        }
        if record is None:
            told = {name: found for name, found in picked.items() if found}
            if told:
                check_example(amended(Example(page.page), told, None))

        def change(said: _Said) -> Example:
            now = said.statements.of(record)
            for name in values:
                _check_seen(name, now.get(name), seen.get(name))
            return amended(said.example, picked, record)

        self._amend(page, author, change)

    def say_records(
        self, page_id: int, found: Sequence[Mapping[str, Sequence[Pick]]], author: str, *, seen: int
    ) -> None:
        """Keep what someone says of all records of a list page, in the place of what was said of it before.

        `seen` is the newest revision of any of its cells.
        """
        page = page_of(self.pages, page_id)

        def change(said: _Said) -> Example:
            newest = max((one.revision for one in said.statements.all), default=0)
            if newest != seen:
                raise Overtaken("Someone else has changed this page meanwhile.")
            example = Example(page.page)
            for number, values in enumerate(found):
                picked = {name: [page.picked(pick) for pick in picks] for name, picks in values.items()}
                example = amended(example, picked, number)
            return example

        self._amend(page, author, change)

    def describe(self, name: str, told: Attribute, author: str, *, new_name: str | None = None) -> None:
        """Keep what is known of an attribute, which is made if there is none of the name, or renamed."""
        new_name = _checked_name(new_name or name)

        def change(names: Mapping[str, Attribute]) -> dict[str, Attribute]:
            if new_name != name and new_name in names:
                raise UsageError(f"There is an attribute {new_name} already: choose another name.")
            if name not in names:
                return {**names, new_name: told}
            return {
                (new_name if one == name else one): (told if one == name else of) for one, of in names.items()
            }

        self._change_schema(change, author)
        if new_name != name:
            self._rename({name: new_name}, author)

    def remove(self, name: str, author: str) -> None:
        """Take an attribute away, with all that was said of it on these pages."""

        def change(names: Mapping[str, Attribute]) -> dict[str, Attribute]:
            if name not in names:
                raise NotFound(f"There is no attribute {name} here.")
            return {one: of for one, of in names.items() if one != name}

        self._change_schema(change, author)
        self._rename({name: None}, author)

    def _change_schema(
        self, change: Callable[[Mapping[str, Attribute]], Mapping[str, Attribute]], author: str
    ) -> None:
        cluster = self._sample.cluster.id
        for _ in range(_ATTEMPTS):
            before = self._store.cluster_schema(cluster)
            after = change(self._attributes(before, self._all_said()))
            if self._store.save_cluster_schema(cluster, after, author, follows=before.revision):
                return
        raise StoreBusy("Others keep changing the attributes: try again in a moment.")

    def _rename(self, names: Mapping[str, str | None], author: str) -> None:
        for page in self.pages:
            if any(name in part for name in names for part in _parts(self._said(page).statements)):
                self._amend(page, author, lambda said: renamed(said.example, names))

    def _amend(self, page: SamplePage, author: str, change: Callable[[_Said], Example]) -> None:
        """Change what is said of a page; again, if another has said something else of it meanwhile."""
        for _ in range(_ATTEMPTS):
            said = self._said(page)
            if self._store.amend_example(page.address, change(said), author, follows=said.newest) is not None:
                return
        raise StoreBusy("Others keep changing this page: try again in a moment.")

    def _said(self, page: SamplePage) -> _Said:
        return _said_of(page, self._store.annotations([page.id]))

    def _all_said(self) -> list[_Said]:
        annotations = self._store.annotations(self._ids)
        return [_said_of(page, annotations) for page in self.pages]

    def _attributes(self, schema: ClusterSchema, said: Iterable[_Said]) -> dict[str, Attribute]:
        """The attributes of the pages: those of the schema, then others that pages are annotated with."""
        names = dict.fromkeys(name for one in said for part in _parts(one.statements) for name in part)
        return {**schema.attributes, **{name: Attribute() for name in names if name not in schema.attributes}}

    def _sheet(self) -> Sheet:
        cluster = self._sample.cluster
        schema = self._store.cluster_schema(cluster.id)
        said = self._all_said()
        revision = _revision(max((one.newest.id for one in said if one.newest), default=0), schema)
        attributes = self._attributes(schema, said)
        learned = self._learn(said, attributes, revision)
        known = self._known or {}
        is_list = any(one.statements.records for one in said)
        pages = [
            _sheet_page(
                page,
                one.statements,
                list(attributes),
                self._found(page, learned),
                known.get(page.id, {}),
                is_list=is_list,
            )
            for page, one in zip(self.pages, said, strict=True)
        ]
        asked = questions(pages, list(attributes))
        settled = frozenset(page.url for page in pages if page.is_settled)
        if settled not in self._coverage:
            self._coverage[settled] = covered_share(self._sample.order, settled)
        is_open = any(question.kind in ("differs", "empty", "doubtful") for question in asked)
        return Sheet(
            cluster.id,
            cluster.site,
            cluster.size,
            revision,
            is_list,
            [_sheet_attribute(name, told, learned.wrapper, pages) for name, told in attributes.items()],
            _offers(known.values(), attributes),
            pages,
            asked,
            coverage(pages, *self._coverage[settled], is_open=is_open),
            learned.problem,
        )

    def _learn(self, said: Sequence[_Said], attributes: Mapping[str, Attribute], revision: str) -> _Learned:
        if self._learned_of == revision:
            return self._learned
        examples = [one.example for one in said if one.example.values or one.example.records]
        named = {name for one in said for part in _parts(one.statements) for name in part}
        wanted = {name: told for name, told in attributes.items() if name in named}
        try:
            is_taught = any(values for one in said for values in _texts(one.statements))
            wrapper = self._session.learn(examples, wanted).wrapper if is_taught else None
            self._learned = _Learned(wrapper, None)
        except SiteloomError as error:
            self._learned = _Learned(None, str(error))
        self._learned_of = revision
        return self._learned

    def _found(self, page: SamplePage, learned: _Learned) -> list[_FoundRecord] | None:
        """What the wrapper finds on a page, with the part of the page that each record is."""
        wrapper = learned.wrapper
        if wrapper is None:
            return None
        if wrapper.record_rule is None:
            return [_FoundRecord(None, record) for record in self._session.records(page.page.url)]
        found = [
            _FoundRecord(scope, wrapper.record_of(page.root, page.page.url, scope))
            for scope in records(wrapper.record_rule, page.root)
        ]
        return [one for one in found if len(one.record.values) >= wrapper.record_rule.least]


def _said_of(page: SamplePage, annotations: Iterable[Annotation]) -> _Said:
    """What was said of a page; what was said of other versions than the one that is shown holds no more."""
    own = [annotation for annotation in annotations if annotation.url_id == page.id]
    versions = [
        Version(one.id, one.author, one.at, _example(page, one)) for one in own if one.place == page.place
    ]
    newest = own[-1] if own else None
    is_shown = newest is not None and newest.place == page.place
    return _Said(
        statements(versions if is_shown else ()),
        newest,
        versions[-1].example if is_shown else Example(page.page),
    )


def _example(page: SamplePage, annotation: Annotation) -> Example:
    told = annotation.example
    return Example(page.page, told["values"], told["records"], told["nodes"], told.get("record_nodes", ()))


def _parts(said: PageStatements) -> tuple[Statements, ...]:
    return said.values, *said.records


def _texts(said: PageStatements) -> list[tuple[object, ...]]:
    return [statement.values for part in _parts(said) for statement in part.values()]


def _check_seen(name: str, said: Statement | None, seen: int | None) -> None:
    """Raise that another has spoken, unless the person saw what holds, or says nothing of what they saw."""
    if seen is None or seen == (said.revision if said else 0):
        return
    if said is None:
        raise Overtaken(f"What was said of {name} has been taken back meanwhile.")
    values = ", ".join(f"“{value.text}”" for value in said.values) or "absent here"
    raise Overtaken(f"{said.author or 'Someone'} said meanwhile that {name} is {values}.")


def _checked_name(name: str) -> str:
    name = " ".join(name.split())
    if not name:
        raise UsageError("An attribute needs a name, such as price.")
    if len(name) > _LONGEST_NAME:
        raise UsageError(f"The name of an attribute has at most {_LONGEST_NAME} characters.")
    if name.startswith("_"):
        raise UsageError(f"The name {name} begins with _, which is kept for what records tell of themselves.")
    return name


def _revision(annotation: int, schema: ClusterSchema) -> str:
    return f"{annotation}.{schema.revision}"


def _sheet_page(
    page: SamplePage,
    said: PageStatements,
    attributes: Sequence[str],
    found: Sequence[_FoundRecord] | None,
    known: Mapping[str, Known],
    *,
    is_list: bool,
) -> SheetPage:
    whole = found[0].record if found and not is_list else None
    cells = {
        name: _cell(page, said.values.get(name), None if found is None else whole, name, known.get(name))
        for name in ([] if is_list else attributes)
    }
    records_said = [
        {name: _cell(page, record.get(name), None, name, None) for name in attributes}
        for record in said.records
    ]
    listed = [one for one in found or () if one.scope is not None]
    return SheetPage(
        page.id,
        page.number,
        page.page.url,
        page.version,
        page.title,
        page.covered,
        bool(said.records)
        if is_list
        else bool(attributes) and all(found_cell.is_settled for found_cell in cells.values()),
        sorted({statement.author for statement in said.all}),
        cells,
        records_said,
        [{name: _values(page, one.record, name) for name in one.record.values} for one in listed],
        [[page.numbers[top] for top in one.scope.tops] for one in listed if one.scope is not None],
    )


def _cell(
    page: SamplePage, said: Statement | None, record: Record | None, name: str, known: Known | None
) -> Cell:
    finds = None if record is None else _values(page, record, name)
    by_text = {value.text: value.pick for value in finds or ()}
    values = [
        # Of a text that stands on the page more than once, the one that rules find is more likely meant.
        Value(text, by_text[text]) if node is None and text in by_text else page.value(text, node)
        for text, node in (said.values if said is not None else ())
    ]
    return cell(said, values, finds, known)


def _values(page: SamplePage, record: Record, name: str) -> list[Value]:
    return [
        page.value(text, origin.node, round(origin.confidence, 3))
        for text, origin in zip(record.values.get(name, ()), record.provenance.get(name, ()), strict=True)
    ]


def _sheet_attribute(
    name: str, told: Attribute, wrapper: Wrapper | None, pages: Sequence[SheetPage]
) -> SheetAttribute:
    rules = None if wrapper is None else wrapper.attributes.get(name)
    cells = [part[name] for page in pages for part in (page.cells, *page.records) if name in part]
    listed = [record for page in pages for record in page.found_records]
    return SheetAttribute(
        name,
        told.multi,
        told.mandatory,
        told.constant,
        told.type,
        None if rules is None else Inferred(**asdict(rules.attribute)),
        rule_words(rules.rules[0], multi=bool(rules.attribute.multi)) if rules and rules.rules else None,
        sum(one.is_settled for one in cells),
        sum(name in record for record in listed) if listed else sum(bool(one.values) for one in cells),
        len(listed) or len(cells),
        remark(pages, name),
    )


def _offers(known: Iterable[Mapping[str, Known]], attributes: Mapping[str, Attribute]) -> list[Offer]:
    found: dict[str, list[Known]] = {}
    for page in known:
        for name, one in page.items():
            if name not in attributes:
                found.setdefault(name, []).append(one)
    offers = [Offer(name, ones[0].source, len(ones), ones[0].values[0].text) for name, ones in found.items()]
    return sorted(offers, key=lambda offer: -offer.pages)
