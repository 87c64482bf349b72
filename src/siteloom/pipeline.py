"""The stages in order."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from siteloom.annotating.statements import as_list
from siteloom.clustering import (
    SITE_METHODS,
    cluster_features,
    cluster_footprint,
    describing_members,
    footprint,
    joined,
    matches,
    page_features,
    renumbered,
    united,
)
from siteloom.config import ParseSettings
from siteloom.dom import parse
from siteloom.errors import ExampleError, UsageError
from siteloom.learning import MOST_UNLABELLED, check_example, learn_wrapper
from siteloom.model import Failure, Page, Resource, Skipped
from siteloom.pages import read_sources
from siteloom.sampling import sample_stream
from siteloom.signature import signature
from siteloom.spacing import evenly_spaced
from siteloom.store import PageAddress
from siteloom.urls import site_of
from siteloom.wrapper import Wrapper
from siteloom.wrapper.layouts import MOST_EARLIER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from siteloom.clustering import Method, PageFeatures
    from siteloom.examples_file import ExampleLine
    from siteloom.learning import Learned, Schema
    from siteloom.learning import Method as LearningMethod
    from siteloom.model import Cluster, Clustering, Example
    from siteloom.pages import PageSource, SourceItem
    from siteloom.sampling import Sample
    from siteloom.store import RunRecorder, Store
    from siteloom.wrapper.language import AttributeRules

_log = logging.getLogger(__name__)

# So many bytes of their signatures two versions of a page must share to have the same layout: as many as
# keep pages of different sites apart (see siteloom.matching).
_SAME_LAYOUT_BYTES = 4

IngestVerb = Literal["ingest", "crawl", "fetch"]
"""As what a run that puts pages into a store is recorded."""

# In this order they are shown.
_OUTCOMES = ("new", "changed", "unchanged", "failed", "skipped")


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of everything that was read.

    `resources` is how many of what was new, changed or unchanged are no pages.
    """

    run_id: int
    new: int
    changed: int
    unchanged: int
    bytes: int
    failures: Mapping[str, int]
    skipped: Mapping[str, int]
    resources: int

    @property
    def kept(self) -> int:
        """Documents of the sources that are in the store now, whether or not they were before."""
        return self.new + self.changed + self.unchanged


def ingest(
    store: Store,
    sources: Iterable[PageSource],
    *,
    site: str | None = None,
    jobs: int = 1,
    names: Iterable[str] = (),
    on_item: Callable[[SourceItem], object] = lambda _: None,
    verb: IngestVerb = "ingest",
    on_commit: Callable[[], object] = lambda: None,
) -> IngestReport:
    """Put the pages of sources into the store; those it has already are not stored again.

    Each page goes to the site of its URL, or to the one named. `names` are the
    sources as the user wrote them, for the record of runs; `on_item` is called
    for all that is read, for showing progress.

    Pages of the web, which come slowly, are those of a `crawl`, or the watched ones of
    a `fetch`: others can write to the store while they are waited for, but for another
    run of the same verb. `on_commit` is called each time that all which was read before
    is in the store for good.
    """
    skipped: Counter[str] = Counter()
    size = 0
    resources = 0
    _log.info("ingest begins: %s", ", ".join(names))
    arguments = {"sources": list(names), "site": site}
    opened = (
        store.ingesting(arguments, jobs)
        if verb == "ingest"
        else store.collecting(verb, arguments, jobs, on_commit)
    )
    with opened as (run, writer):
        run.counts.update(dict.fromkeys(_OUTCOMES, 0))
        for item in read_sources(sources):
            match item:
                case Page() | Resource():
                    if failure := writer.add(item, site or site_of(item.url)):
                        _fail(run, failure)
                    else:
                        size += len(item.html if isinstance(item, Page) else item.body)
                        resources += isinstance(item, Resource)
                case Failure():
                    _fail(run, item)
                    writer.flush_when_due()
                case Skipped():
                    _log.debug("skipped %s: %s", item.url, item.reason)
                    run.counts["skipped"] += 1
                    skipped[item.reason] += 1
                    writer.flush_when_due()
            on_item(item)
    _log.info("ingest ends: %s", ", ".join(f"{run.counts[what]} {what}" for what in _OUTCOMES))
    return IngestReport(
        run.id,
        run.counts["new"],
        run.counts["changed"],
        run.counts["unchanged"],
        size,
        dict(run.failures_by_reason),
        dict(skipped),
        resources,
    )


