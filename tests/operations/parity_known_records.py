"""Operations on known records and text, each with the same request for all of its callers."""

from __future__ import annotations

from siteloom.core.model import Seed
from siteloom.core.settings import Settings
from siteloom.operations.bootstrap import (
    AcceptSiteRequest,
    BootstrapRequest,
    WithdrawRequest,
    bootstrap,
)
from siteloom.operations.clean import CleanRequest
from siteloom.operations.context import Context
from siteloom.operations.discover import AcceptColumnsRequest, DiscoverRequest
from siteloom.operations.entities import LinkEntitiesRequest
from siteloom.operations.search import SearchRequest, UpdateIndexRequest
from siteloom.operations.seeds import ImportSeedsRequest, RemoveSeedsRequest
from siteloom.store.store import Store
from tests.apps.demo.sites import directory, of_kind
from tests.lived_in import DIRECTORY, GUIDE
from tests.operations.parity import ParityCase

_CORE = ("name", "address")
_EVENTS = f"{GUIDE}/2"
_COLUMNS = {"heading": "title"}


def _known(store: Store) -> None:
    """Import records of all pages of the directory, enough to wrap it."""
    pages = of_kind(directory(), "restaurant")[:14]
    with store.recording("seeds", {}) as run:
        store.add_seeds(
            run.id,
            [
                Seed({name: tuple(texts) for name, texts in page.truth.items() if texts}, "table")
                for page in pages
            ],
        )


def _bootstrapped(store: Store) -> None:
    _known(store)
    context = Context(store=store, settings=Settings())
    bootstrap(context, BootstrapRequest(core=_CORE, sites=(DIRECTORY,), extract=False))
    (site,) = store.site_outcomes()
    assert site.state == "wrapped", site.content


CASES = [
    ParityCase("clean", CleanRequest(), ("clean",)),
    ParityCase(
        "clean", CleanRequest(site=GUIDE, rule="paper"), ("clean", "--site", GUIDE, "--rule", "paper")
    ),
    ParityCase(
        "discover", DiscoverRequest(cluster=_EVENTS), ("discover", "--cluster", _EVENTS), {"cluster": _EVENTS}
    ),
    ParityCase("discover", DiscoverRequest(site=GUIDE), ("discover", "--site", GUIDE), {"site": GUIDE}),
    ParityCase(
        "accept_columns",
        AcceptColumnsRequest(cluster=_EVENTS, names=_COLUMNS),
        ("discover", "--cluster", _EVENTS, *(f"--accept={name}={label}" for name, label in _COLUMNS.items())),
        {"cluster": _EVENTS, "names": _COLUMNS},
    ),
    ParityCase(
        "seeds",
        ImportSeedsRequest(site=GUIDE, renamed={"name": "title"}),
        ("seeds", "--from-site", GUIDE, "--rename", "name=title"),
        {"site": GUIDE, "renamed": {"name": "title"}},
    ),
    ParityCase(
        "remove_seeds",
        RemoveSeedsRequest(source="guide"),
        ("seeds", "--withdraw", "guide"),
        {"source": "guide"},
    ),
    ParityCase(
        "bootstrap",
        BootstrapRequest(core=_CORE, rounds=1, extract=False),
        ("bootstrap", "--core", ",".join(_CORE), "--rounds", "1"),
        prepare=_known,
    ),
    ParityCase(
        "bootstrap",
        BootstrapRequest(core=_CORE, sites=(DIRECTORY,)),
        arguments={"core": list(_CORE), "sites": [DIRECTORY]},
        prepare=_known,
    ),
    ParityCase("accept_site", AcceptSiteRequest(site=DIRECTORY), prepare=_bootstrapped),
    ParityCase(
        "withdraw",
        WithdrawRequest(site=DIRECTORY),
        ("bootstrap", "--withdraw", DIRECTORY),
        {"site": DIRECTORY},
        prepare=_bootstrapped,
    ),
    ParityCase("entities", LinkEntitiesRequest(seeds=True), arguments={"seeds": True}),
    ParityCase("index", UpdateIndexRequest(), ("search", "thai"), {}),
    ParityCase("search", SearchRequest(text="thai", site=GUIDE)),
]
