"""`siteloom bootstrap`: from known records to wrappers, with no page annotated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.cli.bootstrap_crawl import bootstrap_crawl
from siteloom.cli.bootstrap_rounds import bootstrap_workspace, withdraw_site
from siteloom.cli.bootstrap_site import bootstrap_site
from siteloom.cli.bootstrap_wanted import Wanted
from siteloom.cli.bulk import EngineChoice, EngineOption, MasterOption, SparkConfOption
from siteloom.cli.files import check_text_file
from siteloom.cli.known_records import (
    RenameOption,
    SeveralOption,
    attribute_names,
    pairs,
)
from siteloom.cli.schema_file import SchemaOption, read_schema
from siteloom.cli.shell import Shell
from siteloom.cli.sources import SourcesArgument
from siteloom.errors import UsageError
from siteloom.output import check_destination

if TYPE_CHECKING:
    from siteloom.learning import Schema
    from siteloom.redundancy.bootstrapping import Method

NAME = "bootstrap"


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
    several: SeveralOption = None,
    rename: RenameOption = None,
    schema: SchemaOption = None,
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
            help="With a SOURCE, write its wrapper here, as JSON; else what came of each site. With "
            "--engine, a folder for both.",
        ),
    ] = None,
    engine: EngineOption = None,
    master: MasterOption = None,
    spark_conf: SparkConfOption = None,
) -> None:
    """Wrap sites from known records, without any annotation.

    A SOURCE is one site, whose wrapper goes to -o. The evidence for each attribute is shown; if it is too
    poor for a wrapper, that is told with numbers, and the exit status is 1.

    Without a SOURCE, the sites of the workspace are tried in rounds: the records of those that can be wrapped
    join the seeds, and help to wrap others; a site whose evidence was poor is tried again once more is known.
    Sites that have a wrapper already, were withdrawn, or whose records are among the seeds are left as they
    are, unless --site names them. Stopped or killed, the same command goes on.

    With --engine, sources are whole crawls, and each of their sites is tried once.
    """
    choice = EngineChoice(engine, master, spark_conf)
    if withdraw is not None:
        others = (
            *(sources, seeds, core, several, rename, schema, site, rounds, suggestions, evidence, output),
            choice.is_bulk,
        )
        if any(others):
            raise UsageError("--withdraw takes a site back, and goes with no other choice.")
        withdraw_site(shell, withdraw)
        return
    names = attribute_names(core)
    if not names:
        raise UsageError("Name the attributes by which things are known: --core name,address.")
    if seeds is None and (several or rename):
        raise UsageError("--several and --rename are for the records of a file: give --seeds FILE.")
    wanted = Wanted(
        seeds or "",
        names,
        pairs("--several", several),
        pairs("--rename", rename),
        _checked_schema(schema, method),
        _checked_method(method),
    )
    if choice.is_bulk:
        if site or rounds is not None or suggestions is not None or evidence is not None:
            raise UsageError(
                "--site, --rounds, --suggestions and --evidence do not go with --engine: leave them out."
            )
        if seeds is None:
            raise UsageError(f"With --engine {engine}, bootstrap needs --seeds FILE with known records.")
        bootstrap_crawl(shell, choice, sources, wanted, output)
        return
    if sources:
        if site or rounds is not None:
            raise UsageError("A SOURCE is one site that is tried once: leave out --site and --rounds.")
        if seeds is None:
            raise UsageError("With a SOURCE, bootstrap needs --seeds FILE with known records.")
        _check_files(output, suggestions, evidence)
        if suggestions is not None and wanted.method != "bits":
            raise UsageError(f"The method {method} suggests nothing: leave out --suggestions.")
        bootstrap_site(shell, sources, wanted, output, suggestions, evidence)
        return
    if suggestions is not None or evidence is not None:
        option = "--suggestions" if suggestions is not None else "--evidence"
        raise UsageError(f"{option} FILE is for the pages of a SOURCE: give one, or leave it out.")
    if output is not None:
        check_destination(output)
    bootstrap_workspace(shell, wanted, site or [], rounds, output)


def _checked_schema(file: str | None, method: str) -> Schema:
    from siteloom.learning.schema import given_schema

    schema = read_schema(file)
    given_schema(schema)  # what is wrong with it is told before any page is read
    if schema and method != "bits":
        raise UsageError(f"The method {method} makes no use of a schema: leave out --schema.")
    return schema


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
