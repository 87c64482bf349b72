"""learn: a wrapper from annotations, keep it, choose watched pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from siteloom.core.errors import ExampleError, UsageError
from siteloom.core.model import Attribute, Failure, Page
from siteloom.core.sequences import evenly_spaced
from siteloom.core.settings import ParseSettings
from siteloom.html.parser import parse
from siteloom.learning.annotation.embedded_examples import SelfAnnotated, self_annotated
from siteloom.learning.induction.learner import learn_wrapper
from siteloom.learning.induction.learning_session import Method as LearningMethod
from siteloom.learning.induction.units import MOST_UNLABELLED
from siteloom.learning.induction.wrapper_assembly import Learned
from siteloom.operations.annotate import (
    AnnotatedTemplate,
    AnnotateRequest,
    annotate,
    annotated_templates,
    attribute_names_of,
    placed_example,
    self_annotated_templates,
)
from siteloom.operations.cluster import cluster_store
from siteloom.operations.context import Context
from siteloom.operations.request_fields import NOT_STORED, ClusterName
from siteloom.operations.stored_wrappers import wrapper_of_cluster
from siteloom.operations.watch import WatchedWrapper, watch_new_version
from siteloom.sources.example_files import ExampleLine
from siteloom.store.queries.clusters import PageAddress
from siteloom.templates.footprint import cluster_footprint, footprint, merge_footprints
from siteloom.templates.signature import signature
from siteloom.templates.url_patterns import matches
from siteloom.wrappers.matching import BYTES_NEEDED
from siteloom.wrappers.page_layouts import MOST_EARLIER
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.core.model import Cluster, Example
    from siteloom.learning.induction.learning_session import Schema
    from siteloom.store.store import Store
    from siteloom.wrappers.rule_features import AttributeRules

# The wrapper of a cluster without one of its name is the one that most of these pages are extracted by.
_PAGES_LOOKED_UP = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnRequest:
    """What to learn from: the annotations of a cluster, or of all.

    `examples` are kept as annotations first. With `from_embedded`, examples are made of the structured data
    that pages carry instead. `schema` declares properties of attributes. With SOURCE, one wrapper is learned
    from `examples` or embedded data, and nothing is stored. If `is_single`, several wrappers are an error.
    """

    cluster: ClusterName | None = None
    examples: tuple[ExampleLine, ...] = ()
    from_embedded: bool = False
    method: LearningMethod = "united"
    schema: Mapping[str, Attribute | Mapping[str, object]] | None = None
    is_single: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReproduced:
    """An example whose value the wrapper does not find: it finds `found` instead."""

    attribute: str
    url: str
    expected: tuple[str, ...]
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedWrapper:
    """The wrapper of a template, after learning.

    It is not learned if the version in use was not made by learning, and no example has the layout that pages
    have now: that version stays in use. `attributes` has the share of pages with a value of each attribute
    that was learned, `unchanged_attributes` those without an example, which keep their rules, and
    `lost_attributes` those that only the version before has. Without a store there is no version.
    """

    name: str
    site: str
    clusters: tuple[str, ...]
    version: int | None
    previous_version: int | None
    is_learned: bool
    attributes: Mapping[str, float]
    unchanged_attributes: tuple[str, ...]
    lost_attributes: tuple[str, ...]
    not_reproduced: tuple[NotReproduced, ...]
    layouts: int
    wrapper: Wrapper = field(default=Wrapper({}), metadata=NOT_STORED)
    learned: Learned | None = field(default=None, metadata=NOT_STORED)
    embedded: SelfAnnotated | None = field(default=None, metadata=NOT_STORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedTemplate:
    """Clusters of which nothing is learned from embedded data, and why."""

    clusters: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnResult:
    """The wrappers that were learned, and the watched pages that were chosen for them.

    `run` is the last run record. `annotated` counts the examples that were kept as annotations.
    """

    run: int | None
    site: str | None
    cluster: str | None
    annotated: int
    wrappers: tuple[LearnedWrapper, ...]
    skipped: tuple[SkippedTemplate, ...]
    watched: tuple[WatchedWrapper, ...]


def learn(context: Context, request: LearnRequest) -> LearnResult:
    """Learn the wrappers of annotated templates, put them in use, and choose the pages to watch."""
    if context.sources:
        return _learn_from_sources(context, request)
    annotated = 0
    if request.examples:
        annotated = annotate(context, AnnotateRequest(examples=request.examples)).annotated
    if request.from_embedded:
        templates, skipped = _embedded_templates(context, request)
    else:
        context.progress.start("Reading examples", unit="example")
        templates = [(template, None) for template in annotated_templates(context.store, request.cluster)]
        skipped = ()
    _check_templates([template for template, _ in templates], request)
    wrappers, runs = [], []
    context.progress.start("Learning", len(templates), "wrapper")
    for template, embedded in templates:
        wrapper, run = learn_template(context, template, request)
        wrappers.append(replace(wrapper, embedded=embedded))
        runs.append(run)
        context.progress.advance()
    watched = (watch_new_version(context, wrapper.name) for wrapper in wrappers)
    return LearnResult(
        run=max((run for run in runs if run is not None), default=None),
        site=wrappers[0].site,
        cluster=request.cluster,
        annotated=annotated,
        wrappers=tuple(wrappers),
        skipped=skipped,
        watched=tuple(result for result in watched if result is not None),
    )


def _learn_from_sources(context: Context, request: LearnRequest) -> LearnResult:
    store, limits = context.store, context.settings.parse
    embedded = None
    if request.from_embedded:
        context.progress.start("Reading pages")
        embedded = self_annotated(store.pages(), lambda _: context.progress.advance(), limits)
        examples = embedded.examples
    else:
        examples = [placed_example(store, line)[1] for line in request.examples]
    learned = learn_together(store, examples, request.schema, request.method, limits=limits)
    wrapper = _learned_wrapper("", "", (), learned, embedded=embedded)
    return LearnResult(
        run=None, site=None, cluster=None, annotated=0, wrappers=(wrapper,), skipped=(), watched=()
    )


def _embedded_templates(
    context: Context, request: LearnRequest
) -> tuple[list[tuple[AnnotatedTemplate, SelfAnnotated | None]], tuple[SkippedTemplate, ...]]:
    context.progress.start("Reading pages")
    kinds = self_annotated_templates(
        context.store, request.cluster, lambda _: context.progress.advance(), context.settings.parse
    )
    templates: list[tuple[AnnotatedTemplate, SelfAnnotated | None]] = [
        (AnnotatedTemplate(kind.site, kind.clusters, kind.found.examples, kind.addresses), kind.found)
        for kind in kinds
        if kind.found is not None
    ]
    skipped = tuple(
        SkippedTemplate(clusters=tuple(cluster.id for cluster in kind.clusters), reason=kind.why_not)
        for kind in kinds
        if kind.found is None
    )
    if not templates:
        reasons = "; ".join(f"{', '.join(kind.clusters)}: {kind.reason}" for kind in skipped)
        raise ExampleError(f"Nothing can be learned from embedded data. {reasons}")
    return templates, skipped


def _check_templates(templates: Sequence[AnnotatedTemplate], request: LearnRequest) -> None:
    if request.is_single and len(templates) > 1:
        names = ", ".join(template.name for template in templates)
        raise UsageError(
            f"There are {len(templates)} wrappers to learn: choose one for -o with --cluster ({names})."
        )
    if unknown := set(request.schema or {}).difference(*(template.attributes for template in templates)):
        raise UsageError(f"The schema tells of {min(unknown)}, which no example has: check its name.")


def learn_together(
    store: Store,
    examples: Sequence[Example],
    schema: Schema = None,
    method: LearningMethod = "united",
    *,
    limits: ParseSettings = ParseSettings(),
) -> Learned:
    """One wrapper from examples of stored pages, helped by the pages that were made alike."""
    cluster_store(store, "vertex", limits=limits)
    clusters, addresses = store.clusters()
    urls = {example.page.url for example in examples}
    alike = [
        cluster for cluster in clusters if any(addresses[member].url in urls for member in cluster.members)
    ]
    others = _pages_of(store, alike or clusters, addresses)
    learned = learn_wrapper(examples, others, schema, method, limits=limits)
    return _with_footprint(learned, examples, alike, addresses) if alike else learned


def learn_template(
    context: Context, template: AnnotatedTemplate, request: LearnRequest = LearnRequest()
) -> tuple[LearnedWrapper, int | None]:
    """The wrapper of a template, and the run that put it in use as a new version unless it is as it was.

    The schema may declare attributes of other templates as well; for attributes that it lacks, what people
    declared about the clusters applies. Examples of a layout that the pages do not have any more are left out
    if there are others; what was learned from them before stays in use as an earlier layout. Attributes
    without an example keep the rules that they have.
    """
    store, limits = context.store, context.settings.parse
    newest = store.wrapper_in_force(template.name)
    before = None if newest is None else Wrapper.from_json(newest.text)
    layouts = [_layout_of(store, template.site, example, before, limits) for example in template.examples]
    examples = [
        example
        for example, layout in zip(template.examples, layouts, strict=True)
        if layout is _Layout.PRESENT
    ]
    clusters = tuple(cluster.id for cluster in template.clusters)
    if newest is not None and newest.origin != "learn" and not examples:
        unchanged = _learned_wrapper(template.name, template.site, clusters, None, before=before)
        return replace(unchanged, version=newest.version, previous_version=newest.version), None
    examples = examples or template.examples
    schema = _schema_of(store, template, examples, request)
    others = _pages_of(store, template.clusters, template.addresses)
    learned = learn_wrapper(examples, others, schema, request.method, limits=limits)
    learned = _with_footprint(learned, examples, template.clusters, template.addresses)
    if before is not None and len(examples) < len(template.examples):
        known = before.layouts if _Layout.OUTDATED in layouts else before.earlier
        learned = learned._replace(wrapper=_with_earlier_layouts(learned.wrapper, before, known))
    learned = learned._replace(
        wrapper=_with_rules(learned.wrapper, _rules_to_keep(store, template, request.cluster))
    )
    text = learned.wrapper.to_json()
    with store.recording("learn", {"wrapper": template.name, "method": request.method}) as run:
        run.counts.update(examples=len(template.examples), attributes=len(learned.wrapper.attributes))
        # Another process may have learned the same meanwhile.
        now = store.wrapper_in_force(template.name)
        if now is not None and now.text == text:
            version = now.version
        else:
            version = store.reviewing.put_learned_in_force(template.name, template.site, text)
    wrapper = _learned_wrapper(template.name, template.site, clusters, learned, before=before)
    previous = None if newest is None else newest.version
    return replace(wrapper, version=version, previous_version=previous), run.id


def _learned_wrapper(
    name: str,
    site: str,
    clusters: tuple[str, ...],
    learned: Learned | None,
    *,
    before: Wrapper | None = None,
    embedded: SelfAnnotated | None = None,
) -> LearnedWrapper:
    """The result of learning a template, so far without versions."""
    wrapper = before if learned is None else learned.wrapper
    names = set() if wrapper is None else wrapper.attributes.keys()
    report = {} if learned is None else learned.report.attributes
    return LearnedWrapper(
        name=name,
        site=site,
        clusters=clusters,
        version=None,
        previous_version=None,
        is_learned=learned is not None,
        attributes={attribute: row.filled for attribute, row in report.items()},
        unchanged_attributes=tuple(sorted(names - report.keys())),
        lost_attributes=() if before is None else tuple(sorted(before.attributes.keys() - names)),
        not_reproduced=()
        if learned is None
        else tuple(
            NotReproduced(attribute=row.attribute, url=row.url, expected=row.expected, found=row.found)
            for row in learned.report.disagreements
        ),
        layouts=0 if wrapper is None else len(wrapper.layouts),
        wrapper=Wrapper({}) if wrapper is None else wrapper,
        learned=learned,
        embedded=embedded,
    )


def _rules_to_keep(
    store: Store, template: AnnotatedTemplate, cluster: str | None
) -> Mapping[str, AttributeRules]:
    """How attributes are found that people left as they were: those of the wrapper in use that they see.

    A wrapper of lists and one of single records have no rules in common.
    """
    ids = [found.id for found in template.clusters]
    if not ids:
        return {}
    name = cluster if cluster in ids else template.name
    (members,) = [found.members for found in template.clusters if found.id == name]
    urls = [template.addresses[member].url for member in evenly_spaced(members, _PAGES_LOOKED_UP)]
    wrapper = wrapper_of_cluster(store, name, urls)
    is_list = any(example.records for example in template.examples)
    if wrapper is None or (wrapper.record_rule is not None) != is_list:
        return {}
    schema = store.cluster_schema(name)
    return {
        attribute: rules
        for attribute, rules in wrapper.attributes.items()
        if schema.revision == 0 or attribute in schema.attributes
    }


def _with_rules(wrapper: Wrapper, rules: Mapping[str, AttributeRules]) -> Wrapper:
    """A wrapper with the rules of further attributes, where it has none of its own."""
    added = {name: of_name for name, of_name in rules.items() if name not in wrapper.attributes}
    return replace(wrapper, attributes={**wrapper.attributes, **added}) if added else wrapper


def _schema_of(
    store: Store, template: AnnotatedTemplate, examples: Iterable[Example], request: LearnRequest
) -> Schema:
    """What is declared about the attributes of examples: in the request, or else of the clusters.

    Variants of one template may be described apart: the cluster of the request has the last word.
    """
    ids = sorted((cluster.id for cluster in template.clusters), key=lambda name: name == request.cluster)
    declared: dict[str, Attribute | Mapping[str, object]] = {
        name: attribute for id_ in ids for name, attribute in store.cluster_schema(id_).attributes.items()
    }
    names = {name for _, name in attribute_names_of(examples)}
    declared |= request.schema or {}
    return {name: attribute for name, attribute in declared.items() if name in names}


class _Layout(Enum):
    """The layout that the page of an example had: as pages are now, one before, or one known as such."""

    PRESENT = auto()
    OUTDATED = auto()
    EARLIER = auto()


def _layout_of(
    store: Store, site: str, example: Example, before: Wrapper | None, limits: ParseSettings
) -> _Layout:
    """Which layout an example is of, told by what a wrapper finds on it and by how its page is made now."""
    if before is not None and before.earlier and _is_read_as_earlier(before, example.page, limits):
        return _Layout.EARLIER
    newest = store.page(PageAddress(site, example.page.url))
    return _Layout.PRESENT if has_present_layout(example.page, newest, limits) else _Layout.OUTDATED


def has_present_layout(page: Page, newest: Page, limits: ParseSettings = ParseSettings()) -> bool:
    """Whether a version of a page has the layout of the newest one; one that cannot be read says nothing."""
    now = signature(newest.html)
    if now is None or isinstance(parse(newest, limits), Failure):
        return True
    then = signature(page.html)
    # As many bytes as keep pages of different sites apart.
    return then is not None and sum(a == b for a, b in zip(then, now, strict=True)) >= BYTES_NEEDED


def _is_read_as_earlier(wrapper: Wrapper, page: Page, limits: ParseSettings) -> bool:
    """Whether a wrapper takes values of a page by the rules of an earlier layout."""
    found = wrapper.read(page, limits=limits)
    return not isinstance(found, Failure) and any(
        origin.layout > 1
        for record in found.records
        for origins in record.provenance.values()
        for origin in origins
    )


def _with_earlier_layouts(wrapper: Wrapper, before: Wrapper, known: Sequence[Wrapper]) -> Wrapper:
    """A wrapper for the present layout, with those that were known before it behind it, each once.

    Attributes that no one has annotated anew are found as before.
    """
    kept = {name: rules for name, rules in before.attributes.items() if name not in wrapper.attributes}
    wrapper = replace(wrapper, attributes={**wrapper.attributes, **kept})
    earlier: list[Wrapper] = []
    for layout in known:
        if all(_rules(layout) != _rules(other) for other in (wrapper, *earlier)):
            earlier.append(layout)
    return replace(wrapper, earlier=tuple(earlier[:MOST_EARLIER]))


def _rules(layout: Wrapper) -> tuple[object, ...]:
    return {name: found.rules for name, found in layout.attributes.items()}, layout.record_rule


def _with_footprint(
    learned: Learned,
    examples: Iterable[Example],
    clusters: Sequence[Cluster],
    addresses: Sequence[PageAddress],
) -> Learned:
    """What was learned, for all pages of its clusters and the examples that are in none of them.

    Two templates with much in common may be in one cluster: of its URL patterns only those count that
    a page has which the wrapper is for.
    """
    urls = {found.id: [addresses[member].url for member in found.members] for found in clusters}
    clustered = set[str]().union(*urls.values())
    others = [example.page for example in examples if example.page.url not in clustered]
    parts = [
        *(cluster_footprint(found, urls[found.id]) for found in clusters),
        footprint([(page.url, signature(page.html)) for page in others]),
    ]
    whole = merge_footprints(parts)
    if not set(learned.wrapper.footprint.accepted) <= set(whole.accepted):
        # Pages have changed since they were clustered: what they are like now, only they tell.
        whole = merge_footprints([*parts, learned.wrapper.footprint])
    patterns = tuple(
        pattern for pattern in whole.url_patterns if any(matches(pattern, url) for url in learned.urls)
    )
    whole = replace(whole, url_patterns=patterns)
    return learned._replace(wrapper=replace(learned.wrapper, footprint=whole))


def _pages_of(store: Store, clusters: Sequence[Cluster], addresses: Sequence[PageAddress]) -> Iterable[Page]:
    """Some evenly spaced pages of clusters."""
    members = [member for found in clusters for member in found.members]
    wanted = evenly_spaced(members, MOST_UNLABELLED)
    return store.pages_at([addresses[member] for member in wanted])
