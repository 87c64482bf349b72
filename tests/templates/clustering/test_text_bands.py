"""Pages that are made alike share a MinHash band, others do not."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from siteloom.templates.clustering.text_minhash import path_bands

seeds = st.integers(0, 2**32 - 1)


def some_paths(seed: int, count: int) -> NDArray[np.uint64]:
    return np.unique(np.random.default_rng(seed).integers(0, 2**63, count).astype(np.uint64))


@given(seeds, st.integers(1, 300))
def test_the_same_paths_give_the_same_bands_in_whatever_order(seed: int, count: int) -> None:
    paths = some_paths(seed, count)
    assert path_bands(paths) == path_bands(paths[::-1])
    assert len({*path_bands(paths).bands, path_bands(paths).combined}) == 17


@given(seeds)
def test_pages_with_a_tenth_of_their_own_share_a_band_and_unlike_pages_none(seed: int) -> None:
    """Of 200 and 20 paths each: a band agrees with .83 ** 4, so all 16 differ once in ten thousand pairs."""
    shared = some_paths(seed, 200)
    one = path_bands(np.concatenate([shared, some_paths(seed + 1, 20)]))
    other = path_bands(np.concatenate([shared, some_paths(seed + 2, 20)]))
    unlike = path_bands(some_paths(seed + 3, 200))
    assert set(one.bands) & set(other.bands)
    assert one.combined != other.combined
    assert not set(one.bands) & set(unlike.bands)
