"""Records as items of Scrapy: a field for each attribute, as feeds and pipelines expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from scrapy import Field, Item

from siteloom.record_rows.columns import column_names, lowest_confidence

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from siteloom.matching import NamedWrapper
    from siteloom.model import Record

_URL = "url"
_WRAPPER = "_wrapper"
_CONFIDENCE = "_confidence"


class SiteloomItem(Item):
    """A record: `url`, a field for each attribute, `_wrapper`, and `_confidence` for its least sure value.

    A field has a text, or a list of texts if the attribute may have several values. An attribute that is
    called as another field is has the field `values.NAME`, and one that the page lacks has none.
    """

    _record: Record

    @property
    def record(self) -> Record:
        """The record itself, with typed values, provenance and all confidences, for pipelines."""
        return self._record

    def copy(self) -> Self:
        """A copy, as pipelines make them, of the same record."""
        copied = super().copy()
        copied._record = self._record  # noqa: SLF001 - of its own kind
        return copied


class ItemMaker:
    """Makes items of records; each has the fields of all wrappers, so that they fit into one table."""

    def __init__(self, wrappers: Iterable[NamedWrapper]) -> None:
        attributes = list(dict.fromkeys(name for named in wrappers for name in named.wrapper.attributes))
        names = column_names(attributes, [_URL, _WRAPPER, _CONFIDENCE])
        self._fields = dict(zip(attributes, names, strict=True))
        fields = {name: Field() for name in (_URL, *names, _WRAPPER, _CONFIDENCE)}
        self._kind = cast("type[SiteloomItem]", type("SiteloomItem", (SiteloomItem,), {"fields": fields}))

    def item(self, record: Record, named: NamedWrapper) -> SiteloomItem:
        """A record that a wrapper found, as an item."""
        item = self._kind()
        item._record = record  # noqa: SLF001 - the fields of an item are for feeds
        item[_URL] = record.url
        for attribute, texts in record.values.items():
            is_multi = named.wrapper.attributes[attribute].attribute.multi
            item[self._fields[attribute]] = list(texts) if is_multi else texts[0]
        item[_WRAPPER] = named.name
        item[_CONFIDENCE] = lowest_confidence({"confidence": record.confidence})
        return item
