"""From one page to its records or a failure: match, parse once, apply the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import TooMuchFound
from siteloom.core.model import Failure
from siteloom.core.settings import ParseSettings
from siteloom.html.parser import parse
from siteloom.html.time_limit import within
from siteloom.wrappers.matching import Matcher, NamedWrapper

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.core.model import Page, Record
    from siteloom.wrappers.matching import Match
    from siteloom.wrappers.wrapper import Wrapper

NO_VALUES = "no values"
LACKING = "most mandatory attributes missing"
BROKEN = "extraction failed"


class Extracted(NamedTuple):
    """The result of a page: records of one wrapper, or a failure."""

    match: Match
    wrapper: NamedWrapper | None
    records: tuple[Record, ...]
    failure: Failure | None


class Extractor:
    """Wrappers made ready for many pages."""

    def __init__(self, wrappers: Iterable[NamedWrapper], limits: ParseSettings = ParseSettings()) -> None:
        self._matcher = Matcher(wrappers)
        self._limits = limits

    def extract(self, page: Page) -> Extracted:
        """The records of a page by the wrapper that it is for, if it gives no more than it may, and in time.

        If several wrappers are equally good, the one that finds most mandatory attributes is taken.
        """
        match = self._matcher.match(page)
        if match.failure is not None:
            return Extracted(match, None, (), match.failure)
        found = within(self._limits.max_seconds, page.url, lambda: self._extracted(page, match))
        return Extracted(match, None, (), found) if isinstance(found, Failure) else found

    def _extracted(self, page: Page, match: Match) -> Extracted | Failure:
        root = parse(
            page,
            self._limits,
            scan=match.scan,
            collect_ids=any(named.wrapper.looks_for_ids for named in match.chosen),
        )
        if isinstance(root, Failure):
            return root
        tried = []
        for named in match.chosen:
            found = named.wrapper.records(root, page.url, match.signature, self._limits)
            try:
                tried.append((named, tuple(found)))
            except TooMuchFound as error:
                return Failure(page.url, error.reason, error.detail)
        named, records = max(tried, key=lambda one: _mandatory_found(*one)) if len(tried) > 1 else tried[0]
        is_nearest = match.passed_signature == 0
        return Extracted(match, named, records, _fault(page.url, named, records, is_nearest=is_nearest))


def _fault(url: str, named: NamedWrapper, records: Sequence[Record], *, is_nearest: bool) -> Failure | None:
    """Why the records of a page are none.

    Values that stand alone where others always stand with them are more likely those of something else: half
    of the mandatory attributes must be there, and more on a page that is merely the nearest to those known.
    """
    if not any(record.values for record in records):
        return Failure(url, NO_VALUES, f"found by {named}")
    mandatory = len(mandatory_attributes(named.wrapper))
    found = _mandatory_found(named, records)
    if mandatory and 2 * found < mandatory + is_nearest:
        return Failure(url, LACKING, f"{found} of {mandatory} found by {named}")
    return None


def _mandatory_found(named: NamedWrapper, records: Sequence[Record]) -> int:
    return max(
        (len(record.values.keys() & mandatory_attributes(named.wrapper)) for record in records), default=0
    )


def mandatory_attributes(wrapper: Wrapper) -> set[str]:
    """The attributes that all examples of a wrapper have."""
    return {name for name, rules in wrapper.attributes.items() if rules.attribute.mandatory}
