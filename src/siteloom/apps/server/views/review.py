"""What waits for a person, as values: one decision each, the most pressing first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from pydantic import BaseModel, Field

from siteloom.apps.server.html_rendering import share
from siteloom.apps.server.views.known_records import TriedSite, sites_to_look_at
from siteloom.apps.server.views.sites import (
    TemplateSummary,
    template_summaries,
    template_summary,
)
from siteloom.apps.server.views.wrappers import RepairView, records_of_wrappers, repair_view
from siteloom.core.errors import NotFound
from siteloom.core.model import ChangeTest
from siteloom.maintenance.change_messages import change_sentence
from siteloom.operations.relearn import is_acceptable, lost_attributes
from siteloom.operations.status import WORTH_ANNOTATING
from siteloom.store.queries.clusters import PageAddress

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from siteloom.store.queries.watches_and_repairs import StoredRepair
    from siteloom.store.store import Store

ReviewKind = Literal["repair", "examples", "site", "template"]
"""A repair that waits for a yes, one that needs examples, a site that was wrapped from known records and that
nobody has looked at, a template that no wrapper is for."""

# So many pages of a change are enough to believe it; all that was seen is in the check.
_PAGES_SHOWN = 3
_TESTS = frozenset(get_args(ChangeTest))


class ReviewItem(BaseModel):
    """Something that waits for a person."""

    key: str = Field(description="By which it can be asked for; a newer repair has another.")
    kind: ReviewKind
    name: str = Field(description="The wrapper, the site or the template that it is about.")
    site: str
    told: str = Field(description="Why it waits, in a few words.")
    concerns: int = Field(description="How many records it is about, or pages of a template.")


class ReviewQueue(BaseModel):
    """All that waits, the most pressing first."""

    counts: dict[ReviewKind, int]
    items: list[ReviewItem]


class SeenChange(BaseModel):
    """What was seen of an attribute on a page, or in the output of a run if there is no URL."""

    url: str
    page: int | None = Field(description="The number of the page in the workspace.")
    attribute: str
    before: list[str]
    after: list[str]
    finding: str


class ChangeView(BaseModel):
    """Why a wrapper was to be repaired."""

    test: ChangeTest
    sentence: str
    evidence: list[SeenChange]


class ReviewDetail(ReviewItem):
    """Something that waits, with what is to be known to decide about it."""

    repair: RepairView | None = None
    changes: list[ChangeView] = Field(default=[], description="What checks have noticed, with evidence.")
    tried: TriedSite | None = Field(default=None, description="A site wrapped from known records.")
    template: TemplateSummary | None = None
    cluster: str | None = Field(default=None, description="The template to annotate instead.")
    edition: int | None = Field(
        default=None, description="Of a template: another number when templates were found anew."
    )


def review_queue(store: Store) -> ReviewQueue:
    """All that waits: repairs first, by how many records they are about; at last templates by importance."""
    items = [
        *_repair_items(store, store.reviewing.repairs()),
        *map(_site_item, sites_to_look_at(store)),
        *map(_template_item, waiting_templates(store)),
    ]
    counts: dict[ReviewKind, int] = {"repair": 0, "examples": 0, "site": 0, "template": 0}
    for item in items:
        counts[item.kind] += 1
    return ReviewQueue(counts=counts, items=items)


def review_detail(store: Store, item: ReviewItem) -> ReviewDetail:
    """What is to be known to decide about something that waits; NotFound if it was settled meanwhile."""
    if item.kind == "template":
        template = template_summary(store, item.name)
        edition = store.cluster_edition(item.name)
        return ReviewDetail(**item.model_dump(), template=template, cluster=item.name, edition=edition)
    if item.kind == "site":
        tried = next((one for one in sites_to_look_at(store) if one.site == item.name), None)
        if tried is None:
            raise gone(item.key)
        return ReviewDetail(**item.model_dump(), tried=tried)
    repairs = (one for one in store.reviewing.repairs(item.name) if repair_key(one.id) == item.key)
    repair = next(repairs, None)
    if repair is None:
        raise gone(item.key)
    view = repair_view(store, repair, item.site)
    urls = [*view.annotate, *(one.url for one in view.values)]
    places = store.reviewing.places([PageAddress(item.site, url) for url in urls])
    clusters = [cluster for _, cluster in places.values() if cluster is not None]
    if not clusters and store.has_cluster(item.name):
        clusters = [item.name]
    return ReviewDetail(
        **item.model_dump(),
        repair=view,
        changes=_changes(store, repair, item.site),
        cluster=max(set(clusters), key=clusters.count, default=None),
    )


def waiting_templates(store: Store) -> list[TemplateSummary]:
    """The templates that no wrapper is for and that are worth a person's time, the most important first."""
    dismissed = store.reviewing.dismissed()
    found = [
        one
        for one in template_summaries(store)
        if one.wrapper is None and one.share >= WORTH_ANNOTATING and one.cluster not in dismissed
    ]
    return sorted(found, key=lambda one: -one.importance)


def gone(key: str) -> NotFound:
    """What is said of something that does not wait."""
    return NotFound(f"{key} does not wait for anyone, or not any more.")


