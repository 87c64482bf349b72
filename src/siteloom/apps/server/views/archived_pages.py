"""Archived pages, read: their records with where each value stands, the wrapper that found them and why,
their versions, and what of them is asked to be lit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from siteloom.apps.server.request_types import LARGEST_ID
from siteloom.apps.server.views.highlighted_tree import (
    ChangedAttribute,
    ConsideredWrapper,
    NoRecord,
    PageChanges,
    PageReading,
    ReadRecord,
    ReadValue,
    ReadVersion,
    ShownTree,
)
from siteloom.apps.server.views.review import repair_key
from siteloom.apps.server.views.sites import NextStep
from siteloom.core.errors import NotFound, TooMuchFound
from siteloom.core.model import Failure
from siteloom.core.urls import site_of
from siteloom.extraction.extractor import LACKING, NO_VALUES, Extractor
from siteloom.html.parser import parse
from siteloom.operations.annotation.sample_pages import version_of
from siteloom.operations.stored_wrappers import readable
from siteloom.store.queries.clusters import PageAddress
from siteloom.wrappers.matching import NO_TAGS, NO_WRAPPER_FOR_SITE, NO_WRAPPER_FOR_URL, UNLIKE, Matcher
from siteloom.wrappers.named_wrappers import read_wrapper

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.core.model import Page, Record
    from siteloom.core.settings import ParseSettings
    from siteloom.html.parser import Element
    from siteloom.store.store import Store
    from siteloom.wrappers.matching import MatchCandidate, NamedWrapper

# To tell versions apart they must be read; nobody looks through more.
_MOST_VERSIONS = 30
# From the newest backwards, for one to compare with: each is extracted from.
_MOST_COMPARED = 6


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about a page: which version, extracted by which wrapper, and what is lit.

    Without a wrapper it is the one that the page is for; `proposed` is the number of a repair, whose wrapper
    is taken. Records are numbered from 0.
    """

    version: str | None = None
    wrapper: str | None = None
    wrapper_version: int | None = None
    proposed: int | None = None
    record: int | None = None
    nodes: tuple[str, ...] = ()
    words: str = ""


def archived_page(store: Store, page_id: int, version: str | None = None) -> tuple[PageAddress, Page]:
    """A page of the archive: the newest version of it, or another that is named."""
    found = store.page_by_id(page_id) if page_id <= LARGEST_ID else None
    if found is None:
        raise NotFound(f"There is no page {page_id} in the archive.")
    address, newest = found
    if version in (None, version_of(newest)):
        return address, newest
    for page in store.versions(address.url, address.site):
        if version_of(page) == version:
            return address, page
    raise NotFound(f"The archive has no version {version} of {address.url}.")


def page_at(store: Store, url: str, site: str | None = None) -> int:
    """The number of the page at a URL: of a site, or of any that has it."""
    found = store.page_index.find(url, site)
    if found is None:
        among = f" of {site}" if site else ""
        raise NotFound(f"The archive has no page {url}{among}.")
    return found


def read_page(store: Store, limits: ParseSettings, page_id: int, asked: Asked = Asked()) -> PageReading:
    """A page with all that is known of it."""
    address, page = archived_page(store, page_id, asked.version)
    return _reading(store, limits, address, page, asked, page_id)


def read_trial(store: Store, limits: ParseSettings, page: Page, asked: Asked = Asked()) -> PageReading:
    """What the wrappers find on a page that is not in the archive."""
    return _reading(store, limits, PageAddress(site_of(page.url), page.url), page, asked, None)


def _reading(
    store: Store,
    limits: ParseSettings,
    address: PageAddress,
    page: Page,
    asked: Asked,
    page_id: int | None,
) -> PageReading:
    in_force = _wrappers_for(store, address)
    found = _found(store, limits, page, asked, in_force)
    template = None if page_id is None else store.page_index.cluster(page_id)
    considered = Matcher(in_force).explain(page)
    shown = None if found.root is None else ShownTree(found.root)
    readings = []
    if shown is not None and found.named is not None:
        readings = shown.records(found.named.wrapper, found.records)
    failure = None
    if found.failure:
        failure = _no_record(store, found.failure, address, template, considered)
        if page_id is None:
            failure = failure.model_copy(update={"next_step": None})  # nothing can be done with a trial
    return PageReading(
        page=page_id or 0,
        url=address.url,
        site=address.site,
        title="" if shown is None else shown.title,
        version=version_of(page),
        versions=[] if page_id is None else _versions(store, page_id),
        template=template,
        wrapper=found.named.name if found.named else None,
        wrapper_version=found.named.version if found.named else None,
        is_asked_for=asked.wrapper is not None or asked.proposed is not None,
        why=_why(found, considered, asked),
        considered=[_considered(one) for one in considered],
        attributes=_attributes(found),
        records=readings,
        record=asked.record if asked.record is not None and asked.record < len(readings) else None,
        failure=failure,
        is_readable=shown is not None,
        nodes=[] if shown is None else [shown.node(node) for node in asked.nodes],
        words=[] if shown is None else shown.words(asked.words),
    )


