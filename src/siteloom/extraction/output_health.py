"""The health of what is extracted day by day: breaks show there, too, without a page being watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.core.model import Change, Evidence
from siteloom.core.settings import CHANGE_THRESHOLD
from siteloom.extraction.extraction_counts import WrapperCounts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from siteloom.extraction.extraction_counts import ExtractionCounts
    from siteloom.wrappers.wrapper import Wrapper

# Fewer records or pages than these say nothing of shares.
_LEAST = 20
# A crawl may bring fewer pages of a kind than the one before, but hardly a tenth.
_NEXT_TO_NOTHING = 0.1


def output_changes(
    counts: ExtractionCounts,
    wrappers: Mapping[str, Wrapper],
    before: ExtractionCounts | None = None,
    threshold: float = CHANGE_THRESHOLD,
) -> list[Change]:
    """What is wrong with the output of a run, by what was counted.

    Shares of records with a value are held against those of the run before, or of the pages that a wrapper
    was learned from; values against their contracts. If there was a run before, so are the share of a site's
    pages that give no record although their URL is one of a wrapper's, and the number of records.
    """
    changes: list[Change] = []
    for name, wrapper in wrappers.items():
        if counts.of_wrapper(name).records >= _LEAST:
            changes += _null_changes(name, wrapper, counts, before, threshold)
            changes += _value_changes(name, wrapper, counts, threshold)
        if before is not None:
            changes += _silent_changes(name, counts, before)
    if before is not None:
        changes += _unmatched_changes(counts, before, threshold)
    return changes


def _silent_changes(name: str, counts: ExtractionCounts, before: ExtractionCounts) -> Iterator[Change]:
    """A wrapper that gives next to nothing any more, though enough pages were read."""
    usual, now = before.of_wrapper(name).records, counts.of_wrapper(name).records
    if usual >= _LEAST and now < _NEXT_TO_NOTHING * usual and counts.pages >= usual:
        evidence = (Evidence("", "", (str(usual),), (str(now),), "records of the wrapper"),)
        yield Change(name, "shingle", (), round(1 - now / usual, 4), evidence)


def _null_changes(
    name: str,
    wrapper: Wrapper,
    counts: ExtractionCounts,
    before: ExtractionCounts | None = None,
    threshold: float = CHANGE_THRESHOLD,
) -> Iterator[Change]:
    now_given = counts.of_wrapper(name)
    given_before = before.of_wrapper(name) if before is not None else WrapperCounts()
    drops: dict[str, tuple[float, float]] = {}
    for attribute, rules in wrapper.attributes.items():
        usual = rules.filled
        if given_before.records >= _LEAST:
            usual = given_before.filled[attribute] / given_before.records
        now = now_given.filled[attribute] / now_given.records
        if usual - now > threshold:
            drops[attribute] = (usual, now)
    if drops:
        evidence = tuple(
            Evidence("", attribute, (_percent(usual),), (_percent(now),), "share of records with a value")
            for attribute, (usual, now) in drops.items()
        )
        share = max(usual - now for usual, now in drops.values())
        yield Change(name, "null", tuple(drops), round(share, 4), evidence)


def _value_changes(
    name: str, wrapper: Wrapper, counts: ExtractionCounts, threshold: float
) -> Iterator[Change]:
    given = counts.of_wrapper(name)
    shares = {
        attribute: given.breaching[attribute] / filled
        for attribute in wrapper.attributes
        if (filled := given.filled[attribute]) >= _LEAST
    }
    odd = {attribute: share for attribute, share in shares.items() if share > threshold}
    if odd:
        evidence = tuple(
            Evidence("", attribute, (), (_percent(share),), "share of values unlike those learned from")
            for attribute, share in odd.items()
        )
        yield Change(name, "value", tuple(odd), round(max(odd.values()), 4), evidence)


def _unmatched_changes(
    counts: ExtractionCounts, before: ExtractionCounts, threshold: float
) -> Iterator[Change]:
    """Sites of which far more pages than before have the URL of a wrapper, but give it nothing."""
    for site, pages in counts.site_pages.items():
        if pages < _LEAST or before.site_pages[site] < _LEAST:
            continue
        usual = before.fruitless[site] / before.site_pages[site]
        now = counts.fruitless[site] / pages
        if now - usual > threshold:
            finding = f"share of pages of {site} that give no record"
            evidence = (Evidence("", "", (_percent(usual),), (_percent(now),), finding),)
            yield Change(site, "shingle", (), round(now - usual, 4), evidence)


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")
