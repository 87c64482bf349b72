"""Jobs that run in this process, as a server's process for jobs runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from siteloom.apps.server.work import KINDS
from siteloom.core.settings import Settings
from siteloom.store.store import Store


def unheard(*_: object) -> None:
    """No one watches."""


def run_job(
    store: Store,
    kind: str,
    *,
    settings: Settings | None = None,
    report: Callable[[int, int | None, str], None] = unheard,
    **arguments: Any,
) -> dict[str, Any]:
    """What a job stores as its result; arguments that are not given are None."""
    complete = {name: arguments.get(name) for name in KINDS[kind].arguments}
    return KINDS[kind].run(store, settings or Settings(), complete, report)
