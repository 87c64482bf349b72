"""The health of what is extracted day by day: breaks show there, too, without a page being watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.core.model import Change, Evidence
from siteloom.core.settings import CHANGE_THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from siteloom.extraction.extractor import Tally
    from siteloom.wrappers.wrapper import Wrapper

# Fewer records or pages than these say nothing of shares.
_LEAST = 20
# A crawl may bring fewer pages of a kind than the one before, but hardly a tenth.
_NEXT_TO_NOTHING = 0.1


def output_changes(
    tally: Tally,
    wrappers: Mapping[str, Wrapper],
    before: Tally | None = None,
    threshold: float = CHANGE_THRESHOLD,
) -> list[Change]:
    """What is wrong with the output of a run, by what was counted.

    Shares of records with a value are held against those of the run before, or of the pages that a wrapper
    was learned from; values against their contracts. If there was a run before, so are the share of a site's
    pages that give no record although their URL is one of a wrapper's, and the number of records.
    """
    changes: list[Change] = []
    for name, wrapper in wrappers.items():
        if tally["records of", name] >= _LEAST:
            changes += _null_changes(name, wrapper, tally, before, threshold)
            changes += _value_changes(name, wrapper, tally, threshold)
        if before is not None:
            changes += _silent_changes(name, tally, before)
    if before is not None:
        changes += _unmatched_changes(tally, before, threshold)
    return changes


def _silent_changes(name: str, tally: Tally, before: Tally) -> Iterator[Change]:
    """A wrapper that gives next to nothing any more, though enough pages were read."""
    usual, now = before["records of", name], tally["records of", name]
    if usual >= _LEAST and now < _NEXT_TO_NOTHING * usual and tally["pages",] >= usual:
        evidence = (Evidence("", "", (str(usual),), (str(now),), "records of the wrapper"),)
        yield Change(name, "shingle", (), round(1 - now / usual, 4), evidence)


def _null_changes(
    name: str,
    wrapper: Wrapper,
    tally: Tally,
    before: Tally | None = None,
    threshold: float = CHANGE_THRESHOLD,
) -> Iterator[Change]:
    records = tally["records of", name]
    known = before["records of", name] if before is not None else 0
    drops: dict[str, tuple[float, float]] = {}
    for attribute, rules in wrapper.attributes.items():
        usual = rules.filled
        if before is not None and known >= _LEAST:
            usual = before["filled", name, attribute] / known
        now = tally["filled", name, attribute] / records
        if usual - now > threshold:
            drops[attribute] = (usual, now)
    if drops:
        evidence = tuple(
            Evidence("", attribute, (_percent(usual),), (_percent(now),), "share of records with a value")
            for attribute, (usual, now) in drops.items()
        )
        share = max(usual - now for usual, now in drops.values())
        yield Change(name, "null", tuple(drops), round(share, 4), evidence)


def _value_changes(name: str, wrapper: Wrapper, tally: Tally, threshold: float) -> Iterator[Change]:
    shares = {
        attribute: tally["breaching", name, attribute] / filled
        for attribute in wrapper.attributes
        if (filled := tally["filled", name, attribute]) >= _LEAST
    }
    odd = {attribute: share for attribute, share in shares.items() if share > threshold}
    if odd:
        evidence = tuple(
            Evidence("", attribute, (), (_percent(share),), "share of values unlike those learned from")
            for attribute, share in odd.items()
        )
        yield Change(name, "value", tuple(odd), round(max(odd.values()), 4), evidence)


def _unmatched_changes(tally: Tally, before: Tally, threshold: float) -> Iterator[Change]:
    """Sites of which far more pages than before have the URL of a wrapper, but give it nothing."""
    for key, pages in tally.items():
        if key[0] != "pages of" or pages < _LEAST or before["pages of", key[1]] < _LEAST:
            continue
        site = key[1]
        usual = before["fruitless", site] / before["pages of", site]
        now = tally["fruitless", site] / pages
        if now - usual > threshold:
            finding = f"share of pages of {site} that give no record"
            evidence = (Evidence("", "", (_percent(usual),), (_percent(now),), finding),)
            yield Change(site, "shingle", (), round(now - usual, 4), evidence)


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")
