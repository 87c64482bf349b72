"""bootstrap: wrap sites from known records, in rounds. Accept or withdraw a site.

In each round, every site that is not wrapped yet is tried with the records that were known when the round
began. The records of sites that could be wrapped join them, under the name of their site. A site whose
evidence was poor is tried again once more is known. A wrong site can be withdrawn with all its results.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.core.errors import NotFound, SiteloomError, StoreError, UsageError
from siteloom.core.model import Seed
from siteloom.core.sequences import evenly_spaced
from siteloom.core.wording import some_names
from siteloom.learning.induction.learning_session import Schema
from siteloom.learning.known_records.bootstrap_result import AttributeEvidence
from siteloom.learning.known_records.entity_linking import link
from siteloom.learning.known_records.site_bootstrap import Method
from siteloom.learning.known_records.site_bootstrap import bootstrap as bootstrap_site
from siteloom.learning.known_records.text_normalisation import canonical_key, folded
from siteloom.operations.context import Context
from siteloom.operations.extract import ExtractRequest, extract
from siteloom.operations.extraction_shards import Plan
from siteloom.operations.request_fields import NOT_STORED, Number, Site, Sites, Texts
from siteloom.operations.seeds import seed_names
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.queries.seeds import SiteState
from siteloom.store.queries.wrappers import WITHDRAWN
from siteloom.wrappers.matching import NamedWrapper

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from siteloom.core.model import Page
    from siteloom.learning.known_records.bootstrap_result import Bootstrapped, SeedMatch
    from siteloom.learning.known_records.entity_linking import Entity
    from siteloom.store.queries.runs import RunRecorder
    from siteloom.store.queries.seeds import StoredSiteOutcome
    from siteloom.store.queries.sites import Site as StoredSite
    from siteloom.store.queries.wrappers import StoredWrapper
    from siteloom.store.store import Store

_log = logging.getLogger(__name__)

DEFAULT_ROUNDS = 3
ORIGIN = "bootstrap"

_FINGERPRINT = "fingerprint"  # its key in the stored result of a site

# So many known values of an attribute, and where they stand on the site, are stored for people to look at.
_EXAMPLES_STORED = 4
# Longer values are cut.
_LONGEST_STORED = 200

# Of a large site so many shards of some hundred pages are looked at; all are extracted.
_MOST_SHARDS = 10

# A job stores the results of so many sites; those of all are in the workspace.
_MOST_SITES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapRequest:
    """By which attributes to recognise things, and which sites to wrap; all sites if none are named.

    With `extract`, sites that were wrapped are extracted in the end. `on_outcome` is called as soon as the
    outcome of a site is known.
    """

    core: Texts
    sites: Sites = ()
    rounds: Number = DEFAULT_ROUNDS
    method: Method = "bits"
    schema: Schema = None
    extract: bool = True
    on_outcome: Callable[[SiteOutcome], object] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteOutcome:
    """The outcome of trying a site: `wrapped` with so many records, `poor` in evidence, or `failed`.

    `failures` counts the pages that could not be read, of those that were looked at.
    """

    site: str
    round: int
    state: SiteState
    reason: str
    wrapper: str | None = None
    version: int | None = None
    records: int = 0
    attributes: tuple[str, ...] = ()
    evidence: Mapping[str, AttributeEvidence] = field(default_factory=dict, metadata=NOT_STORED)
    failures: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapResult:
    """The last outcome of each site that was tried, of the first 200; `attempts` are the outcomes of all."""

    run: int | None = None
    core: tuple[str, ...]
    sites: tuple[SiteOutcome, ...]
    rounds: int = 0
    attempts: tuple[SiteOutcome, ...] = field(default=(), metadata=NOT_STORED)


class _Known(NamedTuple):
    """What a round begins with: how many records there are, and the seeds that are made of them.

    Beside each seed stand the sources that its values are from. `given` are the sources of records that were
    imported. The digest differs if anything else is known.
    """

    records: int
    digest: str
    given: frozenset[str]
    seeds: list[Seed]
    sources: list[tuple[str, ...]]

    def add(self, seed: Seed, sources: Iterable[str]) -> None:
        self.seeds.append(seed)
        self.sources.append(tuple(dict.fromkeys(sources)))


def bootstrap(context: Context, request: BootstrapRequest) -> BootstrapResult:
    """Wrap sites of a workspace from its known records, and store their records as known ones.

    Sites that known records are from, and those that were wrapped before, are left as they are; so are those
    that were withdrawn, or have a wrapper that was made otherwise, unless they are named. Killed, it goes on
    with the sites that were not done.
    """
    store, progress = context.store, context.progress
    core, sites = request.core, request.sites
    if not core:
        raise UsageError("Choose the attributes by which things are known: one at least.")
    if request.rounds < 1:
        raise UsageError(f"There must be one round at least, not {request.rounds}.")
    _check_sites(store, sites)
    if request.schema:
        check_schema_names(request.schema, {name for one in store.seed_sources() for name in one.attributes})
    progress.start("Reading known records", unit="record")
    attempts: list[SiteOutcome] = []
    recorded = {"core": list(core), "rounds": request.rounds, "sites": sorted(sites)}
    with store.recording("bootstrap", recorded) as run:
        run.counts.update(wrapped=0, poor=0, failed=0, records=0)
        for number in range(1, request.rounds + 1):
            outcomes = _round(context, request, run, number, attempts)
            attempts += outcomes
            if not any(outcome.state == "wrapped" for outcome in outcomes):
                break
    last = list({outcome.site: outcome for outcome in attempts}.values())
    if request.extract:
        for outcome in last:
            if outcome.state == "wrapped":
                extract(context, ExtractRequest(site=outcome.site))
    return BootstrapResult(
        run=run.id,
        core=core,
        sites=tuple(last[:_MOST_SITES]),
        rounds=max((outcome.round for outcome in attempts), default=0),
        attempts=tuple(attempts),
    )


def _round(
    context: Context,
    request: BootstrapRequest,
    run: RunRecorder,
    number: int,
    attempts: Sequence[SiteOutcome],
) -> list[SiteOutcome]:
    """Try each site once that is due, and store the outcomes."""
    store, progress = context.store, context.progress
    known = _known(store, request.core)
    _check_known(known, request.core, request.sites)
    failed = {outcome.site for outcome in attempts if outcome.state == "failed"}  # and would fail again
    options = repr((sorted(request.core), sorted((request.schema or {}).items()), request.method))
    means = _Means(known, options)
    untried = [site for site in _untried(store, request.sites, means) if site.name not in failed]
    outcomes = []
    progress.start(f"Round {number}", len(untried), unit="site")
    for place, site in enumerate(untried, 1):
        progress.message(f"Round {number}, site {place} of {len(untried)}: {site.name}")
        attempt = _Attempt(context, request, run.id, site.name, number, known, means.fingerprint(site))
        outcome = attempt.outcome()
        request.on_outcome(outcome)
        progress.advance()
        run.counts.update({outcome.state: 1, "records": outcome.records})
        outcomes.append(outcome)
    return outcomes


def _check_sites(store: Store, sites: Collection[str]) -> None:
    if not store.page_urls.sites():
        raise UsageError("There are no pages in the workspace: siteloom ingest reads them.")
    store.require_sites(sites)


def check_schema_names(schema: Schema, names: set[str]) -> None:
    """Refuse a schema of attributes that no known record has."""
    if unknown := sorted(set(schema or {}) - names):
        raise UsageError(
            f"The schema tells of {unknown[0]}, which no record has: there are {some_names(sorted(names))}."
        )


def wrappers_beside(store: Store, sites: Collection[str]) -> list[StoredWrapper]:
    """The wrappers in force on sites, beside which there will be another one if they are wrapped."""
    wrapped = {result.site for result in store.site_outcomes() if result.state == "wrapped"}
    return [
        wrapper
        for wrapper in store.wrappers()
        if wrapper.site in sites and wrapper.site not in wrapped and wrapper.origin != ORIGIN
    ]


def _check_known(known: _Known, core: Sequence[str], sites: Collection[str]) -> None:
    if not known.seeds:
        raise UsageError("There are no seeds to begin with: import known records first (siteloom seeds).")
    if missing := sorted(set(core) - seed_names(known.seeds)):
        raise UsageError(f"No seed has the attribute {missing[0]}: check the names of the core attributes.")
    if of_seeds := sorted(known.given.intersection(sites)):
        raise UsageError(f"The seeds are those of {of_seeds[0]}: it cannot be wrapped from itself.")


def _known(store: Store, core: Sequence[str]) -> _Known:
    """All known records. What wrapped sites say is added only where it was not known before.

    So imported records are as they were, only with attributes that they lacked, and of several sites that
    have a record of the same thing there is one record.
    """
    imported = list(store.seeds(is_grown=False))
    extracted = list(store.seeds(is_grown=True))
    sources = frozenset(seed.source for seed in imported)
    digest = _digest(map(repr, chain(imported, extracted)))
    known = _Known(len(imported) + len(extracted), digest, sources, [], [])
    extracted_keys = set[str]().union(*(_core_keys(seed, core) for seed in extracted))
    met: list[Seed] = []
    for seed in imported:
        if extracted_keys.isdisjoint(_core_keys(seed, core)):
            known.add(seed, [seed.source])
        else:
            met.append(seed)
    pool = met + extracted
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
    return {canonical_key(text) or folded(text) for name in core for text in seed.values.get(name, ())} - {""}


def _add_entity(known: _Known, entity: Entity, pool: Sequence[Seed], given_count: int) -> None:
    """Add what is known of a thing; the first seeds of the pool, `given_count`, were imported."""
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
    """What sites are tried with: what is known, and the options as a text."""

    known: _Known
    options: str

    def fingerprint(self, site: StoredSite) -> str:
        """Differs if the site might come out otherwise than before; its pages count, too."""
        return _digest((self.known.digest, self.options, f" {site.pages} {site.versions}"))


def _untried(store: Store, named: Collection[str], means: _Means) -> list[StoredSite]:
    """The sites to try with what is known now."""
    before = {result.site: result for result in store.site_outcomes()}
    wrapped_otherwise = {wrapper.site for wrapper in store.wrappers() if wrapper.origin != ORIGIN}
    return [
        site
        for site in store.sites()
        if site.pages
        and site.name not in means.known.given
        and (site.name in named if named else site.name not in wrapped_otherwise)
        and _is_due(before.get(site.name), means.fingerprint(site), is_named=site.name in named)
    ]


def _is_due(before: StoredSiteOutcome | None, fingerprint: str, *, is_named: bool) -> bool:
    if before is None or before.state == "failed":
        return True
    if before.state == "poor":
        return is_named or before.content.get(_FINGERPRINT) != fingerprint
    return before.state == "withdrawn" and is_named


class _Attempt(NamedTuple):
    """A site that is tried in a round of a run."""

    context: Context
    request: BootstrapRequest
    run_id: int
    site: str
    round: int
    known: _Known
    fingerprint: str

    @property
    def store(self) -> Store:
        return self.context.store

    def outcome(self) -> SiteOutcome:
        """Try to wrap the site, and store the outcome."""
        request = self.request
        try:
            result = bootstrap_site(
                self.known.seeds,
                self._pages(),
                request.core,
                request.schema,
                request.method,
                limits=self.context.settings.parse,
            )
            if result.wrapper is None:
                _remove_results(self.store, self.run_id, self.site)  # what an attempt left that was stopped
                return self._stored("poor", result.reason, result)
            return self._wrapped(result)
        except SiteloomError as error:
            _log.warning("bootstrap of %s failed: %s", self.site, error, exc_info=True)
            return self._stored("failed", str(error))

    def _pages(self) -> Iterator[Page]:
        shards = evenly_spaced(self.store.page_shards(self.site), _MOST_SHARDS)
        return chain.from_iterable(shard.read() for shard in shards)

    def _wrapped(self, result: Bootstrapped) -> SiteOutcome:
        """Store the wrapper and the records that it extracts.

        Until all is there the site counts as failed: then it is done again, and its records do not count.
        """
        assert result.wrapper is not None
        self._stored("failed", "It was stopped half way.")
        name, text = self._wrapper_name(result.urls), result.wrapper.to_json()
        seeds = list(self._extracted(NamedWrapper(name, None, result.wrapper), result))
        self.store.replace_seeds(self.run_id, seeds, [self.site], is_grown=True)
        newest = self.store.wrapper_in_force(name)
        if newest is not None and newest.text == text:
            version = newest.version
        else:
            version = self.store.save_wrapper(name, self.site, text, ORIGIN)
        return self._stored(
            "wrapped", result.reason, result, wrapper=name, version=version, records=len(seeds)
        )

    def _extracted(self, wrapper: NamedWrapper, result: Bootstrapped) -> Iterator[Seed]:
        """The records of the site; those without any core attribute are of no use."""
        precision = {
            name: evidence.agreement
            for name, evidence in result.attributes.items()
            if evidence.verdict == "accepted"
        }
        settings = self.context.settings
        plan = Plan([wrapper], settings.parse, self.store.page_shards(self.site))
        for _, extracted in plan.results(settings.run.jobs):
            for line in extracted.rows:
                row = json.loads(line.content)
                values = {name: tuple(texts) for name, texts in row["values"].items() if name in precision}
                if any(name in values for name in self.request.core):
                    confidence = _confidence(row["confidence"], precision)
                    yield Seed(values, self.site, row["url"], confidence)

    def _wrapper_name(self, urls: Collection[str]) -> str:
        """The name of the cluster of most of its pages, or a number, if no other wrapper has the name."""
        wrappers = [wrapper for wrapper in self.store.wrappers() if wrapper.site == self.site]
        own = [wrapper.name for wrapper in wrappers if wrapper.origin == ORIGIN]
        if own:
            return own[0]
        used = {wrapper.name for wrapper in wrappers}
        clusters, addresses = self.store.clusters()
        pages = {PageAddress(self.site, url) for url in urls}
        members = {
            cluster.id: sum(addresses[member] in pages for member in cluster.members)
            for cluster in clusters
            if cluster.site == self.site
        }
        largest = max(members, key=lambda name: members[name], default="")
        if members.get(largest) and largest not in used:
            return largest
        numbered = (f"{self.site}/{number}" for number in range(1, len(used) + len(members) + 2))
        return next(name for name in numbered if name not in used and name not in members)

    def _stored(
        self,
        state: SiteState,
        reason: str,
        result: Bootstrapped | None = None,
        *,
        wrapper: str | None = None,
        version: int | None = None,
        records: int = 0,
    ) -> SiteOutcome:
        """Store an outcome with what speaks for it."""
        content: dict[str, Any] = {"reason": reason, "records": records, _FINGERPRINT: self.fingerprint}
        evidence: Mapping[str, AttributeEvidence] = {}
        failures: Mapping[str, int] = {}
        if result is not None:
            evidence = result.attributes
            failures = Counter(failure.reason for failure in result.failures)
            content |= {
                "seeds_matched": result.seeds_matched,
                "pages": result.pages,
                "pages_matched": result.pages_matched,
                "unread": failures,
                "attributes": {name: one._asdict() for name, one in evidence.items()},
                "sources": self._sources(result),
                "examples": _examples(result),
                "disagreements": _disagreements(result),
            }
        self.store.save_site_outcome(
            self.site, state, self.round, self.known.records, wrapper, version, content
        )
        accepted = (name for name, one in evidence.items() if one.verdict == "accepted")
        return SiteOutcome(
            site=self.site,
            round=self.round,
            state=state,
            reason=reason,
            wrapper=wrapper,
            version=version,
            records=records,
            attributes=tuple(accepted) if state == "wrapped" else (),
            evidence=evidence,
            failures=failures,
        )

    def _sources(self, result: Bootstrapped) -> dict[str, int]:
        """How many of the seeds that were found on the site each source knows."""
        matched = {match.seed for match in result.evidence}
        return dict(Counter(source for seed in matched for source in self.known.sources[seed]))


def _examples(result: Bootstrapped) -> dict[str, list[dict[str, str]]]:
    """Some values of each attribute that were found on the site, of pages from all over it."""
    matches: dict[str, dict[str, SeedMatch]] = {}
    for match in result.evidence:
        pages = matches.setdefault(match.attribute, {})
        if match.url not in pages or pages[match.url].similarity < match.similarity:
            pages[match.url] = match
    return {
        name: [
            {
                "url": match.url,
                "value": match.value[:_LONGEST_STORED],
                "text": match.text[:_LONGEST_STORED],
                "node": match.position,
            }
            for match in evenly_spaced(list(pages.values()), _EXAMPLES_STORED)
        ]
        for name, pages in matches.items()
    }


def _disagreements(result: Bootstrapped) -> dict[str, list[dict[str, str]]]:
    """Some values of each attribute that are not what is known, of pages from all over the site."""
    by_name: dict[str, list[dict[str, str]]] = {}
    for value in result.disagreements:
        row = {"url": value.url, "value": value.value[:_LONGEST_STORED], "text": value.text[:_LONGEST_STORED]}
        by_name.setdefault(value.attribute, []).append(row)
    return {name: evenly_spaced(rows, _EXAMPLES_STORED) for name, rows in by_name.items()}


def _confidence(confidences: Mapping[str, Sequence[float]], precision: Mapping[str, float]) -> float:
    """How likely the values of a record are right: by where they stood, and by how often such were."""
    likely = [
        confidence * precision[name]
        for name, values in confidences.items()
        if name in precision
        for confidence in values
    ]
    return sum(likely) / len(likely)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptSiteRequest:
    """A site that was wrapped correctly, and the version of its wrapper that a person has looked at."""

    site: str
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptSiteResult:
    """The site, and who accepted it."""

    site: str
    accepted_by: str


def accept_site(context: Context, request: AcceptSiteRequest) -> AcceptSiteResult:
    """Record that a person has looked at a site that was wrapped from known records and found it right."""
    author = context.author or "local"
    if not context.store.accept_site_outcome(request.site, author, request.version):
        raise NotFound(f"{request.site} is not wrapped from known records.")
    return AcceptSiteResult(site=request.site, accepted_by=author)


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawRequest:
    """A site that was wrapped wrongly."""

    site: Site


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawResult:
    """How many known records were removed, which wrappers were withdrawn, and which sites are tried again."""

    run: int | None = None
    site: str
    seeds: int
    withdrawn: tuple[str, ...]
    retried: tuple[str, ...]


def withdraw(context: Context, request: WithdrawRequest) -> WithdrawResult:
    """Withdraw a site that was wrapped wrongly, with its records and those of sites they helped to wrap.

    The next round tries these sites again. The wrappers are no longer in force, but are kept.
    """
    store, site = context.store, request.site
    results = {result.site: result for result in store.site_outcomes()}
    if site not in results or results[site].state == "withdrawn":
        wrapped = ", ".join(name for name, result in results.items() if result.state == "wrapped")
        raise StoreError(f"No site {site} was wrapped from seeds: there are {wrapped or 'none'}.")
    helped = helped_by(site, results.values())
    seeds = 0
    wrappers: list[str] = []
    with store.recording("bootstrap", {"withdraw": site}) as run:
        # The site itself last: if this is stopped half way, it can be done again.
        for name in (*helped, site):
            removed, withdrawn = _remove_results(store, run.id, name, results[name].wrapper)
            seeds += removed
            wrappers += withdrawn
            state: SiteState = "withdrawn" if name == site else "poor"
            reason = "A person withdrew it." if name == site else f"{site}, which had helped, was withdrawn."
            store.save_site_outcome(name, state, results[name].round, 0, content={"reason": reason})
        run.counts.update(seeds=seeds, wrappers=len(wrappers), retried=len(helped))
    return WithdrawResult(
        run=run.id, site=site, seeds=seeds, withdrawn=tuple(wrappers), retried=tuple(helped)
    )


def helped_by(site: str, results: Iterable[StoredSiteOutcome]) -> list[str]:
    """The sites that records of a site have helped to wrap, or those of such a site, the last first."""
    wrapped = [result for result in results if result.state == "wrapped"]
    helped = [site]
    for helper in helped:  # grows meanwhile
        helped += [
            result.site
            for result in wrapped
            if helper in result.content.get("sources", {}) and result.site not in helped
        ]
    return helped[:0:-1]


def _remove_results(
    store: Store, run_id: int, site: str, wrapper: str | None = None
) -> tuple[int, list[str]]:
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
