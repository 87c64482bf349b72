"""`siteloom relearn`: wrappers for sites that have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.result_tables import Found, by_state, load_wrappers, report, say_wrapped
from siteloom.apps.cli.source_arguments import SourcesArgument, check_text_file, pages_of, write_text
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import SourceError, UsageError
from siteloom.core.remote_files import shown
from siteloom.core.table_files import STANDARD_OUTPUT, check_destination
from siteloom.sources.example_files import read_records

if TYPE_CHECKING:
    from siteloom.operations.relearn import Mended
    from siteloom.store.store import Store

NAME = "relearn"

_STATE_WORDS = {
    "unchanged": "as it was",
    "rejected": "rejected before",
    "outdated": "has changed meanwhile",
}


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

    What a change was noticed of, by siteloom monitor or in the output of siteloom extract, is tested on the
    pages as they are now. What does not work any more is learned anew from the last good records, and put
    in force if its confidence is at least the setting change.accept; else it waits for your yes (--accept,
    --reject), or for examples. What was rejected is not proposed again.

    With a SOURCE, one --wrapper FILE and --records are needed, and nothing is kept.
    """
    if (accept or reject) and (
        sources or wrapper or records or dry_run or save_wrapper or examples or output
    ):
        raise UsageError("--accept and --reject settle what waits for review, and go with no other choice.")
    _check_options(sources, wrapper, records, dry_run, save_wrapper)
    if output is not None:
        check_destination(output)
    if examples is not None:
        check_text_file(examples, "Examples are", ".jsonl")
    if save_wrapper is not None:
        check_text_file(save_wrapper, "A wrapper is", ".json")
    if accept or reject:
        _settle(shell, accept or [], reject or [])
    elif sources:
        assert wrapper is not None
        assert records is not None
        found = _relearn_sources(shell, sources, wrapper[0], records)
        report(shell, output, examples, [found])
        if save_wrapper is not None:
            _save(shell, save_wrapper, found)
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


def _settle(shell: Shell, accept: list[str], reject: list[str]) -> None:
    from siteloom.operations.relearn import settle_review
    from siteloom.operations.watch import watch_again

    if both := sorted(set(accept) & set(reject)):
        raise UsageError(f"{both[0]} cannot be both accepted and rejected.")
    with shell.store() as store:
        for name in accept:
            version = settle_review(store, name, accept=True)
            shell.say(f"{name}: the repair is in force as version {version}.")
            shell.say(f"To undo this: siteloom rollback {name}")
            watch_again(store, name)
        for name in reject:
            settle_review(store, name, accept=False)
            shell.say(
                f"{name}: the repair is rejected; version {store.wrapper(name).version} stays in force."
            )


def relearn_workspace(
    shell: Shell,
    names: list[str],
    examples: str | None,
    output: str | None,
    *,
    dry_run: bool = False,
    most: int | None = None,
) -> None:
    """Relearn wrappers of the workspace; of each so many attributes are shown at most."""
    from siteloom.operations.relearn import changed_wrappers, mend_wrappers

    with shell.store() as store:
        count = len(names) or len(changed_wrappers(store))
        if not count:
            _say_unchanged(shell, store)
        with shell.measuring("Relearning", count) as advance:
            accept = shell.settings.change.accept / 100
            mended = mend_wrappers(store, names, accept=accept, dry_run=dry_run, on_wrapper=advance)
        found = [
            Found(
                one.wrapper,
                _state_words(one, dry_run=dry_run),
                {**one.row, "version_after": one.version_after},
                one.relearned.wrapper,
                not dry_run and _does_wait(one),
            )
            for one in mended
        ]
    report(shell, output, examples, found, most)
    if found and dry_run:
        shell.say("\nThis was a dry run: nothing was kept.")


def _does_wait(one: Mended) -> bool:
    """Whether there is a repair to say yes or no to."""
    is_in_part = one.state == "annotation" and bool(by_state(one.row["attributes"], "repaired"))
    return one.version_after is None and (one.state == "review" or is_in_part)


def _say_unchanged(shell: Shell, store: Store) -> None:
    if not store.checks(limit=1):
        how = "nothing was looked at yet. Run siteloom watch, then siteloom monitor once pages are fetched."
    else:
        how = "no check has found one since. With --wrapper NAME a wrapper is relearned all the same."
    say_wrapped(shell, f"No change was noticed: {how}", hanging=0)


def _state_words(one: Mended, *, dry_run: bool) -> str:
    if one.state in _STATE_WORDS:
        return _STATE_WORDS[one.state]
    if one.state == "review":
        return "would wait for review" if dry_run else "waits for review"
    in_force = "would be in force" if dry_run else f"version {one.version_after} in force"
    if one.state == "applied":
        return in_force
    is_mended_in_part = one.version_after is not None
    return f"{in_force} in part; needs examples" if is_mended_in_part else "needs examples"


def _relearn_sources(shell: Shell, sources: list[str], file: str, records: str) -> Found:
    from siteloom.maintenance.repair_result import relearned_row
    from siteloom.maintenance.wrapper_repair import relearn

    old, *others = load_wrappers(shell, [file])
    if others:
        raise UsageError(f"{file} has wrappers of several sites: relearn mends that of one file.")
    known = read_records(records)
    urls = {record.url for record in known}
    fresh = [page for page in pages_of(shell, sources, "Reading") if page.url in urls]
    if not fresh:
        raise SourceError(
            f"None of the pages that {records} tells of is in the SOURCE: it must have the same URLs, "
            "fetched again."
        )
    found = relearn(old.wrapper, known, fresh)
    state = "needs examples" if found.outcome == "needs-annotation" else ""
    return Found(old.name, state, {"wrapper": old.name, **relearned_row(old.wrapper, found)}, found.wrapper)


def _save(shell: Shell, file: str, one: Found) -> None:
    repaired = by_state(one.row["attributes"], "repaired")
    if one.row["outcome"] == "needs-annotation" and not repaired:
        shell.say(f"There is no better wrapper, and so nothing was written to {shown(file)}.")
        return
    write_text(file, one.wrapper.to_json())
    if file != STANDARD_OUTPUT:
        partly = ", repaired in part" if one.row["outcome"] == "needs-annotation" else ""
        shell.say(f"The wrapper is in {shown(file)}{partly}.")
