"""Positions of texts that hold across the pages of a site, numbered in several schemes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.learning.known_records.record_arrays import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from siteloom.html.page_text_arrays import PageTexts

    Ints = NDArray[np.int32]
    Flags = NDArray[np.bool_]

# A text belongs to the template if so many of the pages with its styled path, and of all pages, have it
# there. This is judged per path and text, never per text: a team's name in the menu is a value elsewhere.
_TEMPLATE_SHARE = 0.9
_LEAST_TEMPLATE_SHARE = 0.05

_NO_POSITION = -1


class Position(NamedTuple):
    """A position of an attribute's values: a numbering scheme, and the number in this scheme."""

    scheme: int
    number: int


class Positions(NamedTuple):
    """The position of each row of page texts in each scheme, or -1 where a row has none.

    The schemes are: by absolute path; by styled path and the text before; by styled path and number among the
    page's texts there; by styled path and kind of value.
    """

    of_row: tuple[Ints, ...]
    nodes_of_page: tuple[NDArray[np.float64], ...]

    def rows_at(self, position: Position) -> NDArray[np.int64]:
        """Return the rows at a position."""
        return np.flatnonzero(self.of_row[position.scheme] == position.number)


def positions_of(texts: PageTexts, kind_of_text: Ints) -> Positions:
    """Number the positions of all rows; `kind_of_text` has the number of each text's kind of value, or -1."""
    styled = (texts.styled_path.astype(np.int64) * 3 + texts.form) << 31
    kinds = kind_of_text[texts.text]
    keys = (
        texts.path.astype(np.int64) * 3 + texts.form,
        styled | (texts.label + 1),
        styled | _numbers_on_page(texts),
        np.where(kinds >= 0, styled | kinds, _NO_POSITION),
    )
    numbered = [_numbered(key) for key in keys]
    return Positions(tuple(numbered), tuple(_nodes_of_page(texts.page, numbers) for numbers in numbered))


def _numbered(keys: NDArray[np.int64]) -> Ints:
    distinct_keys, numbers = np.unique(keys, return_inverse=True)
    has_missing = len(distinct_keys) > 0 and distinct_keys[0] == _NO_POSITION
    return (numbers - has_missing).astype(np.int32)


def _numbers_on_page(texts: PageTexts) -> NDArray[np.int64]:
    """Return the number of each row among those of its page, styled path and form, from 0."""
    keys = texts.page.astype(np.int64) << 32 | (texts.styled_path.astype(np.int64) * 3 + texts.form)
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=_NO_POSITION))
    numbers = np.empty(len(keys), np.int64)
    numbers[order] = np.arange(len(keys)) - np.repeat(starts, np.diff(starts, append=len(keys)))
    return numbers


def _nodes_of_page(page: Ints, numbers: Ints) -> NDArray[np.float64]:
    stands = numbers >= 0
    pairs = distinct(numbers[stands].astype(np.int64) << 32 | page[stands])
    return np.bincount(numbers[stands]) / np.maximum(1, np.bincount(pairs >> 32))


def template_rows(texts: PageTexts) -> Flags:
    """Flag the rows that belong to the template of their pages."""
    pages_of_path = np.bincount(distinct(texts.styled_path.astype(np.int64) << 32 | texts.page) >> 32)
    _, path_and_text = np.unique(texts.styled_path.astype(np.int64) << 32 | texts.text, return_inverse=True)
    pages_of_path_and_text = np.bincount(distinct(path_and_text.astype(np.int64) << 32 | texts.page) >> 32)
    is_usual = pages_of_path_and_text[path_and_text] >= _TEMPLATE_SHARE * pages_of_path[texts.styled_path]
    is_template: Flags = is_usual & (
        pages_of_path_and_text[path_and_text] > max(1, _LEAST_TEMPLATE_SHARE * texts.pages)
    )
    return is_template
