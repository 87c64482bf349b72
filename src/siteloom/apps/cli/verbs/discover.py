"""`siteloom discover`: a table of what varies between pages, with no examples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.result_tables import say_wrapped
from siteloom.apps.cli.source_arguments import (
    SourcesArgument,
    check_text_file,
    say_unread,
    verb_context,
    write_text,
)
from siteloom.apps.cli.terminal import Shell
from siteloom.apps.cli.verbs.learn import show_replaced, show_rules
from siteloom.core.errors import UsageError
from siteloom.core.remote_files import shown
from siteloom.core.table_files import STANDARD_OUTPUT, Column, check_destination
from siteloom.core.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from siteloom.learning.discovery.table_discovery import DiscoveredColumn, DiscoveredTable
    from siteloom.operations.context import Context
    from siteloom.operations.discover import AcceptColumnsResult, DiscoverResult

NAME = "discover"

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
    from siteloom.operations.discover import DiscoverRequest, discover

    with verb_context(shell, sources) as context:
        result = discover(context, DiscoverRequest(cluster=cluster, site=site, page_limit=None))
        _show_ranking(shell, result)
        say_unread(shell, result.failures)
        table = result.table
        assert table is not None
        if accept:
            _accept(shell, context, result, accept, output)
            return
    if output is not None:
        shell.write(output, _columns(table), _rows(table))
    _show(shell, result, table)
    if output is None:
        shell.say("To have the rows as data, give -o FILE; to make a wrapper of columns, --accept COLUMN.")
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


def _show_ranking(shell: Shell, result: DiscoverResult) -> None:
    if result.ranking:
        shell.show(
            "Clusters, the most record-like first",
            ("cluster", "pages", "values of a row", "rows are", "columns"),
            (
                (
                    ranked.name,
                    ranked.pages,
                    ranked.record_likeness,
                    "items of lists" if ranked.are_lists else "pages",
                    ranked.columns,
                )
                for ranked in result.ranking
            ),
            unbroken="cluster",
        )


def _columns(table: DiscoveredTable) -> list[Column]:
    return [Column("url"), *(Column(column.label, "texts") for column in table.columns)]


def _rows(table: DiscoveredTable) -> Iterator[dict[str, object]]:
    for row in table.rows:
        yield {"url": row.url, **{label: list(texts) for label, texts in row.values.items()}}


def _show(shell: Shell, result: DiscoverResult, table: DiscoveredTable) -> None:
    rows = [
        (column.label, column.type, f"{column.filled:.0%}", examples_of(table, column))
        for column in table.columns
    ]
    pages = plural(result.pages - result.failed, "page")
    what = f"{len(table.rows):,} records in {table.record_xpath} of {pages}" if table.record_xpath else pages
    shell.show(f"{result.cluster}: {what}", ("column", "type", "filled", "for example"), rows)
    if not rows:
        shell.say("Nothing varies between these pages.")


def examples_of(table: DiscoveredTable, column: DiscoveredColumn) -> str:
    """Some values of a column, each on a line."""
    from siteloom.operations.discover import example_cells

    return "\n".join(example_cells(table, column, _VALUES_SHOWN, _LONGEST_SHOWN))


def _accept(
    shell: Shell, context: Context, discovered: DiscoverResult, accept: Sequence[str], output: str | None
) -> None:
    from siteloom.operations.discover import AcceptColumnsRequest, accept_columns

    names = _names(accept, [column.label for column in discovered.columns])
    request = AcceptColumnsRequest(cluster=discovered.cluster, names=names, discovered=discovered)
    result = accept_columns(context, request)
    if result.unclustered is not None:
        show_rules(shell, result.unclustered)
        text = result.unclustered.wrapper.to_json()
    if result.learned is not None:
        for wrapper in result.learned.wrappers:
            if wrapper.learned is not None:
                show_rules(shell, wrapper.learned)
            text = wrapper.wrapper.to_json()
            if not context.sources:
                shell.say(f"The wrapper is kept as {wrapper.name}, version {wrapper.version}.")
                watched = next((one for one in result.learned.watched if one.wrapper == wrapper.name), None)
                show_replaced(shell, wrapper, watched)
    _say_agreement(shell, result)
    if output is not None:
        write_text(output, text)
        if output != STANDARD_OUTPUT:
            shell.say(f"The wrapper is in {shown(output)}.")


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


def _say_agreement(shell: Shell, result: AcceptColumnsResult) -> None:
    pages = plural(result.tried, "page")
    shares = ", ".join(f"{name} {share:.0%}" for name, share in result.agreement.items())
    say_wrapped(shell, f"Tried on {pages}, the wrapper finds just what the columns have: {shares}.")
    for name, share in result.left_out.items():
        say_wrapped(
            shell,
            f"{name} is left out: no rule was found that gives more than {share:.0%} of what its column has. "
            "Annotate a few pages instead.",
        )
