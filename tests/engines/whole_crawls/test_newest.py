"""Of pages that are there several times, the version that a store would give, where a store would have it."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.engines.whole_crawls.page_batches import newest, versions


class Seen(NamedTuple):
    url: str
    content: bytes
    seen: int | None


crawls = st.lists(
    st.builds(
        Seen, st.sampled_from("abc"), st.sampled_from([b"1", b"2", b"3"]), st.none() | st.integers(1, 4)
    ),
    max_size=12,
)


def as_table(crawl: list[Seen]) -> pa.Table:
    """Rows of pages that stand at 10, 20, 30 and so on, as they come: some at a time."""
    rows = [{"place": 10 * place, **page._asdict()} for place, page in enumerate(crawl, 1)]
    schema = [("place", pa.int64()), ("url", pa.string()), ("content", pa.binary()), ("seen", pa.int64())]
    pieces = [rows[start : start + 3] for start in range(0, len(rows), 3)]
    return pa.concat_tables([pa.Table.from_pylist(piece, pa.schema(schema)) for piece in [[], *pieces]])


def in_a_store(crawl: list[Seen]) -> dict[tuple[str, bytes], tuple[int, int]]:
    """Each version as a store keeps it: when it was seen last, and where it stands."""
    kept: dict[tuple[str, bytes], tuple[int, int]] = {}
    for place, page in enumerate(crawl, 1):
        when = 1_000 + place if page.seen is None else page.seen  # those without a time are seen as they come
        last, first = kept.get(page[:2], (0, 10 * place))
        kept[page[:2]] = max(last, when), first
    return kept


@given(crawls)
@example([Seen("a", b"1", 1), Seen("a", b"2", 2), Seen("a", b"1", 3)])
@example([Seen("a", b"1", 2), Seen("a", b"2", 2)])
def test_the_newest_is_what_was_seen_last_or_came_last(crawl: list[Seen]) -> None:
    kept = in_a_store(crawl)
    wanted = [max(one for (url, _), one in kept.items() if url == page) for page in {url for url, _ in kept}]
    assert newest(as_table(crawl))["place"].to_pylist() == sorted(place for _, place in wanted)
    assert versions(as_table(crawl))["place"].to_pylist() == sorted(place for _, place in kept.values())
