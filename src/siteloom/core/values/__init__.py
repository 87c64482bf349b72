"""Read texts as numbers, prices, dates, addresses, images and ratings.

A text that cannot be read as its type with certainty gives None: a wrong value is worse than none, because
the text itself is always kept as well.
"""

from __future__ import annotations

from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING

from siteloom.core.values.dates import date, order_of_dates
from siteloom.core.values.numbers import number
from siteloom.core.values.prices import price
from siteloom.core.values.ratings import rating
from siteloom.core.values.type_inference import infer_type
from siteloom.core.values.urls_and_images import image, url
from siteloom.core.values.value_types import Image, Price, Rating, to_plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.core.model import ValueType

__all__ = [
    "Image",
    "Price",
    "Rating",
    "infer_type",
    "lacks_extra",
    "order_of_dates",
    "to_plain",
    "typed_value",
]

_PACKAGES: Mapping[ValueType, str] = {"price": "price_parser", "date": "dateparser"}  # of the extra `values`
_NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})


def lacks_extra(type: ValueType) -> bool:  # noqa: A002 - the schema's word
    """Return whether texts cannot be read as a type, because the extra `values` is not installed."""
    return type in _PACKAGES and find_spec(_PACKAGES[type]) is None


def typed_value(
    text: str,
    type: ValueType,  # noqa: A002 - the schema's word
    base_url: str = "",
    html_attributes: Mapping[str, str] = _NO_ATTRIBUTES,
    *,
    day_first: bool | None = None,
) -> object | None:
    """Read a text as a type; None if that is not possible with certainty.

    `base_url` is the address of the page, and `html_attributes` are those of the text's element: addresses
    need both. `day_first` says how to read dates such as `03/04/2011` (see `order_of_dates`). Prices and
    dates need the extra `values`, and raise `MissingExtra` without it.
    """
    text = text.strip()
    match type:
        case "number":
            return number(text)
        case "price":
            return price(text)
        case "date":
            return date(text, day_first=day_first)
        case "url":
            return url(text, base_url, html_attributes)
        case "image":
            return image(text, base_url, html_attributes)
        case "rating":
            return rating(text)
        case "text":
            return text
