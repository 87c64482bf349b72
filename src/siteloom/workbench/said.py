"""What was said of a sample page, as it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from siteloom.annotating.statements import Version, as_list, statements
from siteloom.model import Example

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.annotating.statements import PageStatements, Statements
    from siteloom.store import Annotation
    from siteloom.workbench.sample_pages import SamplePage


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
