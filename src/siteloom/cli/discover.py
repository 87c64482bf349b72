"""`siteloom discover`: a table of what varies between pages, with no examples."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from siteloom.cli.change_words import say_wrapped
from siteloom.cli.files import check_text_file, write_text
from siteloom.cli.learn import show_learned
from siteloom.cli.shell import Shell
from siteloom.cli.sources import SourcesArgument, say_unread, stored_clusters, stored_pages
from siteloom.errors import UsageError
from siteloom.output import STANDARD_OUTPUT, Column, check_destination
from siteloom.spacing import evenly_spaced

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from siteloom.discovery import Accepted, DiscoveredColumn, DiscoveredTable
    from siteloom.model import Cluster, Page
    from siteloom.store import PageAddress, Store

NAME = "discover"

_RANKED_BY = 60  # pages of a cluster tell how record-like it is
_VALUES_SHOWN = 2
_LONGEST_SHOWN = 30
_NO_NAME = re.compile(r"\W+")


def run(
    shell: Shell,
    sources: SourcesArgument = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="ID", help="The cluster of this name [the most record-like]."),
    ] = None,
    site: Annotated[
        str | None, typer.Option("--site", metavar="NAME", help="Only clusters of this site.")
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            metavar="[ATTRIBUTE=]COLUMN",
            help="Make this column an attribute of a wrapper; may be given several times.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the rows: .jsonl, .csv, .parquet, or - for standard output. With --accept, the "
            "wrapper: .json.",
        ),
    ] = None,
) -> None:
    """Show what varies between the pages of a cluster as a table, with no examples.

    Columns are named by what stands beside their values. Pages that list things give a row for each. The
    clusters are ranked by how many telling values a row of them has; the first is shown unless --cluster
    names another. With --accept, columns become the attributes of a wrapper: with a SOURCE it is written
    to -o, without it is kept in the workspace.
    """
    _check(sources, accept, output)
    with stored_pages(shell, sources) as store:
        if sources:
            _cluster(shell, store)
        choice = _chosen(shell, store, cluster, site)
        table = _table(shell, store, choice)
        if accept:
            _accept(shell, store, choice, table, accept, output, in_workspace=not sources)
            return
        if output is not None:
            shell.write(output, _columns(table), _rows(table))
        _show(shell, choice.cluster, table)
        if output is None:
            shell.say(
                "To have the rows as data, give -o FILE; to make a wrapper of columns, --accept COLUMN."
            )


class _Choice(NamedTuple):
    cluster: Cluster
    addresses: tuple[PageAddress, ...]

    def pages(self, store: Store) -> list[Page]:
        return list(store.pages_at([self.addresses[member] for member in self.cluster.members]))


def _check(sources: Sequence[str] | None, accept: Sequence[str] | None, output: str | None) -> None:
    if accept:
        if sources and output is None:
            raise UsageError("With a SOURCE, --accept needs -o FILE for the wrapper.")
        if output is not None:
            check_text_file(output, "A wrapper is", ".json")
    elif output is not None:
        check_destination(output)


def _cluster(shell: Shell, store: Store) -> None:
    from siteloom.pipeline import cluster_store

    with shell.counting("Clustering") as count:
        clustering, _ = cluster_store(
            store, "vertex", limits=shell.settings.parse, on_page=lambda _: count(1)
        )
    if not clustering.clusters:
        raise UsageError("No two of these pages were made alike: there is nothing to compare them by.")


def _chosen(shell: Shell, store: Store, name: str | None, site: str | None) -> _Choice:
    """The cluster that was asked for, or else the most record-like, after telling how all of them are."""
    clusters, addresses = stored_clusters(store, name)
    clusters = tuple(found for found in clusters if site in (None, found.site))
    if not clusters:
        raise UsageError(f"There is no cluster of {site}: siteloom cluster lists them.")
    if len(clusters) == 1:
        return _Choice(clusters[0], addresses)
    from siteloom.discovery import discover

    ranked = []
    with shell.counting("Looking at", "clusters") as count:
        for found in clusters:
            members = evenly_spaced(found.members, _RANKED_BY)
            pages = store.pages_at([addresses[member] for member in members])
            ranked.append((discover(pages, limits=shell.settings.parse), found))
            count(1)
    ranked.sort(key=lambda one: -one[0].record_likeness)
    shell.show(
        "Clusters, the most record-like first",
        ("cluster", "pages", "values of a row", "rows are", "columns"),
        (
            (
                found.id,
                found.size,
                table.record_likeness,
                "items of lists" if table.record_xpath else "pages",
                len(table.columns),
            )
            for table, found in ranked
        ),
    )
    return _Choice(ranked[0][1], addresses)


def _table(shell: Shell, store: Store, choice: _Choice) -> DiscoveredTable:
    from siteloom.discovery import discover

    with shell.counting("Reading") as count:
        pages = choice.pages(store)
        count(len(pages))
        table = discover(pages, limits=shell.settings.parse)
    say_unread(shell, Counter(failure.reason for failure in table.failures))
    return table


def _columns(table: DiscoveredTable) -> list[Column]:
    return [Column("url"), *(Column(column.label, "texts") for column in table.columns)]


def _rows(table: DiscoveredTable) -> Iterator[dict[str, object]]:
    for row in table.rows:
        yield {"url": row.url, **{label: list(texts) for label, texts in row.values.items()}}


def _show(shell: Shell, cluster: Cluster, table: DiscoveredTable) -> None:
    rows = [
        (column.label, column.type, f"{column.filled:.0%}", examples_of(table, column))
        for column in table.columns
    ]
    what = f"records in {table.record_xpath}" if table.record_xpath else "pages"
    shell.show(f"{cluster.id}: {len(table.rows):,} {what}", ("column", "type", "filled", "for example"), rows)
    if not rows:
        shell.say("Nothing varies between these pages.")


def examples_of(table: DiscoveredTable, column: DiscoveredColumn) -> str:
    """Some values of a column, each on a line."""
    filled = [row[column.label] for row in table.rows if row[column.label]]
    return "\n".join(_short(", ".join(texts)) for texts in evenly_spaced(filled, _VALUES_SHOWN))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def _accept(
    shell: Shell,
    store: Store,
    choice: _Choice,
    table: DiscoveredTable,
    accept: Sequence[str],
    output: str | None,
    *,
    in_workspace: bool,
) -> None:
    from siteloom.discovery import accept_columns
    from siteloom.pipeline import AnnotatedTemplate, learn_template

    labels = {column.label for column in table.columns}
    names = dict(_named(accepted, labels) for accepted in accept)
    if len(names) < len(accept):
        raise UsageError("Two columns would get the same name: give each its own, as in --accept name=title.")
    accepted = accept_columns(table, choice.pages(store), names)
    template = AnnotatedTemplate(choice.cluster.site, [choice.cluster], accepted.examples)
    new = learn_template(store, template)
    if new.learned is not None:
        show_learned(shell, new.learned)
    _say_agreement(shell, accepted)
    if in_workspace:
        shell.say(f"The wrapper is kept as {new.name}, version {new.version}.")
    if output is not None:
        write_text(output, store.wrapper(new.name).text)
        if output != STANDARD_OUTPUT:
            shell.say(f"The wrapper is in {output}.")


def _named(accepted: str, labels: Collection[str]) -> tuple[str, str]:
    """An attribute and the label of its column; without one, the label makes its name."""
    name, equals, label = accepted.partition("=")
    if equals and name.strip() and accepted not in labels:
        return name.strip(), label.strip()
    return _NO_NAME.sub("_", accepted.lower()).strip("_") or accepted, accepted


def _say_agreement(shell: Shell, accepted: Accepted) -> None:
    told = ", ".join(f"{name} {share:.0%}" for name, share in accepted.agreement.items())
    say_wrapped(
        shell, f"On pages that it was tried on, the wrapper finds just what the columns have: {told}."
    )
