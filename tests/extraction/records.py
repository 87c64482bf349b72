"""Records and rows for the tests of `record_rows`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from siteloom.core.model import Provenance, Record, Withheld
from siteloom.core.values.value_types import Image, Price, Rating
from siteloom.extraction.record_rows import Row, record_row

UTF_8 = st.characters(codec="utf-8")
PARTS = ("values", "typed", "confidence", "provenance", "withheld")


def row(
    url: str,
    confidence: float = 0.9,
    wrapper: str = "shop",
    version: int | None = 1,
    /,  # so that an attribute may have any name
    **values: Sequence[str],
) -> Row:
    """A row with these values, each as sure as the others and found by a rule of its attribute."""
    origins = {
        attribute: tuple(
            Provenance(f"{attribute}#1", f"//{attribute}", f"/html[1]/p[{number}]", confidence)
            for number, _ in enumerate(texts, 1)
        )
        for attribute, texts in values.items()
    }
    return record_row(Record(url, {a: tuple(v) for a, v in values.items()}, {}, origins), wrapper, version)


def texts(alphabet: st.SearchStrategy[str] = UTF_8) -> st.SearchStrategy[str]:
    return st.text(alphabet, max_size=8)


typed_values = st.one_of(
    st.none(),
    texts(),
    st.decimals(allow_nan=False, allow_infinity=False, places=2),
    st.dates(),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.builds(Price, st.decimals(allow_nan=False, allow_infinity=False, places=2), st.none() | texts()),
    st.builds(Image, texts(), st.none() | texts()),
    st.builds(Rating, st.just(Decimal(4)), st.none() | st.just(Decimal(5))),
)


@st.composite
def records(
    draw: st.DrawFn,
    attributes: Sequence[str],
    alphabet: st.SearchStrategy[str] = UTF_8,
    urls: st.SearchStrategy[str] | None = None,
) -> Record:
    """Any record with some of these attributes."""
    text = texts(alphabet)
    counts = {name: draw(st.integers(1, 3)) for name in attributes if draw(st.booleans())}
    origin = st.builds(Provenance, text, text, text, st.floats(0, 1))

    def several(item: st.SearchStrategy[Any], count: int) -> tuple[Any, ...]:
        return tuple(draw(item) for _ in range(count))

    return Record(
        draw(urls if urls is not None else text),
        {name: several(text, count) for name, count in counts.items()},
        {name: several(typed_values, count) for name, count in counts.items() if draw(st.booleans())},
        {name: several(origin, count) for name, count in counts.items()},
        draw(st.dictionaries(st.sampled_from(attributes), st.tuples(st.builds(Withheld, text, text, text)))),
    )


def rows(
    attributes: Sequence[str],
    alphabet: st.SearchStrategy[str] = UTF_8,
    urls: st.SearchStrategy[str] | None = None,
) -> st.SearchStrategy[list[Row]]:
    """Any rows with some of these attributes."""
    one = st.builds(
        record_row,
        records(attributes, alphabet, urls),
        texts(alphabet),
        st.none() | st.integers(1, 1000),
    )
    flagged = st.tuples(one, st.none() | texts(alphabet)).map(
        lambda drawn: {**drawn[0], "duplicate_of": drawn[1]}
    )
    return st.lists(flagged, max_size=4)
