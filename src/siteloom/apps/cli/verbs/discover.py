"""`siteloom discover`: a table of what varies between pages, with no examples."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.result_tables import say_wrapped
from siteloom.apps.cli.source_arguments import (
    SourcesArgument,
    check_text_file,
    say_unread,
    stored_pages,
    write_text,
)
from siteloom.apps.cli.terminal import Shell
from siteloom.apps.cli.verbs.learn import show_replaced, show_rules
from siteloom.core.errors import SourceError, UsageError
from siteloom.core.remote_files import shown
from siteloom.core.sequences import evenly_spaced
from siteloom.core.table_files import STANDARD_OUTPUT, Column, check_destination
from siteloom.core.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from siteloom.core.model import Example
    from siteloom.learning.discovery.columns_to_wrapper import Accepted
    from siteloom.learning.discovery.table_discovery import DiscoveredColumn, DiscoveredTable
    from siteloom.operations.discover import TablePages
    from siteloom.store.store import Store

NAME = "discover"

_RANKED_BY = 60  # pages of a cluster tell how record-like it is
_SLIVER = 0.1  # of the pages of the largest cluster: of fewer a table rarely tells what the site is about
_VALUES_SHOWN = 2
_LONGEST_SHOWN = 30


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
    """Show what varies between pages as a table, with no examples.

    Columns are named by what stands beside their values. Pages that list things give a row for each. A
    SOURCE is clustered first; without, the clusters of the workspace are taken as they were found last. They
    are ranked by how many telling values a row of them has, those with few pages behind the others; the first
    is shown unless --cluster names another.

    With --accept, columns become the attributes of a wrapper: with a SOURCE it is written to -o, without it
    is kept in the workspace as siteloom learn keeps one, and so are the values that it is learned from, as
    annotations beside those that there are.
    """
    _check(sources, accept, output)
    with stored_pages(shell, sources) as store:
        choice = _chosen_of_sources(shell, store, cluster, site) if sources else None
        if choice is None:
            choice = _chosen(shell, store, cluster, site)
        table = _table(shell, store, choice)
        if accept:
            _accept(shell, store, choice, table, accept, output, in_workspace=not sources)
            return
        if output is not None:
            shell.write(output, _columns(table), _rows(table))
        _show(shell, choice, table)
        if output is None:
            shell.say(
                "To have the rows as data, give -o FILE; to make a wrapper of columns, --accept COLUMN."
            )
        elif output != STANDARD_OUTPUT:
            shell.say(f"{plural(len(table.rows), 'row')} are in {shown(output)}.")


def _check(sources: Sequence[str] | None, accept: Sequence[str] | None, output: str | None) -> None:
    if accept:
        if sources and output is None:
            raise UsageError("With a SOURCE, --accept needs -o FILE for the wrapper.")
        if output is not None:
            check_text_file(output, "A wrapper is", ".json")
    elif output is not None:
        check_destination(output)


def _chosen_of_sources(shell: Shell, store: Store, name: str | None, site: str | None) -> TablePages | None:
    """All pages if they cannot be clustered, else None, after their clusters were found."""
    from siteloom.operations.cluster import cluster_store
    from siteloom.operations.discover import TablePages

    with shell.counting("Clustering") as count:
        clustering, addresses = cluster_store(
            store, "vertex", limits=shell.settings.parse, on_page=lambda _: count(1)
        )
    if not addresses:
        raise SourceError("There is no page to discover a table in: the sources have none that can be read.")
    clusters = clustering.clusters
    if name is not None and name not in {found.id for found in clusters}:
        known = ", ".join(found.id for found in clusters) or "none at all"
        raise UsageError(f"There is no cluster {name} of these pages: there are {known}.")
    sites = dict.fromkeys(address.site for address in addresses)
    if site is not None and site not in sites:
        raise UsageError(f"There is no page of {site}: there are pages of {', '.join(sites)}.")
    own = tuple(address for address in addresses if site in (None, address.site))
    if not any(site in (None, found.site) for found in clusters):
        return TablePages(", ".join(dict.fromkeys(address.site for address in own)), own[0].site, own, False)
    outside = [page for page in clustering.unclustered if site in (None, addresses[page].site)]
    if outside and name is None:
        is_one = len(outside) == 1
        shell.say(f"{plural(len(outside), 'page')} {'is' if is_one else 'are'} in no cluster and left out.")
    return None


def _chosen(shell: Shell, store: Store, name: str | None, site: str | None) -> TablePages:
    """The cluster that was asked for, or else the most record-like, after telling how all of them are."""
    from siteloom.operations.cluster import stored_clusters
    from siteloom.operations.discover import pages_of

    clusters, addresses = stored_clusters(store, name)
    clusters = tuple(found for found in clusters if site in (None, found.site))
    if not clusters:
        raise UsageError(f"There is no cluster of {site}: siteloom cluster lists them.")
    choices = [pages_of(found, addresses) for found in clusters]
    if len(choices) == 1:
        return choices[0]
    from siteloom.learning.discovery.table_discovery import outline

    outlines = []
    with shell.counting("Looking at", "cluster") as count:
        for choice in choices:
            pages = store.pages_at(evenly_spaced(choice.addresses, _RANKED_BY))
            outlines.append(outline(pages, limits=shell.settings.parse))
            count(1)
    least = _SLIVER * max(len(choice.addresses) for choice in choices)
    ranked = sorted(
        zip(choices, outlines, strict=True),
        key=lambda one: (len(one[0].addresses) < least, -one[1].record_likeness),
    )
    shell.show(
        "Clusters, the most record-like first",
        ("cluster", "pages", "values of a row", "rows are", "columns"),
        (
            (
                choice.name,
                len(choice.addresses),
                found.record_likeness,
                "items of lists" if found.are_lists else "pages",
                found.columns,
            )
            for choice, found in ranked
        ),
        unbroken="cluster",
    )
    return ranked[0][0]


def _table(shell: Shell, store: Store, choice: TablePages) -> DiscoveredTable:
    from siteloom.operations.discover import discover_table

    with shell.counting("Reading") as count:
        table = discover_table(store, choice, limits=shell.settings.parse, on_page=count)
    say_unread(shell, Counter(failure.reason for failure in table.failures))
    if not (choice.is_cluster or table.columns):
        raise UsageError("No two of these pages were made alike: there is nothing to compare them by.")
    return table


def _columns(table: DiscoveredTable) -> list[Column]:
    return [Column("url"), *(Column(column.label, "texts") for column in table.columns)]


def _rows(table: DiscoveredTable) -> Iterator[dict[str, object]]:
    for row in table.rows:
        yield {"url": row.url, **{label: list(texts) for label, texts in row.values.items()}}


def _show(shell: Shell, choice: TablePages, table: DiscoveredTable) -> None:
    rows = [
        (column.label, column.type, f"{column.filled:.0%}", examples_of(table, column))
        for column in table.columns
    ]
    pages = plural(len(choice.addresses) - len(table.failures), "page")
    what = f"{len(table.rows):,} records in {table.record_xpath} of {pages}" if table.record_xpath else pages
    shell.show(f"{choice.name}: {what}", ("column", "type", "filled", "for example"), rows)
    if not rows:
        shell.say("Nothing varies between these pages.")


def examples_of(table: DiscoveredTable, column: DiscoveredColumn) -> str:
    """Some values of a column, each on a line."""
    from siteloom.operations.discover import example_cells

    return "\n".join(example_cells(table, column, _VALUES_SHOWN, _LONGEST_SHOWN))


def _accept(
    shell: Shell,
    store: Store,
    choice: TablePages,
    table: DiscoveredTable,
    accept: Sequence[str],
    output: str | None,
    *,
    in_workspace: bool,
) -> None:
    from siteloom.learning.discovery.columns_to_wrapper import accept_columns
    from siteloom.learning.induction.learner import learn_wrapper
    from siteloom.operations.discover import keep_columns

    names = _names(accept, [column.label for column in table.columns])
    limits = shell.settings.parse
    if choice.is_cluster:
        accepted = keep_columns(store, choice, table, names, limits=limits)
        text = _learn_beside(shell, store, choice, accepted.examples, in_workspace=in_workspace)
    else:
        pages = list(choice.read(store))
        accepted = accept_columns(table, pages, names, store.examples(choice.site), limits=limits)
        learned = learn_wrapper(accepted.examples, pages, limits=limits)
        show_rules(shell, learned)
        text = learned.wrapper.to_json()
    _say_agreement(shell, accepted)
    if output is not None:
        write_text(output, text)
        if output != STANDARD_OUTPUT:
            shell.say(f"The wrapper is in {shown(output)}.")


def _learn_beside(
    shell: Shell,
    store: Store,
    choice: TablePages,
    examples: Sequence[Example],
    *,
    in_workspace: bool,
) -> str:
    """Learn from examples that were kept and from all others, as `siteloom learn` would."""
    from siteloom.operations.annotate import annotated_templates
    from siteloom.operations.context import Context
    from siteloom.operations.learn import learn_template
    from siteloom.operations.watch import watch_new_version

    template = next(
        one
        for one in annotated_templates(store, choice.name)
        if any(example.page.url == examples[0].page.url for example in one.examples)
    )
    context = Context(store=store, settings=shell.settings)
    new, _ = learn_template(context, template)
    if new.learned is not None:
        show_rules(shell, new.learned)
    if in_workspace:
        shell.say(f"The wrapper is kept as {new.name}, version {new.version}.")
        show_replaced(shell, new, watch_new_version(context, new.name))
    return new.wrapper.to_json()


def _names(accept: Sequence[str], labels: Sequence[str]) -> Mapping[str, str]:
    """The labels of accepted columns by the names of their attributes."""
    names = dict(_named(accepted, labels) for accepted in accept)
    if len(names) < len(accept):
        raise UsageError("Two columns would get the same name: give each its own, as in --accept name=title.")
    return names


def _named(accepted: str, labels: Sequence[str]) -> tuple[str, str]:
    """An attribute and the label of its column; without one, the label makes its name."""
    from siteloom.operations.discover import attribute_name

    label = _label(accepted, labels)
    if label in labels or "=" not in accepted:
        return attribute_name(accepted), label
    name, _, label = (part.strip() for part in accepted.partition("="))
    if not (name and label):
        raise UsageError(f"Give a name and a column, as in --accept name=title, instead of {accepted!r}.")
    return name, _label(label, labels)


def _label(wanted: str, labels: Sequence[str]) -> str:
    """The label that is wanted, even if it is written in capitals."""
    alike = [label for label in labels if label.casefold() == wanted.casefold()]
    return alike[0] if len(alike) == 1 else wanted


def _say_agreement(shell: Shell, accepted: Accepted) -> None:
    pages = plural(accepted.tried, "page")
    told = ", ".join(f"{name} {share:.0%}" for name, share in accepted.agreement.items())
    say_wrapped(shell, f"Tried on {pages}, the wrapper finds just what the columns have: {told}.")
    for name, share in accepted.left_out.items():
        say_wrapped(
            shell,
            f"{name} is left out: no rule was found that gives more than {share:.0%} of what its column has. "
            "Annotate a few pages instead.",
        )
