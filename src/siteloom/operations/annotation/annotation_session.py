"""A workbench: what people say of the sample pages of a cluster, and what is learned of it at once."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import NotFound, Overtaken, SiteloomError, StoreBusy, UsageError
from siteloom.core.model import Attribute, Example
from siteloom.core.settings import ParseSettings
from siteloom.learning.annotation.annotation_history import amend, rename_attributes
from siteloom.learning.annotation.annotation_questions import Sheet, coverage, questions
from siteloom.learning.induction.attribute_schema import checked_name
from siteloom.learning.induction.learner import check_example
from siteloom.operations.annotation.annotator_state import (
    PageView,
    found_before,
    offers,
    said_of,
    sheet_attribute,
)
from siteloom.operations.annotation.sample_pages import page_of, sample_of
from siteloom.operations.annotation.suggested_values import known_values
from siteloom.operations.stored_wrappers import wrapper_of_cluster
from siteloom.store.queries.annotations import OptimisticUpdate
from siteloom.templates.sampling import covered_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from siteloom.learning.annotation.annotation_history import Statement
    from siteloom.learning.annotation.clicked_nodes import Pick
    from siteloom.learning.induction.learning_session import ScopedRecord
    from siteloom.operations.annotation.annotator_state import Said
    from siteloom.operations.annotation.sample_pages import SamplePage
    from siteloom.store.queries.attribute_schemas import ClusterSchema
    from siteloom.store.store import Store
    from siteloom.wrappers.wrapper import Wrapper

# So often a change is tried again that another's change of something else has overtaken.
_ATTEMPTS = 20


class _Learned(NamedTuple):
    """What was learned from what was said: a wrapper, or why there is none."""

    wrapper: Wrapper | None
    problem: str | None


class Workbench:
    """The sample pages of a cluster, which people annotate together, each click followed by learning anew.

    What is said is kept in the store at once; pages, trees and what was learned are kept here, for speed.
    """

    def __init__(self, store: Store, cluster: str, limits: ParseSettings = ParseSettings()) -> None:
        self._store = store
        self._limits = limits
        self.forgetting = store.erasure_mark()
        self.edition = store.cluster_edition(cluster)
        self._sample = sample_of(store, cluster, limits)
        if not self._sample.pages:
            raise UsageError(f"None of the pages of {cluster} can be read, so there is nothing to annotate.")
        self._session = self._sample.session
        self._session.prepare()  # now, while people still look, and not at their first click
        self._ids = [page.id for page in self.pages]
        self._in_force = wrapper_of_cluster(store, cluster, [page.page.url for page in self.pages])
        self._lock = RLock()
        self._learned_of: object = None
        self._learned = _Learned(None, None)
        self._coverage: dict[frozenset[str], tuple[float, float]] = {}
        self._known_lock = RLock()
        self._known = {page.id: found_before(page, self._in_force) for page in self.pages}
        self._is_known_complete = False

    @property
    def is_outdated(self) -> bool:
        """Whether the store has forgotten something since: it may be among the pages, or what is known."""
        return self.forgetting != self._store.erasure_mark()

    @property
    def pages(self) -> Sequence[SamplePage]:
        """The pages to annotate, in the order of their worth."""
        return self._sample.pages

    @property
    def revision(self) -> str:
        """What changes whenever anyone changes anything."""
        return _revision(self._store.newest_annotation(self._ids), self._schema())

    def last_author(self) -> str | None:
        """Who annotated last."""
        annotations = self._store.annotations(self._ids)
        return max(annotations, key=lambda one: one.id).author if annotations else None

    def look_up_known(self) -> None:
        """Find out, once, what is known of the pages from seeds, embedded data and earlier records."""
        with self._known_lock:
            if self._is_known_complete:
                return
            known = known_values(self._store, self._sample, self._limits)
            self._known = {page: {**found, **self._known[page]} for page, found in known.items()}
            self._is_known_complete = True

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
        version: str,
        record: int | None = None,
        seen: Mapping[str, int],
    ) -> None:
        """Keep what someone says of attributes of a page: their values, none, or that nothing is said.

        `version` is that of the page that the person looked at, and `seen` are the revisions of its cells: if
        the page is shown in another one by now, or someone else has changed one of these cells, nothing is
        kept. To say the same again does no harm.
        """
        page = self._page(page_id, version)
        picked = {
            name: None if picks is None else [page.picked(pick) for pick in picks]
            for name, picks in values.items()
        }
        told = {name: found for name, found in picked.items() if found}
        if record is None and told:
            check_example(amend(Example(page.page), told, None), self._limits)

        def change(said: Said) -> Example:
            after = amend(said.example, picked, record)
            # Whoever speaks of a record sees what was said of the page as a whole as its first one.
            now = said.statements if record is None else said.statements.as_list
            if after != said.example:
                for name in values:
                    _check_seen(name, now.of(record).get(name), seen.get(name))
            return after

        self._amend(page, set(values), change, author)

    def say_records(
        self,
        page_id: int,
        found: Sequence[Mapping[str, Sequence[Pick]]],
        author: str,
        *,
        version: str,
        seen: int,
    ) -> None:
        """Keep what someone says of all records of a list page, in the place of what was said of it before.

        `seen` is the revision of the page that the person looked at.
        """
        page = self._page(page_id, version)
        example = Example(page.page)
        for number, values in enumerate(found):
            picked = {name: [page.picked(pick) for pick in picks] for name, picks in values.items()}
            example = amend(example, picked, number)

        def change(said: Said) -> Example:
            if example != said.example and seen != said.revision:
                raise Overtaken("Someone else has changed this page meanwhile.")
            return example

        self._amend(page, {name for values in found for name in values}, change, author)

    def describe(
        self, name: str, told: Attribute, author: str, *, seen: int, new_name: str | None = None
    ) -> None:
        """Keep what is known of an attribute, which is made if there is none of the name, or renamed.

        `seen` is the revision of the attributes that the person looked at.
        """
        new_name = checked_name(new_name or name)

        def change(names: Mapping[str, Attribute], schema: ClusterSchema) -> dict[str, Attribute] | None:
            is_renamed = new_name == name or name not in names
            if is_renamed and names.get(new_name) == told and new_name in schema.attributes:
                return None
            if seen != schema.revision:
                raise Overtaken("Someone else has changed the attributes meanwhile.")
            if new_name != name and new_name in names:
                raise UsageError(f"There is an attribute {new_name} already: choose another name.")
            changed = {
                new_name if one == name else one: told if one == name else known
                for one, known in names.items()
            }
            return {**changed, new_name: told}

        self._change_attributes(change, {name: new_name}, author)

    def remove(self, name: str, author: str, *, seen: str) -> None:
        """Take an attribute away, with all that was said of it on these pages.

        `seen` is the revision of the whole workbench that the person looked at.
        """

        def change(names: Mapping[str, Attribute], schema: ClusterSchema) -> dict[str, Attribute]:
            if name not in names:
                raise NotFound(f"There is no attribute {name} here.")
            if seen != _revision(self._store.newest_annotation(self._ids), schema):
                raise Overtaken("Someone else has said something meanwhile that would be lost.")
            return {one: known for one, known in names.items() if one != name}

        self._change_attributes(change, {name: None}, author)

    def _page(self, page_id: int, version: str) -> SamplePage:
        page = page_of(self.pages, page_id)
        if version != page.version:
            raise Overtaken("This page is shown in another version by now: look at it again.")
        return page

    def _change_attributes(
        self,
        change: Callable[[Mapping[str, Attribute], ClusterSchema], Mapping[str, Attribute] | None],
        names: Mapping[str, str | None],
        author: str,
    ) -> None:
        """Change the attributes, and with them what was said under names that are others now, all or none."""
        for _ in range(_ATTEMPTS):
            schema, said = self._schema(), self._all_said()
            after = change(self._attributes(schema, said), schema)
            if after is None:
                return
            amendments = [
                OptimisticUpdate(page.address, rename_attributes(one.example, names), one.newest)
                for page, one in zip(self.pages, said, strict=True)
                if rename_attributes(one.example, names) != one.example
            ]
            if self._store.apply_updates(
                self._sample.cluster.id,
                amendments,
                author,
                schema_follows=schema.revision,
                attributes=after,
            ):
                return
        raise StoreBusy("Others keep changing the attributes: try again in a moment.")

    def _amend(
        self, page: SamplePage, names: set[str], change: Callable[[Said], Example], author: str
    ) -> None:
        """Change what is said of a page; again, if another has said something else of it meanwhile."""
        for _ in range(_ATTEMPTS):
            schema = self._schema()
            if unknown := names - self._attributes(schema, self._all_said()).keys():
                raise NotFound(f"There is no attribute {min(unknown)} here: add it first.")
            said = said_of(page, self._store.annotations([page.id]))
            after = change(said)
            if after == said.example:
                return
            amendment = OptimisticUpdate(page.address, after, said.newest)
            cluster = self._sample.cluster.id
            if self._store.apply_updates(cluster, [amendment], author, schema_follows=schema.revision):
                return
        raise StoreBusy("Others keep changing this page: try again in a moment.")

    def _attributes(self, schema: ClusterSchema, said: Iterable[Said]) -> dict[str, Attribute]:
        """The attributes of the pages: those of the schema, then others that pages are annotated with.

        As long as no one has said which there are, those of the wrapper in force are among them.
        """
        names = dict.fromkeys(name for one in said for part in one.parts for name in part)
        if schema.revision == 0 and self._in_force is not None:
            names = {**dict.fromkeys(self._in_force.attributes), **names}
        return {**schema.attributes, **{name: Attribute() for name in names if name not in schema.attributes}}

    def _schema(self) -> ClusterSchema:
        return self._store.cluster_schema(self._sample.cluster.id)

    def _all_said(self) -> list[Said]:
        annotations = self._store.annotations(self._ids)
        return [said_of(page, annotations) for page in self.pages]

    def _sheet(self) -> Sheet:
        cluster = self._sample.cluster
        schema = self._schema()
        said = self._all_said()
        revision = _revision(max(one.revision for one in said), schema)
        attributes = self._attributes(schema, said)
        is_list = any(one.statements.records for one in said)
        if is_list:
            said = [one.as_list for one in said]
        learned = self._learn(said, attributes, revision)
        pages = [
            PageView(page, one, list(attributes), self._found(page, learned), learned.wrapper).sheet_page(
                self._known[page.id], is_list=is_list
            )
            for page, one in zip(self.pages, said, strict=True)
        ]
        asked = questions(pages, list(attributes))
        settled = frozenset(page.url for page in pages if page.is_settled)
        if settled not in self._coverage:
            self._coverage[settled] = covered_share(self._sample.order, settled)
        doubts = sum(question.kind in ("differs", "empty", "doubtful") for question in asked)
        return Sheet(
            cluster=cluster.id,
            site=cluster.site,
            cluster_pages=cluster.size,
            revision=revision,
            schema_revision=schema.revision,
            is_list=is_list,
            attributes=[
                sheet_attribute(name, told, learned.wrapper, pages) for name, told in attributes.items()
            ],
            offers=offers(self._known.values(), attributes),
            pages=pages,
            questions=asked,
            coverage=coverage(pages, *self._coverage[settled], doubts),
            problem=learned.problem,
        )

    def _learn(self, said: Sequence[Said], attributes: Mapping[str, Attribute], revision: str) -> _Learned:
        if self._learned_of == revision:
            return self._learned
        examples = [one.example for one in said if one.example.values or one.example.records]
        named = {name for one in said for part in one.parts for name in part}
        wanted = {name: told for name, told in attributes.items() if name in named}
        is_taught = any(statement.values for one in said for statement in one.statements.all_statements)
        try:
            wrapper = self._session.learn(examples, wanted).wrapper if is_taught else None
            self._learned = _Learned(wrapper, None)
        except SiteloomError as error:
            self._learned = _Learned(None, str(error))
        self._learned_of = revision
        return self._learned

    def _found(self, page: SamplePage, learned: _Learned) -> Sequence[ScopedRecord] | None:
        """What the wrapper finds on a page, with the part of the page that each record is."""
        return None if learned.wrapper is None else self._session.scoped_records(page.page.url)


def _revision(annotation: int, schema: ClusterSchema) -> str:
    return f"{annotation}.{schema.revision}"


def _check_seen(name: str, said: Statement | None, seen: int | None) -> None:
    """Raise that another has spoken, unless the person saw what holds, or says nothing of what they saw."""
    if seen is None or seen == (said.revision if said else 0):
        return
    if said is None:
        raise Overtaken(f"What was said of {name} has been taken back meanwhile.")
    values = ", ".join(f"“{value.text}”" for value in said.values) or "absent here"
    raise Overtaken(f"{said.author or 'Someone'} said meanwhile that {name} is {values}.")