class StatedPlace(NamedTuple):
    """Where a value stands: on a version of a page, in a record, at a node."""

    version: str
    is_newest: bool
    record: int
    node: str


def place_of_value(
    store: Store, limits: ParseSettings, page_id: int, asked: Asked, attribute: str, text: str
) -> StatedPlace | None:
    """The newest place on a page where a value of an attribute begins with a text, in the record asked for.

    Pages change: what was found some time ago may stand on an earlier version only.
    """
    address, _ = archived_page(store, page_id)
    in_force = _wrappers_for(store, address)
    kept = store.page_index.versions(page_id, _MOST_COMPARED)
    for place, page in enumerate(store.pages_in([one.place for one in kept])):
        found = _found(store, limits, page, asked, in_force)
        for number, record in enumerate(found.records):
            node = _node_of(record, attribute, text) if asked.record in (None, number) else None
            if node is not None:
                return StatedPlace(version_of(page), place == 0, number, node)
    return None


def _node_of(record: Record, attribute: str, text: str) -> str | None:
    """Where the first value of an attribute stands that begins with a text."""
    values, origins = record.values.get(attribute, ()), record.provenance.get(attribute, ())
    found = (origin.node for value, origin in zip(values, origins, strict=True) if value.startswith(text))
    return next(found, None)


def read_changes(
    store: Store, limits: ParseSettings, page_id: int, before: Asked, after: Asked
) -> PageChanges:
    """A page before and after.

    If it is not said which version of the page is meant by before, it is the newest one before the other that
    gives records. If no wrapper is asked for, it is the one that the page was for before: the page may have
    changed so much that it is for none any more.
    """
    now = read_page(store, limits, page_id, after)
    if after.proposed is not None and before.wrapper is None:
        before = replace(before, wrapper=now.wrapper)
    if before.version is not None:
        then = read_page(store, limits, page_id, before)
    else:
        then = _newest_with_records(store, limits, now, before)
    if not now.is_asked_for and then.wrapper not in (None, now.wrapper):
        now = read_page(store, limits, page_id, replace(after, wrapper=then.wrapper))
    root = parse(archived_page(store, page_id, now.version)[1], limits)
    shown = None if isinstance(root, Failure) else ShownTree(root)
    return PageChanges(before=then, after=now, attributes=_changed(then, now, after.record or 0, shown))


def attributes_of(before: PageReading, after: PageReading) -> list[str]:
    """The attributes of both in the order of the latter, by which they have their colours."""
    return list(dict.fromkeys([*after.attributes, *before.attributes]))


def _newest_with_records(
    store: Store, limits: ParseSettings, after: PageReading, asked: Asked
) -> PageReading:
    names = [one.version for one in after.versions]
    older = names[names.index(after.version) + 1 :] if after.version in names else names
    readings = (
        read_page(store, limits, after.page, replace(asked, version=version))
        for version in older[:_MOST_COMPARED]
    )
    first: PageReading | None = None
    for reading in readings:
        if reading.failure is None:
            return reading
        first = first or reading
    return first or read_page(store, limits, after.page, replace(asked, version=after.version))


def _changed(
    before: PageReading, after: PageReading, record: int, shown: ShownTree | None
) -> list[ChangedAttribute]:
    sides = [_by_attribute(one.records[record : record + 1]) for one in (before, after)]
    rows = []
    for name in attributes_of(before, after):
        then, now = (side.get(name, []) for side in sides)
        texts = [one.text for one in now]
        gone = [one.text for one in then if one.text not in texts]
        rows.append(
            ChangedAttribute(
                attribute=name,
                before=then,
                after=now,
                is_changed=[one.text for one in then] != texts,
                unfound=shown.texts(gone) if shown is not None and gone else [],
            )
        )
    return sorted(rows, key=lambda row: not row.is_changed)


def _by_attribute(records: Iterable[ReadRecord]) -> dict[str, list[ReadValue]]:
    values: dict[str, list[ReadValue]] = {}
    for record in records:
        for value in record.values:
            values.setdefault(value.attribute, []).append(value)
    return values


class _Found(NamedTuple):
    """What came of a page, and its tree if it has one."""

    root: Element | None
    named: NamedWrapper | None
    records: tuple[Record, ...]
    failure: Failure | None


