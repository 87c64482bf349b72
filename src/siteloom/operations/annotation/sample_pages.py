"""The sample pages of a cluster, read and parsed once for all the clicks that follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import NotFound
from siteloom.core.model import Failure
from siteloom.core.settings import ParseSettings
from siteloom.html.node_paths import elements_in_order
from siteloom.html.visible_text import normalize
from siteloom.learning.annotation.annotation_questions import Value
from siteloom.learning.annotation.clicked_nodes import Pick, pick_of, picked
from siteloom.learning.induction.learning_session import LearningSession
from siteloom.learning.value_search.value_locations import ValueIndex
from siteloom.operations.cluster import sample_cluster
from siteloom.operations.learn import has_present_layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.core.model import Cluster, Page
    from siteloom.html.parser import Element
    from siteloom.learning.annotation.clicked_nodes import Picked
    from siteloom.store.packs.page_reader import VersionPlace
    from siteloom.store.queries.annotations import Annotation
    from siteloom.store.queries.clusters import PageAddress
    from siteloom.store.store import Store
    from siteloom.templates.sampling import Sample

SAMPLE_PAGES = 10
"""Learning from ten pages leaves next to nothing to be learned from more (docs/evaluation/learning.md)."""

# Besides those, so many that were annotated otherwise are shown; all are learned from again at each click.
_MOST_ANNOTATED = 10


@dataclass(frozen=True)
class SamplePage:
    """A page to be annotated, as it is shown: its tree, whose elements are known by their numbers.

    `place` is where the version that is shown stands in the store; what was said of others counts no more.
    """

    id: int
    number: int
    address: PageAddress
    page: Page
    place: VersionPlace
    root: Element
    covered: float

    @cached_property
    def elements(self) -> list[Element]:
        """The elements by their numbers."""
        return elements_in_order(self.root)

    @cached_property
    def numbers(self) -> dict[Element, int]:
        """The numbers of the elements."""
        return {element: number for number, element in enumerate(self.elements)}

    @property
    def version(self) -> str:
        """By what the version that is shown is known."""
        return version_of(self.page)

    @cached_property
    def title(self) -> str:
        """What the page calls itself."""
        title = self.root.find("head/title")
        return "" if title is None else normalize("".join(title.itertext(with_tail=False)))

    def picked(self, pick: Pick) -> Picked:
        """What someone pointed at."""
        return picked(self.elements, pick)

    def value(self, text: str, node: str | None, confidence: float | None = None) -> Value:
        """A value of this page, as it is shown; if its node is not known, where it most likely stands."""
        if node is None:
            node = next((place.node for place in self.places.find(text)), None)
        return Value(text, None if node is None else self._pick(node, text), confidence)

    def _pick(self, node: str, text: str) -> Pick | None:
        key = node, text
        if key not in self._picks:
            self._picks[key] = pick_of(self.elements, self.numbers, node, text)
        return self._picks[key]

    @cached_property
    def _picks(self) -> dict[tuple[str, str], Pick | None]:
        """Those that were asked for: most values are shown again after each click."""
        return {}

    @cached_property
    def places(self) -> ValueIndex:
        """Where values stand on the page."""
        return ValueIndex(self.root)


class SampleOfCluster(NamedTuple):
    """A cluster, the order of its pages by their worth, the pages to annotate, and what learns from them."""

    cluster: Cluster
    order: Sample
    pages: list[SamplePage]
    session: LearningSession


def sample_of(store: Store, name: str, limits: ParseSettings = ParseSettings()) -> SampleOfCluster:
    """The pages of a cluster to annotate: those that show most, and those that were annotated already."""
    found, addresses = store.clusters(name)
    if not found:
        raise NotFound(f"There is no template {name} in this workspace.")
    cluster = found[0]
    order = sample_cluster(store, cluster, addresses, SAMPLE_PAGES, limits=limits)
    by_url = {addresses[member].url: addresses[member] for member in cluster.members}
    covered = {order.urls[one.page]: one.covered for one in order.order}
    is_member = set(by_url.values()).__contains__
    annotated = {address.url: 1.0 for address in store.annotated_pages() if is_member(address)}
    wanted = {**annotated, **covered}
    more = [url for url in annotated if url not in covered]
    chosen = [by_url[url] for url in (*covered, *more[:_MOST_ANNOTATED])]
    ids = store.page_ids(chosen)
    newest = {annotation.url_id: annotation for annotation in store.annotations(ids)}
    shown = [
        _shown(store, address, newest.get(page_id), limits)
        for page_id, address in zip(ids, chosen, strict=True)
    ]
    session = LearningSession([page for page, _ in shown], limits=limits)
    pages: list[SamplePage] = []
    for page_id, address, (page, place) in zip(ids, chosen, shown, strict=True):
        root = session.roots[page.url]
        if not isinstance(root, Failure):
            number = len(pages) + 1
            pages.append(SamplePage(page_id, number, address, page, place, root, wanted[address.url]))
    return SampleOfCluster(cluster, order, pages, session)


def _shown(
    store: Store, address: PageAddress, annotated: Annotation | None, limits: ParseSettings
) -> tuple[Page, VersionPlace]:
    """The version of a page to show: the annotated one, or the newest if the page has another layout now."""
    (newest,) = store.newest_places([address])
    if annotated is None or annotated.place == newest:
        return _page_at(store, newest), newest
    before = _page_at(store, annotated.place)
    if has_present_layout(before, _page_at(store, newest), limits):
        return before, annotated.place
    return _page_at(store, newest), newest


def _page_at(store: Store, place: VersionPlace) -> Page:
    (page,) = store.pages_in([place])
    return page


def version_of(page: Page) -> str:
    """By what a version of a page is told from the others."""
    return blake2b(page.html, digest_size=8).hexdigest()


def page_of(pages: Sequence[SamplePage], page_id: int) -> SamplePage:
    """The sample page of a number."""
    for page in pages:
        if page.id == page_id:
            return page
    raise NotFound(f"There is no page {page_id} among the sample pages of this template.")
