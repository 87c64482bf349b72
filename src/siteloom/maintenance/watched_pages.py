"""Bellwethers: a few pages of a wrapper, kept as they are, by which changes of the site are noticed."""

from __future__ import annotations

from collections import Counter, defaultdict
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
"""As many as the paper on Vertex watches for a cluster at most (Gulhane et al., ICDE 2011)."""

MOST_CANDIDATES = 300
"""So many pages are looked at to choose some, and to learn what values are like."""

# Of each attribute so many values are watched if there are, for an optional one may be on few pages.
_LEAST_OF_ATTRIBUTE = 5


@dataclass(frozen=True, slots=True)
class Bellwether:
    """A page that is watched: as it was when it was well, what was found on it, and by which rules."""

    page: Page
    signature: str
    records: tuple[Values, ...]
    rules: tuple[Mapping[str, str], ...]


class Past(NamedTuple):
    """What visits without alarm showed of an attribute.

    Of `filled` values so many were `lost`, and of `compared` ones so many were `mistaken` by their look.
    """

    filled: int = 0
    lost: int = 0
    compared: int = 0
    mistaken: int = 0


@dataclass(frozen=True, slots=True)
class Watch:
    """The bellwethers of a wrapper, what its values are like, and what was learned from earlier visits."""

    wrapper: Wrapper
    bellwethers: tuple[Bellwether, ...]
    contracts: Mapping[str, Contract] = field(default_factory=dict)
    past: Mapping[str, Past] = field(default_factory=dict)
    name: str = ""


class WatchChoice(NamedTuple):
    """What is watched; on so many of the pages that were looked at, the wrapper works."""

    watch: Watch
    looked_at: int
    working: int


def watch(wrapper: Wrapper, pages: Iterable[Page], k: int = MOST_BELLWETHERS, *, name: str = "") -> Watch:
    """Choose up to `k` pages on which a wrapper works, as different from each other as there are.

    Of a page that is given in several versions the last one counts; the others tell which values
    change from visit to visit.
    """
    return choose_watched_pages(wrapper, pages, k, name=name).watch


def choose_watched_pages(
    wrapper: Wrapper, pages: Iterable[Page], k: int = MOST_BELLWETHERS, *, name: str = ""
) -> WatchChoice:
    """The same, with how many pages there were to choose from."""
    check_count(k)
    versions: dict[str, list[Page]] = defaultdict(list)
    for page in pages:
        versions[page.url].append(page)
    urls = evenly_spaced(list(versions), MOST_CANDIDATES)
    looked_at: list[_LookedAt] = []
    older: list[Pair] = []
    for url in urls:
        working = [now for page in versions[url] if (now := _searched(wrapper, page)) is not None]
        if working and working[-1].page is versions[url][-1]:
            looked_at.append(_looked_at(working[-1]))
        older += _pairs_of_versions(wrapper, working)
    if not looked_at:
        raise UsageError(
            f"None of the {len(versions):,} pages can be watched: the wrapper finds on none of them all that "
            "its records must have."
        )
    started = Watch(
        wrapper,
        tuple(one.bellwether for one in _chosen(looked_at, list(wrapper.attributes), k)),
        contracts(wrapper, (record.values for one in looked_at for record in one.records)),
        name=name,
    )
    return WatchChoice(replace(started, past=learned_past({}, wrapper, older)), len(urls), len(looked_at))


def refilled(watch_: Watch, gone: Collection[str], pages: Iterable[Page]) -> Watch:
    """A watch in which others of some pages take the place of bellwethers that are gone."""
    known = {one.page.url for one in watch_.bellwethers}
    others = evenly_spaced([page for page in pages if page.url not in known], MOST_CANDIDATES)
    working = (_searched(watch_.wrapper, page) for page in others)
    looked_at = [_looked_at(now) for now in working if now is not None]
    leaving = [one for one in watch_.bellwethers if one.page.url in gone]
    if not looked_at or not leaving:
        return watch_
    new = _chosen(looked_at, list(watch_.wrapper.attributes), len(leaving))
    # Those that no one replaces stay, for a wall may come down again.
    dropped = {one.page.url for one in leaving[: len(new)]}
    left = [one for one in watch_.bellwethers if one.page.url not in dropped]
    return replace(watch_, bellwethers=(*left, *(one.bellwether for one in new)))


