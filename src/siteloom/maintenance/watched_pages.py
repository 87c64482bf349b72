"""Choose the pages to watch: a few pages of a wrapper, stored as they are, that show changes of the site."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import UsageError
from siteloom.core.model import Failure, Page, Record
from siteloom.core.sequences import evenly_spaced
from siteloom.maintenance.page_comparison import LIMITS, FreshPage, pairs
from siteloom.templates.essential_paths import page_paths
from siteloom.templates.sampling import check_count, sample_order
from siteloom.templates.signature import signature
from siteloom.wrappers.value_contract import Contract, learned_contract
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from siteloom.maintenance.page_comparison import Pair, Values
    from siteloom.templates.essential_paths import PathSet

MOST_BELLWETHERS = 20
"""The paper on Vertex watches at most this many for a cluster (Gulhane et al., ICDE 2011)."""

MOST_CANDIDATES = 300
"""At most this many pages are candidates, and show what values are like."""

# Of each attribute so many values are watched if there are, because an optional one may be on few pages.
_LEAST_OF_ATTRIBUTE = 5


@dataclass(frozen=True, slots=True)
class Bellwether:
    """A watched page: as it was when all was well, the values found on it, and the rules that found them."""

    page: Page
    signature: str
    records: tuple[Values, ...]
    rules: tuple[Mapping[str, str], ...]


class Past(NamedTuple):
    """What visits without a change showed of an attribute.

    Of `filled` values, `lost` were not found again; of `compared` ones, `mistaken` had become other values.
    """

    filled: int = 0
    lost: int = 0
    compared: int = 0
    mistaken: int = 0


@dataclass(frozen=True, slots=True)
class Watch:
    """The watched pages of a wrapper, what its values are like, and what was learned from earlier visits."""

    wrapper: Wrapper
    bellwethers: tuple[Bellwether, ...]
    contracts: Mapping[str, Contract] = field(default_factory=dict)
    past: Mapping[str, Past] = field(default_factory=dict)
    name: str = ""


class WatchChoice(NamedTuple):
    """A watch, the number of candidate pages, and on how many of these the wrapper works."""

    watch: Watch
    candidates: int
    working: int


def watch(wrapper: Wrapper, pages: Iterable[Page], k: int = MOST_BELLWETHERS, *, name: str = "") -> Watch:
    """Choose up to `k` pages on which a wrapper works, as different from each other as there are.

    Of a page with several versions the last one counts; the others show which values change from visit to
    visit.
    """
    return choose_watched_pages(wrapper, pages, k, name=name).watch


def choose_watched_pages(
    wrapper: Wrapper, pages: Iterable[Page], k: int = MOST_BELLWETHERS, *, name: str = ""
) -> WatchChoice:
    """Choose up to `k` pages on which a wrapper works, and count the pages there were to choose from.

    Of a page with several versions the last one counts; the others show which values change from visit to
    visit. Raises UsageError if the wrapper works on no page.
    """
    check_count(k)
    versions: dict[str, list[Page]] = defaultdict(list)
    for page in pages:
        versions[page.url].append(page)
    urls = evenly_spaced(list(versions), MOST_CANDIDATES)
    candidates: list[_Candidate] = []
    older: list[Pair] = []
    for url in urls:
        working = [now for page in versions[url] if (now := _searched(wrapper, page)) is not None]
        if working and working[-1].page is versions[url][-1]:
            candidates.append(_candidate(working[-1]))
        older += _pairs_of_versions(wrapper, working)
    if not candidates:
        raise UsageError(
            f"None of the {len(versions):,} pages can be watched: the wrapper finds on none of them all that "
            "its records must have."
        )
    started = Watch(
        wrapper,
        tuple(chosen.bellwether for chosen in _chosen(candidates, list(wrapper.attributes), k)),
        contracts(wrapper, (record.values for candidate in candidates for record in candidate.records)),
        name=name,
    )
    return WatchChoice(replace(started, past=learned_past({}, wrapper, older)), len(urls), len(candidates))


def refilled(watch_: Watch, gone: Collection[str], pages: Iterable[Page]) -> Watch:
    """A watch in which some of the pages take the place of watched pages that were removed."""
    urls = {bellwether.page.url for bellwether in watch_.bellwethers}
    unwatched = evenly_spaced([page for page in pages if page.url not in urls], MOST_CANDIDATES)
    working = (_searched(watch_.wrapper, page) for page in unwatched)
    candidates = [_candidate(now) for now in working if now is not None]
    leaving = [bellwether for bellwether in watch_.bellwethers if bellwether.page.url in gone]
    if not candidates or not leaving:
        return watch_
    replacements = _chosen(candidates, list(watch_.wrapper.attributes), len(leaving))
    # Those without a replacement stay, because a log-in wall may come down again.
    dropped = {bellwether.page.url for bellwether in leaving[: len(replacements)]}
    staying = [bellwether for bellwether in watch_.bellwethers if bellwether.page.url not in dropped]
    return replace(watch_, bellwethers=(*staying, *(replacement.bellwether for replacement in replacements)))


def make_bellwether(page: Page, records: Sequence[Record]) -> Bellwether:
    """A page to watch, with the records found on it."""
    page_signature = signature(page.html)
    return Bellwether(
        page,
        page_signature.hex() if page_signature else "",
        tuple({name: tuple(texts) for name, texts in record.values.items()} for record in records),
        tuple(
            {name: provenance[0].rule for name, provenance in record.provenance.items()} for record in records
        ),
    )


def constant_attributes(wrapper: Wrapper, past: Mapping[str, Past]) -> list[str]:
    """The attributes whose values do not change, as far as the wrapper and earlier visits show."""
    return [
        name
        for name, rules in wrapper.attributes.items()
        if rules.attribute.constant is not False and not _does_change(past.get(name, Past()))
    ]


def learned_past(
    past: Mapping[str, Past], wrapper: Wrapper, healthy_pairs: Sequence[Pair]
) -> dict[str, Past]:
    """What earlier visits have shown, and another visit on which all was well."""
    learned = dict(past)
    for name in wrapper.attributes:
        filled = [pair for pair in healthy_pairs if pair.before.get(name)]
        compared = [pair for pair in filled if not pair.is_lost(name)]
        earlier = past.get(name, Past())
        learned[name] = Past(
            earlier.filled + len(filled),
            earlier.lost + len(filled) - len(compared),
            earlier.compared + len(compared),
            earlier.mistaken + sum(pair.is_mistaken(name) for pair in compared),
        )
    return learned


# Two visits of a cluster's bellwethers at the least.
_LEAST_COMPARED = 20
_CHANGING_SHARE = 0.2


def _does_change(past: Past) -> bool:
    return past.compared >= _LEAST_COMPARED and past.mistaken > _CHANGING_SHARE * past.compared


class _Candidate(NamedTuple):
    bellwether: Bellwether
    records: tuple[Record, ...]
    paths: PathSet


def _searched(wrapper: Wrapper, page: Page) -> FreshPage | None:
    """A page with what the wrapper finds on it, if it works there."""
    reading = wrapper.read(page, limits=LIMITS)
    if isinstance(reading, Failure) or not is_complete(wrapper, reading.records):
        return None
    return FreshPage(page, *reading)


def _candidate(now: FreshPage) -> _Candidate:
    return _Candidate(make_bellwether(now.page, now.records), now.records, page_paths(now.root))


def is_complete(wrapper: Wrapper, records: Sequence[Record]) -> bool:
    """Whether all mandatory attributes were found on a page; if there are none, whether any was."""
    mandatory = {name for name, rules in wrapper.attributes.items() if rules.attribute.mandatory}
    if wrapper.record_rule is not None:
        return bool(records)
    return any(record.values and mandatory <= record.values.keys() for record in records)


def _chosen(candidates: Sequence[_Candidate], attributes: Sequence[str], k: int) -> list[_Candidate]:
    """Half of the pages cover most differences, some have values of rare attributes, others are typical.

    If all were as different as possible, a template that most pages have would be seen on few of them.
    """
    picks = sample_order([candidate.paths for candidate in candidates], len(candidates))
    order = [candidates[pick.page] for pick in picks]
    chosen = order[: (k + 1) // 2]
    for name in attributes:
        count = sum(_has(candidate, name) for candidate in chosen)
        for candidate in order:
            if len(chosen) >= k or count >= _LEAST_OF_ATTRIBUTE:
                break
            if candidate not in chosen and _has(candidate, name):
                chosen.append(candidate)
                count += 1
    typical = [candidate for candidate in candidates if candidate not in chosen]
    return chosen + evenly_spaced(typical, k - len(chosen))


def _has(candidate: _Candidate, attribute: str) -> bool:
    return any(attribute in record.values for record in candidate.records)


def contracts(wrapper: Wrapper, records: Iterable[Values]) -> dict[str, Contract]:
    """What values are like: as learned with the wrapper, or from these records if they have more values."""
    chosen: dict[str, Contract] = {}
    values_of = list(records)
    for name, rules in wrapper.attributes.items():
        texts = [text for values in values_of for text in values.get(name, ())]
        from_records, contract = learned_contract(texts, rules.attribute.type), rules.contract
        if contract is None or (from_records is not None and from_records.values > contract.values):
            contract = from_records
        if contract is not None:
            chosen[name] = contract
    return chosen


def _pairs_of_versions(wrapper: Wrapper, versions: Iterable[FreshPage]) -> Iterator[Pair]:
    """What was found on each version of a page, with what was found on the next."""
    for before, now in pairwise(versions):
        values = [record.values for record in before.records]
        yield from pairs(values, now, list(wrapper.attributes), is_list=wrapper.record_rule is not None)
