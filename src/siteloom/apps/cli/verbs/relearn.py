"""`siteloom relearn`: wrappers for sites that have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.result_tables import load_wrappers, say_wrapped, show_repairs
from siteloom.apps.cli.source_arguments import (
    SourcesArgument,
    check_text_file,
    pages_of,
    verb_context,
    write_text,
)
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import UsageError
from siteloom.core.remote_files import shown
from siteloom.core.table_files import STANDARD_OUTPUT, check_destination
from siteloom.sources.example_files import read_records

if TYPE_CHECKING:
    from siteloom.operations.relearn import RepairedWrapper
    from siteloom.store.store import Store

NAME = "relearn"


def run(
    shell: Shell,
    sources: SourcesArgument = None,
    wrapper: Annotated[
        list[str] | None,
        typer.Option(
            "--wrapper",
            metavar="NAME|FILE",
            help="A wrapper of the workspace by its name, several times if there are several; or of a file "
            "for a SOURCE [those of the workspace that a change was noticed of].",
            show_default=False,
        ),
    ] = None,
    records: Annotated[
        str | None,
        typer.Option(
            "--records",
            metavar="FILE",
            help="The last good records of the pages of a SOURCE, as extract -o FILE.jsonl writes them.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, and keep nothing.")
    ] = False,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            metavar="NAME",
            help="Put the repair of this wrapper in force that waits for review.",
            show_default=False,
        ),
    ] = None,
    reject: Annotated[
        list[str] | None,
        typer.Option(
            "--reject",
            metavar="NAME",
            help="Reject the repair of this wrapper that waits for review.",
            show_default=False,
        ),
    ] = None,
    examples: Annotated[
        str | None,
        typer.Option(
            "--examples",
            metavar="FILE",
            help="Write the pages to annotate here, with what is known filled in, for learn --examples.",
        ),
    ] = None,
    save_wrapper: Annotated[
        str | None,
        typer.Option(
            "--save-wrapper", metavar="FILE", help="With a SOURCE: write the new wrapper here, as JSON."
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Reuse or repair wrappers after a change, from known records.

    Wrappers with a change, noticed by siteloom monitor or in the output of siteloom extract, are tested on
    the pages as they are now. Rules that do not work any more are learned again from the last good records.
    They are put in force if their confidence is at least the setting change.accept; otherwise the repair
    waits to be accepted (--accept) or rejected (--reject), or for examples. A rejected repair is not proposed
    again.

    With a SOURCE, one --wrapper FILE and --records are needed, and nothing is stored.
    """
    if (accept or reject) and (
        sources or wrapper or records or dry_run or save_wrapper or examples or output
    ):
        raise UsageError(
            "--accept and --reject decide about what waits for review, and go with no other option."
        )
    _check_options(sources, wrapper, records, dry_run, save_wrapper)
    if output is not None:
        check_destination(output)
    if examples is not None:
        check_text_file(examples, "Examples are", ".jsonl")
    if save_wrapper is not None:
        check_text_file(save_wrapper, "A wrapper is", ".json")
    if accept or reject:
        _decide(shell, accept or [], reject or [])
    elif sources:
        assert wrapper is not None
        assert records is not None
        repaired = _relearn_sources(shell, sources, wrapper[0], records)
        show_repairs(shell, output, examples, [repaired])
        if save_wrapper is not None:
            _save(shell, save_wrapper, repaired)
    else:
        relearn_workspace(shell, wrapper or [], examples, output, dry_run=dry_run)


def _check_options(
    sources: list[str] | None,
    wrapper: list[str] | None,
    records: str | None,
    dry_run: bool,
    save_wrapper: str | None,
) -> None:
    if sources:
        if not wrapper or len(wrapper) > 1 or records is None:
            raise UsageError("With a SOURCE, relearn needs one --wrapper FILE and --records FILE.")
        if dry_run:
            raise UsageError("With a SOURCE, nothing is kept anyway: leave out --dry-run, or --save-wrapper.")
    elif records is not None or save_wrapper is not None:
        option = "--records" if records is not None else "--save-wrapper"
        raise UsageError(f"{option} FILE is for the pages of a SOURCE: give one, or leave it out.")


def _decide(shell: Shell, accept: list[str], reject: list[str]) -> None:
    from siteloom.operations.review import ReviewRequest, accept_repair, reject_repair

    if both := sorted(set(accept) & set(reject)):
        raise UsageError(f"{both[0]} cannot be both accepted and rejected.")
    with verb_context(shell, None) as context:
        for name in accept:
            accepted = accept_repair(context, ReviewRequest(wrapper=name, repair=None))
            shell.say(f"{name}: the repair is in force as version {accepted.version}.")
            shell.say(f"To undo this: siteloom rollback {name}")
        for name in reject:
            rejected = reject_repair(context, ReviewRequest(wrapper=name, repair=None))
            shell.say(f"{name}: the repair is rejected; version {rejected.version} stays in force.")


def relearn_workspace(
    shell: Shell,
    names: list[str],
    examples: str | None,
    output: str | None,
    *,
    dry_run: bool = False,
    most: int | None = None,
) -> None:
    """Repair wrappers of the workspace; of each, at most so many attributes are shown."""
    from siteloom.operations.relearn import RelearnRequest, relearn

    with verb_context(shell, None) as context:
        result = relearn(context, RelearnRequest(wrappers=tuple(names), dry_run=dry_run))
        if not result.repairs:
            _say_unchanged(shell, context.store)
    show_repairs(shell, output, examples, result.repairs, most, is_dry_run=dry_run)
    if result.repairs and dry_run:
        shell.say("\nThis was a dry run: nothing was kept.")


def _say_unchanged(shell: Shell, store: Store) -> None:
    if not store.checks(limit=1):
        how = "nothing was looked at yet. Run siteloom watch, then siteloom monitor once pages are fetched."
    else:
        how = "no check has found one since. With --wrapper NAME a wrapper is relearned all the same."
    say_wrapped(shell, f"No change was noticed: {how}", hanging=0)


def _relearn_sources(shell: Shell, sources: list[str], file: str, records: str) -> RepairedWrapper:
    from siteloom.operations.context import source_context
    from siteloom.operations.relearn import RelearnRequest, relearn

    named_wrapper, *others = load_wrappers(shell, [file])
    if others:
        raise UsageError(f"{file} has wrappers of several sites: relearn repairs that of one file.")
    request = RelearnRequest(
        named_wrapper=named_wrapper,
        records=tuple(read_records(records)),
        fresh_pages=pages_of(shell, sources, "Reading"),
    )
    with shell.progress() as progress, source_context(shell.settings, (), progress=progress) as context:
        return relearn(context, request).repairs[0]


def _save(shell: Shell, file: str, repaired: RepairedWrapper) -> None:
    is_partial = repaired.outcome == "needs-annotation"
    if is_partial and not repaired.attributes_in_state("repaired"):
        shell.say(f"There is no better wrapper, and so nothing was written to {shown(file)}.")
        return
    assert repaired.repaired is not None
    write_text(file, repaired.repaired.to_json())
    if file != STANDARD_OUTPUT:
        shell.say(f"The wrapper is in {shown(file)}{', repaired in part' if is_partial else ''}.")
