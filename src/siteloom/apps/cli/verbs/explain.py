"""`siteloom explain`: which wrapper a page is for and why, and where each value came from."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.source_arguments import WrappersOption, verb_context
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import NoWorkspace, SourceError, UsageError
from siteloom.core.table_files import Column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from siteloom.core.model import Page
    from siteloom.operations.context import Context
    from siteloom.operations.explain import ConsideredWrapper, ExplainedValue, ExplainResult

NAME = "explain"

_COLUMNS = (
    Column("rank", "integer"),
    Column("wrapper"),
    Column("version", "integer"),
    Column("url_pattern"),
    Column("mask"),
    Column("mask_pages", "integer"),
    Column("accepted", "flag"),
    Column("agreement", "integer"),
    Column("verdict"),
)


def run(
    shell: Shell,
    page: Annotated[
        str, typer.Argument(metavar="URL|FILE", help="A page of the workspace by its URL, or an HTML file.")
    ],
    wrapper: WrappersOption = None,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="The address that the page of a FILE is taken to have."),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Show which wrapper a page is for, and where values came from.

    Every wrapper that was considered is shown with what spoke for it and why it won or lost, then each value
    with its confidence, its rule in plain words, and its node. -o writes the wrappers that were considered.
    """
    from siteloom.apps.cli.result_tables import load_wrappers
    from siteloom.operations.explain import ExplainRequest, explain

    page_of_file = _page_of_file(shell, page, url) if _is_file(page) else None
    if page_of_file is None:
        if url is not None:
            raise UsageError(f"There is no file {page} that could have the URL {url}: check the path.")
        if "://" not in page:
            raise SourceError(f"There is no file {page}, and it is no URL either: check it.")
    wrappers = tuple(load_wrappers(shell, wrapper)) if wrapper else ()
    with _context(shell, needs_workspace=page_of_file is None, has_wrappers=bool(wrappers)) as context:
        result = explain(
            context,
            ExplainRequest(url=None if page_of_file else page, page=page_of_file, wrappers=wrappers),
        )
    shell.write(output, _COLUMNS, map(_row, result.considered))
    shell.say(f"{result.url}\n\nWrappers considered:")
    for considered in result.considered:
        _show_considered(shell, considered)
    _show_values(shell, result)


@contextmanager
def _context(shell: Shell, *, needs_workspace: bool, has_wrappers: bool) -> Iterator[Context]:
    """The workspace; for a page and wrappers of files there need not be one."""
    from siteloom.operations.context import source_context

    if has_wrappers and not needs_workspace:
        with shell.progress() as progress, source_context(shell.settings, (), progress=progress) as context:
            yield context
        return
    try:
        with verb_context(shell, None) as context:
            yield context
    except NoWorkspace as error:
        if needs_workspace:
            raise
        raise UsageError("Give --wrapper FILE: there is no workspace with wrappers.") from error


def _row(considered: ConsideredWrapper) -> dict[str, object]:
    return {
        "rank": considered.rank,
        "wrapper": considered.wrapper,
        "version": considered.version,
        "url_pattern": considered.url_pattern,
        "mask": considered.mask,
        "mask_pages": considered.mask_pages,
        "accepted": considered.is_accepted,
        "agreement": considered.agreement,
        "verdict": considered.verdict,
    }


def _show_considered(shell: Shell, considered: ConsideredWrapper) -> None:
    name = _with_version(considered.wrapper, considered.version)
    shell.say(f"  {considered.rank}. {name}: {considered.verdict}")
    if considered.url_pattern is not None:
        shell.say(f"     URL pattern {considered.url_pattern}")
    if considered.mask is not None:
        shell.say(f"     mask {considered.mask} of {considered.mask_pages:,} pages")
    known = "a known signature" if considered.is_accepted else "no known signature"
    shell.say(f"     {known}; with the nearest, {considered.agreement} of 8 bytes agree")


def _with_version(name: str, version: int | None) -> str:
    return name if version is None else f"{name}, version {version}"


def _is_file(page: str) -> bool:
    try:
        return Path(page).is_file()
    except OSError:  # a URL may be longer than the name of any file
        return False


def _page_of_file(shell: Shell, path: str, url: str | None) -> Page:
    from dataclasses import replace
    from itertools import islice

    from siteloom.core.model import Page
    from siteloom.sources.open_sources import open_source

    items = open_source(Path(path), shell.settings.pages).read()
    pages = list(islice((item for item in items if isinstance(item, Page)), 2))
    if len(pages) != 1:
        many = "more than one page" if pages else "no page"
        raise UsageError(f"{path} has {many}: explain takes one, such as an HTML file.")
    return replace(pages[0], url=url) if url is not None else pages[0]


def _show_values(shell: Shell, result: ExplainResult) -> None:
    if result.failure is not None:
        detail = f" ({result.failure.detail})" if result.failure.detail else ""
        shell.say(f"\nThe page gives no record: {result.failure.reason}{detail}.")
    if result.wrapper is None:
        return
    for number in range(1, result.records + 1):
        record = f", record {number}" if result.records > 1 else ""
        shell.say(f"\nBy {_with_version(result.wrapper, result.version)}{record}:")
        for value in result.values:
            if value.record == number:
                _show_value(shell, value)


def _show_value(shell: Shell, value: ExplainedValue) -> None:
    if value.confidence is None:
        shell.say(f"  {value.attribute}: withheld, {value.reason}: {value.text}")
    else:
        shell.say(f"  {value.attribute}: {value.text}")
        shell.say(f"     confidence {value.confidence:.2f}; {value.rule}: {value.rule_words}")
    shell.say(f"     at {value.node}")
