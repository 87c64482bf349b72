"""Convert rows of tables and other mappings to seeds.

A column or key is an attribute, except `_source`, `_url` and `_confidence`; others that begin with `_` are
ignored. Lists are several values of an attribute, and nested attributes have joined names, such as
`address.street`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from siteloom.core.errors import UsageError
from siteloom.core.model import LONGEST_SOURCE, Failure, Seed, Skipped
from siteloom.core.urls import oversized_url
from siteloom.sources.seed_tables import BadRow, Rows, open_table
from siteloom.sources.seed_values import normalize_blanks, shown_text, texts_of, value_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


SOURCE_KEY = "_source"
URL_KEY = "_url"
CONFIDENCE_KEY = "_confidence"

_WITHOUT_VALUES = "no values"

_OF_EXTRACTED = ("url", "wrapper", "values")
_LONGEST_SHOWN = 60


def read_seeds(
    location: str,
    source: str = "",
    several: Mapping[str, str] = MappingProxyType({}),
    on_problem: Callable[[Failure | Skipped], None] | None = None,
) -> Iterator[Seed]:
    """Read the seeds of a file or of an SQL table, such as `sqlite:///file.db#table`.

    `source` names their origin; by default it is the row's `_source`, or else the name of the file or table.
    `several` has separators by attribute, for several values in one text. Rows that cannot be read and those
    without values are left out and reported to `on_problem`.
    """
    return _seeds(open_table(location), source, several, on_problem or (lambda _: None))


def seed_of(row: Mapping[Any, object], source: str = "") -> Seed:
    """Convert a row or another mapping, such as a record of `siteloom extract`, to a seed.

    Values are read as a page might show them: None and NaN are missing, and so are texts such as `n/a`, `-`
    and `null`; 4.0 is `4`, since gaps in a table turn whole numbers into floats, and True is `true`. Raises
    UsageError if it is not a mapping, or its source, URL or confidence is invalid. The seed may have no
    values.
    """
    try:
        if not isinstance(row, Mapping):
            raise UsageError(f"A known record must be a mapping of attributes, not {_quoted(row)}.")
        if all(key in row for key in _OF_EXTRACTED) and isinstance(values := row["values"], Mapping):
            return Seed(texts_of(values), source, shown_text(row["url"]), _lowest(row.get("confidence")))
        attributes = {key: value for key, value in row.items() if not _is_no_attribute(key)}
        if len(attributes) == len(row):
            return Seed(texts_of(row), source)
        return Seed(
            texts_of(attributes),
            _source(row.get(SOURCE_KEY)) or source,
            _only_text(row.get(URL_KEY), URL_KEY),
            _confidence(row.get(CONFIDENCE_KEY)),
        )
    except RecursionError:
        raise UsageError("A known record is nested too deeply.") from None


def _is_no_attribute(key: object) -> bool:
    return isinstance(key, str) and key.startswith("_")


def reshaped(seed: Seed, several: Mapping[str, str], renamed: Mapping[str, str]) -> Seed:
    """Return the seed with values split at separators by attribute, and then attributes renamed.

    Attributes that get the same name become one.
    """
    values: dict[str, tuple[str, ...]] = {}
    for name, texts in seed.values.items():
        new_name = renamed.get(name, name)
        split_texts = texts
        if separator := several.get(name):
            split_texts = tuple(
                filter(None, (value_text(piece) for text in texts for piece in text.split(separator)))
            )
        if new_name in values or separator:
            split_texts = tuple(dict.fromkeys((*values.get(new_name, ()), *split_texts)))
        if split_texts:
            values[new_name] = split_texts
    return Seed(values, seed.source, seed.url, seed.confidence)


def _seeds(
    table: Rows, source: str, several: Mapping[str, str], on_problem: Callable[[Failure | Skipped], None]
) -> Iterator[Seed]:
    for number, row in table.rows:
        try:
            seed = row if isinstance(row, BadRow) else seed_of(row, source or table.name)
        except UsageError as error:
            seed = BadRow("bad value", str(error).removesuffix("."))
        if isinstance(seed, Seed) and (failure := oversized_url(seed.url)):
            seed = BadRow(failure.reason, failure.detail)
        if isinstance(seed, BadRow):
            on_problem(Failure(f"{table.place}{number}", seed.reason, seed.detail))
            continue
        if several:
            seed = reshaped(seed, several, {})
        if source and seed.source != source:
            seed = Seed(seed.values, source, seed.url, seed.confidence)
        if seed.values:
            yield seed
        else:
            on_problem(Skipped(f"{table.place}{number}", _WITHOUT_VALUES))


def _source(value: object) -> str:
    source = _only_text(value, SOURCE_KEY)
    if len(source.encode(errors="surrogatepass")) > LONGEST_SOURCE:
        raise UsageError(f"{SOURCE_KEY} is longer than {LONGEST_SOURCE} bytes.")
    return source


def _only_text(value: object, key: str) -> str:
    text = shown_text(value)
    if text and not isinstance(value, str):
        raise UsageError(f"{key} must be a text, not {_quoted(value)}.")
    return text


def _confidence(value: object) -> float:
    text = shown_text(value)
    try:
        confidence = float(text or 1.0)
    except ValueError:
        confidence = math.nan
    if not 0 <= confidence <= 1:
        raise UsageError(f"{CONFIDENCE_KEY} must be a number from 0 to 1, not {_quoted(value)}.")
    return confidence


def _quoted(value: object) -> str:
    shown = normalize_blanks(repr(value))
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}..."


def _lowest(confidence: object) -> float:
    """Return the lowest confidence of the values of an extracted record."""
    by_attribute = confidence if isinstance(confidence, Mapping) else {}
    all_values = [value for values in by_attribute.values() if isinstance(values, list) for value in values]
    return min(map(_confidence, all_values), default=1.0)
