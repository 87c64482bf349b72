"""`siteloom clean`: the text of pages without the template of their sites."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast, get_args

import typer

from siteloom.apps.cli.source_arguments import (
    EngineChoice,
    EngineOption,
    MasterOption,
    SourcesArgument,
    SparkConfOption,
    bulk_run,
    finished,
    no_page_read,
    say_unread,
    verb_context,
)
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core import remote_files
from siteloom.core.errors import UsageError
from siteloom.core.table_files import check_destination, open_output
from siteloom.core.wording import plural, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.core.table_files import RowWriter
    from siteloom.extraction.clean_pages import CleanedForm, SiteTally
    from siteloom.templates.template_text import SegmentRule

NAME = "clean"

_SHOWN_CHARACTERS = 30


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
            "template; or main, the main text as trafilatura finds it once the template is gone, which needs "
            "the extra text.",
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
    engine: EngineOption = None,
    master: MasterOption = None,
    spark_conf: SparkConfOption = None,
) -> None:
    """Take the text of their template out of pages.

    Each site has a table of its texts, which counts pages as they come, each version once, and is kept in the
    workspace: the more pages it has seen, the better it knows. All pages are counted before the first one is
    cleaned. Without -o it shows how much is template; with it, a line is written for each page.
    """
    from siteloom.extraction.clean_pages import CLEANED_COLUMNS, CleanedForm
    from siteloom.extraction.main_text import check_extractor
    from siteloom.operations.clean import CleanRequest, clean
    from siteloom.templates.template_text import SegmentRule

    checked_form = cast("CleanedForm", _one_of(form, "--format", get_args(CleanedForm)))
    checked_rule = cast("SegmentRule", _one_of(rule, "--rule", get_args(SegmentRule)))
    if checked_form == "main":
        check_extractor()
    choice = EngineChoice(engine, master, spark_conf)
    if choice.is_bulk:
        if site is not None:
            raise UsageError("--site does not go with --engine: leave it out.")
        _clean_in_bulk(shell, choice, sources, output, checked_form, checked_rule)
        return
    if output is not None:
        check_destination(output)
    with verb_context(shell, sources) as context, ExitStack() as opened:
        writer = None
        if output is not None:
            writer = opened.enter_context(open_output(output, CLEANED_COLUMNS[checked_form]))
            if output.lower().endswith(".csv") and checked_form == "blocks":
                writer = _FlatBlocks(writer)
        request = CleanRequest(site=site, form=checked_form, rule=checked_rule, output=writer)
        result = clean(context, request)
        skipped = context.skipped
    say_unread(shell, result.failures)
    if not result.pages:
        if sources or result.failures:
            raise no_page_read(failed=bool(result.failures), skipped=skipped)
        raise UsageError("There are no pages to clean: read some with siteloom ingest.")
    if output is None:
        _show(shell, result.sites, checked_form)
    shell.say(f"{plural(result.pages, 'page')} cleaned.")


class _FlatBlocks(NamedTuple):
    """Writes the blocks of each page as one text, for tables whose cells are texts."""

    writer: RowWriter

    def write(self, row: Mapping[str, object]) -> None:
        """Write a row."""
        self.writer.write({**row, "blocks": json.dumps(row["blocks"], ensure_ascii=False)})


def _one_of(given: str, option: str, known: tuple[str, ...]) -> str:
    if given not in known:
        raise UsageError(f"{option} {given} is not known: it is one of {', '.join(known)}.")
    return given


def _clean_in_bulk(
    shell: Shell,
    choice: EngineChoice,
    sources: list[str] | None,
    output: str | None,
    form: CleanedForm,
    rule: SegmentRule,
) -> None:
    from siteloom.engines.whole_crawls.clean_crawl import clean_in_bulk
    from siteloom.extraction.clean_pages import SiteTally

    limits = shell.settings.parse
    with bulk_run(shell, choice, sources, output, (NAME, form, rule, limits)) as (run, shards):
        counts = finished(shell, run, output) or clean_in_bulk(run, shards, rule, form, limits)
    say_unread(shell, counts["failed"])
    if not counts["cleaned"]:
        raise no_page_read(failed=bool(counts["failed"]), skipped=counts["skipped"])
    if counts["sites"]:
        shown = {name: SiteTally(**tally) for name, tally in counts["sites"]}
        _show(shell, shown, form)
        others = counts["cleaned"] - sum(tally.pages for tally in shown.values())
        if others:
            shell.say(f"These are the largest sites; the others have {plural(others, 'page')}.")
    shell.say(f"{plural(counts['cleaned'], 'page')} cleaned.")
    shell.say(f"They are in {remote_files.shown(output or '')}, those of each site in a folder of its own.")


def _show(shell: Shell, sites: Mapping[str, SiteTally], form: CleanedForm) -> None:
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