def cluster_store(
    store: Store,
    method: Method,
    *,
    site: str | Sequence[str] | None = None,
    limits: ParseSettings = ParseSettings(),
    on_page: Callable[[Page], object] = lambda _: None,
    on_failure: Callable[[Failure], object] = lambda _: None,
) -> tuple[Clustering, tuple[PageAddress, ...]]:
    """Cluster the stored pages, or those of one site or several, and keep the result in the store.

    The members of the clusters are indices into the addresses that are returned. `on_failure` is called for
    each page that cannot be read and so is in no cluster.
    """
    stored = [found.name for found in store.sites()]
    asked_for = [site] if isinstance(site, str) else stored if site is None else site
    if unknown := sorted(set(asked_for) - set(stored)):
        known = ", ".join(stored[:5]) or "none at all"
        raise UsageError(f"There is no site {unknown[0]} among the pages: there are {known}.")
    several = {} if site is None or isinstance(site, str) else {"sites": list(site)}
    # Site by site where the method allows, so that no more than one site is held at a time.
    batches = [[name] for name in asked_for] if method in SITE_METHODS else [asked_for]
    addresses: list[PageAddress] = []
    parts: list[Clustering] = []
    with store.clustering({"method": method, "site": None if several else site, **several}) as run:
        run.counts.update(pages=0, clusters=0, unclustered=0, failed=0)
        for batch in batches:
            found, pages = _cluster_sites(store, batch, method, limits, run, on_page, on_failure)
            store.save_clusters(run.id, found.clusters, pages)
            parts.append(renumbered(found, len(addresses)))
            addresses += pages
            run.counts.update(
                pages=len(pages), clusters=len(found.clusters), unclustered=len(found.unclustered)
            )
    return joined(parts, len(addresses)), tuple(addresses)


def _cluster_sites(
    store: Store,
    sites: Sequence[str],
    method: Method,
    limits: ParseSettings,
    run: RunRecorder,
    on_page: Callable[[Page], object],
    on_failure: Callable[[Failure], object],
) -> tuple[Clustering, list[PageAddress]]:
    addresses: list[PageAddress] = []
    features: list[PageFeatures] = []
    for site in sites:
        for page in store.pages(site):
            kept = page_features(page, method, site, limits)
            if kept.failure is not None:
                _fail(run, kept.failure)
                on_failure(kept.failure)
            features.append(kept)
            addresses.append(PageAddress(site, page.url))
            on_page(page)

    def load(wanted: Sequence[int]) -> Iterable[Page]:
        return store.pages_at([addresses[page] for page in wanted])

    return cluster_features(features, method, load, limits), addresses


def cluster_pages(store: Store, cluster: Cluster, addresses: Sequence[PageAddress]) -> list[Page]:
    """Some evenly spaced pages of a stored cluster, enough to see its template."""
    return list(store.pages_at([addresses[member] for member in describing_members(cluster.members)]))


def sample_cluster(
    store: Store,
    cluster: Cluster,
    addresses: Sequence[PageAddress],
    k: int,
    annotated: Collection[str] = (),
    *,
    limits: ParseSettings = ParseSettings(),
    on_page: Callable[[Page], object] = lambda _: None,
) -> Sample:
    """The pages of a stored cluster to annotate first; `annotated` are the URLs of those that were already.

    Evenly spaced pages are looked at, and all that were annotated, for they have been seen.
    """
    seen = {member for member in cluster.members if addresses[member].url in annotated}
    members = sorted(seen.union(describing_members(cluster.members)))
    pages = store.pages_at([addresses[member] for member in members])
    return sample_stream(pages, k, annotated, limits=limits, on_page=on_page)


def _fail(run: RunRecorder, failure: Failure) -> None:
    _log.warning("failed %s: %s (%s)", failure.url, failure.reason, failure.detail)
    run.fail(failure)


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


def annotate(
    store: Store,
    lines: Iterable[ExampleLine],
    author: str = "",
    *,
    limits: ParseSettings = ParseSettings(),
) -> int:
    """Keep examples as annotations of stored pages, all or none; returns how many."""
    found = [placed_example(store, line) for line in lines]
    for _, example in found:
        check_example(example, limits)
    store.save_examples(found, author)
    return len(found)


def placed_example(store: Store, line: ExampleLine) -> tuple[PageAddress, Example]:
    """An example on its page as that is now, and where the page is."""
    found = find_page(store, line.url)
    if found is None:
        raise ExampleError(
            f"There is an example of {line.url}, but no such page: check its URL, or ingest the page first."
        )
    address, page = found
    return address, line.on(page)


