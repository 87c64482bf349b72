"""What is told of wrappers before an extraction, and what came of it, as tables."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from siteloom.cli.ingested import show_first

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.cli.shell import Shell
    from siteloom.extraction import Tally, WrapperText
    from siteloom.matching import NamedWrapper
    from siteloom.model import Failure

_SHAPES_SHOWN = 10
_WRAPPERS_SHOWN = 20


def load_wrappers(shell: Shell, texts: Iterable[WrapperText]) -> list[NamedWrapper]:
    """Wrappers ready for use; what there is to beware of is said once."""
    from siteloom.typed import lacks_extra

    wrappers = []
    for text in texts:
        with warnings.catch_warnings(record=True, action="always") as caught:
            named = text.loaded()
        for warning in caught:
            shell.say(f"{named}: {warning.message}")
        wrappers.append(named)
    types = {rules.attribute.type for named in wrappers for rules in named.wrapper.attributes.values()}
    if untyped := sorted(kind for kind in types if kind is not None and lacks_extra(kind)):
        shell.say(
            f"Values of type {' and '.join(untyped)} are given as texts alone: to have them typed, "
            "install the extra with pip install 'siteloom[values]'."
        )
    return wrappers


def is_unread(reason: str) -> bool:
    """Whether a page failed for another reason than that it is for no wrapper, or that one found nothing."""
    from siteloom.extraction import LACKING, NO_VALUES
    from siteloom.matching import NO_TAGS, NO_WRAPPER_FOR_SITE, NO_WRAPPER_FOR_URL, UNLIKE

    return reason not in (NO_WRAPPER_FOR_SITE, NO_WRAPPER_FOR_URL, NO_TAGS, UNLIKE, NO_VALUES, LACKING)


def show_extracted(
    shell: Shell, tally: Tally, failures: Iterable[Failure], *, duplicates: int, joined: int | None = None
) -> None:
    """Show pages, records and failures, how many records have each attribute, and what had no wrapper.

    Of the failures, the first pages that could not be read are shown.
    """
    from siteloom.extraction import counted_by_name, filled_attributes

    pages = tally["pages",]
    failed = counted_by_name(tally, "failed")
    shell.show(
        "Extracted",
        ("", "count"),
        [
            ("pages", pages),
            ("records", tally["records",]),
            *([] if joined is None else [("records after joining", joined)]),
            ("duplicates of other records", duplicates),
            *((f"failed: {reason}", count) for reason, count in failed),
            *((f"skipped: {reason}", count) for reason, count in counted_by_name(tally, "skipped")),
        ],
    )
    if any(is_unread(reason) for reason, _ in failed):
        show_first(shell, (one for one in failures if is_unread(one.reason)))
    if records := dict(counted_by_name(tally, "records of")[:_WRAPPERS_SHOWN]):
        shell.show(
            "Values",
            ("wrapper", "records", "attribute", "filled", "withheld"),
            [
                (wrapper, records[wrapper], attribute, f"{filled / records[wrapper]:.1%}", withheld)
                for wrapper, attribute, filled, withheld in filled_attributes(tally)
                if wrapper in records
            ],
        )
        if others := len(counted_by_name(tally, "records of")) - len(records):
            shell.say(f"These are the wrappers with most records; there are {others:,} others.")
    for wrapper, count in counted_by_name(tally, "incomplete"):
        lack = "record of {} lacks" if count == 1 else "records of {} lack"
        shell.say(f"{count:,} {lack.format(wrapper)} an attribute that all its examples have.")
    if shapes := counted_by_name(tally, "unmatched"):
        shell.show("Pages without a wrapper", ("URLs like", "pages"), shapes[:_SHAPES_SHOWN])
        if len(shapes) > _SHAPES_SHOWN:
            shell.say(f"There are {len(shapes) - _SHAPES_SHOWN:,} more kinds of URLs without a wrapper.")
    if pages:
        shell.say(
            f"A page passed the URL patterns of {tally['passed url',] / pages:.2f} wrappers on average, "
            f"and fitted {tally['passed signature',] / pages:.2f} of them by its signature."
        )
