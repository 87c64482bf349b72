"""Pages that are wanted again: a stage on sites asks their shards for them, and these are read once more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteloom.arrow import load_pyarrow
from siteloom.bulk.packs import packed, unpacked
from siteloom.bulk.pages import failed_by_reason, numbered_items
from siteloom.bulk.run import shard_and_item
from siteloom.engine import cut_by
from siteloom.errors import SourceError
from siteloom.model import Failure, Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from siteloom.bulk.run import BulkRun, Kept, Outbox
    from siteloom.engine import Lost
    from siteloom.pages import PageSource

_STAGE = "wanted"
_SHARD = "shard "


def wanted_column() -> tuple[str, Any]:
    """The column that the rows of a stage need which wants pages again."""
    return "wanted", load_pyarrow().binary()


def want(place: int, what_for: bytes, out: Outbox) -> None:
    """Ask the shard of a page for it; it comes with what it is wanted for."""
    shard, _ = shard_and_item(place)
    out.send(f"{_SHARD}{shard}", place, wanted=what_for)


def all_wanted(run: BulkRun, stage: str) -> Kept:
    """All that a stage wants, for `wanted_pages`."""
    run.parts(_STAGE, _Keeping, of=stage)
    return run.kept(_STAGE)


class _Keeping:
    """Keeps for each shard which of its items are wanted."""

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        for key, of_key in cut_by("key", batches):
            if key.startswith(_SHARD):
                wanted = {
                    shard_and_item(place)[1]: what_for
                    for batch in of_key
                    for place, what_for in zip(
                        batch.column("place").to_pylist(), batch.column("wanted").to_pylist(), strict=True
                    )
                }
                out.keep(int(key.removeprefix(_SHARD)), packed(wanted))


def wanted_pages(
    kept: Kept, shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox
) -> Iterator[tuple[int, Page, bytes]]:
    """The wanted pages of a shard, each with its number and what it is wanted for.

    Nothing is told of other items, for that was done when all were read. A page that was read before and
    cannot be now must not be left out, as if it had never been: then the work on this shard is not done.
    """
    content = kept.read(out.number)
    if content is None:
        return
    wanted: dict[int, bytes] = unpacked(content)
    missing = set(wanted) - lost.steps.keys()
    why = ""
    for number, item in numbered_items(shard, step):
        if isinstance(item, Failure):
            why = why or f": {item.url}, {item.reason}"
        if number in wanted and isinstance(item, Page):
            if number in lost.steps:
                out.failures.append(lost.failure(number, item.url))
            else:
                missing.discard(number)
                yield number, item, wanted[number]
    if missing:
        raise SourceError(
            f"{len(missing):,} pages that were read before cannot be read again{why}. The same command goes "
            "on once they can."
        )
    out.counts["failed"] = failed_by_reason(out.failures)
