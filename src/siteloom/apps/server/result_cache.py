"""What was found for tables of records, kept for their next pages and for the next letter that is typed."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from siteloom.store.queries.record_filters import RecordQuery, matching_records

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Hashable, Sequence

    from siteloom.apps.server.views.records import AttributeShare
    from siteloom.store.queries.record_filters import RecordColumns, RecordCount, RecordScope, RecordTable

_MOST_RECORDS = 300_000
"""Of so many records the columns are kept: some hundred megabytes. Those of more are read for each query."""

_MOST_IDS = 5_000_000
"""So many ids of what was found: 40 MB."""

_MOST_COUNTS = 10_000
"""So many numbers of records by wrapper, or with an attribute."""

_MOST_KEPT = 200
"""So many things of a kind, however small they are: what they are known by takes room as well."""

_Item = TypeVar("_Item")


class Choice(NamedTuple):
    """What a table is made of: the records of a scope, or those of a site, or by a wrapper."""

    scope: RecordScope
    site: str | None
    wrapper: str | None


class _Kept(Generic[_Item]):
    """The things that were used last, up to a number and a size of all together, and always the last one."""

    def __init__(self, largest: int, size: Callable[[_Item], int]) -> None:
        self._largest = largest
        self._size = size
        self._lock = Lock()
        self._items: OrderedDict[Hashable, _Item] = OrderedDict()
        self._making: WeakValueDictionary[Hashable, Lock] = WeakValueDictionary()

    def get(self, key: Hashable, make: Callable[[], _Item]) -> _Item:
        """What is kept under a key; made by one at a time if it is not there."""
        with self._lock:
            making = self._making.setdefault(key, Lock())
        with making:
            with self._lock:
                if key in self._items:
                    self._items.move_to_end(key)
                    return self._items[key]
                items = self._items
            made = make()
            with self._lock:
                items[key] = made  # if all was dropped meanwhile, this is, too
                while len(self._items) > 1 and self._is_too_much():
                    self._items.popitem(last=False)
            return made

    def drop(self) -> None:
        """Keep nothing of what there is."""
        with self._lock:
            self._items = OrderedDict()

    def _is_too_much(self) -> bool:
        return len(self._items) > _MOST_KEPT or sum(map(self._size, self._items.values())) > self._largest


class FoundRecords:
    """How many records there are, the ids that queries were for, and columns of records to ask more about."""

    def __init__(self) -> None:
        self._forgetting: tuple[int, str] | None = None
        self._scopes: _Kept[RecordScope] = _Kept(_MOST_COUNTS, lambda scope: len(scope.sites))
        self._counts: _Kept[Sequence[RecordCount]] = _Kept(_MOST_COUNTS, len)
        self._attributes: _Kept[Sequence[AttributeShare]] = _Kept(_MOST_COUNTS, len)
        self._ids: _Kept[array[int]] = _Kept(_MOST_IDS, len)
        self._columns: _Kept[Sequence[RecordColumns]] = _Kept(
            _MOST_RECORDS, lambda chunks: sum(map(len, chunks))
        )

    def scope(self, table: RecordTable, run_id: int | None) -> RecordScope:
        """The records to choose from; if they are the same as before, the object that all else is kept by."""
        scope = table.scope(run_id)
        self.drop_forgotten(scope.forgetting)
        return self._scopes.get(scope, lambda: scope)

    def drop_forgotten(self, forgetting: tuple[int, str] | None) -> None:
        """Drop all if the store has forgotten something since it was found."""
        if forgetting != self._forgetting:
            self._forgetting = forgetting
            for kept in (self._scopes, self._counts, self._attributes, self._ids, self._columns):
                kept.drop()

    def counts(self, table: RecordTable, scope: RecordScope) -> Sequence[RecordCount]:
        """How many records of a scope there are of each site by each wrapper, most first."""
        return self._counts.get(scope, lambda: table.counts(scope))

    def attributes(
        self, choice: Choice, make: Callable[[], Sequence[AttributeShare]]
    ) -> Sequence[AttributeShare]:
        """The attributes that records of a choice may have."""
        return self._attributes.get(choice, make)

    def ids(self, table: RecordTable, choice: Choice, query: RecordQuery) -> array[int]:
        """The ids of the records of a choice that a query is for, in its order."""
        return self._ids.get((choice, query), lambda: self._find(table, choice, query))

    def prepare(self, table: RecordTable, choice: Choice) -> None:
        """Read the columns of a choice, so that the first question about them is not the slowest."""
        if self._records(table, choice) <= _MOST_RECORDS:
            self._kept_columns(table, choice)

    def _find(self, table: RecordTable, choice: Choice, query: RecordQuery) -> array[int]:
        if query == RecordQuery():
            return table.ids(*choice)
        if self._records(table, choice) > _MOST_RECORDS:
            return matching_records(table.chunks(*choice), query)
        return matching_records(self._kept_columns(table, choice), query)

    def _records(self, table: RecordTable, choice: Choice) -> int:
        return sum(
            one.records
            for one in self.counts(table, choice.scope)
            if choice.site in (None, one.site) and choice.wrapper in (None, one.wrapper)
        )

    def _kept_columns(self, table: RecordTable, choice: Choice) -> Sequence[RecordColumns]:
        return self._columns.get(choice, lambda: list(table.chunks(*choice)))
