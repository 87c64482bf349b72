"""Evenly spaced subsets of a sequence, and sequences in batches."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import tuple_

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import Column, Connection, Engine, Row, Select


_Item = TypeVar("_Item")


def batches(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """Yield the items in lists of the given size; the last may be shorter."""
    following = iter(items)
    while batch := list(islice(following, size)):
        yield batch


def row_batches(
    engine: Engine, query: Select[*tuple[Any, ...]], order: Sequence[Column[Any]], size: int
) -> Iterator[Sequence[Any]]:
    """Yield the rows of a query in batches, in the order of columns that together are unique.

    Each batch is a query of its own from where the last one ended, so no result is large or stays open.
    """
    batch = query.order_by(*order).limit(size)
    following = batch
    while True:
        with engine.connect() as connection:
            rows = connection.execute(following).all()
        yield rows
        if len(rows) < size:
            return
        last_key = [getattr(rows[-1], column.name) for column in order]
        following = batch.where(tuple_(*order) > tuple_(*last_key))


def paged_rows(
    connection: Connection, query: Select[*tuple[Any, ...]], order: Sequence[Column[Any]], size: int
) -> Iterator[Row[*tuple[Any, ...]]]:
    """Yield the rows of a query one by one within a transaction; passed rows may be changed or removed."""
    batch = query.order_by(*order).limit(size)
    following = batch
    while rows := connection.execute(following).all():
        yield from rows
        last_key = [getattr(rows[-1], column.name) for column in order]
        following = batch.where(tuple_(*order) > tuple_(*last_key))


def evenly_spaced(items: Sequence[_Item], limit: int) -> list[_Item]:
    """Return all items, or an evenly spaced subset of at most `limit`."""
    count = min(len(items), limit)
    return [items[len(items) * number // count] for number in range(count)]
