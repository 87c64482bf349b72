"""Documents as path sets, made for tests."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Document = NDArray[np.uint64]

# Few different paths, so that documents share some.
a_document = st.frozensets(st.integers(0, 30), max_size=12)
some_documents = st.lists(a_document, max_size=12)


def document(paths: Iterable[int]) -> Document:
    return np.array(sorted(paths), np.uint64)


def letters(text: str) -> Document:
    """A document whose paths are letters."""
    return document(map(ord, text))


def made_from_templates(
    templates: int, documents: int, seed: int = 0, presence: float = 0.97
) -> tuple[list[Document], list[int]]:
    """Documents of templates in turn, and the template of each.

    A template has 60 paths, of which a document has nearly all; 10 paths are
    common to all templates, and 20 of each document are its own.
    """
    random = np.random.default_rng(seed)
    paths = random.integers(0, 2**64, (templates, 60), np.uint64, endpoint=False)
    paths[:, :10] = paths[0, :10]
    truth = [number % templates for number in range(documents)]
    made = [
        np.unique(
            np.concatenate(
                [paths[number][random.random(60) < presence], random.integers(0, 2**64, 20, np.uint64)]
            )
        )
        for number in truth
    ]
    return made, truth
