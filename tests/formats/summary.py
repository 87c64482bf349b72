"""What there is in a workspace, as its users see it, so that it can be compared after years of upgrades."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from siteloom.operations.search import SearchRequest, search, update_index
from siteloom.store.queries.accounts import Passwords
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from tests.operations.contexts import context_of

ACCOUNT, PASSWORD = "ada", "a made-up password"


def summary(store: Store) -> dict[str, Any]:
    """As JSON holds it. Long texts are told by their hashes."""
    addresses = [
        PageAddress(site.name, page.url) for site in store.sites() for page in store.pages(site.name)
    ]
    clusters, pages = store.clusters()
    runs = store.runs(1_000)  # before searching, which may be another run
    update_index(context_of(store))
    hits = search(context_of(store), SearchRequest(text="thai", count=50)).hits
    linking = store.entities.last_linking()
    return {
        "sites": [
            [site.name, site.pages, site.versions, site.annotated, site.wrappers] for site in store.sites()
        ],
        "versions": {
            address.url: [_hash(page.html) for page in store.versions(address.url, address.site)]
            for address in addresses
        },
        "validators": {url: found._asdict() for url, found in store.validators(addresses).items()},
        "runs": [[run.id, run.verb, run.status, dict(run.counts)] for run in runs],
        "failures": [[failure.url, failure.reason] for run in runs for failure in store.failures(run.id)],
        "clusters": {
            cluster.id: [_hash(repr(pages[member])) for member in cluster.members] for cluster in clusters
        },
        "dismissed": sorted(store.reviewing.dismissed()),
        "schemas": {
            one.name: {name: repr(known) for name, known in store.cluster_schema(one.name).attributes.items()}
            for one in store.cluster_summaries()
        },
        "examples": [
            [one.page.url, _hash(one.page.html), _plain([one.values, one.records, one.nodes])]
            for one in store.examples()
        ],
        "wrappers": [
            [one.name, one.version, one.origin, _hash(one.text)]
            for wrapper in store.wrappers()
            for one in store.wrapper_versions(wrapper.name)
        ],
        "records": [_rounded(json.loads(record)) for record in store.records()],
        "watches": {one.wrapper: _hash(one.text) for one in store.watches()},
        "checks": [[one.wrapper, one.kind, one.is_healthy] for one in store.checks()],
        "repairs": [[one.wrapper, one.outcome, one.state] for one in store.repairs()],
        "seeds": [_plain([seed.source, seed.url, seed.values]) for seed in store.seeds()],
        "grown sites": [[one.site, one.state, one.round] for one in store.site_outcomes()],
        "segments": {site.name: store.counted_segments(site.name).counted_to for site in store.sites()},
        "hits": sorted({hit.url for hit in hits}),
        "accounts": [[one.name, one.role] for one in store.accounts.all()],
        "signs in": Passwords().is_right(PASSWORD, store.accounts.password_of(ACCOUNT)),
        "keys": [one.label for one in store.accounts.keys(ACCOUNT)],
        "jobs": [[one.kind, one.author, one.state, _plain(one.arguments)] for one in store.jobs.latest(100)],
        "entities": [[one.number, one.sources, _plain(one.content)] for one in store.entities.each_entity()],
        "linking": linking and _plain(linking.content),
    }


def _hash(content: str | bytes) -> str:
    whole = content if isinstance(content, bytes) else content.encode()
    return hashlib.sha256(whole).hexdigest()[:16]


def _plain(value: object) -> Any:
    return json.loads(json.dumps(value, ensure_ascii=False))


def _rounded(value: Any) -> Any:
    """The last digits of a confidence may be others on other machines."""
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return round(value, 6) if isinstance(value, float) else value