def repair_key(repair: int) -> str:
    """By which a repair is asked for."""
    return f"repair-{repair}"


def _repair_items(store: Store, repairs: Sequence[StoredRepair]) -> list[ReviewItem]:
    sites = {one.wrapper: store.wrapper(one.wrapper).site for one in repairs}
    records = _usual_records(store, repairs)
    items = [
        ReviewItem(
            key=repair_key(one.id),
            kind="repair" if is_acceptable(one) else "examples",
            name=one.wrapper,
            site=sites[one.wrapper],
            told=_told(one),
            concerns=records[one.wrapper],
        )
        for one in repairs
    ]
    return sorted(items, key=lambda item: (item.kind != "repair", -item.concerns, item.name))


def _usual_records(store: Store, repairs: Sequence[StoredRepair]) -> dict[str, int]:
    """How many records wrappers give now, or on how many pages a repair was tried if they give none."""
    now = records_of_wrappers(store, store.wrappers())
    tested = {
        one.wrapper: max((of["tested"] for of in one.content["attributes"].values()), default=0)
        for one in repairs
    }
    return {name: now[name] or count for name, count in tested.items()}


def _told(repair: StoredRepair) -> str:
    attributes = repair.content["attributes"]
    repaired = [name for name, one in attributes.items() if one["state"] == "repaired"]
    lost = lost_attributes(repair)
    if is_acceptable(repair):
        what = f"{_few(repaired)} repaired" if repaired else "fits pages of another structure"
        partly = f", {_few(lost)} not" if lost else ""
        return f"{what}{partly}; confidence {share(repair.confidence)}"
    return f"{_few(lost)} not found any more" if lost else repair.content["reason"]


def _few(names: Sequence[str]) -> str:
    told = ", ".join(names[:3])
    return f"{told} and {len(names) - 3} more" if len(names) > 3 else told


def _site_item(tried: TriedSite) -> ReviewItem:
    return ReviewItem(
        key=f"site-{tried.site}",
        kind="site",
        name=tried.site,
        site=tried.site,
        told=f"wrapped from known records: {_few(tried.attributes)}",
        concerns=tried.records,
    )


def _template_item(template: TemplateSummary) -> ReviewItem:
    state = "annotated, but without a wrapper" if template.annotated else "nothing is annotated"
    return ReviewItem(
        key=f"template-{template.cluster}",
        kind="template",
        name=template.cluster,
        site=template.site,
        told=f"{share(template.share)} of the site; {state}",
        concerns=template.pages,
    )


def _changes(store: Store, repair: StoredRepair, site: str) -> list[ChangeView]:
    """What the newest checks of the version that was repaired have noticed, or since it was in part."""
    checks = store.newest_checks(repair.wrapper)
    since = [one for one in checks if one.version is not None and one.version == repair.version_after]
    found = since or [one for one in checks if one.version == repair.version_before]
    return change_views(store, site, [one.content for one in found], _PAGES_SHOWN)


def change_views(
    store: Store, site: str | None, checks: Iterable[Mapping[str, Any]], most_pages: int | None = None
) -> list[ChangeView]:
    """What checks of a wrapper have seen, nothing twice; each page with its number in the workspace.

    What a test has seen that only another version of Siteloom has is left out.
    What was counted in the output is left out if it was seen on pages as well, where there is more to see.
    """
    rows = [row for content in checks for row in content.get("changes", ()) if row["test"] in _TESTS]
    of_pages = [row for row in rows if _is_of_pages(row)]
    seen_on_pages = {name for row in of_pages for name in _subjects(row)}
    counted = [row for row in rows if not _is_of_pages(row) and not seen_on_pages.issuperset(_subjects(row))]
    urls = dict.fromkeys(seen["url"] for row in of_pages for seen in row["evidence"] if seen["url"])
    places = store.reviewing.places([PageAddress(site, url) for url in urls]) if site is not None else {}
    numbers = {address.url: number for address, (number, _) in places.items()}
    views: dict[str, ChangeView] = {}
    for row in (*of_pages, *counted):
        view = _change(row, numbers, most_pages)
        if view.sentence in views:
            views[view.sentence].evidence.extend(view.evidence)
        else:
            views[view.sentence] = view
    return list(views.values())


def _subjects(row: Mapping[str, Any]) -> Sequence[str]:
    """What has changed: attributes, or the pages as a whole."""
    attributes: Sequence[str] = row["attributes"]
    return attributes or ("",)


def _is_of_pages(row: Mapping[str, Any]) -> bool:
    return any(seen["url"] for seen in row["evidence"])


def _change(row: Mapping[str, Any], numbers: Mapping[str, int], most_pages: int | None) -> ChangeView:
    shown = list(dict.fromkeys(seen["url"] for seen in row["evidence"]))[:most_pages]
    words = ", ".join(row["attributes"]), share(row["share"])
    return ChangeView(
        test=row["test"],
        sentence=change_sentence(row["test"], *words, is_of_output=not _is_of_pages(row)),
        evidence=[
            SeenChange(**seen, page=numbers.get(seen["url"]))
            for seen in row["evidence"]
            if seen["url"] in shown
        ],
    )
