"""Parity cases of watching, monitoring, relearning, review and versions."""

from __future__ import annotations

from siteloom.operations.monitor import MonitorRequest
from siteloom.operations.relearn import RelearnRequest
from siteloom.operations.review import ClusterReviewRequest, ReviewRequest
from siteloom.operations.watch import WatchRequest
from siteloom.operations.wrapper_versions import HistoryRequest, RollbackRequest
from siteloom.store.store import Store
from tests.lived_in import DIRECTORY, GUIDE
from tests.operations.maintenance import decide
from tests.operations.parity import ParityCase

WRAPPER = f"{GUIDE}/1"  # its site has changed, and its repair waits
HEALTHY = f"{GUIDE}/3"
PLACES = f"{DIRECTORY}/1"  # a cluster without a wrapper
REPAIR = 1


def reject(store: Store) -> None:
    decide(store, WRAPPER, accept=False)


def accept(store: Store) -> None:
    decide(store, WRAPPER, accept=True)


def lose_an_attribute(store: Store) -> None:
    """Let a repair wait that has lost an attribute."""
    stored = store.wrapper(WRAPPER)
    (waiting,) = store.reviewing.repairs()
    outcomes = waiting.content["attributes"]
    *names, lost = outcomes
    attributes = {name: {**outcomes[name], "state": "kept"} for name in names}
    attributes[lost] = {**outcomes[lost], "state": "vanished"}
    with store.recording("relearn", {"wrapper": WRAPPER}) as run:
        store.save_repair(
            run_id=run.id,
            wrapper=WRAPPER,
            version_before=stored.version,
            version_after=None,
            outcome="needs-annotation",
            state="annotation",
            confidence=0.5,
            text=stored.text,
            content={**waiting.content, "attributes": attributes},
        )


def add_version(store: Store) -> None:
    stored = store.wrapper(HEALTHY)
    store.save_wrapper(HEALTHY, stored.site, stored.text.replace('"version": 1', '"version": 1 '), "learn")


def dismiss(store: Store) -> None:
    store.reviewing.dismiss(PLACES)


def review(repair: int = REPAIR) -> ReviewRequest:
    return ReviewRequest(wrapper=WRAPPER, repair=repair)


OF_REPAIR = {"wrapper": WRAPPER, "repair": REPAIR}

CASES = [
    ParityCase(
        "watch", WatchRequest(wrappers=(HEALTHY,)), ("watch", "--wrapper", HEALTHY), {"wrapper": HEALTHY}
    ),
    ParityCase("watch", WatchRequest(), ("watch",), {}),
    ParityCase("monitor", MonitorRequest(), ("monitor",), {}),
    ParityCase("monitor", MonitorRequest(site=GUIDE), None, {"site": GUIDE}),
    ParityCase(
        "monitor",
        MonitorRequest(wrappers=(WRAPPER,)),
        ("monitor", "--wrapper", WRAPPER),
        {"wrapper": WRAPPER},
    ),
    ParityCase("monitor", MonitorRequest(threshold=0.9), ("monitor", "--threshold", "90")),
    ParityCase("relearn", RelearnRequest(), ("relearn",), {}),
    ParityCase("relearn", RelearnRequest(dry_run=True), ("relearn", "--dry-run")),
    ParityCase(
        "relearn",
        RelearnRequest(wrappers=(HEALTHY,)),
        ("relearn", "--wrapper", HEALTHY),
        {"wrapper": HEALTHY},
    ),
    ParityCase("accept", review(), ("relearn", "--accept", WRAPPER), OF_REPAIR),
    ParityCase("reject", review(), ("relearn", "--reject", WRAPPER), OF_REPAIR),
    ParityCase("reopen", review(), None, OF_REPAIR, reject),
    ParityCase("reopen", review(), None, OF_REPAIR, accept),
    ParityCase("leave_out", review(2), None, {**OF_REPAIR, "repair": 2}, lose_an_attribute),
    ParityCase("dismiss", ClusterReviewRequest(cluster=PLACES), None, {"cluster": PLACES}),
    ParityCase("restore", ClusterReviewRequest(cluster=PLACES), None, {"cluster": PLACES}, dismiss),
    ParityCase("history", HistoryRequest(), ("history",)),
    ParityCase("history", HistoryRequest(wrapper=WRAPPER), ("history", WRAPPER)),
    ParityCase(
        "rollback",
        RollbackRequest(wrapper=HEALTHY),
        ("rollback", HEALTHY),
        {"wrapper": HEALTHY},
        add_version,
    ),
    ParityCase(
        "rollback",
        RollbackRequest(wrapper=WRAPPER, version=1),
        ("rollback", WRAPPER, "1"),
        {"wrapper": WRAPPER, "version": 1},
        accept,
    ),
]
