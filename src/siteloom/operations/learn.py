"""From the examples of a template to its wrapper, kept in the store."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.model import Failure, Page
from siteloom.core.sequences import evenly_spaced
from siteloom.core.settings import ParseSettings
from siteloom.html.parser import parse
from siteloom.learning.induction.learner import learn_wrapper
from siteloom.learning.induction.units import MOST_UNLABELLED
from siteloom.operations.annotate import AnnotatedTemplate, attribute_names_of
from siteloom.operations.cluster import cluster_store
from siteloom.store.queries.clusters import PageAddress
from siteloom.templates.footprint import cluster_footprint, footprint, united
from siteloom.templates.signature import signature
from siteloom.templates.url_patterns import matches
from siteloom.wrappers.matching import BYTES_NEEDED
from siteloom.wrappers.page_layouts import MOST_EARLIER
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.core.model import Cluster, Example
    from siteloom.learning.induction.learning_session import Method as LearningMethod
    from siteloom.learning.induction.learning_session import Schema
    from siteloom.learning.induction.wrapper_assembly import Learned
    from siteloom.store.store import Store
    from siteloom.wrappers.rule_features import AttributeRules


class NewWrapper(NamedTuple):
    """A wrapper that was learned for some clusters of a site, and its version in the store.

    Nothing was learned if the version in force was not made by learning, and knows a layout that no
    example is of: it stays in force. `lost` are the attributes that only the version before has.
    """

    name: str
    site: str
    version: int
    learned: Learned | None
    lost: tuple[str, ...] = ()


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
    alike = [found for found in clusters if any(addresses[member].url in urls for member in found.members)]
    others = _pages_of(store, alike or clusters, addresses)
    learned = learn_wrapper(examples, others, schema, method, limits=limits)
    return _with_footprint(learned, examples, alike, addresses) if alike else learned


def learn_template(
    store: Store,
    template: AnnotatedTemplate,
    schema: Schema = None,
    method: LearningMethod = "united",
    *,
    keeps: Mapping[str, AttributeRules] = MappingProxyType({}),
    limits: ParseSettings = ParseSettings(),
) -> NewWrapper:
    """The wrapper of a template, kept in the store as a new version unless it is as it was.

    The schema may tell of other templates' attributes as well; what people said of the attributes of the
    clusters holds where it tells nothing. Examples of a layout that the pages do not
    have any more are left out if there are others; what was learned from them before stays in force as an
    earlier layout. `keeps` are rules by which attributes go on being found that no example tells of.
    """
    newest = store.wrapper_in_force(template.name)
    before = None if newest is None else Wrapper.from_json(newest.text)
    layouts = [_layout_of(store, template.site, example, before) for example in template.examples]
    examples = [
        example
        for example, layout in zip(template.examples, layouts, strict=True)
        if layout is _Layout.PRESENT
    ]
    if newest is not None and newest.origin != "learn" and not examples:
        return NewWrapper(template.name, template.site, newest.version, None)
    examples = examples or template.examples
    schema = _schema_of(store, template, examples, schema)
    others = _pages_of(store, template.clusters, template.addresses)
    learned = learn_wrapper(examples, others, schema, method, limits=limits)
    learned = _with_footprint(learned, examples, template.clusters, template.addresses)
    if before is not None and len(examples) < len(template.examples):
        known = before.layouts if _Layout.OUTDATED in layouts else before.earlier
        learned = learned._replace(wrapper=_with_earlier_layouts(learned.wrapper, before, known))
    kept = {name: rules for name, rules in keeps.items() if name not in learned.wrapper.attributes}
    if kept:
        attributes = {**learned.wrapper.attributes, **kept}
        learned = learned._replace(wrapper=replace(learned.wrapper, attributes=attributes))
    text = learned.wrapper.to_json()
    lost = set() if before is None else before.attributes.keys() - learned.wrapper.attributes.keys()
    with store.recording("learn", {"wrapper": template.name, "method": method}) as run:
        run.counts.update(examples=len(template.examples), attributes=len(learned.wrapper.attributes))
        # Another process may have learned the same meanwhile.
        now = store.wrapper_in_force(template.name)
        if now is not None and now.text == text:
            version = now.version
        else:
            version = store.reviewing.put_learned_in_force(template.name, template.site, text)
    return NewWrapper(template.name, template.site, version, learned, tuple(sorted(lost)))


def _schema_of(
    store: Store, template: AnnotatedTemplate, examples: Iterable[Example], schema: Schema
) -> Schema:
    """What is known of the attributes of some examples: as given, or else as people said of the clusters."""
    said = {
        name: known
        for found in template.clusters
        for name, known in store.cluster_schema(found.id).attributes.items()
    }
    names = {name for _, name in attribute_names_of(examples)}
    return {name: known for name, known in {**said, **(schema or {})}.items() if name in names}


class _Layout(Enum):
    """The layout that the page of an example had: as pages are now, one before, or one known as such."""

    PRESENT = auto()
    OUTDATED = auto()
    EARLIER = auto()


def _layout_of(store: Store, site: str, example: Example, before: Wrapper | None) -> _Layout:
    """Which layout an example is of, told by what a wrapper finds on it and by how its page is made now."""
    if before is not None and before.earlier and _is_read_as_earlier(before, example.page):
        return _Layout.EARLIER
    newest = store.page(PageAddress(site, example.page.url))
    return _Layout.PRESENT if has_present_layout(example.page, newest) else _Layout.OUTDATED


def has_present_layout(page: Page, newest: Page) -> bool:
    """Whether a version of a page has the layout of the newest one; one that cannot be read says nothing."""
    now = signature(newest.html)
    if now is None or isinstance(parse(newest), Failure):
        return True
    then = signature(page.html)
    # As many bytes as keep pages of different sites apart.
    return then is not None and sum(a == b for a, b in zip(then, now, strict=True)) >= BYTES_NEEDED


def _is_read_as_earlier(wrapper: Wrapper, page: Page) -> bool:
    """Whether a wrapper takes values of a page by the rules of an earlier layout."""
    found = wrapper.read(page)
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
    whole = united(parts)
    if not set(learned.wrapper.footprint.accepted) <= set(whole.accepted):
        # Pages have changed since they were clustered: what they are like now, only they tell.
        whole = united([*parts, learned.wrapper.footprint])
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
