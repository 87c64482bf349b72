"""Values to be confirmed, known before anyone annotates."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from siteloom.core.errors import MissingExtra, SiteloomError, UnreadablePage
from siteloom.core.settings import ParseSettings
from siteloom.learning.annotation.annotation_questions import ExternalValues
from siteloom.learning.annotation.embedded_examples import marked_pages
from siteloom.learning.annotation.visible_values import ShownTexts
from siteloom.learning.known_records.site_bootstrap import bootstrap
from siteloom.operations.cluster import cluster_pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.operations.annotation.sample_pages import SampleOfCluster, SamplePage
    from siteloom.store.store import Store


if TYPE_CHECKING:
    # By the numbers of pages: the texts of attributes.
    Texts = dict[int, dict[str, Sequence[str]]]

# What only one page tells is as likely a whim of that page as an attribute of the template.
_LEAST_PAGES = 2


def known_values(
    store: Store, sample: SampleOfCluster, limits: ParseSettings = ParseSettings()
) -> dict[int, Mapping[str, ExternalValues]]:
    """The values that are known of the sample pages, by the numbers of the pages.

    Where several sources know an attribute, what was extracted before counts most, then what pages say of
    themselves, then the seeds.
    """
    pages = sample.pages
    sources = {
        "seeds": _from_seeds(store, sample, limits),
        "embedded data": _from_markup(pages, limits),
        "earlier records": _from_records(store, pages),
    }
    known: dict[int, Mapping[str, ExternalValues]] = {}
    for page in pages:
        found: dict[str, ExternalValues] = {}
        for source, texts in sources.items():
            for name, values in texts.get(page.id, {}).items():
                shown = [page.value(text, None) for text in values]
                if shown and all(value.pick is not None for value in shown):
                    found[name] = ExternalValues(shown, source)
        known[page.id] = found
    return _frequent(known)


def _frequent(known: Mapping[int, Mapping[str, ExternalValues]]) -> dict[int, Mapping[str, ExternalValues]]:
    count = Counter(name for found in known.values() for name in found)
    least = min(_LEAST_PAGES, len(known))
    return {
        page: {name: one for name, one in found.items() if count[name] >= least}
        for page, found in known.items()
    }


def _from_records(store: Store, pages: Iterable[SamplePage]) -> Texts:
    """What the newest run that came across a page has extracted; of list pages, nothing."""
    known: Texts = {}
    for page in pages:
        stored = store.records_of(page.page.url)
        newest = [one for one in stored if one.run_id == stored[0].run_id]
        if len(newest) == 1:
            known[page.id] = json.loads(newest[0].content)["values"]
    return known


def _from_markup(pages: Sequence[SamplePage], limits: ParseSettings) -> Texts:
    """What pages say of themselves for machines, as it is seen on them."""
    try:
        marked = {one.page.url: one for one in marked_pages((page.page for page in pages), limits=limits)}
    except MissingExtra:
        return {}
    known: Texts = {}
    for page in pages:
        if page.page.url in marked:
            texts = ShownTexts(page.root)
            known[page.id] = {
                name: [text for text in seen if text is not None]
                for name, values in marked[page.page.url].values.items()
                if None not in (seen := [texts.as_shown(value) for value in values])
            }
    return known


def _from_seeds(store: Store, sample: SampleOfCluster, limits: ParseSettings) -> Texts:
    """The values of known records that are found on the pages of the cluster."""
    seeds = list(store.seeds())
    count = Counter(name for seed in seeds for name, texts in seed.values.items() if texts)
    if not count:
        return {}
    (cluster,), addresses = store.clusters(sample.cluster.id)
    (core, _), *_ = count.most_common(1)
    pages = {page.url: page for page in cluster_pages(store, cluster, addresses)}
    pages |= {page.page.url: page.page for page in sample.pages}
    try:
        found = bootstrap(seeds, pages.values(), (core,), limits=limits)
    except SiteloomError:
        return {}  # seeds of another kind of thing: there is nothing to suggest
    known: Texts = {}
    for page in sample.pages:
        values: dict[str, Sequence[str]] = {}
        for match in found.evidence:
            if match.url == page.page.url:
                values.setdefault(match.attribute, [match.text])
        if found.wrapper is not None:
            with suppress(UnreadablePage):
                values |= dict(found.wrapper.extract(page.page, limits=limits).values)
        known[page.id] = values
    return known
