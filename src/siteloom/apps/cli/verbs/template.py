"""`siteloom template`: what the pages of a cluster share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.source_arguments import MethodOption, SourcesArgument, stored_clusters, stored_pages
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import UsageError
from siteloom.core.table_files import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.tree import Tree

    from siteloom.core.model import Cluster, Page
    from siteloom.html.parser import Element

NAME = "template"

_TEMPLATE_COLUMNS = (
    Column("cluster"),
    Column("path"),
    Column("text"),
    Column("support", "integer"),
    Column("pages", "integer"),
)
_PATH_COLUMNS = (*_TEMPLATE_COLUMNS, Column("essential", "flag"), Column("informativeness", "number"))
_TAG_COLUMNS = (
    Column("cluster"),
    Column("url"),
    Column("tag"),
    Column("occurrences", "integer"),
    Column("support", "integer"),
    Column("pages", "integer"),
    Column("essential", "flag"),
)


def run(
    shell: Shell,
    sources: SourcesArgument = None,
    method: MethodOption = "vertex",
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="ID", help="Only the cluster of this name."),
    ] = None,
    paths: Annotated[bool, typer.Option("--paths", help="All paths, and how much each tells.")] = False,
    tags: Annotated[bool, typer.Option("--tags", help="Tag counts of each cluster and page.")] = False,
    output: OutputOption = None,
) -> None:
    """Show the template of each cluster: what its pages share.

    Shown are its essential paths as a tree, and the text that its pages share. Without a SOURCE it shows what
    siteloom cluster found last in the workspace; --method is for a SOURCE. Up to a hundred pages of a cluster
    are looked at.
    """
    from siteloom.operations.cluster import cluster_pages, cluster_store
    from siteloom.templates.clustering.methods import check_method

    with stored_pages(shell, sources) as store:
        if paths and tags:
            raise UsageError("Ask for --paths or for --tags, not for both at once.")
        if sources:
            clustering, _ = cluster_store(store, check_method(method), limits=shell.settings.parse)
            if not clustering.clusters:
                raise UsageError("No two of these pages were made alike: there is no template to show.")
        chosen, pages = stored_clusters(store, cluster)
        shown = ((found, cluster_pages(store, found, pages)) for found in chosen)
        if paths:
            shell.write_or_show(output, "Paths", _PATH_COLUMNS, _path_rows(shell, shown))
        elif tags:
            shell.write_or_show(output, "Tags", _TAG_COLUMNS, _tag_rows(shell, shown))
        elif output is not None:
            shell.write(output, _TEMPLATE_COLUMNS, _template_rows(chosen))
        else:
            for found in chosen:
                shell.say("")
                shell.draw(_tree(found))


def _template_rows(clusters: Iterable[Cluster]) -> Iterator[dict[str, object]]:
    for cluster in clusters:
        for path in cluster.template.essential:
            yield {
                "cluster": cluster.id,
                "path": path.tags,
                "text": path.text,
                "support": path.support,
                "pages": cluster.template.pages,
            }


def _path_rows(shell: Shell, shown: Iterable[tuple[Cluster, list[Page]]]) -> Iterator[dict[str, object]]:
    from siteloom.templates.essential_paths import path_rows

    for cluster, pages in shown:
        roots = list(_trees(shell, pages).values())
        for row in path_rows(roots):
            yield {"cluster": cluster.id, "pages": len(roots), **row._asdict()}


def _tag_rows(shell: Shell, shown: Iterable[tuple[Cluster, list[Page]]]) -> Iterator[dict[str, object]]:
    from siteloom.templates.essential_paths import tag_rows

    for cluster, pages in shown:
        trees = _trees(shell, pages)
        urls = list(trees)
        for row in tag_rows(list(trees.values())):
            url = None if row.page is None else urls[row.page]
            yield {"cluster": cluster.id, "pages": len(urls), "url": url, **row._asdict()}


def _trees(shell: Shell, pages: Iterable[Page]) -> dict[str, Element]:
    from siteloom.core.model import Failure
    from siteloom.html.parser import parse

    parsed = {page.url: parse(page, shell.settings.parse) for page in pages}
    return {url: root for url, root in parsed.items() if not isinstance(root, Failure)}


def _tree(cluster: Cluster) -> Tree:
    """The essential paths as a tree, with the share of pages that have a path, if not all do."""
    from rich.text import Text
    from rich.tree import Tree

    template = cluster.template
    root = Tree(
        Text(f"{cluster.id}: {cluster.size:,} pages, {len(template.paths):,} essential paths", "bold")
    )
    nodes: dict[str, Tree] = {}
    for path in template.essential:
        share = path.support / max(1, template.pages)
        support = "" if path.support == template.pages else f"  {share:.0%}"
        parent, _, tag = path.tags.rpartition("/")
        if path.text is None:
            nodes[path.tags] = nodes.get(parent, root).add(Text.assemble((tag, "cyan"), (support, "dim")))
        else:
            nodes.get(path.tags, root).add(Text.assemble(repr(path.text), (support, "dim")))
    return root
