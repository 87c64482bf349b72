"""`siteloom explain`: which wrapper a page is for and why, and where each value came from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.source_arguments import WrappersOption
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import NoWorkspace, SourceError, UsageError
from siteloom.core.table_files import Column

if TYPE_CHECKING:
    from siteloom.core.model import Page
    from siteloom.extraction.extractor import Extracted
    from siteloom.wrappers.matching import MatchCandidate
    from siteloom.wrappers.named_wrappers import WrapperText

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
    from siteloom.extraction.extractor import Extractor
    from siteloom.wrappers.matching import Matcher
    from siteloom.wrappers.named_wrappers import wrapper_texts_of_files

    texts, found = _wrappers_and_page(shell, page, url, wrapper_texts_of_files(wrapper) if wrapper else None)
    wrappers = load_wrappers(shell, texts)
    considered = Matcher(wrappers).explain(found)
    shell.write(output, _COLUMNS, map(_row, considered))
    shell.say(f"{found.url}\n\nWrappers considered:")
    for one in considered:
        _show_considered(shell, one)
    _show_extracted(shell, Extractor(wrappers, shell.settings.parse).extract(found))


def _row(one: MatchCandidate) -> dict[str, object]:
    return {
        "rank": one.rank,
        "wrapper": one.wrapper.name,
        "version": one.wrapper.version,
        "url_pattern": one.url_pattern,
        "mask": one.mask,
        "mask_pages": one.mask_pages,
        "accepted": one.is_accepted,
        "agreement": one.agreement,
        "verdict": one.verdict,
    }


def _show_considered(shell: Shell, one: MatchCandidate) -> None:
    shell.say(f"  {one.rank}. {one.wrapper}: {one.verdict}")
    if one.url_pattern is not None:
        shell.say(f"     URL pattern {one.url_pattern}")
    if one.mask is not None:
        shell.say(f"     mask {one.mask} of {one.mask_pages:,} pages")
    known = "a known signature" if one.is_accepted else "no known signature"
    shell.say(f"     {known}; with the nearest, {one.agreement} of 8 bytes agree")


def _wrappers_and_page(
    shell: Shell, page: str, url: str | None, texts: list[WrapperText] | None
) -> tuple[list[WrapperText], Page]:
    from siteloom.operations.annotate import find_page
    from siteloom.operations.stored_wrappers import wrapper_texts_of_store

    if _is_file(page):
        found = _page_of_file(shell, page, url)
        if texts is None:
            try:
                with shell.store() as store:
                    texts = wrapper_texts_of_store(store)
            except NoWorkspace as error:
                raise UsageError("Give --wrapper FILE: there is no workspace with wrappers.") from error
        return texts, found
    if url is not None:
        raise UsageError(f"There is no file {page} that could have the URL {url}: check the path.")
    if "://" not in page:
        raise SourceError(f"There is no file {page}, and it is no URL either: check it.")
    with shell.store() as store:
        placed = find_page(store, page)
        if placed is None:
            raise SourceError(f"The workspace has no page {page}, and there is no such file: check it.")
        return texts if texts is not None else wrapper_texts_of_store(store), placed[1]


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


def _show_extracted(shell: Shell, found: Extracted) -> None:
    from siteloom.wrappers.explanation import named_rule_words

    if found.failure is not None:
        detail = f" ({found.failure.detail})" if found.failure.detail else ""
        shell.say(f"\nThe page gives no record: {found.failure.reason}{detail}.")
    if found.wrapper is None:
        return
    for number, record in enumerate(found.records, 1):
        title = f"By {found.wrapper}" + (f", record {number}" if len(found.records) > 1 else "")
        shell.say(f"\n{title}:")
        for name in found.wrapper.wrapper.attributes:
            for text, origin in zip(
                record.values.get(name, ()), record.provenance.get(name, ()), strict=True
            ):
                shell.say(f"  {name}: {text}")
                words = named_rule_words(found.wrapper.wrapper, origin.rule)
                shell.say(f"     confidence {origin.confidence:.2f}; {origin.rule}: {words}")
                shell.say(f"     at {origin.node}")
            for one in record.withheld.get(name, ()):
                shell.say(f"  {name}: withheld, {one.reason}: {one.text}")
                shell.say(f"     at {one.node}")
