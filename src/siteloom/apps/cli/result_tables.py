"""Results of operations as terminal tables: import, extraction, changes, repairs, evidence, differences."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

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
    from siteloom.operations.forget import ForgetPreview, ForgetResult
    from siteloom.operations.ingest import IngestResult
    from siteloom.wrappers.matching import NamedWrapper
    from siteloom.wrappers.wrapper import Wrapper


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
    from siteloom.operations.watch import change_row

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


def by_state(attributes: Mapping[str, Mapping[str, object]], *states: str) -> list[str]:
    """The attributes of which relearning says one of these."""
    return [name for name, one in attributes.items() if one["state"] in states]


# Of many attributes one page each is enough to read.
_DIFFERING_PAGES_SHOWN, _FEW_ATTRIBUTES = 3, 3


def show_difference(
    shell: Shell,
    rules: Sequence[Mapping[str, Any]],
    values: Sequence[Mapping[str, Any]],
    most: int | None = None,
) -> None:
    """Say for each attribute how it was found before and is now, and with which values on a few pages.

    If there may be so many attributes at most, of the others only the number is told.
    """
    changed = {one["attribute"]: one for one in rules}
    names = list(dict.fromkeys((*changed, *(one["attribute"] for one in values))))
    pages = _DIFFERING_PAGES_SHOWN if len(names) <= _FEW_ATTRIBUTES else 1
    for name in names[:most]:
        shell.say(f"  {readable(name)}")
        if name in changed:
            _show_rules(shell, "before: ", changed[name]["before"])
            _show_rules(shell, "now:    ", changed[name]["after"])
        for one in [one for one in values if one["attribute"] == name][:pages]:
            _show_value(shell, one)
    if most is not None and len(names) > most:
        shell.say(f"  {plural(len(names) - most, 'more attribute')}")


def _show_rules(shell: Shell, when: str, rules: Sequence[str]) -> None:
    for number, words in enumerate(rules or ["no rule"]):
        lead = when if number == 0 else "or:     "
        say_wrapped(shell, lead + readable(words), 4, hanging=len(lead))


def _show_value(shell: Shell, one: Mapping[str, Any]) -> None:
    """The value on a page: as it was known, as the old rules find it now, as the new ones do."""
    shell.say(f"    {readable(one['url'])}")
    room = WIDTH - len("      found by new rules: ")
    shell.say(f"      known:              {values_words(one['known'], room)}")
    shell.say(f"      found by old rules: {values_words(one['before'], room)}")
    shell.say(f"      found by new rules: {values_words(one['after'], room)}")


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
_FILE_COLUMNS = tuple(one for one in _COLUMNS if one.name not in ("version", "version_after", "state"))


class Found(NamedTuple):
    """What came of a wrapper; `state` is in words."""

    name: str
    state: str
    row: Mapping[str, Any]
    wrapper: Wrapper
    is_waiting: bool = False


def report(
    shell: Shell,
    output: str | None,
    examples: str | None,
    found: Sequence[Found],
    most: int | None = None,
) -> None:
    """Write and show what came of it, and say what is left to do."""
    if output is not None:
        columns = _COLUMNS if any("version" in one.row for one in found) else _FILE_COLUMNS
        shell.write(output, columns, (flat_for(output, one.row, _DEEP) for one in found))
    annotate = [line for one in found for line in one.row["annotate"]]
    if examples is not None:
        write_text(examples, as_lines(annotate))
    if found:
        shell.show(
            "Relearned", ("wrapper", "outcome", "state", "confidence", "attributes"), map(_table_row, found)
        )
    for one in found:
        _show(shell, one, most)
    if examples not in (None, STANDARD_OUTPUT) and annotate:
        pages = "page to annotate is" if len(annotate) == 1 else "pages to annotate are"
        say_wrapped(shell, f"The {pages} in {examples}, with what is known filled in.", hanging=0)
        shell.say(f"Complete the lines, then: siteloom learn --examples {examples}")


def _table_row(one: Found) -> tuple[object, ...]:
    attributes = one.row["attributes"]
    states = dict.fromkeys(known["state"] for known in attributes.values() if known["state"] != "kept")
    told = [f"{state}: {named(by_state(attributes, state))}" for state in states]
    return one.name, one.row["outcome"], one.state, percent(one.row["confidence"]), "; ".join(told)


def _show(shell: Shell, one: Found, most: int | None) -> None:
    diff, annotate = one.row["diff"], one.row["annotate"]
    if diff["rules"] or diff["values"]:
        shell.say(f"\n{one.name}:")
        show_difference(shell, diff["rules"], diff["values"], most)
    if one.is_waiting:
        shell.say("")
        least = f"{shell.settings.change.accept} %"
        say_wrapped(shell, f"{one.name}: the repair waits, for its confidence is below {least}.")
        shell.say(f"  To put it in force: siteloom relearn --accept {one.name}")
        shell.say(f"  To drop it:         siteloom relearn --reject {one.name}")
    if one.row.get("state") == "rejected":
        shell.say("")
        say_wrapped(shell, f"{one.name}: this very repair was rejected before, and is not proposed again.")
    if one.row.get("state") == "outdated":
        shell.say("")
        say_wrapped(
            shell,
            f"{one.name} got another version meanwhile, so that nothing of this is kept: run siteloom "
            "relearn again if it is still needed.",
        )
    if one.row["outcome"] == "needs-annotation":
        shell.say("")
        say_wrapped(shell, f"{one.name} needs examples: {_why(one)}.")
        if annotate:
            missing = named(by_state(one.row["attributes"], "unrepaired", "vanished"))
            pages = plural(len(annotate), "page")
            say_wrapped(
                shell, f"Look for {missing} on {pages}; --examples FILE writes what is known of them:", 2
            )
            for line in annotate:
                shell.say(f"    {line['url']}")


def _why(one: Found) -> str:
    """Why a person is needed, each reason once."""
    reasons: dict[str, list[str]] = {}
    for name, known in one.row["attributes"].items():
        if known["reason"]:
            reasons.setdefault(known["reason"].rstrip("."), []).append(name)
    told = [f"{named(names)}: {reason}" for reason, names in reasons.items()]
    return "; ".join(told) or one.row["reason"].rstrip(".")
