"""The job that removes sites and pages with all that came from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteloom.apps.server.job_kinds import Argument, JobKind, Report
from siteloom.store.erasure.erasure import forget as forget_in_store
from siteloom.store.erasure.row_erasure import FORGOTTEN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.core.settings import Settings
    from siteloom.store.store import Store


def forget(store: Store, _: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Remove what is named, and tell only how much it was.

    What another has forgotten while this waited is named no more. With nothing that is named, traces are
    removed that were left.
    """
    names = [name for name in arguments["names"] if name != FORGOTTEN]

    def tell(done: int, total: int | None, message: str) -> None:
        report(done, total, f"steps: {message[:1].lower()}{message[1:]}")

    forgotten = forget_in_store(store, names, tell)
    return {"counts": forgotten.counts, "to_learn_again": forgotten.to_relearn}


KINDS = {
    "forget": JobKind(
        forget, "Forget sites or pages", {"names": Argument("sites or urls", is_needed=True)}, "admin"
    )
}
