"""Results of operations as terminal tables: import, extraction, changes, repairs, evidence, differences."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from siteloom.apps.cli.source_arguments import as_lines, write_text
from siteloom.core.table_files import STANDARD_OUTPUT, Column, flat_for
from siteloom.core.wording import percent, plural, some_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from siteloom.apps.cli.terminal import Shell
    from siteloom.core.model import Change, Evidence, Failure
    from siteloom.extraction.extraction_counts import ExtractionCounts
    from siteloom.learning.known_records.bootstrap_result import AttributeEvidence, Verdict
    from siteloom.maintenance.repair_result import ValueDifference, WrapperDifference
    from siteloom.operations.forget import ForgetPreview, ForgetResult
    from siteloom.operations.ingest import IngestResult
    from siteloom.operations.relearn import RepairedWrapper
    from siteloom.wrappers.matching import NamedWrapper


WIDTH = 80
"""So wide is a terminal at the least."""

CHANGE_COLUMNS = (
    Column("wrapper"),
    Column("test"),
    Column("attributes", "texts"),
    Column("share", "number"),
    Column("evidence"),
)

_PAGES_SHOWN = 3
_ATTRIBUTES_SHOWN = 4


def write_changes(shell: Shell, destination: str | None, changes: Iterable[Change]) -> None:
    """Write a line for each change to `-o`, if it was given."""
    if destination is not None:
        rows = (flat_for(destination, row, ("evidence",)) for row in change_rows(changes))
        shell.write(destination, CHANGE_COLUMNS, rows)


def change_rows(changes: Iterable[Change]) -> list[dict[str, object]]:
    """Changes as rows of output."""
    from siteloom.maintenance.alarms import change_row

    return [change_row(change) for change in changes]


def raise_alarm(shell: Shell, changes: Sequence[Change]) -> None:
    """Tell of changes wherever the settings say; what cannot be told is said here."""
    from siteloom.maintenance import alarms

    for problem in alarms.raise_alarm(change_rows(changes), shell.settings.alarm):
        shell.warn(problem)


def show_changes(shell: Shell, changes: Sequence[Change]) -> None:
    """Say what changed, with what was seen on a few pages."""
    for name in dict.fromkeys(change.wrapper for change in changes):
        shell.say(f"\n{readable(name)} has changed:")
        for change in changes:
            if change.wrapper == name:
                _show_change(shell, change)


def _show_change(shell: Shell, change: Change) -> None:
    from siteloom.maintenance.change_messages import change_sentence

    of_output = not any(one.url for one in change.evidence)
    sentence = change_sentence(
        change.test, named(change.attributes), percent(change.share), is_of_output=of_output
    )
    say_wrapped(shell, sentence, 2)
    if of_output:
        for one in change.evidence:
            say_wrapped(shell, _output_words(one), 4)
        return
    shown = (*change.attributes[:_ATTRIBUTES_SHOWN], "")
    for url, seen in _by_page([one for one in change.evidence if one.attribute in shown]).items():
        shell.say(f"    {readable(url)}")
        for line in (line for one in seen if one.attribute for line in _evidence_lines(one)):
            shell.say(line)
    if change.test != "shingle" and (more := len(change.attributes) - _ATTRIBUTES_SHOWN) > 0:
        shell.say(f"    {plural(more, 'more attribute')}: -o FILE has what was seen of each.")


def _by_page(evidence: Iterable[Evidence]) -> dict[str, list[Evidence]]:
    """What was seen, by the first few pages that it was seen on."""
    pages: dict[str, list[Evidence]] = {}
    for one in evidence:
        if one.url in pages or len(pages) < _PAGES_SHOWN:
            pages.setdefault(one.url, []).append(one)
    return pages


def _evidence_lines(one: Evidence) -> Iterator[str]:
    name = readable(one.attribute)
    room = WIDTH - len(name) - len("      , before: ")
    yield f"      {name}, before: {values_words(one.before, room)}"
    yield f"      {name}, now:    {values_words(one.after, room)}"
    if one.finding:
        yield f"        {readable(one.finding, WIDTH - 8)}"


def _output_words(one: Evidence) -> str:
    """What was counted: shares before and now, if there were any before."""
    now = f"{', '.join(one.after)} now" if one.after else "nothing now"
    shares = f"{', '.join(one.before)} before, {now}" if one.before else now
    about = f"{readable(one.attribute)}, " if one.attribute else ""
    return f"{about}{readable(one.finding)}: {shares}"


def values_words(texts: Sequence[str], room: int = WIDTH) -> str:
    """Some values, shortened to the room that there is."""
    return readable(" | ".join(texts), room) if texts else "nothing"


def readable(text: str, room: int | None = None) -> str:
    """A text with all that is not seen escaped, for it comes from others; cut if there is no room for it."""
    shown = "".join(
        character if character.isprintable() else character.encode("unicode_escape", "replace").decode()
        for character in text
    )
    return shown if room is None or len(shown) <= room else f"{shown[: max(1, room - 3)]}..."


def say_wrapped(shell: Shell, text: str, indent: int = 0, hanging: int = 2) -> None:
    """Say something that may be long, in lines that a terminal has room for."""
    lines = wrap(
        text.replace(" %", "\xa0%"),
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hanging),
        break_long_words=False,
        break_on_hyphens=False,
    )
    shell.say("\n".join(lines).replace("\xa0%", " %"))


def named(names: Iterable[str]) -> str:
    """Names in one line."""
    return ", ".join(map(readable, names))


# Of many attributes one page each is enough to read.
_DIFFERING_PAGES_SHOWN, _FEW_ATTRIBUTES = 3, 3


def show_difference(shell: Shell, difference: WrapperDifference, most: int | None = None) -> None:
    """Show the rules of each attribute before and now, and its values on a few pages.

    At most so many attributes are shown; of the others only their number is.
    """
    rules = {changed.attribute: changed for changed in difference.rules}
    names = list(dict.fromkeys((*rules, *(value.attribute for value in difference.values))))
    pages = _DIFFERING_PAGES_SHOWN if len(names) <= _FEW_ATTRIBUTES else 1
    for name in names[:most]:
        shell.say(f"  {readable(name)}")
        if name in rules:
            _show_rules(shell, "before: ", rules[name].before)
            _show_rules(shell, "now:    ", rules[name].after)
        for value in [value for value in difference.values if value.attribute == name][:pages]:
            _show_value(shell, value)
    if most is not None and len(names) > most:
        shell.say(f"  {plural(len(names) - most, 'more attribute')}")


def _show_rules(shell: Shell, when: str, rules: Sequence[str]) -> None:
    for number, words in enumerate(rules or ["no rule"]):
        lead = when if number == 0 else "or:     "
        say_wrapped(shell, lead + readable(words), 4, hanging=len(lead))


def _show_value(shell: Shell, value: ValueDifference) -> None:
    """Show the value on a page: as it was known, and as the old and the new rules find it now."""
    shell.say(f"    {readable(value.url)}")
    room = WIDTH - len("      found by new rules: ")
    shell.say(f"      known:              {values_words(value.known, room)}")
    shell.say(f"      found by old rules: {values_words(value.before, room)}")
    shell.say(f"      found by new rules: {values_words(value.after, room)}")


_VERDICTS: tuple[Verdict, ...] = ("accepted", "suggested", "refused")


def show_evidence(shell: Shell, attributes: Mapping[str, AttributeEvidence]) -> None:
    """Show what speaks for those attributes that are found, and name the others."""
    found = {name: one for name, one in attributes.items() if one.verdict != "refused"}
    if found:
        rows = [
            (name, one.verdict, one.pairs, f"{one.agreement:.0%}", f"{one.shuffled:.0%}", f"{one.filled:.0%}")
            for name, one in found.items()
        ]
        shell.show("Evidence", ("attribute", "verdict", "pairs", "agree", "chance", "filled"), rows)
    for name, one in found.items():
        if one.verdict == "suggested":
            say_wrapped(shell, f"{readable(name)} is only suggested: {one.reason}.")
    refused: dict[str, list[str]] = {}
    for name in _of_verdict(attributes, "refused"):
        refused.setdefault(attributes[name].reason, []).append(name)
    for reason, names in refused.items():
        say_wrapped(shell, f"Refused ({reason}): {named(names)}.")


def say_verdicts(shell: Shell, attributes: Mapping[str, AttributeEvidence]) -> None:
    """Name the attributes of each verdict, in a line."""
    for verdict in _VERDICTS:
        if names := _of_verdict(attributes, verdict):
            say_wrapped(shell, f"{verdict}: {named(names)}", 2)


def evidence_row(attributes: Mapping[str, AttributeEvidence]) -> dict[str, dict[str, Any]]:
    """What speaks for each attribute, as data."""
    return {name: one._asdict() for name, one in attributes.items()}


def _of_verdict(attributes: Mapping[str, AttributeEvidence], verdict: Verdict) -> list[str]:
    return [name for name, one in attributes.items() if one.verdict == verdict]


FAILURES_SHOWN = 5
"""So many failures tell what is wrong; all of them go to `--failures`."""
_FAILURE_COLUMNS = (Column("url"), Column("reason"), Column("detail"))

SiteOption = Annotated[
    str | None,
    typer.Option(
        "--site", metavar="NAME", help="Put all pages into this site [the domain of each page's URL]."
    ),
]

FailuresOption = Annotated[
    str | None,
    typer.Option(
        "--failures", metavar="FILE", help="Write what failed and why: .jsonl, .csv, .parquet or -."
    ),
]


def show_imported(shell: Shell, result: IngestResult, title: str) -> None:
    """Show the outcome of an import, and of the work that followed it."""
    counts = [
        ("new", result.added),
        ("changed since the last time", result.changed_pages),
        ("unchanged", result.unchanged),
    ]
    if result.resources:
        counts.append(("of these, stylesheets and images", result.resources))
    show_counts(shell, title, counts, result.failures, result.skipped)
    if result.failures:
        show_first(shell, result.first_failures)
    for problem in result.problems:
        shell.warn(problem)
    if result.forgotten.counts:
        show_forgotten(shell, "Removed, as the settings of retention say", result.forgotten)
    if result.changes:
        show_changes(shell, result.changes)
        say_wrapped(shell, "siteloom relearn repairs what it can from earlier records.", hanging=0)


def show_forgotten(
    shell: Shell, title: str, result: ForgetResult | ForgetPreview, *, is_done: bool = True
) -> None:
    """Show how much was removed of each kind, or would be; once it is done, which wrappers to learn again."""
    if result.counts:
        shell.show(title, ("", "count"), list(result.counts.items()))
    else:
        shell.say(f"{title}: nothing.")
    if is_done and result.to_learn_again:
        shell.say(
            "Words of these pages may still be in rules that were learned from them: learn "
            f"{some_names(result.to_learn_again)} again, or forget the site."
        )


def write_failures(shell: Shell, destination: str | None, failures: Iterable[Failure]) -> None:
    """Write what failed to a file, if one is named."""
    rows = ({"url": f.url, "reason": f.reason, "detail": f.detail} for f in failures)
    shell.write(destination, _FAILURE_COLUMNS, rows)


def show_counts(
    shell: Shell,
    title: str,
    counts: Iterable[tuple[str, int]],
    failures: Mapping[str, int],
    skipped: Mapping[str, int],
) -> None:
    """Show how many pages there were, and how many failed or were skipped for which reason."""
    rows = [
        *counts,
        *((f"failed: {reason}", count) for reason, count in failures.items()),
        *((f"skipped: {reason}", count) for reason, count in skipped.items()),
    ]
    shell.show(title, ("", "count"), rows)


def show_first(shell: Shell, failures: Iterable[Failure]) -> None:
    """Show the first of what failed."""
    rows = [(f.url, f.reason, f.detail) for f in islice(failures, FAILURES_SHOWN)]
    shell.show("What failed first", ("where", "reason", "detail"), rows)


_SHAPES_SHOWN = 10
_WRAPPERS_SHOWN = 20


def load_wrappers(shell: Shell, files: Sequence[str]) -> list[NamedWrapper]:
    """The wrappers of files, ready for use; prints what the user should know of them."""
    from siteloom.wrappers.named_wrappers import untyped_note, wrappers_of_files

    wrappers = wrappers_of_files(files, tell=shell.say)
    if note := untyped_note(wrappers):
        shell.say(note)
    return wrappers


def show_extracted(
    shell: Shell,
    counts: ExtractionCounts,
    unread: Iterable[Failure],
    *,
    duplicates: int,
    joined: int | None = None,
) -> None:
    """Show pages, records and failures, how many records have each attribute, and what had no wrapper.

    `unread` are the first pages that could not be read.
    """
    from siteloom.extraction.extraction_counts import most_first

    shell.show(
        "Extracted",
        ("", "count"),
        [
            ("pages", counts.pages),
            ("records", counts.records),
            *([] if joined is None else [("records after joining", joined)]),
            ("duplicates of other records", duplicates),
            *((f"failed: {reason}", count) for reason, count in most_first(counts.failures)),
            *((f"skipped: {reason}", count) for reason, count in most_first(counts.skipped)),
        ],
    )
    unread = list(unread)
    if unread:
        show_first(shell, unread)
    giving = counts.most_records()
    if giving:
        shell.show(
            "Values",
            ("wrapper", "records", "attribute", "filled", "withheld"),
            [
                (
                    name,
                    of_wrapper.records,
                    attribute,
                    f"{of_wrapper.filled[attribute] / of_wrapper.records:.1%}",
                    of_wrapper.withheld[attribute],
                )
                for name, of_wrapper in sorted(giving[:_WRAPPERS_SHOWN])
                for attribute in of_wrapper.attributes
            ],
        )
        if (more := len(giving) - _WRAPPERS_SHOWN) > 0:
            shell.say(f"These are the wrappers with most records; there are {more:,} others.")
    incomplete = Counter(
        {name: of_wrapper.incomplete for name, of_wrapper in giving if of_wrapper.incomplete}
    )
    for name, count in most_first(incomplete):
        lack = "record of {} lacks" if count == 1 else "records of {} lack"
        shell.say(f"{count:,} {lack.format(name)} an attribute that all its examples have.")
    if shapes := most_first(counts.unmatched_shapes):
        shell.show("Pages without a wrapper", ("URLs like", "pages"), shapes[:_SHAPES_SHOWN])
        if len(shapes) > _SHAPES_SHOWN:
            shell.say(f"There are {len(shapes) - _SHAPES_SHOWN:,} more kinds of URLs without a wrapper.")
    if counts.pages:
        by_url = counts.total.passed_url / counts.pages
        by_signature = counts.total.passed_signature / counts.pages
        shell.say(
            f"A page passed the URL patterns of {by_url:.2f} wrappers on average, "
            f"and fitted {by_signature:.2f} of them by its signature."
        )


_DEEP = ("attributes", "diff", "annotate")
_COLUMNS = (
    Column("wrapper"),
    Column("version", "integer"),
    Column("version_after", "integer"),
    Column("outcome"),
    Column("state"),
    Column("confidence", "number"),
    Column("reason"),
    *(Column(name) for name in _DEEP),
)
_FILE_COLUMNS = tuple(
    column for column in _COLUMNS if column.name not in ("version", "version_after", "state")
)
_STATE_WORDS = {
    "unchanged": "as it was",
    "rejected": "rejected before",
    "outdated": "has changed meanwhile",
}


def show_repairs(
    shell: Shell,
    output: str | None,
    examples: str | None,
    repairs: Sequence[RepairedWrapper],
    most: int | None = None,
    *,
    is_dry_run: bool = False,
) -> None:
    """Write repairs to `-o` and pages to annotate to `--examples`, and show both with what is left to do.

    Of each repair, at most so many attributes are shown.
    """
    from siteloom.operations.relearn import relearned_row

    rows = []
    for repaired in repairs:
        row = relearned_row(repaired)
        if repaired.version_before is not None:
            row["version_after"] = repaired.version_after
        rows.append(row)
    if output is not None:
        columns = _COLUMNS if any("version" in row for row in rows) else _FILE_COLUMNS
        shell.write(output, columns, (flat_for(output, row, _DEEP) for row in rows))
    annotate = [line for row in rows for line in row["annotate"]]
    if examples is not None:
        write_text(examples, as_lines(annotate))
    if repairs:
        columns_shown = ("wrapper", "outcome", "state", "confidence", "attributes")
        table = (_repair_cells(repaired, is_dry_run=is_dry_run) for repaired in repairs)
        shell.show("Repairs", columns_shown, table)
    for repaired in repairs:
        _show_repair(shell, repaired, most, is_dry_run=is_dry_run)
    if examples not in (None, STANDARD_OUTPUT) and annotate:
        pages = "page to annotate is" if len(annotate) == 1 else "pages to annotate are"
        say_wrapped(shell, f"The {pages} in {examples}, with what is known filled in.", hanging=0)
        shell.say(f"Complete the lines, then: siteloom learn --examples {examples}")


def _repair_cells(repaired: RepairedWrapper, *, is_dry_run: bool) -> tuple[object, ...]:
    states = dict.fromkeys(
        outcome.state for outcome in repaired.attributes.values() if outcome.state != "kept"
    )
    attributes = "; ".join(f"{state}: {named(repaired.attributes_in_state(state))}" for state in states)
    state = _state_words(repaired, is_dry_run=is_dry_run)
    return repaired.wrapper, repaired.outcome, state, percent(repaired.confidence), attributes


def _state_words(repaired: RepairedWrapper, *, is_dry_run: bool) -> str:
    if repaired.state in _STATE_WORDS:
        return _STATE_WORDS[repaired.state]
    if repaired.state == "review":
        return "would wait for review" if is_dry_run else "waits for review"
    in_force = "would be in force" if is_dry_run else f"version {repaired.version_after} in force"
    if repaired.state == "applied":
        return in_force
    if repaired.state is None:
        return ""
    is_partly_in_force = repaired.version_after is not None
    return f"{in_force} in part; needs examples" if is_partly_in_force else "needs examples"


def _show_repair(shell: Shell, repaired: RepairedWrapper, most: int | None, *, is_dry_run: bool) -> None:
    name, difference = repaired.wrapper, repaired.difference
    if difference.rules or difference.values:
        shell.say(f"\n{name}:")
        show_difference(shell, difference, most)
    if repaired.is_waiting and not is_dry_run and repaired.version_before is not None:
        shell.say("")
        least = f"{shell.settings.change.accept} %"
        say_wrapped(shell, f"{name}: the repair waits, for its confidence is below {least}.")
        shell.say(f"  To put it in force: siteloom relearn --accept {name}")
        shell.say(f"  To drop it:         siteloom relearn --reject {name}")
    if repaired.state == "rejected":
        shell.say("")
        say_wrapped(shell, f"{name}: this very repair was rejected before, and is not proposed again.")
    if repaired.state == "outdated":
        shell.say("")
        say_wrapped(
            shell,
            f"{name} got another version meanwhile, so that nothing of this is kept: run siteloom "
            "relearn again if it is still needed.",
        )
    if repaired.outcome == "needs-annotation":
        shell.say("")
        say_wrapped(shell, f"{name} needs examples: {_why_annotation(repaired)}.")
        if repaired.annotate:
            missing = named(repaired.attributes_in_state("unrepaired", "vanished"))
            pages = plural(len(repaired.annotate), "page")
            say_wrapped(
                shell, f"Look for {missing} on {pages}; --examples FILE writes what is known of them:", 2
            )
            for example in repaired.annotate:
                shell.say(f"    {example.page.url}")


def _why_annotation(repaired: RepairedWrapper) -> str:
    """Why a person is needed, each reason once."""
    reasons: dict[str, list[str]] = {}
    for name, outcome in repaired.attributes.items():
        if outcome.reason:
            reasons.setdefault(outcome.reason.rstrip("."), []).append(name)
    sentences = [f"{named(names)}: {reason}" for reason, names in reasons.items()]
    return "; ".join(sentences) or repaired.reason.rstrip(".")
