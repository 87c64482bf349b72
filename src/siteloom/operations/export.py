"""export: a stored or given wrapper in an export format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from siteloom.core.errors import UsageError
from siteloom.core.model import Footprint, Page
from siteloom.operations.context import Context
from siteloom.operations.request_fields import NOT_STORED
from siteloom.operations.stored_wrappers import wrappers_of_store
from siteloom.templates.sampling import sample
from siteloom.wrappers.exports.export_formats import ExportFormat
from siteloom.wrappers.exports.scrapy_spider import to_spider
from siteloom.wrappers.exports.web_poet_page import write_page_object
from siteloom.wrappers.exports.xpath_json import to_xpath_json
from siteloom.wrappers.matching import Matcher, NamedWrapper

# A handful of pages shows what differs and is soon tested; it is chosen among a hundred.
_FIXTURES = 5
_CANDIDATES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """A wrapper of the workspace by its name, the only one of the workspace, or `named_wrapper`.

    `folder` is where web-poet's page object is written, with tests of pages of the workspace or of SOURCE.
    """

    format: ExportFormat
    wrapper: str | None = None
    named_wrapper: NamedWrapper | None = None
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """The export as text, or the module that was written into the folder.

    `text_attributes` are the attributes with a type of whose values the export gives the texts only.
    `tested_pages` counts the pages that the tests of web-poet are made of.
    """

    wrapper: str
    version: int | None
    text_attributes: Mapping[str, str]
    module: str | None = None
    tested_pages: int = 0
    text: str | None = field(default=None, metadata=NOT_STORED)


def export(context: Context, request: ExportRequest) -> ExportResult:
    """Export a wrapper, so that programs without Siteloom extract the same records."""
    named = request.named_wrapper or _stored_wrapper(context, request.wrapper)
    types = {name: rules.attribute.type for name, rules in named.wrapper.attributes.items()}
    result = ExportResult(
        wrapper=named.name,
        version=named.version,
        text_attributes={name: kind for name, kind in types.items() if kind is not None and kind != "text"},
    )
    match request.format:
        case "xslt":
            return replace(result, text=named.wrapper.to_xslt())
        case "xpath-json":
            return replace(result, text=to_xpath_json(named.wrapper))
        case "scrapy":
            return replace(result, text=to_spider(named.wrapper, named.name))
        case "web-poet":
            return _write_page_object(context, named, request.folder, result)


def _stored_wrapper(context: Context, name: str | None) -> NamedWrapper:
    stored = wrappers_of_store(context.store, tell=context.progress.message)
    chosen = [named for named in stored if name in (None, named.name)]
    if len(chosen) == 1:
        return chosen[0]
    names = ", ".join(named.name for named in stored)
    if chosen:
        raise UsageError(f"The workspace has several wrappers: choose one with --wrapper, of {names}.")
    raise UsageError(f"There is no wrapper {name}, nor such a file: the workspace has {names}.")


def _write_page_object(
    context: Context, named: NamedWrapper, folder: Path | None, result: ExportResult
) -> ExportResult:
    if folder is None:
        raise UsageError("A page object for web-poet is a folder: say where to write it.")
    pages = list(islice(_pages_for(named, _all_pages(context)), _CANDIDATES))
    fixtures = [pages[number] for number in sample(pages, _FIXTURES)]
    if not fixtures:
        raise UsageError(
            f"No page is for {named}, and web-poet's tests are made of such pages: give some as SOURCE."
        )
    made = write_page_object(named.wrapper, named.name, fixtures, folder)
    return replace(result, module=made.module, tested_pages=len(fixtures))


def _all_pages(context: Context) -> Iterator[Page]:
    if not context.sources:
        yield from context.store.pages()
        return
    for source in context.sources:
        yield from (item for item in source.read() if isinstance(item, Page))


def _pages_for(named: NamedWrapper, pages: Iterable[Page]) -> Iterator[Page]:
    """The pages that a wrapper is for; all of them if it has no footprint."""
    matcher = Matcher([named])
    is_for_all = named.wrapper.footprint == Footprint()
    return (page for page in pages if is_for_all or matcher.match(page).chosen)
