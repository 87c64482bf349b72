"""The clusters of a workspace whose pages annotate themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from siteloom.config import ParseSettings
from siteloom.errors import ExampleError, UsageError
from siteloom.self_annotation.examples import examples_of, marked_pages, most_frequent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from siteloom.model import Cluster, Page
    from siteloom.self_annotation.examples import MarkedPage, SelfAnnotated
    from siteloom.store import PageAddress, Store


class SelfAnnotatedTemplate(NamedTuple):
    """The clusters of a site whose pages carry records of the same type.

    There are no examples if none can be made of them, and it is said why not. The members of the clusters are
    indices into `addresses`, which is of all clusters.
    """

    site: str
    clusters: list[Cluster]
    addresses: Sequence[PageAddress]
    found: SelfAnnotated | None
    why_not: str = ""


def self_annotated_templates(
    store: Store,
    cluster: str | None = None,
    on_page: Callable[[Page], object] = lambda _: None,
    limits: ParseSettings = ParseSettings(),
) -> list[SelfAnnotatedTemplate]:
    """What the pages of a workspace tell by themselves, by template, or for that of one cluster.

    Clusters of one site with records of the same type are variants of one template. What people have
    annotated is left to their examples.
    """
    clusters, addresses = store.clusters()
    if not clusters:
        raise UsageError("The pages of the workspace are not clustered yet: run siteloom cluster first.")
    if cluster is not None:
        store.require_cluster(cluster)
    annotated = set(store.annotated_pages())
    by_kind: dict[tuple[str, str], list[tuple[Cluster, list[MarkedPage]]]] = {}
    for one in clusters:
        pages = store.pages_at([addresses[member] for member in one.members])
        marked = marked_pages(pages, on_page, limits)
        if marked:
            marked = most_frequent(marked)
            by_kind.setdefault((one.site, marked[0].type), []).append((one, marked))
    templates = []
    for (site, _), members in by_kind.items():
        variants = [one for one, _ in members]
        if cluster is not None and cluster not in {one.id for one in variants}:
            continue
        if any(addresses[member] in annotated for one in variants for member in one.members):
            why = "people have annotated its pages: learn without --from-embedded"
            templates.append(SelfAnnotatedTemplate(site, variants, addresses, None, why))
            continue
        try:
            found = examples_of([page for _, marked in members for page in marked], limits)
        except ExampleError as error:
            templates.append(SelfAnnotatedTemplate(site, variants, addresses, None, str(error)))
        else:
            templates.append(SelfAnnotatedTemplate(site, variants, addresses, found))
    if not templates:
        where = "No page" if cluster is None else f"No page of {cluster}"
        raise ExampleError(
            f"{where} carries a record as JSON-LD, microdata, RDFa or Open Graph: give --examples FILE."
        )
    return templates