def _found(
    store: Store, limits: ParseSettings, page: Page, asked: Asked, in_force: Sequence[NamedWrapper]
) -> _Found:
    named = _wrapper_asked_for(store, asked)
    root = parse(page, limits, collect_ids=named is not None and named.wrapper.looks_for_ids)
    if isinstance(root, Failure):
        return _Found(None, named, (), root)
    if named is None:
        extracted = Extractor(in_force, limits).extract(page)
        return _Found(root, extracted.wrapper, extracted.records, extracted.failure)
    try:
        records = named.wrapper.records_of(page, root, limits)
    except TooMuchFound as error:
        return _Found(root, named, (), Failure(page.url, error.reason, error.detail))
    has_values = any(record.values for record in records)
    return _Found(
        root, named, records, None if has_values else Failure(page.url, NO_VALUES, f"found by {named}")
    )


def _wrapper_asked_for(store: Store, asked: Asked) -> NamedWrapper | None:
    if asked.proposed is not None:
        repair = next((one for one in store.repairs() if one.id == asked.proposed), None)
        if repair is None or repair.text is None:
            raise NotFound(f"There is no repair {asked.proposed} that proposes a wrapper.")
        return read_wrapper(repair.wrapper, None, repair.text)
    if asked.wrapper is None:
        return None
    stored = store.wrapper(asked.wrapper, asked.wrapper_version)
    return read_wrapper(stored.name, stored.version, stored.text)


def _wrappers_for(store: Store, address: PageAddress) -> list[NamedWrapper]:
    """The wrappers in force of the page's site; if it has none, all, for some may come near."""
    stored = store.wrappers()
    own = [one for one in stored if one.site in (address.site, site_of(address.url))]
    return readable(own or stored)


def _versions(store: Store, page_id: int) -> list[ReadVersion]:
    kept = store.page_index.versions(page_id, _MOST_VERSIONS)
    pages = store.pages_in([one.place for one in kept])
    return [
        ReadVersion(version=version_of(page), last_seen_at=one.last_seen_at, bytes=one.place.size)
        for one, page in zip(kept, pages, strict=True)
    ]


def _attributes(found: _Found) -> list[str]:
    wrapper = found.named.wrapper if found.named else None
    layouts = () if wrapper is None else wrapper.layouts
    return list(dict.fromkeys(name for layout in layouts for name in layout.attributes))


def _considered(one: MatchCandidate) -> ConsideredWrapper:
    return ConsideredWrapper(
        wrapper=one.wrapper.name,
        version=one.wrapper.version,
        rank=one.rank,
        verdict=one.verdict,
        url_pattern=one.url_pattern,
        mask=one.mask,
        mask_pages=one.mask_pages,
        is_accepted=one.is_accepted,
        agreement=one.agreement,
    )


def _why(found: _Found, considered: Sequence[MatchCandidate], asked: Asked) -> str:
    if asked.proposed is not None:
        return f"It is what repair {asked.proposed} proposes."
    if asked.wrapper is not None:
        return "It was asked for, whatever the page is like."
    if found.named is None:
        return "No wrapper was found for the page."
    return next((one.verdict for one in considered if one.wrapper.name == found.named.name), "")


_SENTENCES = {
    NO_WRAPPER_FOR_SITE: "There is no wrapper for pages of {site}.",
    NO_WRAPPER_FOR_URL: "No wrapper has a pattern that this URL matches.",
    NO_TAGS: "The page has no tags, so nothing tells which wrapper it is for.",
    UNLIKE: "The page is built unlike those that its wrapper was learned from.",
    NO_VALUES: "None of the rules of the wrapper finds a value here.",
    LACKING: "Most mandatory attributes are missing, so the values are not passed on.",
}


def _no_record(
    store: Store,
    failure: Failure,
    address: PageAddress,
    template: str | None,
    considered: Sequence[MatchCandidate],
) -> NoRecord:
    sentence = _SENTENCES.get(failure.reason)
    for_url = {one.wrapper.name for one in considered if one.url_pattern is not None}
    waiting = next((one for one in store.reviewing.repairs() if one.wrapper in for_url), None)
    step: NextStep | None = None
    if sentence is None:
        pass  # nothing can be done about a page that cannot be read
    elif waiting is not None:
        key = repair_key(waiting.id)
        step = NextStep(kind="repair", text="Review the repair that waits", cluster=template, key=key)
    elif template is not None:
        step = NextStep(kind="annotate", text="Annotate its template", cluster=template)
    elif not store.cluster_summaries(address.site):
        step = NextStep(kind="cluster", text=f"Find the templates of {address.site}")
    told = sentence or "The page cannot be read: {reason}."
    return NoRecord(
        reason=failure.reason,
        detail=failure.detail,
        sentence=told.format(site=address.site, reason=failure.reason),
        next_step=step,
    )
