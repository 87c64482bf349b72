"""The two passes of Vertex's clustering in which signatures choose among their masks."""

from __future__ import annotations

import numpy as np
from numba import njit

import siteloom.kernels  # noqa: F401 - says where compiled code is kept


@njit(cache=True)
def commit_to_best(masks, pages, order, mask_pages):  # type: ignore[no-untyped-def]
    """Let each signature keep its best mask only: its pages are taken off the counts of its others.

    `masks[k, s]` is the k-th mask of signature s, the preferred ones first;
    `pages[s]` how many pages have the signature. Signatures choose in `order`,
    each by what the counts are by then.
    """
    for signature in order:
        best = 0
        for k in range(1, masks.shape[0]):
            if mask_pages[masks[k, signature]] > mask_pages[masks[best, signature]]:
                best = k
        for k in range(masks.shape[0]):
            if k != best:
                mask_pages[masks[k, signature]] -= pages[signature]


@njit(cache=True)
def best_masks(masks, mask_pages, pages_needed):  # type: ignore[no-untyped-def]
    """The mask with the most pages of each signature, or -1 where all have too few."""
    best = np.full(masks.shape[1], -1, np.int64)
    for signature in range(masks.shape[1]):
        most = pages_needed - 1
        for k in range(masks.shape[0]):
            mask = masks[k, signature]
            if mask_pages[mask] > most:
                most = mask_pages[mask]
                best[signature] = mask
    return best
