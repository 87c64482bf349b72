"""Evenly spaced subsets of a sequence, and sequences in batches."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import tuple_

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import Column, Connection, Engine, Row, Select


_T = TypeVar("_T")


def batches(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """The same items in lists of a size; the last may be shorter."""
    following = iter(items)
    while batch := list(islice(following, size)):
        yield batch


def row_batches(
    engine: Engine, query: Select[*tuple[Any, ...]], order: Sequence[Column[Any]], size: int
) -> Iterator[Sequence[Any]]:
    """The rows of a query in the order of columns of it that tell each from all others, some at a time.

    Each batch is found from where the last one ended: no answer is large, and none stays open.
    """
    batch = query.order_by(*order).limit(size)
    following = batch
    while True:
        with engine.connect() as connection:
            rows = connection.execute(following).all()
        yield rows
        if len(rows) < size:
            return
        last = [getattr(rows[-1], column.name) for column in order]
        following = batch.where(tuple_(*order) > tuple_(*last))


def paged_rows(
    connection: Connection, query: Select[*tuple[Any, ...]], order: Sequence[Column[Any]], size: int
) -> Iterator[Row[*tuple[Any, ...]]]:
    """The same within a transaction, row by row; those that were passed may be changed or removed."""
    batch = query.order_by(*order).limit(size)
    following = batch
    while rows := connection.execute(following).all():
        yield from rows
        last = [getattr(rows[-1], column.name) for column in order]
        following = batch.where(tuple_(*order) > tuple_(*last))


T = TypeVar("T")


def evenly_spaced(items: Sequence[T], most: int) -> list[T]:
    """All items, or as many of them as may be, evenly spaced."""
    count = min(len(items), most)
    return [items[len(items) * number // count] for number in range(count)]
