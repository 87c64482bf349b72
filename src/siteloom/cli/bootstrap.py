"""`siteloom bootstrap`: from known records to wrappers, with no page annotated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from siteloom.cli.entities import attribute_names
from siteloom.cli.files import as_lines, check_text_file, write_text
from siteloom.cli.shell import Shell
from siteloom.cli.sources import SourcesArgument, pages_of
from siteloom.errors import UsageError
from siteloom.output import STANDARD_OUTPUT, Column, check_destination

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from siteloom.growing import Attempt, Grown
    from siteloom.model import Example, Seed
    from siteloom.redundancy import Bootstrapped
    from siteloom.redundancy.bootstrapping import Method
    from siteloom.store import Store

NAME = "bootstrap"

_EVIDENCE_COLUMNS = (
    Column("url"),
    Column("attribute"),
    Column("text"),
    Column("position"),
    Column("seed", "integer"),
    Column("source"),
    Column("value"),
    Column("similarity", "number"),
)
_GROWN_COLUMNS = (
    Column("site"),
    Column("round", "integer"),
    Column("outcome"),
    Column("wrapper"),
    Column("records", "integer"),
    Column("attributes", "texts"),
    Column("reason"),
)


def run(
    shell: Shell,
    sources: SourcesArgument = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            "--seeds",
            metavar="FILE",
            help="Known records: .csv, .jsonl, .parquet, or a table such as sqlite:///file.db#table. Without "
            "a SOURCE they join those of the workspace.",
        ),
    ] = None,
    core: Annotated[
        str | None,
        typer.Option(
            "--core", metavar="NAMES", help="Attributes by which things are known, such as name,address."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method", metavar="NAME", help="bits, or findattrpos or findattrposw for those of the paper."
        ),
    ] = "bits",
    site: Annotated[
        list[str] | None,
        typer.Option(
            "--site",
            metavar="NAME",
            help="Only this site of the workspace; may be given several times.",
            show_default=False,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", metavar="N", help="How many rounds over the sites at most [3]."),
    ] = None,
    withdraw: Annotated[
        str | None,
        typer.Option(
            "--withdraw",
            metavar="SITE",
            help="Take back a site that was wrapped wrongly, with all that came of it.",
        ),
    ] = None,
    suggestions: Annotated[
        str | None,
        typer.Option(
            "--suggestions",
            metavar="FILE",
            help="With a SOURCE: write pages with values that are likely right, for learn --examples.",
        ),
    ] = None,
    evidence: Annotated[
        str | None,
        typer.Option(
            "--evidence",
            metavar="FILE",
            help="With a SOURCE: write which known values were found where: .jsonl, .csv, .parquet.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="With a SOURCE, write its wrapper here, as JSON; else what came of each site.",
        ),
    ] = None,
) -> None:
    """Wrap sites from records that are known from elsewhere, without any annotation.

    A SOURCE is one site, whose wrapper goes to -o. Without, the sites of the workspace are tried in rounds:
    the records of those that can be wrapped join the seeds, and help to wrap others. Stopped or killed, the
    same command goes on.
    """
    if withdraw is not None:
        if sources or seeds or core or site or rounds or suggestions or evidence or output:
            raise UsageError("--withdraw takes a site back, and goes with no other choice.")
        _withdraw(shell, withdraw)
        return
    names = attribute_names(core)
    if not names:
        raise UsageError("Name the attributes by which things are known: --core name,address.")
    chosen = _checked_method(method)
    if sources:
        if site or rounds is not None:
            raise UsageError("A SOURCE is one site that is tried once: leave out --site and --rounds.")
        if seeds is None:
            raise UsageError("With a SOURCE, bootstrap needs --seeds FILE with known records.")
        _check_files(output, suggestions, evidence)
        _bootstrap_sources(shell, sources, seeds, names, chosen, output, suggestions, evidence)
        return
    if suggestions is not None or evidence is not None:
        option = "--suggestions" if suggestions is not None else "--evidence"
        raise UsageError(f"{option} FILE is for the pages of a SOURCE: give one, or leave it out.")
    if output is not None:
        check_destination(output)
    _bootstrap_workspace(shell, seeds, names, chosen, site or [], rounds, output)


def _checked_method(name: str) -> Method:
    from siteloom.redundancy.bootstrapping import METHODS

    for method in METHODS:
        if method == name:
            return method
    raise UsageError(f"No method {name!r} to wrap by: use one of {', '.join(METHODS)}.")


def _check_files(output: str | None, suggestions: str | None, evidence: str | None) -> None:
    if output is not None:
        check_text_file(output, "A wrapper is", ".json")
    if suggestions is not None:
        check_text_file(suggestions, "Suggestions are", ".jsonl")
    if evidence is not None:
        check_destination(evidence)
    written = [file for file in (output, suggestions, evidence) if file is not None]
    if len(set(written)) < len(written):
        raise UsageError("The wrapper, the suggestions and the evidence each need a file of their own.")


# ---- one site


def _bootstrap_sources(
    shell: Shell,
    sources: list[str],
    seeds: str,
    core: Sequence[str],
    method: Method,
    output: str | None,
    suggestions: str | None,
    evidence: str | None,
) -> None:
    from siteloom.redundancy.bootstrapping import bootstrap

    known = _read_seeds(shell, seeds, core)
    found = bootstrap(known, pages_of(shell, sources, "Looking at"), core, None, method)
    _show_evidence(shell, found)
    if evidence is not None:
        shell.write(evidence, _EVIDENCE_COLUMNS, _evidence_rows(found, known))
    if suggestions is not None:
        write_text(suggestions, as_lines([_example_row(example) for example in found.suggestions]))
        if found.suggestions and suggestions != STANDARD_OUTPUT:
            shell.say(f"Check and complete {suggestions}, then: siteloom learn --examples {suggestions}")
    if found.wrapper is None:
        shell.warn(found.reason)
        raise typer.Exit(1)
    if output is None:
        shell.say("To have the wrapper, give -o FILE.")
        return
    write_text(output, found.wrapper.to_json())
    if output != STANDARD_OUTPUT:
        shell.say(f"The wrapper is in {output}.")


def _read_seeds(shell: Shell, file: str, core: Sequence[str]) -> list[Seed]:
    known = list(_seeds_of(shell, file))
    if not known:
        raise UsageError(f"There is no record in {file}.")
    if missing := sorted(set(core).difference(*(seed.values for seed in known))):
        raise UsageError(f"No record of {file} has the attribute {missing[0]}: check the names of --core.")
    return known


def _seeds_of(shell: Shell, file: str) -> Iterator[Seed]:
    from collections import Counter

    from siteloom.seed_files import read_seeds

    problems: Counter[str] = Counter()
    yield from read_seeds(file, on_problem=lambda problem: problems.update([problem.reason]))
    for reason, count in problems.items():
        shell.say(f"{count:,} rows of {file} were left out: {reason}.")


def _show_evidence(shell: Shell, found: Bootstrapped) -> None:
    rows = [
        (
            name,
            one.verdict,
            one.pairs,
            f"{one.agreement:.0%}",
            f"{one.shuffled:.0%}",
            f"{one.filled:.0%}",
            one.reason,
        )
        for name, one in found.attributes.items()
    ]
    columns = ("attribute", "verdict", "pairs", "agreement", "by chance", "pages filled", "why")
    if rows:
        shell.show("Evidence", columns, rows)
    shell.say(
        f"{found.seeds_matched:,} of {found.seeds:,} known records were found, "
        f"on {found.pages_matched:,} of {found.pages:,} pages."
    )


def _evidence_rows(found: Bootstrapped, known: Sequence[Seed]) -> Iterator[dict[str, Any]]:
    return ({**match._asdict(), "source": known[match.seed].source} for match in found.evidence)


def _example_row(example: Example) -> dict[str, Any]:
    row: dict[str, Any] = {"url": example.page.url, "values": example.values}
    return {**row, "nodes": example.nodes} if example.nodes else row


# ---- a workspace


def _bootstrap_workspace(
    shell: Shell,
    seeds: str | None,
    core: Sequence[str],
    method: Method,
    sites: list[str],
    rounds: int | None,
    output: str | None,
) -> None:
    from siteloom.growing import DEFAULT_ROUNDS, grow

    with shell.store() as store:
        if seeds is not None:
            _import(shell, store, seeds, core)
        grown = grow(
            store,
            core,
            rounds=DEFAULT_ROUNDS if rounds is None else rounds,
            sites=sites,
            method=method,
            limits=shell.settings.parse,
            jobs=shell.settings.run.jobs,
            on_attempt=lambda attempt: _say_attempt(shell, attempt),
            on_grown=lambda one: _say_grown(shell, one),
        )
        rows = [_grown_row(one) for one in grown]
        shell.write(output, _GROWN_COLUMNS, rows)
        if not grown:
            shell.say("There is no site left to try: siteloom status lists those there are.")
            return
        columns = ("site", "round", "outcome", "records", "attributes", "reason")
        shown = [
            [", ".join(row[name]) if name == "attributes" else row[name] for name in columns] for row in rows
        ]
        shell.show("Sites", columns, shown)
        if any(one.state == "wrapped" for one in grown):
            shell.say("If a site is wrong: siteloom bootstrap --withdraw SITE")


def _import(shell: Shell, store: Store, file: str, core: Sequence[str]) -> None:
    """Take the records of a file in, in the place of what was known of their sources."""
    known = _read_seeds(shell, file, core)
    with store.recording("seeds", {"sources": [file]}) as run:
        counts = store.replace_seeds(run.id, known)
        run.counts.update(counts._asdict())
    shell.say(f"{counts.added:,} seeds are new, {counts.unchanged:,} were known already.")


def _say_attempt(shell: Shell, attempt: Attempt) -> None:
    shell.say(f"Round {attempt.round}, site {attempt.number} of {attempt.of}: {attempt.site}")


def _say_grown(shell: Shell, grown: Grown) -> None:
    what = f"{grown.records:,} records" if grown.state == "wrapped" else grown.reason
    shell.say(f"  {grown.state}: {what}")


def _grown_row(grown: Grown) -> dict[str, Any]:
    row = grown._asdict()
    return {**row, "outcome": row.pop("state")}


def _withdraw(shell: Shell, site: str) -> None:
    from siteloom.growing import withdraw

    with shell.store() as store:
        taken = withdraw(store, site)
    shell.say(f"{site} is withdrawn, and with it {taken.seeds:,} seeds.")
    for name in taken.wrappers:
        shell.say(f"The wrapper {name} is not in force any more; siteloom rollback {name} puts it back.")
    for name in taken.retried:
        shell.say(f"{name} was wrapped with its help: the next siteloom bootstrap tries it again.")
