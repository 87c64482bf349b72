"""`siteloom bootstrap SOURCE`: one site."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any

import typer

from siteloom.cli.bootstrap_wanted import Wanted, read_only_seeds
from siteloom.cli.change_words import named, say_wrapped
from siteloom.cli.evidence_words import show_evidence
from siteloom.cli.files import as_lines, write_text
from siteloom.cli.shell import Shell
from siteloom.cli.sources import pages_of, say_unread
from siteloom.errors import UsageError
from siteloom.filesystems import shown
from siteloom.output import STANDARD_OUTPUT, Column
from siteloom.telling import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from siteloom.model import Example, Page, Seed
    from siteloom.redundancy import Bootstrapped

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
    from siteloom.redundancy.bootstrapping import bootstrap

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
    from siteloom.urls import site_of

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