def find_page(store: Store, url: str) -> tuple[PageAddress, Page] | None:
    """A page as it is now, and where it is: in the site of its URL, or else in any."""
    for site in (site_of(url), *(found.name for found in store.sites())):
        if versions := store.versions(url, site):
            return PageAddress(site, url), versions[-1]
    return None


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


class AnnotatedTemplate(NamedTuple):
    """The examples of one kind of pages of a site, and the clusters that these pages are in."""

    site: str
    clusters: list[Cluster]
    examples: list[Example]

    @property
    def name(self) -> str:
        """What its wrapper is called: as its largest cluster, or as its site if no page is in one."""
        return max(self.clusters, key=lambda found: (found.size, found.id)).id if self.clusters else self.site

    @property
    def attributes(self) -> set[str]:
        """The names of all attributes of the examples."""
        return {name for example in self.examples for _, name in _attribute_names(example)}


def annotated_templates(store: Store, cluster: str | None = None) -> list[AnnotatedTemplate]:
    """What is annotated in the workspace, by template, or that of one cluster.

    Clusters of one site whose examples have the same attributes are variants of one template; examples of
    one cluster are of one template, whatever their attributes.
    """
    clusters, addresses = store.clusters()
    if cluster is not None and cluster not in {found.id for found in clusters}:
        raise UsageError(f"There is no cluster {cluster}: siteloom cluster lists them.")
    cluster_of = {addresses[member]: found for found in clusters for member in found.members}
    templates: list[AnnotatedTemplate] = []
    for site in store.sites():
        examples: dict[str, list[Example]] = {}
        homes: dict[str, Cluster | None] = {}
        for example in store.examples(site.name):
            home = cluster_of.get(PageAddress(site.name, example.page.url))
            key = example.page.url if home is None else home.id
            homes[key] = home
            examples.setdefault(key, []).append(example)
        for key, found in examples.items():
            _add_examples(templates, site.name, homes[key], _of_one_kind(found))
    chosen = [one for one in templates if cluster in (None, *(found.id for found in one.clusters))]
    if not chosen:
        what = "No page" if cluster is None else f"No page of {cluster}"
        raise ExampleError(f"{what} is annotated: give --examples FILE with a few pages and their values.")
    if not clusters:
        raise UsageError("The pages of the workspace are not clustered yet: run siteloom cluster first.")
    return chosen


def _of_one_kind(examples: list[Example]) -> list[Example]:
    """Examples of one cluster; if one of them is a list, all are: what they tell is of their first record."""
    if not any(example.records for example in examples):
        return examples
    listed = map(as_list, examples)
    return [example for example in listed if example.records]


def _add_examples(
    templates: list[AnnotatedTemplate], site: str, home: Cluster | None, examples: list[Example]
) -> None:
    """Add the examples of a cluster, or one of a page in none, to the template that they are of."""
    names = _names_of(examples)
    for template in templates:
        if template.site == site and _is_of_template(names, home, template):
            template.examples.extend(examples)
            if home is not None:
                template.clusters.append(home)
            return
    templates.append(AnnotatedTemplate(site, [] if home is None else [home], examples))


def _is_of_template(names: set[tuple[bool, str]], home: Cluster | None, template: AnnotatedTemplate) -> bool:
    others = _names_of(template.examples)
    # Different kinds of pages have a few attributes in common, such as a price.
    shared = len(names & others)
    is_enough = home is None or shared > 1 or names == others
    return is_enough and 2 * shared >= min(len(names), len(others))


def _names_of(examples: Iterable[Example]) -> set[tuple[bool, str]]:
    return set[tuple[bool, str]]().union(*map(_attribute_names, examples))


def _attribute_names(example: Example) -> set[tuple[bool, str]]:
    """The attributes of an example; those of lists are others than those of single records."""
    return {(False, name) for name in example.values} | {
        (True, name) for record in example.records for name in record
    }


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
    _, addresses = store.clusters()
    newest = next((found for found in store.wrappers() if found.name == template.name), None)
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
    others = _pages_of(store, template.clusters, addresses)
    learned = learn_wrapper(examples, others, schema, method, limits=limits)
    learned = _with_footprint(learned, examples, template.clusters, addresses)
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
        now = next((found for found in store.wrappers() if found.name == template.name), None)
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
    names = {name for _, name in _names_of(examples)}
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
    return then is not None and sum(a == b for a, b in zip(then, now, strict=True)) >= _SAME_LAYOUT_BYTES


def _is_read_as_earlier(wrapper: Wrapper, page: Page) -> bool:
    """Whether a wrapper takes values of a page by the rules of an earlier layout."""
    found = wrapper.read(page)
    return not isinstance(found, Failure) and any(
        "@" in origin.rule
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
