"""`siteloom bootstrap` in a workspace: its sites in rounds, and withdrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteloom.cli.bootstrap_wanted import Wanted, check_schema_names, read_seeds_of
from siteloom.cli.change_words import say_wrapped
from siteloom.cli.evidence_words import evidence_row, say_verdicts
from siteloom.cli.shell import Shell
from siteloom.cli.sources import say_unread
from siteloom.output import Column, flat_for

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from siteloom.growing import Attempt, Grown
    from siteloom.redundancy.outcome import AttributeEvidence
    from siteloom.store import Store

_GROWN_COLUMNS = (
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
    from siteloom.growing import DEFAULT_ROUNDS, grow

    rows: list[dict[str, Any]] = []
    with shell.store() as store:
        if wanted.seeds:
            _import(shell, store, wanted)
        if wanted.schema:
            check_schema_names(
                wanted.schema, {name for one in store.seed_sources() for name in one.attributes}
            )
        _warn_of_wrappers(shell, store, sites)

        def came(grown: Grown) -> None:
            attributes = _evidence_of(store, grown.site)
            _say_grown(shell, grown, attributes)
            rows.append(_grown_row(grown, attributes))

        grow(
            store,
            wanted.core,
            wanted.schema,
            rounds=DEFAULT_ROUNDS if rounds is None else rounds,
            sites=sites,
            method=wanted.method,
            limits=shell.settings.parse,
            jobs=shell.settings.run.jobs,
            on_attempt=lambda attempt: _say_attempt(shell, attempt),
            on_grown=came,
        )
    if output is not None:
        shell.write(output, _GROWN_COLUMNS, (flat_for(output, row, ("evidence",)) for row in rows))
    if not rows:
        shell.say("There is no site left to try: siteloom status lists those there are.")
        return
    columns = ("site", "round", "outcome", "records")
    shell.show("Sites", columns, [[row[name] for name in columns] for row in rows])
    if any(row["outcome"] == "wrapped" for row in rows):
        shell.say("If a site is wrong: siteloom bootstrap --withdraw SITE")


def _import(shell: Shell, store: Store, wanted: Wanted) -> None:
    """Take the records of a file in, in the place of what was known of their sources."""
    from siteloom.config import without_passwords

    known = read_seeds_of(shell, wanted)
    with store.recording("seeds", {"locations": [without_passwords(wanted.seeds)]}) as run:
        counts = store.replace_seeds(run.id, known)
        run.counts.update(counts._asdict())
    shell.say(f"{counts.added:,} seeds are new, {counts.unchanged:,} were known already.")


def _warn_of_wrappers(shell: Shell, store: Store, sites: Collection[str]) -> None:
    """Tell which wrappers of the sites that were named will have another one beside them."""
    from siteloom.growing import ORIGIN

    wrapped = {one.site for one in store.grown_sites() if one.state == "wrapped"}  # and are left as they are
    for one in store.wrappers():
        if one.site in sites and one.site not in wrapped and one.origin != ORIGIN:
            shell.warn(
                f"The wrapper {one.name} is in force on {one.site} already: if another one is made, it "
                "stands beside it, and the pages are divided among them."
            )


def _evidence_of(store: Store, site: str) -> dict[str, AttributeEvidence]:
    """What speaks for the attributes of a site that was just tried."""
    from siteloom.redundancy.outcome import AttributeEvidence

    kept = next(one.content for one in store.grown_sites() if one.site == site)
    return {name: AttributeEvidence(**one) for name, one in kept.get("attributes", {}).items()}


def _say_attempt(shell: Shell, attempt: Attempt) -> None:
    shell.say(f"Round {attempt.round}, site {attempt.number} of {attempt.of}: {attempt.site}")


def _say_grown(shell: Shell, grown: Grown, attributes: Mapping[str, AttributeEvidence]) -> None:
    what = f"{grown.records:,} records" if grown.state == "wrapped" else grown.reason
    say_wrapped(shell, f"{grown.state}: {what}", 2)
    say_verdicts(shell, attributes)
    say_unread(shell, grown.unread)


def _grown_row(grown: Grown, attributes: Mapping[str, AttributeEvidence]) -> dict[str, Any]:
    row = grown._asdict()
    del row["unread"]
    return {**row, "outcome": row.pop("state"), "evidence": evidence_row(attributes)}


def withdraw_site(shell: Shell, site: str) -> None:
    """Take back a site that was wrapped wrongly, and say what to do about what came of it."""
    from siteloom.growing import withdraw
    from siteloom.store import WITHDRAWN

    with shell.store() as store:
        taken = withdraw(store, site)
        earlier = {
            name: [one.version for one in store.wrapper_versions(name) if one.origin != WITHDRAWN]
            for name in taken.wrappers
        }
    shell.say(f"{site} is withdrawn, and with it {taken.seeds:,} seeds.")
    for name, versions in earlier.items():
        *others, last = versions
        shell.say(f"The wrapper {name} is not in force any more.")
        or_others = f", or another of its versions: {', '.join(map(str, others))}" if others else ""
        shell.say(f"  siteloom rollback {name} {last} puts it back{or_others}.")
    for name in taken.retried:
        shell.say(f"{name} was wrapped with its help: the next siteloom bootstrap tries it again.")
