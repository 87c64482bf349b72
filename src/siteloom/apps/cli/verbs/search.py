"""`siteloom search`: full text over pages and records."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from siteloom.apps.cli.source_arguments import SourcesArgument, no_page_read, say_unread, verb_context
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import StoreBusy, UsageError
from siteloom.core.table_files import Column, check_destination, flat_for
from siteloom.core.wording import plural

if TYPE_CHECKING:
    from rich.text import Text

    from siteloom.extraction.search_query import Highlighted, Hit
    from siteloom.operations.context import Context
    from siteloom.operations.search import SearchRequest, UpdateIndexResult

NAME = "search"

_COLUMNS = (
    Column("url"),
    Column("site"),
    Column("cluster"),
    Column("kind"),
    Column("score", "number"),
    Column("title"),
    Column("snippet"),
    Column("highlights"),
    Column("attributes", "texts"),
    Column("values"),
)
_DEEP = ("highlights", "values")
_INDENT = 5
_MOST_HITS = 10_000  # databases take no longer lists of ids
_KINDS: dict[str, Literal["page", "record"]] = {"pages": "page", "records": "record"}


def run(
    shell: Shell,
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY",
            help='Words that must all be there; "words in quotes" side by side, -words not at all.',
            show_default=False,
        ),
    ],
    sources: SourcesArgument = None,
    site: Annotated[str | None, typer.Option("--site", metavar="NAME", help="Only this site.")] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="ID", help="Only pages and records of this cluster.")
    ] = None,
    attribute: Annotated[
        str | None,
        typer.Option(
            "--attribute", metavar="NAME", help="Only records that have the words in this attribute."
        ),
    ] = None,
    within: Annotated[
        str | None, typer.Option("--in", metavar="KIND", help="Only pages, or only records.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many hits.")] = 10,
    output: OutputOption = None,
) -> None:
    """Search pages and records for words; the best hits come first.

    Pages are searched without the template text of their site, and records as siteloom extract found them
    last. If nothing has all words, what has some of them is shown. Case and accents do not matter. What is
    new in the workspace is indexed first; with a SOURCE, only that is searched.
    """
    from siteloom.extraction.search_query import parse_query
    from siteloom.operations.search import SearchRequest, check_search, search

    parse_query(query)
    if within is not None and within not in _KINDS:
        raise UsageError(f"--in takes {' or '.join(_KINDS)}, not {within}.")
    if not 1 <= limit <= _MOST_HITS:
        raise UsageError(f"--limit must be from 1 to {_MOST_HITS:,}.")
    if output is not None:
        check_destination(output)
    kind = None if within is None else _KINDS[within]
    request = SearchRequest(
        text=query, site=site, cluster=cluster, attribute=attribute, kind=kind, count=limit
    )
    if sources:
        _check_for_pages_only(request)
    with verb_context(shell, sources) as context:
        check_search(context.store, request)
        update = _update(shell, context)
        if sources:
            say_unread(shell, context.unread)
            if not update.added_pages:
                raise no_page_read(failed=bool(context.unread or update.failures), skipped=context.skipped)
        result = search(context, request)
    if not result.hits:
        shell.say("Nothing was found.")
    elif not result.has_all_words:
        shell.say("Nothing has all of these words; what follows has some of them.")
    if output is not None:
        shell.write(output, _COLUMNS, (flat_for(output, _row(hit), _DEEP) for hit in result.hits))
    else:
        for number, hit in enumerate(result.hits, 1):
            _show(shell, number, hit)


def _check_for_pages_only(request: SearchRequest) -> None:
    if request.cluster is not None:
        raise UsageError("A SOURCE has no clusters: leave out --cluster, or search the workspace.")
    if request.attribute is not None or request.kind == "record":
        option = "--in records" if request.attribute is None else "--attribute"
        raise UsageError(f"A SOURCE has pages and no records: leave out {option}, or search the workspace.")


def _update(shell: Shell, context: Context) -> UpdateIndexResult:
    from siteloom.operations.search import UpdateIndexResult, update_index

    store = context.store
    if not os.access(store.folder, os.W_OK):
        if not store.search_index.is_current():
            shell.say("This workspace may only be read: what is new there is not searched yet.")
        return UpdateIndexResult()
    try:
        update = update_index(context)
    except StoreBusy:
        shell.say("Another process is writing to this workspace: what is new there is not searched yet.")
        return UpdateIndexResult()
    say_unread(shell, update.failures)
    added = f"{plural(update.added_pages, 'page')} and {plural(update.added_records, 'record')}"
    outdated = update.removed_pages + update.removed_records
    if update.added_pages or update.added_records or outdated:
        shell.say(f"Indexed {added}; {outdated:,} {'was' if outdated == 1 else 'were'} outdated.")
    return update


def _row(hit: Hit) -> dict[str, Any]:
    return {
        "url": hit.url,
        "site": hit.site,
        "cluster": hit.cluster,
        "kind": hit.kind,
        "score": hit.score,
        "title": hit.title.text,
        "snippet": hit.snippet.text,
        "highlights": {"title": hit.title.places, "snippet": hit.snippet.places},
        "attributes": list(hit.attributes),
        "values": hit.values,
    }


def _show(shell: Shell, number: int, hit: Hit) -> None:
    from rich.padding import Padding
    from rich.text import Text

    title = _bold(hit.title, "cyan") if hit.title.text else Text("without a title", "cyan")
    where = hit.site if hit.cluster is None else hit.cluster
    shell.draw(Text.assemble(f"{number:>3}. ", title, f"  ({hit.kind} of {where})"))
    shell.say(f"{' ' * _INDENT}{hit.url}")
    shell.draw(Padding(_bold(hit.snippet), (0, 0, 0, _INDENT)))


def _bold(shown: Highlighted, style: str = "") -> Text:
    from rich.text import Text

    text = Text(shown.text, style)
    for start, end in shown.places:
        text.stylize("bold", start, end)
    return text
