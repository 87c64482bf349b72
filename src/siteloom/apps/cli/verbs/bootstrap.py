"""`siteloom bootstrap`: wrap sites from known records."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from siteloom.apps.cli.result_tables import evidence_row, named, say_verdicts, say_wrapped, show_evidence
from siteloom.apps.cli.seed_arguments import (
    RenameOption,
    SeveralOption,
    Wanted,
    attribute_names,
    pairs,
    read_only_seeds,
)
from siteloom.apps.cli.source_arguments import (
    EngineChoice,
    EngineOption,
    MasterOption,
    SourcesArgument,
    SparkConfOption,
    as_lines,
    bulk_run,
    check_text_file,
    finished,
    no_page_read,
    pages_of,
    say_unread,
    verb_context,
    write_text,
)
from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import UsageError
from siteloom.core.remote_files import shown
from siteloom.core.settings import without_passwords
from siteloom.core.table_files import STANDARD_OUTPUT, Column, check_destination, flat_for
from siteloom.core.wording import plural
from siteloom.sources.example_files import SchemaOption, read_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from siteloom.core.model import Example, Page, Seed
    from siteloom.learning.induction.learning_session import Schema
    from siteloom.learning.known_records.bootstrap_result import Bootstrapped
    from siteloom.learning.known_records.site_bootstrap import Method
    from siteloom.operations.bootstrap import SiteOutcome
    from siteloom.operations.context import Context
    from siteloom.store.store import Store


def bootstrap_crawl(
    shell: Shell, choice: EngineChoice, sources: list[str] | None, wanted: Wanted, output: str | None
) -> None:
    """Try each site of whole crawls once; the wrappers and what came of the sites go to a folder."""
    from siteloom.engines.whole_crawls.bootstrap_crawl import bootstrap_in_bulk

    known = read_only_seeds(shell, wanted)
    by = (wanted.core, wanted.schema, wanted.method)
    limits = shell.settings.parse
    with bulk_run(shell, choice, sources, output, ("bootstrap", known, by, limits)) as (run, shards):
        counts = finished(shell, run, output) or bootstrap_in_bulk(run, shards, known, *by, limits=limits)
    say_unread(shell, counts["failed"])
    outcomes, told = counts["outcomes"], counts["sites"]
    if not told:
        raise no_page_read(failed=bool(counts["failed"]), skipped=counts["skipped"])
    columns = ("site", "outcome", "seeds", "pages")
    shell.show("Sites", columns, [[one[name] for name in columns] for one in told])
    others = sum(outcomes.values()) - len(told)
    if others:
        shell.say(f"And {plural(others, 'other site')}: {shown(output or '')} tells of all.")
    shell.say(", ".join(f"{name}: {count:,}" for name, count in outcomes.items()))
    for one in told:
        if one["outcome"] == "failed":
            say_wrapped(shell, f"{one['site']} failed: {one['reason']}")
    if not outcomes["wrapped"]:
        shell.warn(f"No site could be wrapped. {told[0]['site']}: {told[0]['reason']}")
        raise typer.Exit(1)
    shell.say("To have the records, with the same sources:")
    of_crawl = shlex.join(map(shown, sources or ()))
    shell.say(f"  siteloom extract {of_crawl} --wrapper {shlex.quote(shown(output or ''))} -o FILE")


_SITE_COLUMNS = (
    Column("site"),
    Column("round", "integer"),
    Column("outcome"),
    Column("wrapper"),
    Column("records", "integer"),
    Column("attributes", "texts"),
    Column("reason"),
    Column("evidence"),
)


def bootstrap_workspace(
    shell: Shell, wanted: Wanted, sites: list[str], rounds: int | None, output: str | None
) -> None:
    """Wrap sites of the workspace in rounds."""
    from siteloom.operations.bootstrap import DEFAULT_ROUNDS, BootstrapRequest, bootstrap

    with verb_context(shell, None) as context:
        if wanted.seeds:
            _import(shell, context, wanted)
        _warn_of_wrappers(shell, context.store, sites)
        request = BootstrapRequest(
            core=wanted.core,
            sites=tuple(sites),
            rounds=DEFAULT_ROUNDS if rounds is None else rounds,
            method=wanted.method,
            schema=wanted.schema,
            extract=False,
            on_outcome=lambda outcome: _say_outcome(shell, outcome),
        )
        result = bootstrap(context, request)
    rows = [_row(outcome) for outcome in result.attempts]
    if output is not None:
        shell.write(output, _SITE_COLUMNS, (flat_for(output, row, ("evidence",)) for row in rows))
    if not rows:
        shell.say("There is no site left to try: siteloom status lists those there are.")
        return
    columns = ("site", "round", "outcome", "records")
    shell.show("Sites", columns, [[row[name] for name in columns] for row in rows])
    if any(row["outcome"] == "wrapped" for row in rows):
        shell.say("If a site is wrong: siteloom bootstrap --withdraw SITE")


def _import(shell: Shell, context: Context, wanted: Wanted) -> None:
    """Import the records of a file, in place of what was known of their sources."""
    from siteloom.operations.seeds import ImportSeedsRequest, import_seeds

    request = ImportSeedsRequest(
        locations=(wanted.seeds,), several=wanted.several, renamed=wanted.renamed, core=wanted.core
    )
    result = import_seeds(context, request)
    for reason, count in {**result.failures, **result.skipped}.items():
        shell.say(f"{count:,} rows of {without_passwords(wanted.seeds)} were left out: {reason}.")
    shell.say(f"{result.added:,} seeds are new, {result.unchanged:,} were known already.")


def _warn_of_wrappers(shell: Shell, store: Store, sites: Collection[str]) -> None:
    """Say which wrappers of the sites that were named will have another one beside them."""
    from siteloom.operations.bootstrap import wrappers_beside

    for wrapper in wrappers_beside(store, sites):
        shell.warn(
            f"The wrapper {wrapper.name} is in force on {wrapper.site} already: if another one is made, it "
            "stands beside it, and the pages are divided among them."
        )


def _say_outcome(shell: Shell, outcome: SiteOutcome) -> None:
    what = f"{outcome.records:,} records" if outcome.state == "wrapped" else outcome.reason
    say_wrapped(shell, f"{outcome.state}: {what}", 2)
    say_verdicts(shell, outcome.evidence)
    say_unread(shell, outcome.failures)


def _row(outcome: SiteOutcome) -> dict[str, Any]:
    return {
        "site": outcome.site,
        "round": outcome.round,
        "outcome": outcome.state,
        "wrapper": outcome.wrapper,
        "records": outcome.records,
        "attributes": outcome.attributes,
        "reason": outcome.reason,
        "evidence": evidence_row(outcome.evidence),
    }


def withdraw_site(shell: Shell, site: str) -> None:
    """Withdraw a site that was wrapped wrongly, and say what to do about its results."""
    from siteloom.operations.bootstrap import WithdrawRequest, withdraw
    from siteloom.store.queries.wrappers import WITHDRAWN

    with verb_context(shell, None) as context:
        result = withdraw(context, WithdrawRequest(site=site))
        earlier = {
            name: [one.version for one in context.store.wrapper_versions(name) if one.origin != WITHDRAWN]
            for name in result.withdrawn
        }
    shell.say(f"{site} is withdrawn, and with it {result.seeds:,} seeds.")
    for name, versions in earlier.items():
        *others, last = versions
        shell.say(f"The wrapper {name} is not in force any more.")
        or_others = f", or another of its versions: {', '.join(map(str, others))}" if others else ""
        shell.say(f"  siteloom rollback {name} {last} puts it back{or_others}.")
    for name in result.retried:
        shell.say(f"{name} was wrapped with its help: the next siteloom bootstrap tries it again.")


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


def bootstrap_site(
    shell: Shell,
    sources: list[str],
    wanted: Wanted,
    output: str | None,
    suggestions: str | None,
    evidence: str | None,
) -> None:
    """Wrap the site of a source, and write what was asked for of it."""
    from siteloom.learning.known_records.site_bootstrap import bootstrap

    known = read_only_seeds(shell, wanted)
    pages = _of_one_site(pages_of(shell, sources, "Looking at"))
    limits = shell.settings.parse
    found = bootstrap(known, pages, wanted.core, wanted.schema, wanted.method, limits=limits)
    say_unread(shell, Counter(failure.reason for failure in found.failures))
    if found.attributes:
        show_evidence(shell, found.attributes)
        shell.say(
            f"{found.seeds_matched:,} of {found.seeds:,} known records were found, "
            f"on {found.pages_matched:,} of {found.pages:,} pages."
        )
    if evidence is not None:
        shell.write(evidence, _EVIDENCE_COLUMNS, _evidence_rows(found, known))
    if suggestions is not None:
        write_text(suggestions, as_lines([_example_row(example) for example in found.suggestions]))
        if suggestions != STANDARD_OUTPUT:
            _say_suggestions(shell, found, suggestions, sources)
    if found.wrapper is None:
        shell.warn(found.reason)
        raise typer.Exit(1)
    if output is None:
        shell.say("To have the wrapper, give -o FILE.")
        return
    write_text(output, found.wrapper.to_json())
    if output != STANDARD_OUTPUT:
        shell.say(f"The wrapper is in {shown(output)}.")


def _of_one_site(pages: Iterable[Page]) -> Iterator[Page]:
    """The pages, as long as they are of the same site: what stands where is another thing on each."""
    from siteloom.core.urls import site_of

    first = ""
    for page in pages:
        site = site_of(page.url)
        first = first or site
        if site != first:
            raise UsageError(
                f"A SOURCE is one site, and here are pages of {first} and of {site}: siteloom ingest takes "
                "them all in, and bootstrap without a SOURCE then tries each."
            )
        yield page


def _say_suggestions(shell: Shell, found: Bootstrapped, file: str, sources: Sequence[str]) -> None:
    """Say what a file of suggestions holds, and what to do with it."""
    if not found.suggestions:
        why = "too few pages show what is known" if found.wrapper is None else "every attribute was accepted"
        shell.say(f"There is nothing to suggest, so {shown(file)} is empty: {why}.")
        return
    held = {name for example in found.suggestions for name in example.values}
    has = [name for name in found.attributes if name in held]
    lacking = [name for name in found.attributes if name not in held]
    pages = plural(len(found.suggestions), "page")
    say_wrapped(shell, f"Check {file}: it has {pages} with what is likely their {named(has)}.", hanging=0)
    if lacking:
        say_wrapped(
            shell, f"It has nothing of {named(lacking)}: add what you see of that on the pages.", hanging=0
        )
    shell.say(f"Then: siteloom learn {shlex.join(sources)} --examples {shlex.quote(file)} -o FILE")


def _evidence_rows(found: Bootstrapped, known: Sequence[Seed]) -> Iterator[dict[str, Any]]:
    return ({**match._asdict(), "source": known[match.seed].source} for match in found.evidence)


def _example_row(example: Example) -> dict[str, Any]:
    row: dict[str, Any] = {"url": example.page.url, "values": example.values}
    return {**row, "nodes": example.nodes} if example.nodes else row


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
    from siteloom.learning.induction.attribute_schema import parse_schema

    schema = read_schema(file)
    parse_schema(schema)  # what is wrong with it is told before any page is read
    if schema and method != "bits":
        raise UsageError(f"The method {method} makes no use of a schema: leave out --schema.")
    return schema


def _checked_method(name: str) -> Method:
    from siteloom.learning.known_records.site_bootstrap import METHODS

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
