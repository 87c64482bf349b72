"""MinHash bands: pages that share one are likely made alike, so TEXT-MAX can be done apart for those that do.

A band is some of a page's min-hashes together. Two pages with a share J of their paths in common have all r
min-hashes of a band in common with a probability of J**r, and one of b bands at least with 1 - (1 - J**r)**b.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.signature import least_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Of 8, 16 and 32 bands of 2, 4 and 8 min-hashes each, tried on 100 pages of each of 32 sites of SWDE and on
# 180 pages of news. With 2, large parts have pages of many sites. With 8, pages of one template are in 2.5
# parts on average, with 4 in 1.5 or 1.8. 32 bands gain little over 16, and there is a row to sort for each.
_BANDS = 16
_HASHES_OF_A_BAND = 4
_KEY_BYTES = 12  # so no two of the bands of many billion pages are equal by chance

# Any different numbers would do.
_SEEDS = np.array(
    [(0x9E3779B97F4A7C15 * n) % 2**64 for n in range(1, _BANDS * _HASHES_OF_A_BAND + 1)], np.uint64
)


class PathBands(NamedTuple):
    """The bands of a page, and all of them as one, which only pages that are made quite alike share."""

    bands: list[str]
    whole: str


def path_bands(elements: NDArray[np.uint64]) -> PathBands:
    """The bands of a page by the paths of its elements, of which there must be some.

    Texts are left out: most paths of a page end in texts of its own, which would tear its template apart.
    """
    least = least_hashes(elements, _SEEDS).astype(">u8")
    bands = [_key(number, band) for number, band in enumerate(least.reshape(_BANDS, _HASHES_OF_A_BAND))]
    return PathBands(bands, _key(_BANDS, least))


def _key(number: int, hashes: NDArray[np.uint64]) -> str:
    """The same hashes in another band are something else."""
    return blake2b(hashes.tobytes(), digest_size=_KEY_BYTES, key=bytes([number])).hexdigest()
