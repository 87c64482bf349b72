"""explain: which wrapper a page has, why, and where values come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from siteloom.core.errors import SourceError, UsageError
from siteloom.core.model import Failure, Page
from siteloom.extraction.extractor import Extractor
from siteloom.operations.annotate import find_page
from siteloom.operations.context import Context
from siteloom.operations.stored_wrappers import wrappers_of_store
from siteloom.wrappers.explanation import named_rule_words
from siteloom.wrappers.matching import Matcher, NamedWrapper
from siteloom.wrappers.named_wrappers import untyped_note

if TYPE_CHECKING:
    from siteloom.extraction.extractor import Extracted
    from siteloom.wrappers.matching import MatchCandidate


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRequest:
    """A stored page by its URL, or a page of a file; by `wrappers`, or those of the workspace."""

    url: str | None = None
    page: Page | None = None
    wrappers: tuple[NamedWrapper, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsideredWrapper:
    """How a wrapper fits a page, and why it was chosen or not.

    `mask` is the best mask that covers the signature of the page, with the number of pages that it covers.
    `agreement` is the number of bytes that the nearest known signature has in common with it. Wrappers that
    fit equally well have the same `rank`, from 1 on.
    """

    wrapper: str
    version: int | None
    rank: int
    url_pattern: str | None
    mask: str | None
    mask_pages: int
    is_accepted: bool
    agreement: int
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedValue:
    """A value of a record: the rule that found it, in words, and the node that it is from.

    One that was withheld has a `reason` instead of a rule.
    """

    record: int
    attribute: str
    text: str
    node: str
    rule: str = ""
    rule_words: str = ""
    confidence: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainResult:
    """The wrappers that were considered, the best first, and the values that the chosen one finds.

    `failure` says why the page has no record. `records` counts the records that were found.
    """

    url: str
    considered: tuple[ConsideredWrapper, ...]
    wrapper: str | None
    version: int | None
    records: int
    values: tuple[ExplainedValue, ...]
    failure: Failure | None


def explain(context: Context, request: ExplainRequest) -> ExplainResult:
    """Explain which wrapper a page has, and where its values come from."""
    tell = context.progress.message
    page = request.page or _stored_page(context, request.url)
    wrappers = request.wrappers or tuple(wrappers_of_store(context.store, tell=tell))
    if note := untyped_note(wrappers):
        tell(note)
    extracted = Extractor(wrappers, context.settings.parse).extract(page)
    named = extracted.wrapper
    return ExplainResult(
        url=page.url,
        considered=tuple(map(_considered, Matcher(wrappers).explain(page))),
        wrapper=None if named is None else named.name,
        version=None if named is None else named.version,
        records=len(extracted.records),
        values=tuple(_values(extracted)),
        failure=extracted.failure,
    )


def _stored_page(context: Context, url: str | None) -> Page:
    if url is None:
        raise UsageError("Name the page to explain: its URL, or the page itself.")
    stored = find_page(context.store, url)
    if stored is None:
        raise SourceError(f"The workspace has no page {url}, and there is no such file: check it.")
    return stored[1]


def _considered(row: MatchCandidate) -> ConsideredWrapper:
    return ConsideredWrapper(
        wrapper=row.wrapper.name,
        version=row.wrapper.version,
        rank=row.rank,
        url_pattern=row.url_pattern,
        mask=row.mask,
        mask_pages=row.mask_pages,
        is_accepted=row.is_accepted,
        agreement=row.agreement,
        verdict=row.verdict,
    )


def _values(extracted: Extracted) -> Iterator[ExplainedValue]:
    """The values and what was withheld, record by record, in the order of the wrapper's attributes."""
    if extracted.wrapper is None:
        return
    wrapper = extracted.wrapper.wrapper
    names = dict.fromkeys(name for layout in wrapper.layouts for name in layout.attributes)
    for number, record in enumerate(extracted.records, 1):
        for name in names:
            origins = record.provenance.get(name, ())
            for text, origin in zip(record.values.get(name, ()), origins, strict=True):
                yield ExplainedValue(
                    record=number,
                    attribute=name,
                    text=text,
                    node=origin.node,
                    rule=origin.rule,
                    rule_words=named_rule_words(wrapper, origin.rule),
                    confidence=origin.confidence,
                )
            for withheld in record.withheld.get(name, ()):
                yield ExplainedValue(
                    record=number,
                    attribute=name,
                    text=withheld.text,
                    node=withheld.node,
                    reason=withheld.reason,
                )
