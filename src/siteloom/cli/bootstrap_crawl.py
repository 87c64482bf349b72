"""`siteloom bootstrap SOURCE --engine`: the sites of whole crawls."""

from __future__ import annotations

import shlex

import typer

from siteloom.cli.bootstrap_wanted import Wanted, read_only_seeds
from siteloom.cli.bulk import EngineChoice, bulk_run, finished
from siteloom.cli.change_words import say_wrapped
from siteloom.cli.shell import Shell
from siteloom.cli.sources import no_page_read, say_unread
from siteloom.filesystems import shown
from siteloom.telling import plural


def bootstrap_crawl(
    shell: Shell, choice: EngineChoice, sources: list[str] | None, wanted: Wanted, output: str | None
) -> None:
    """Try each site of whole crawls once; the wrappers and what came of the sites go to a folder."""
    from siteloom.bulk.bootstrapping import bootstrap_in_bulk

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
