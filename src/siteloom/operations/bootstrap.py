"""Growth: sites of a workspace are wrapped from known records, and what they tell is known from then on.

It goes in rounds. In each, every site that is not wrapped yet is tried with the records known when the round
began; those it gives join them, under the name of the site. A site whose evidence was poor is tried again
once something else is known. A wrong site can be withdrawn with all that came of it.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.core.errors import SiteloomError, StoreError, UsageError
from siteloom.core.model import Seed
from siteloom.core.sequences import evenly_spaced
from siteloom.core.settings import ParseSettings
from siteloom.learning.known_records.entity_linking import link
from siteloom.learning.known_records.site_bootstrap import bootstrap
from siteloom.learning.known_records.text_normalisation import folded, telling_key
from siteloom.operations.extraction_shards import Plan
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.queries.wrappers import WITHDRAWN
from siteloom.wrappers.matching import NamedWrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from siteloom.core.model import Page
    from siteloom.learning.induction.learning_session import Schema
    from siteloom.learning.known_records.bootstrap_result import Bootstrapped, SeedMatch
    from siteloom.learning.known_records.entity_linking import Entity
    from siteloom.learning.known_records.site_bootstrap import Method
    from siteloom.store.queries.seeds import GrownSite, GrownState
    from siteloom.store.queries.sites import Site
    from siteloom.store.store import Store

_log = logging.getLogger(__name__)

DEFAULT_ROUNDS = 3
ORIGIN = "bootstrap"

_FINGERPRINT = "fingerprint"  # its key in what is kept of a site

# So many known values of an attribute, and where they stand on the site, are kept for people to look at.
_EXAMPLES_KEPT = 4
# Values that are longer are cut in what is kept.
_LONGEST_KEPT = 200

# Of a large site so many shards of some hundred pages are looked at; all are extracted.
_MOST_SHARDS = 10


class Attempt(NamedTuple):
    """A site that is tried now: in which round, and which of how many it is."""

    round: int
    site: str
    number: int
    of: int


class Grown(NamedTuple):
    """What came of a site: `wrapped` with the records it gave, `poor` in evidence, or `failed`.

    Of the pages that were looked at, `unread` counts those that could not be parsed, by reason.
    """

    site: str
    round: int
    state: GrownState
    wrapper: str | None
    records: int
    attributes: tuple[str, ...]
    reason: str
    unread: Mapping[str, int] = MappingProxyType({})


class _Known(NamedTuple):
    """What a round begins with: how many records there are, and the seeds that are made of them.

    Beside each seed stand the sources that its values are from. `given` are the sources of records that were
    not found by growing. The digest differs if anything else is known.
    """

    records: int
    digest: str
    given: frozenset[str]
    seeds: list[Seed]
    sources: list[tuple[str, ...]]

    def add(self, seed: Seed, sources: Iterable[str]) -> None:
        self.seeds.append(seed)
        self.sources.append(tuple(dict.fromkeys(sources)))


def grow(
    store: Store,
    core: Sequence[str],
    schema: Schema = None,
    *,
    rounds: int = DEFAULT_ROUNDS,
    sites: Collection[str] = (),
    method: Method = "bits",
    limits: ParseSettings = ParseSettings(),
    jobs: int = 1,
    on_attempt: Callable[[Attempt], object] = lambda _: None,
    on_grown: Callable[[Grown], object] = lambda _: None,
) -> list[Grown]:
    """Wrap the sites of a workspace from its seeds, all or some of them, and keep what comes of it.

    Sites that seeds were given of, and those that were wrapped before, are left as they are; so are those
    that were withdrawn, or have a wrapper that was made otherwise, unless they are named. Killed, it goes on
    with the sites that were not done. What came of each attempt is returned, in their order.
    """
    if rounds < 1:
        raise UsageError(f"There must be one round at least, not {rounds}.")
    _check_sites(store, sites)
    grown: list[Grown] = []
    with store.recording("bootstrap", {"core": list(core), "rounds": rounds, "sites": sorted(sites)}) as run:
        run.counts.update(wrapped=0, poor=0, failed=0, records=0)
        for number in range(1, rounds + 1):
            known = _known(store, core)
            _check_known(known, core, sites)
            failed = {one.site for one in grown if one.state == "failed"}  # and would fail again
            means = _Means(known, repr((sorted(core), sorted((schema or {}).items()), method)))
            untried = [found for found in _untried(store, sites, means) if found.name not in failed]
            came = []
            for place, found in enumerate(untried, 1):
                on_attempt(Attempt(number, found.name, place, len(untried)))
                site = _Site(store, run.id, found.name, number, known, means.fingerprint(found))
                came.append(site.grown(core, schema, method, limits, jobs))
                on_grown(came[-1])
                run.counts.update({came[-1].state: 1, "records": came[-1].records})
            grown += came
            if not any(one.state == "wrapped" for one in came):
                break
    return grown


def _check_sites(store: Store, sites: Collection[str]) -> None:
    if not store.page_urls.sites():
        raise UsageError("There are no pages in the workspace: siteloom ingest reads them.")
    store.require_sites(sites)


def _check_known(known: _Known, core: Sequence[str], sites: Collection[str]) -> None:
    if not known.seeds:
        raise UsageError("There are no seeds to begin with: take in known records first (siteloom seeds).")
    if missing := sorted(set(core).difference(*(seed.values for seed in known.seeds))):
        raise UsageError(f"No seed has the attribute {missing[0]}: check the names of the core attributes.")
    if of_seeds := sorted(known.given.intersection(sites)):
        raise UsageError(f"The seeds are those of {of_seeds[0]}: it cannot be wrapped from itself.")


def _known(store: Store, core: Sequence[str]) -> _Known:
    """All that is known. What sites tell that were wrapped from it is no news where it is known already.

    So given records are as they were, only with attributes that they lacked, and of several sites that tell
    of the same thing there is one record.
    """
    given = list(store.seeds(is_grown=False))
    found = list(store.seeds(is_grown=True))
    sources = frozenset(seed.source for seed in given)
    known = _Known(len(given) + len(found), _digest(map(repr, chain(given, found))), sources, [], [])
    told = set[str]().union(*(_core_keys(seed, core) for seed in found))
    met: list[Seed] = []
    for seed in given:
        if told.isdisjoint(_core_keys(seed, core)):
            known.add(seed, [seed.source])
        else:
            met.append(seed)
    pool = met + found
    for entity in link(pool, core):
        _add_entity(known, entity, pool, len(met))
    return known


def _digest(texts: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        digest.update(text.encode(errors="surrogatepass"))
    return digest.hexdigest()


def _core_keys(seed: Seed, core: Sequence[str]) -> set[str]:
    """The values by which a thing is known, in a form that all share who write them differently."""
    return {telling_key(text) or folded(text) for name in core for text in seed.values.get(name, ())} - {""}


def _add_entity(known: _Known, entity: Entity, pool: Sequence[Seed], given_count: int) -> None:
    """Add what is known of a thing; the first of the pool, so many, were given."""
    values = {name: tuple(one.text for one in agreed.values) for name, agreed in entity.values.items()}
    given = [pool[member] for member in entity.members if member < given_count]
    if not given:
        members = [pool[member] for member in entity.members]
        surest = max(members, key=lambda seed: seed.confidence)
        known.add(
            Seed(values, surest.source, surest.url, surest.confidence), (seed.source for seed in members)
        )
    for seed in given:
        lacking = {name: texts for name, texts in values.items() if not seed.values.get(name)}
        stating = (source for name in lacking for one in entity.values[name].values for source in one.sources)
        known.add(replace(seed, values={**seed.values, **lacking}), (seed.source, *stating))


class _Means(NamedTuple):
    """What sites are tried with: what is known, and all else that was asked for, as a text."""

    known: _Known
    asked: str

    def fingerprint(self, site: Site) -> str:
        """Differs if the site might come out otherwise than before; its pages count, too."""
        return _digest((self.known.digest, self.asked, f" {site.pages} {site.versions}"))


def _untried(store: Store, named: Collection[str], means: _Means) -> list[Site]:
    """The sites to try with what is known now."""
    before = {one.site: one for one in store.grown_sites()}
    of_others = {one.site for one in store.wrappers() if one.origin != ORIGIN}
    return [
        found
        for found in store.sites()
        if found.pages
        and found.name not in means.known.given
        and (found.name in named if named else found.name not in of_others)
        and _is_due(before.get(found.name), means.fingerprint(found), is_named=found.name in named)
    ]


def _is_due(before: GrownSite | None, fingerprint: str, *, is_named: bool) -> bool:
    if before is None or before.state == "failed":
        return True
    if before.state == "poor":
        return is_named or before.content.get(_FINGERPRINT) != fingerprint
    return before.state == "withdrawn" and is_named


class _Site(NamedTuple):
    """A site that is tried in a round of a run."""

    store: Store
    run_id: int
    name: str
    round: int
    known: _Known
    fingerprint: str

    def grown(
        self, core: Sequence[str], schema: Schema, method: Method, limits: ParseSettings, jobs: int
    ) -> Grown:
        """Try to wrap the site, and keep what comes of it."""
        try:
            found = bootstrap(self.known.seeds, self._pages(), core, schema, method, limits=limits)
            if found.wrapper is None:
                _take_back(self.store, self.run_id, self.name)  # what an attempt left that was stopped
                return self._kept(Grown(self.name, self.round, "poor", None, 0, (), found.reason), found)
            return self._wrapped(found, core, limits, jobs)
        except SiteloomError as error:
            _log.warning("bootstrap of %s failed: %s", self.name, error, exc_info=True)
            return self._kept(Grown(self.name, self.round, "failed", None, 0, (), str(error)))

    def _pages(self) -> Iterator[Page]:
        shards = evenly_spaced(self.store.page_shards(self.name), _MOST_SHARDS)
        return chain.from_iterable(shard.read() for shard in shards)

    def _wrapped(self, found: Bootstrapped, core: Sequence[str], limits: ParseSettings, jobs: int) -> Grown:
        """Keep the wrapper and the records that it gives.

        Until all is there the site counts as failed: then it is done again, and its records do not count.
        """
        assert found.wrapper is not None
        self._kept(Grown(self.name, self.round, "failed", None, 0, (), "It was stopped half way."))
        name, text = self._wrapper_name(found.urls), found.wrapper.to_json()
        seeds = list(self._extracted(NamedWrapper(name, None, found.wrapper), found, core, limits, jobs))
        self.store.replace_seeds(self.run_id, seeds, [self.name], is_grown=True)
        newest = self.store.wrapper_in_force(name)
        if newest is not None and newest.text == text:
            version = newest.version
        else:
            version = self.store.save_wrapper(name, self.name, text, ORIGIN)
        accepted = tuple(
            name for name, evidence in found.attributes.items() if evidence.verdict == "accepted"
        )
        grown = Grown(self.name, self.round, "wrapped", name, len(seeds), accepted, found.reason)
        return self._kept(grown, found, version)

    def _extracted(
        self,
        wrapper: NamedWrapper,
        found: Bootstrapped,
        core: Sequence[str],
        limits: ParseSettings,
        jobs: int,
    ) -> Iterator[Seed]:
        """What the pages of the site tell: records without any core attribute are of no use."""
        precision = {
            name: evidence.agreement
            for name, evidence in found.attributes.items()
            if evidence.verdict == "accepted"
        }
        plan = Plan([wrapper], limits, self.store.page_shards(self.name))
        for _, result in plan.results(jobs):
            for extracted in result.rows:
                row = json.loads(extracted.content)
                values = {name: tuple(texts) for name, texts in row["values"].items() if name in precision}
                if any(name in values for name in core):
                    confidence = _confidence(row["confidence"], precision)
                    yield Seed(values, self.name, row["url"], confidence)

    def _wrapper_name(self, urls: Collection[str]) -> str:
        """As the cluster of most of its pages is called, or by a number, if no other wrapper has the name."""
        wrappers = [one for one in self.store.wrappers() if one.site == self.name]
        own = [one.name for one in wrappers if one.origin == ORIGIN]
        if own:
            return own[0]
        taken = {one.name for one in wrappers}
        clusters, addresses = self.store.clusters()
        wanted = {PageAddress(self.name, url) for url in urls}
        members = {
            cluster.id: sum(addresses[member] in wanted for member in cluster.members)
            for cluster in clusters
            if cluster.site == self.name
        }
        largest = max(members, key=lambda name: members[name], default="")
        if members.get(largest) and largest not in taken:
            return largest
        numbered = (f"{self.name}/{number}" for number in range(1, len(taken) + len(members) + 2))
        return next(name for name in numbered if name not in taken and name not in members)

    def _kept(self, grown: Grown, found: Bootstrapped | None = None, version: int | None = None) -> Grown:
        content: dict[str, Any] = {
            "reason": grown.reason,
            "records": grown.records,
            _FINGERPRINT: self.fingerprint,
        }
        if found is not None:
            grown = grown._replace(unread=Counter(failure.reason for failure in found.failures))
            content |= {
                "seeds_matched": found.seeds_matched,
                "pages": found.pages,
                "pages_matched": found.pages_matched,
                "unread": grown.unread,
                "attributes": {name: one._asdict() for name, one in found.attributes.items()},
                "sources": self._sources(found),
                "examples": _examples(found),
                "disagreements": _disagreements(found),
            }
        tried = self.known.records
        self.store.save_grown_site(self.name, grown.state, self.round, tried, grown.wrapper, version, content)
        return grown

    def _sources(self, found: Bootstrapped) -> dict[str, int]:
        """How many of the seeds that were found on the site each source knows."""
        matched = {match.seed for match in found.evidence}
        return dict(Counter(source for seed in matched for source in self.known.sources[seed]))


def _examples(found: Bootstrapped) -> dict[str, list[dict[str, str]]]:
    """Some values of each attribute that were found on the site, of pages from all over it."""
    matches: dict[str, dict[str, SeedMatch]] = {}
    for match in found.evidence:
        pages = matches.setdefault(match.attribute, {})
        if match.url not in pages or pages[match.url].similarity < match.similarity:
            pages[match.url] = match
    return {
        name: [
            {
                "url": match.url,
                "value": match.value[:_LONGEST_KEPT],
                "text": match.text[:_LONGEST_KEPT],
                "node": match.position,
            }
            for match in evenly_spaced(list(pages.values()), _EXAMPLES_KEPT)
        ]
        for name, pages in matches.items()
    }


def _disagreements(found: Bootstrapped) -> dict[str, list[dict[str, str]]]:
    """Some values of each attribute that are not what is known, of pages from all over the site."""
    by_name: dict[str, list[dict[str, str]]] = {}
    for one in found.disagreements:
        kept = {"url": one.url, "value": one.value[:_LONGEST_KEPT], "text": one.text[:_LONGEST_KEPT]}
        by_name.setdefault(one.attribute, []).append(kept)
    return {name: evenly_spaced(each, _EXAMPLES_KEPT) for name, each in by_name.items()}


def _confidence(found: Mapping[str, Sequence[float]], precision: Mapping[str, float]) -> float:
    """How likely the values of a record are right: by where they stood, and by how often such were."""
    likely = [one * precision[name] for name, each in found.items() if name in precision for one in each]
    return sum(likely) / len(likely)


class Withdrawal(NamedTuple):
    """What was taken back with a site: its records and those of sites that were wrapped with their help."""

    seeds: int
    wrappers: tuple[str, ...]
    retried: tuple[str, ...]


def withdraw(store: Store, site: str) -> Withdrawal:
    """Take back a site that was wrapped wrongly, with all that came of it.

    Sites that were wrapped with the help of its records lose their own, and are tried again in the next
    round. The wrappers are no longer in force, but are kept as they were.
    """
    grown = {one.site: one for one in store.grown_sites()}
    if site not in grown or grown[site].state == "withdrawn":
        known = ", ".join(name for name, one in grown.items() if one.state == "wrapped")
        raise StoreError(f"No site {site} was wrapped from seeds: there are {known or 'none'}.")
    helped = helped_by(site, grown.values())
    seeds = 0
    wrappers: list[str] = []
    with store.recording("bootstrap", {"withdraw": site}) as run:
        # The site itself last: if this is stopped half way, it can be done again.
        for name in (*helped, site):
            removed, withdrawn = _take_back(store, run.id, name, grown[name].wrapper)
            seeds += removed
            wrappers += withdrawn
            state: GrownState = "withdrawn" if name == site else "poor"
            reason = "A person withdrew it." if name == site else f"{site}, which had helped, was withdrawn."
            store.save_grown_site(name, state, grown[name].round, 0, content={"reason": reason})
        run.counts.update(seeds=seeds, wrappers=len(wrappers), retried=len(helped))
    return Withdrawal(seeds, tuple(wrappers), tuple(helped))


def helped_by(site: str, grown: Iterable[GrownSite]) -> list[str]:
    """The sites that records of a site have helped to wrap, or those of such a site, the last first."""
    wrapped = [one for one in grown if one.state == "wrapped"]
    helped = [site]
    for helper in helped:  # grows meanwhile
        helped += [
            one.site for one in wrapped if helper in one.content.get("sources", {}) and one.site not in helped
        ]
    return helped[:0:-1]


def _take_back(store: Store, run_id: int, site: str, wrapper: str | None = None) -> tuple[int, list[str]]:
    """Remove the seeds that a site gave, and take its wrappers out of force that were made from seeds.

    One that a person has taught since stays. Returns how many seeds there were, and the wrappers' names.
    """
    withdrawn = []
    for newest in store.wrappers():
        is_changed_since = newest.name == wrapper and newest.origin != "learn"
        if newest.site == site and (newest.origin == ORIGIN or is_changed_since):
            store.save_wrapper(newest.name, newest.site, newest.text, WITHDRAWN)
            withdrawn.append(newest.name)
    return store.replace_seeds(run_id, [], [site], is_grown=True).removed, withdrawn
