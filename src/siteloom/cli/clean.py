"""`siteloom clean`: the text of pages without the template of their sites."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from siteloom.cli.change_words import plural, shortened
from siteloom.cli.shell import OutputOption, Shell
from siteloom.cli.sources import SourcesArgument, nothing_read, say_unread, stored_pages
from siteloom.errors import UsageError
from siteloom.output import Column, Fields, ListOf, check_destination, open_output

if TYPE_CHECKING:
    from siteloom.cleaning_runs import CleanedForm, CleanedPage
    from siteloom.template import Block, SegmentRule

NAME = "clean"

_BLOCK = Fields((Column("path"), Column("text"), Column("is_template", "flag")))
_COLUMNS: dict[CleanedForm, tuple[Column, ...]] = {
    "blocks": (Column("url"), Column("text"), Column("blocks", ListOf(_BLOCK))),
    "text": (Column("url"), Column("text")),
    "html": (Column("url"), Column("html")),
    "main": (Column("url"), Column("text")),
}

_SHOWN_TEXTS = 3
_SHOWN_CHARACTERS = 30


@dataclass(slots=True)
class _SiteTally:
    """What was found on a site."""

    pages: int = 0
    blocks: int = 0
    template_blocks: int = 0
    characters: int = 0
    template_characters: int = 0
    texts: list[str] = field(default_factory=list)  # of template, from the first page with any

    def add(self, blocks: tuple[Block, ...]) -> None:
        self.blocks += len(blocks)
        template = [block.text for block in blocks if block.is_template]
        self.template_blocks += len(template)
        self.characters += sum(len(block.text) for block in blocks)
        self.template_characters += sum(map(len, template))
        if not self.texts:
            self.texts = list(dict.fromkeys(template))[:_SHOWN_TEXTS]


def run(
    shell: Shell,
    sources: SourcesArgument = None,
    output: OutputOption = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="blocks: the text, and all blocks, each marked as template or not; text alone; html without "
            "template; or main, the main text as trafilatura finds it once the template is gone.",
        ),
    ] = "blocks",
    rule: Annotated[
        str,
        typer.Option(
            "--rule",
            metavar="NAME",
            help="When a text is template: share, on nine in ten of the pages that have its path, and on "
            "five at least; paper, on five.",
        ),
    ] = "share",
    site: Annotated[
        str | None, typer.Option("--site", metavar="NAME", help="Only the pages of this site.")
    ] = None,
) -> None:
    """Clean pages of their template: the text that is on them because of their site.

    Each site has a table of its texts, which counts pages as they come, each version once, and is kept in the
    workspace: the more pages it has seen, the better it knows. All pages are counted before the first one is
    cleaned. Without -o it shows what was found.
    """
    from siteloom.cleaning import check_extractor
    from siteloom.cleaning_runs import CleanedForm, clean_store
    from siteloom.model import Failure
    from siteloom.template import SegmentRule

    checked_form = cast("CleanedForm", _one_of(form, "--format", get_args(CleanedForm)))
    checked_rule = cast("SegmentRule", _one_of(rule, "--rule", get_args(SegmentRule)))
    if checked_form == "main":
        check_extractor()
    if output is not None:
        check_destination(output)
    failures: Counter[str] = Counter()
    sites: dict[str, _SiteTally] = {}
    with stored_pages(shell, sources) as store, ExitStack() as open_until_done:
        if site is not None and site not in (known := [found.name for found in store.sites()]):
            among = ", ".join(known[:5]) or "none at all"
            raise UsageError(f"There is no site {site} among the pages: there are {among}.")
        looked_at = open_until_done.enter_context(shell.counting("Looking at"))
        columns = _COLUMNS[checked_form]
        writer = None if output is None else open_until_done.enter_context(open_output(output, columns))
        for cleaned in clean_store(
            store,
            site=site,
            form=checked_form,
            rule=checked_rule,
            limits=shell.settings.parse,
            counted=looked_at,
        ):
            looked_at(1)
            if isinstance(cleaned, Failure):
                failures[cleaned.reason] += 1
                continue
            tally = sites.setdefault(cleaned.site, _SiteTally())
            tally.pages += 1
            if writer is None or output is None:
                tally.add(cleaned.blocks)
            else:
                writer.write(_row(cleaned, checked_form, is_flat=output.lower().endswith(".csv")))
        open_until_done.close()
        say_unread(shell, failures)
        if not sites and (sources or failures):
            raise nothing_read(store, failed=bool(failures))
    if not sites:
        raise UsageError("There are no pages to clean: read some with siteloom ingest.")
    if output is None:
        _show(shell, sites, checked_form)
    shell.say(f"{plural(sum(tally.pages for tally in sites.values()), 'page')} cleaned.")


def _one_of(given: str, option: str, known: tuple[str, ...]) -> str:
    if given not in known:
        raise UsageError(f"{option} {given} is not known: it is one of {', '.join(known)}.")
    return given


def _row(page: CleanedPage, form: CleanedForm, *, is_flat: bool) -> dict[str, object]:
    row: dict[str, object] = {"url": page.url, "text": page.text, "html": page.html}
    if form == "blocks":
        blocks = [
            {"path": block.path, "text": block.text, "is_template": block.is_template}
            for block in page.blocks
        ]
        row["blocks"] = json.dumps(blocks, ensure_ascii=False) if is_flat else blocks
    return row


def _show(shell: Shell, sites: dict[str, _SiteTally], form: CleanedForm) -> None:
    if form == "main":
        return
    shell.show(
        "Template text",
        ("site", "pages", "blocks a page", "template", "of the text"),
        (
            (
                name,
                tally.pages,
                round(tally.blocks / tally.pages),
                f"{tally.template_blocks / max(1, tally.blocks):.0%}",
                f"{tally.template_characters / max(1, tally.characters):.0%}",
            )
            for name, tally in sites.items()
        ),
    )
    for name, tally in sites.items():
        if tally.texts:
            shell.say(
                f"{name}, such as: {' · '.join(shortened(text, _SHOWN_CHARACTERS) for text in tally.texts)}"
            )