def bellwether(page: Page, records: Sequence[Record]) -> Bellwether:
    """A page with what was found on it."""
    found = signature(page.html)
    return Bellwether(
        page,
        found.hex() if found else "",
        tuple({name: tuple(texts) for name, texts in record.values.items()} for record in records),
        tuple({name: one[0].rule for name, one in record.provenance.items()} for record in records),
    )


def constant_attributes(wrapper: Wrapper, past: Mapping[str, Past]) -> list[str]:
    """The attributes whose values stay as they are, as far as is known and as visits have shown."""
    return [
        name
        for name, rules in wrapper.attributes.items()
        if rules.attribute.constant is not False and not _does_change(past.get(name, Past()))
    ]


def learned_past(past: Mapping[str, Past], wrapper: Wrapper, seen: Sequence[Pair]) -> dict[str, Past]:
    """What is known of earlier visits, and what another one that was well has shown."""
    learned = dict(past)
    for name in wrapper.attributes:
        filled = [pair for pair in seen if pair.before.get(name)]
        compared = [pair for pair in filled if not pair.is_lost(name)]
        before = past.get(name, Past())
        learned[name] = Past(
            before.filled + len(filled),
            before.lost + len(filled) - len(compared),
            before.compared + len(compared),
            before.mistaken + sum(pair.is_mistaken(name) for pair in compared),
        )
    return learned


# Two visits of a cluster's bellwethers at the least.
_LEAST_COMPARED = 20
_CHANGING_SHARE = 0.2


def _does_change(past: Past) -> bool:
    return past.compared >= _LEAST_COMPARED and past.mistaken > _CHANGING_SHARE * past.compared


class _LookedAt(NamedTuple):
    bellwether: Bellwether
    records: tuple[Record, ...]
    paths: PathSet


def _searched(wrapper: Wrapper, page: Page) -> FreshPage | None:
    """A page with what the wrapper finds on it, if it works there."""
    found = wrapper.read(page, limits=LIMITS)
    if isinstance(found, Failure) or not is_complete(wrapper, found.records):
        return None
    return FreshPage(page, *found)


def _looked_at(now: FreshPage) -> _LookedAt:
    return _LookedAt(bellwether(now.page, now.records), now.records, page_paths(now.root))


def is_complete(wrapper: Wrapper, records: Sequence[Record]) -> bool:
    """Whether all mandatory attributes were found on a page; if there are none, whether any was."""
    mandatory = {name for name, rules in wrapper.attributes.items() if rules.attribute.mandatory}
    if wrapper.record_rule is not None:
        return bool(records)
    return any(record.values and mandatory <= record.values.keys() for record in records)


def _chosen(looked_at: Sequence[_LookedAt], attributes: Sequence[str], k: int) -> list[_LookedAt]:
    """Half of them show most of what differs, some have values of rare attributes, the rest is as pages are.

    Were all as different as can be, a template that most pages have would be seen on few of them.
    """
    order = [looked_at[pick.page] for pick in sample_order([one.paths for one in looked_at], len(looked_at))]
    chosen = order[: (k + 1) // 2]
    for name in attributes:
        having = Counter(_has(one, name) for one in chosen)[True]
        for one in order:
            if len(chosen) >= k or having >= _LEAST_OF_ATTRIBUTE:
                break
            if one not in chosen and _has(one, name):
                chosen.append(one)
                having += 1
    return chosen + evenly_spaced([one for one in looked_at if one not in chosen], k - len(chosen))


def _has(one: _LookedAt, attribute: str) -> bool:
    return any(attribute in record.values for record in one.records)


def contracts(wrapper: Wrapper, records: Iterable[Values]) -> dict[str, Contract]:
    """What values are like: as was learned with the wrapper, or from these records if they are more."""
    found: dict[str, Contract] = {}
    values_of = list(records)
    for name, rules in wrapper.attributes.items():
        texts = [text for values in values_of for text in values.get(name, ())]
        seen = learned_contract(texts, rules.attribute.type)
        known = rules.contract
        better = seen if known is None or (seen is not None and seen.values > known.values) else known
        if better is not None:
            found[name] = better
    return found


def _pairs_of_versions(wrapper: Wrapper, versions: Iterable[FreshPage]) -> Iterator[Pair]:
    """What was found on each version of a page, with what was found on the next."""
    for before, now in pairwise(versions):
        values = [record.values for record in before.records]
        yield from pairs(values, now, list(wrapper.attributes), is_list=wrapper.record_rule is not None)
