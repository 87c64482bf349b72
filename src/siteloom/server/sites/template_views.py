"""What there is to see of one template, and of two beside each other, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from siteloom.dom import parse
from siteloom.model import Failure
from siteloom.pipeline import cluster_pages, sample_cluster
from siteloom.server.addresses import site_of_cluster
from siteloom.server.sites.overview import TemplateSummary, no_template, template_summary
from siteloom.store import PageAddress
from siteloom.template import tag_rows
from siteloom.workbench.sample_pages import SAMPLE_PAGES

if TYPE_CHECKING:
    from siteloom.config import ParseSettings
    from siteloom.model import Template, TemplatePath
    from siteloom.store import Store


class PathSupport(BaseModel):
    """A path that most pages of a template have."""

    path: str = Field(description="Tags from the root to the element, with slashes between them.")
    text: str | None = Field(description="Template text that stands there, if this is about one.")
    support: int = Field(description="How many of the pages looked at have it.")
    share: float


class TemplateDetail(TemplateSummary):
    """A template with what its pages share."""

    pages_seen: int = Field(description="How many of its pages were looked at to find what they share.")
    essential: int = Field(description="How many paths and texts most of its pages have.")
    template_text: list[str] = Field(description="The texts that most pages have at the same path.")


class TagCount(BaseModel):
    """How often a tag stands on the pages of a template."""

    tag: str
    per_page: float = Field(description="How often it stands on a page, on average.")
    share: float = Field(description="Share of the pages looked at that have it.")
    essential: bool = Field(description="Whether most pages have it.")


class SamplePage(BaseModel):
    """A page that is worth a person's time."""

    url: str
    page: int = Field(description="The number of the page in the workspace.")
    annotated: bool
    gain: float = Field(description="How much it shows that the pages before it do not.")
    covered: float = Field(description="Share of what varies that is seen once it is annotated.")


class ComparedPath(BaseModel):
    """A path of one or both of two templates, with the share of pages that have it in each."""

    path: str
    text: str | None
    a: float
    b: float


class ComparedTag(BaseModel):
    """How often a tag stands on a page of each of two templates, on average."""

    tag: str
    a: float
    b: float


class Comparison(BaseModel):
    """Two templates beside each other."""

    a: TemplateSummary
    b: TemplateSummary
    layout_similarity: float = Field(
        description="Of the paths of elements that are essential in either, the share that are in both."
    )
    text_similarity: float = Field(
        description="Of the template texts that either has, wherever they stand, the share that both have."
    )
    only_a: list[ComparedPath]
    both: list[ComparedPath]
    only_b: list[ComparedPath]


def stored_template(store: Store, cluster: str) -> Template:
    """What the pages of a cluster share."""
    template = store.templates(site_of_cluster(cluster), cluster).get(cluster)
    if template is None:
        raise no_template(store, cluster)
    return template


def template_detail(store: Store, cluster: str) -> TemplateDetail:
    """A template with what its pages share."""
    summary, template = template_summary(store, cluster), stored_template(store, cluster)
    return TemplateDetail(
        **summary.model_dump(),
        pages_seen=template.pages,
        essential=len(template.essential),
        template_text=list(template.text),
    )


def path_supports(template: Template) -> list[PathSupport]:
    """The essential paths of a template, in the order in which they stand on its pages."""
    return [
        PathSupport(path=one.tags, text=one.text, support=one.support, share=_share(one, template))
        for one in template.essential
    ]


def tag_counts(store: Store, cluster: str, limits: ParseSettings) -> list[TagCount]:
    """The tags of a template's pages, the most frequent first; up to a hundred pages are read for it."""
    clusters, addresses = store.clusters(cluster)
    if not clusters:
        raise no_template(store, cluster)
    parsed = (parse(page, limits) for page in cluster_pages(store, clusters[0], addresses))
    roots = [root for root in parsed if not isinstance(root, Failure)]
    pages = max(1, len(roots))
    counts = [
        TagCount(
            tag=row.tag,
            per_page=row.occurrences / pages,
            share=row.support / pages,
            essential=row.essential,
        )
        for row in tag_rows(roots)
        if row.page is None
    ]
    return sorted(counts, key=lambda count: (-count.per_page, count.tag))


def sample_pages(store: Store, cluster: str, limits: ParseSettings) -> list[SamplePage]:
    """The pages of a template that are worth a person's time, in the order in which they are."""
    clusters, addresses = store.clusters(cluster)
    if not clusters:
        raise no_template(store, cluster)
    sample = sample_cluster(store, clusters[0], addresses, SAMPLE_PAGES, limits=limits)
    site = clusters[0].site
    chosen = [PageAddress(site, sample.urls[one.page]) for one in sample.order]
    annotated = set(store.annotated_pages())
    return [
        SamplePage(
            url=address.url, page=page, annotated=address in annotated, gain=one.gain, covered=one.covered
        )
        for one, address, page in zip(sample.order, chosen, store.page_ids(chosen), strict=True)
    ]


def compared(store: Store, a: str, b: str) -> Comparison:
    """Two templates beside each other."""
    templates = stored_template(store, a), stored_template(store, b)
    shares = [
        {(one.tags, one.text): _share(one, template) for one in template.essential} for template in templates
    ]
    rows = [
        ComparedPath(path=key[0], text=key[1], a=shares[0].get(key, 0.0), b=shares[1].get(key, 0.0))
        for key in dict.fromkeys([*shares[0], *shares[1]])
    ]
    return Comparison(
        a=template_summary(store, a),
        b=template_summary(store, b),
        layout_similarity=_similarity(
            *({one.tags for one in template.essential if one.text is None} for template in templates)
        ),
        text_similarity=_similarity(*(set(template.text) for template in templates)),
        only_a=[row for row in rows if not row.b],
        both=[row for row in rows if row.a and row.b],
        only_b=[row for row in rows if not row.a],
    )


def compared_tags(store: Store, a: str, b: str, limits: ParseSettings) -> list[ComparedTag]:
    """The tags of two templates' pages, those that differ most in number first."""
    of_a, of_b = ({count.tag: count.per_page for count in tag_counts(store, name, limits)} for name in (a, b))
    rows = [
        ComparedTag(tag=tag, a=of_a.get(tag, 0.0), b=of_b.get(tag, 0.0)) for tag in of_a.keys() | of_b.keys()
    ]
    return sorted(rows, key=lambda row: (-abs(row.a - row.b), row.tag))


def _similarity(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


def _share(path: TemplatePath, template: Template) -> float:
    return path.support / max(1, template.pages)
