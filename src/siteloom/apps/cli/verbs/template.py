"""`siteloom template`: what the pages of a cluster share."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.source_arguments import MethodOption, SourcesArgument, say_unread, verb_context
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import UsageError
from siteloom.core.table_files import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.tree import Tree

    from siteloom.operations.cluster import ClusterTemplate

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
    from siteloom.operations.cluster import TemplateRequest, template

    if paths and tags:
        raise UsageError("Ask for --paths or for --tags, not for both at once.")
    with verb_context(shell, sources) as context:
        say_unread(shell, context.unread)
        request = TemplateRequest(cluster=cluster, method=method, with_paths=paths, with_tags=tags)
        templates = template(context, request).templates
    if paths:
        shell.write_or_show(output, "Paths", _PATH_COLUMNS, _path_rows(templates))
    elif tags:
        shell.write_or_show(output, "Tags", _TAG_COLUMNS, _tag_rows(templates))
    elif output is not None:
        shell.write(output, _TEMPLATE_COLUMNS, _template_rows(templates))
    else:
        for shared in templates:
            shell.say("")
            shell.draw(_tree(shared))


def _template_rows(templates: Iterable[ClusterTemplate]) -> Iterator[dict[str, object]]:
    for shared in templates:
        for path in shared.template.essential:
            yield {
                "cluster": shared.cluster,
                "path": path.tags,
                "text": path.text,
                "support": path.support,
                "pages": shared.template.pages,
            }


def _path_rows(templates: Iterable[ClusterTemplate]) -> Iterator[dict[str, object]]:
    for shared in templates:
        for row in shared.paths:
            yield {"cluster": shared.cluster, "pages": shared.pages_read, **row._asdict()}


def _tag_rows(templates: Iterable[ClusterTemplate]) -> Iterator[dict[str, object]]:
    for shared in templates:
        for row in shared.tags:
            yield {"cluster": shared.cluster, "pages": shared.pages_read, **asdict(row)}


def _tree(shared: ClusterTemplate) -> Tree:
    """The essential paths as a tree, with the share of pages that have a path, if not all do."""
    from rich.text import Text
    from rich.tree import Tree

    template = shared.template
    root = Tree(
        Text(f"{shared.cluster}: {shared.size:,} pages, {len(template.paths):,} essential paths", "bold")
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
