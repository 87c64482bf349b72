"""Vertex: cluster the pages of a site by signature in three passes, with a compiled kernel.

A signature of eight bytes is covered by 37 masks, those with at most two wildcards. The passes count masks,
let each signature commit to its best one, and give each page to the best remaining mask (Gulhane et al., ICDE
2011). No two pages are ever compared, so the time is linear in the pages.

Two things are added. Masks whose typical signatures agree on most bytes are fragments of one template and
become one cluster; and a signature that no mask covers joins the cluster of a signature that it mostly agrees
with.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.core.compiled import njit
from siteloom.templates.signature import SIGNATURE_BYTES, Mask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@njit(cache=True)
def commit_to_best(masks, pages, order, mask_pages):  # type: ignore[no-untyped-def]
    """Commit each signature to its best mask: subtract its pages from the counts of its other masks.

    `masks[k, s]` is the k-th mask of signature s, the preferred ones first; `pages[s]` is the number of pages
    with the signature. Signatures choose in `order`, each by the counts at that time.
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
    """Return the mask with the most pages of each signature, or -1 where all have too few."""
    best = np.full(masks.shape[1], -1, np.int64)
    for signature in range(masks.shape[1]):
        highest_count = pages_needed - 1
        for k in range(masks.shape[0]):
            mask = masks[k, signature]
            if mask_pages[mask] > highest_count:
                highest_count = mask_pages[mask]
                best[signature] = mask
    return best


# Pages of two templates hardly ever agree on even four bytes; pages of one template agree on four or more in
# nine of ten pairs. Joining at five keeps all the development sites apart and leaves less than one page in a
# hundred ungrouped.
_AGREEING_BYTES = 5
# Fragments of one template agree on more: at six bytes the development sites have 2.3 clusters on average, at
# five 1.5, but then templates of one site with the same navigation begin to mix.
_AGREEING_BYTES_OF_FRAGMENTS = 6

# A mask needs the papers' 20 pages on a large site, one in a hundred on a smaller one.
_MOST_PAGES_NEEDED = 20
_SHARE_OF_PAGES_NEEDED = 0.01
_FEWEST_PAGES_NEEDED = 2


@dataclass(frozen=True, slots=True)
class SignatureCluster:
    """Pages of one template: their indices, the mask of most of them, and all their signatures.

    `mask_pages` is the number of pages that committed to the mask.
    """

    members: tuple[int, ...]
    mask: Mask
    mask_pages: int
    accepted: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class SignatureClustering:
    """The clusters of a site, the largest first.

    `plain_coverage` is the share of pages that the three passes put into clusters, `coverage` the share after
    joining.
    """

    clusters: tuple[SignatureCluster, ...]
    unclustered: tuple[int, ...]
    plain_coverage: float
    coverage: float


class SignatureGroups(NamedTuple):
    """Groups of counted signatures: the group of each signature (-1: none), and the masks of the groups.

    The group with the most pages in its masks comes first. `mask_pages` is the number of pages that committed
    to the mask of each group, `plainly_grouped` the number of pages that the three passes alone grouped.
    """

    of_signature: NDArray[np.int64]
    masks: list[Mask]
    mask_pages: list[int]
    plainly_grouped: int


def group_signatures(distinct: NDArray[np.uint64], counts: NDArray[np.int64], pages: int) -> SignatureGroups:
    """Group the distinct signatures of a site, given in ascending order with their page counts.

    `pages` is the number of all pages, including those without a signature. The memory depends only on the
    number of distinct signatures: a kilobyte each.
    """
    masks = _count_masks(distinct, counts)
    commit_to_best(masks.of_signature, counts, np.lexsort((distinct, counts)), masks.pages)
    mask_of_signature = best_masks(masks.of_signature, masks.pages, pages_needed(pages))
    groups = _merge_fragments(
        distinct=distinct, counts=counts, mask_of_signature=mask_of_signature, masks=masks
    )
    return SignatureGroups(
        of_signature=_join_ungrouped(distinct, groups.of_signature),
        masks=[masks.mask(main_mask) for main_mask in groups.main_masks],
        mask_pages=[int(masks.pages[main_mask]) for main_mask in groups.main_masks],
        plainly_grouped=int(counts[mask_of_signature >= 0].sum()),
    )


def cluster_signatures(signatures: Sequence[bytes | None]) -> SignatureClustering:
    """Group the pages of one site; pages without a signature stay unclustered."""
    pages = [page for page, signature in enumerate(signatures) if signature is not None]
    if not pages:
        return SignatureClustering(
            clusters=(), unclustered=tuple(range(len(signatures))), plain_coverage=0.0, coverage=0.0
        )
    numbers = _numbers([signature for signature in signatures if signature is not None])
    distinct, place_of_page, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    groups = group_signatures(distinct, counts, len(signatures))
    group_of_page = np.full(len(signatures), -1, np.int64)
    group_of_page[pages] = groups.of_signature[place_of_page]
    clusters = [
        SignatureCluster(
            members=tuple(members.tolist()),
            mask=mask,
            mask_pages=mask_pages,
            accepted=tuple(int(number).to_bytes(SIGNATURE_BYTES) for number in distinct[accepted]),
        )
        for mask, mask_pages, members, accepted in zip(
            groups.masks,
            groups.mask_pages,
            _places_by_group(group_of_page, len(groups.masks)),
            _places_by_group(groups.of_signature, len(groups.masks)),
            strict=True,
        )
    ]
    return SignatureClustering(
        clusters=tuple(sorted(clusters, key=lambda cluster: (-len(cluster.members), cluster.members))),
        unclustered=tuple(np.flatnonzero(group_of_page < 0).tolist()),
        plain_coverage=groups.plainly_grouped / len(signatures),
        coverage=float((group_of_page >= 0).mean()),
    )


def assign(
    clusters: Sequence[SignatureCluster], signatures: Sequence[bytes | None]
) -> tuple[int | None, ...]:
    """Return the cluster of each signature without clustering again.

    A signature accepted by a cluster goes to that cluster, another to the largest mask that covers it, or
    else to the cluster of a signature that it mostly agrees with.
    """
    assigned: list[int | None] = [None] * len(signatures)
    pages = [page for page, signature in enumerate(signatures) if signature is not None]
    if not pages or not clusters:
        return tuple(assigned)
    numbers = _numbers([signature for signature in signatures if signature is not None])
    chosen = np.full(len(pages), -1, np.int64)
    by_mask_pages = sorted(range(len(clusters)), key=lambda number: -clusters[number].mask_pages)
    for cluster in by_mask_pages:
        mask = clusters[cluster].mask
        byte_mask = _byte_masks([tuple(mask.wildcards)])[0]
        is_covered = (numbers & byte_mask) == (_numbers([mask.value])[0] & byte_mask)
        chosen[(chosen < 0) & is_covered] = cluster
    accepted = _numbers([signature for cluster in clusters for signature in cluster.accepted])
    owner = np.repeat(np.arange(len(clusters)), [len(cluster.accepted) for cluster in clusters])
    order = np.argsort(accepted, kind="stable")
    places = np.minimum(np.searchsorted(accepted[order], numbers), len(accepted) - 1)
    is_accepted = accepted[order][places] == numbers
    chosen[is_accepted] = owner[order][places][is_accepted]
    chosen[chosen < 0] = _nearest_groups(numbers[chosen < 0], accepted, owner)
    for page, cluster in zip(pages, chosen.tolist(), strict=True):
        assigned[page] = cluster if cluster >= 0 else None
    return tuple(assigned)


def pages_needed(pages: int) -> int:
    """Return the number of pages that must share a mask to form a cluster."""
    return max(_FEWEST_PAGES_NEEDED, min(_MOST_PAGES_NEEDED, int(_SHARE_OF_PAGES_NEEDED * pages)))


def _places_by_group(groups: NDArray[np.int64], count: int) -> list[NDArray[np.int64]]:
    """Return the indices of each of the groups 0 to `count`, ascending; -1 is no group."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(count + 1))
    return [order[start:end] for start, end in pairwise(starts)]


def _numbers(signatures: Sequence[bytes]) -> NDArray[np.uint64]:
    """Return signatures as numbers with the same sort order."""
    return np.frombuffer(b"".join(signatures), ">u8").astype(np.uint64)


def _wildcards(number: int) -> list[tuple[int, ...]]:
    """Return all placements of this many wildcards, late ones first.

    So of two masks of a signature with the same number of wildcards, the greater one comes first, if a
    wildcard counts as less than any byte.
    """
    return sorted(combinations(range(SIGNATURE_BYTES), number), reverse=True)


def _byte_masks(wildcards: Sequence[tuple[int, ...]]) -> NDArray[np.uint64]:
    """Return bit masks that clear the wildcards of a signature's number."""
    byte_masks = np.full((len(wildcards), SIGNATURE_BYTES), 0xFF, np.uint8)
    for row, places in enumerate(wildcards):
        byte_masks[row, list(places)] = 0
    return byte_masks.view(">u8").ravel().astype(np.uint64)


_MASK_WILDCARDS = [places for number in range(3) for places in _wildcards(number)]
_MASK_BYTES = _byte_masks(_MASK_WILDCARDS)
_NEAR_BYTES = [
    _byte_masks(_wildcards(differing)) for differing in range(1, SIGNATURE_BYTES - _AGREEING_BYTES + 1)
]
_FRAGMENT_BYTES = _byte_masks(_wildcards(SIGNATURE_BYTES - _AGREEING_BYTES_OF_FRAGMENTS))


class _MaskTable(NamedTuple):
    """All masks of the signatures; row k of `of_signature` has those with the k-th placement of wildcards."""

    of_signature: NDArray[np.int32]
    value: NDArray[np.uint64]
    wildcards: NDArray[np.int64]
    pages: NDArray[np.int64]

    def mask(self, number: int) -> Mask:
        value = int(self.value[number]).to_bytes(SIGNATURE_BYTES)
        return Mask(value, frozenset(_MASK_WILDCARDS[self.wildcards[number]]))


def _count_masks(distinct: NDArray[np.uint64], counts: NDArray[np.int64]) -> _MaskTable:
    """Pass 1: count the pages that each mask covers."""
    of_signature = np.empty((len(_MASK_BYTES), len(distinct)), np.int32)
    values, pages, mask_count = [], [], 0
    for row, byte_mask in enumerate(_MASK_BYTES):
        value, index = np.unique(distinct & byte_mask, return_inverse=True)
        of_signature[row] = index + mask_count
        mask_count += len(value)
        values.append(value)
        pages.append(np.bincount(index, counts).astype(np.int64))
    wildcards = np.repeat(np.arange(len(values)), [len(value) for value in values])
    return _MaskTable(
        of_signature=of_signature,
        value=np.concatenate(values),
        wildcards=wildcards,
        pages=np.concatenate(pages),
    )


class _Groups(NamedTuple):
    """Masks merged into clusters: the group of each signature (-1: none), and the main mask of each group.

    The group with the most pages comes first.
    """

    of_signature: NDArray[np.int64]
    main_masks: list[int]


def _merge_fragments(
    distinct: NDArray[np.uint64],
    counts: NDArray[np.int64],
    mask_of_signature: NDArray[np.int64],
    masks: _MaskTable,
) -> _Groups:
    """Merge masks whose most common signatures agree on most bytes, smaller ones into larger ones."""
    clustered = np.flatnonzero(mask_of_signature >= 0)
    used, index = np.unique(mask_of_signature[clustered], return_inverse=True)
    by_count = clustered[np.lexsort((distinct[clustered], -counts[clustered]))]
    typical = {
        int(mask): int(distinct[signature])
        for signature, mask in zip(by_count[::-1], mask_of_signature[by_count[::-1]], strict=True)
    }
    pages = np.bincount(index, counts[clustered])
    # Maps a main mask's typical signature without some of its bytes to the group.
    groups_by_part: dict[tuple[int, int], int] = {}
    group_of_mask = np.empty(len(used), np.int64)
    main_masks: list[int] = []
    group_pages: list[int] = []
    for number in np.lexsort((masks.value[used], -pages)).tolist():
        mask = int(used[number])
        fragments = [
            (row, typical[mask] & byte_mask) for row, byte_mask in enumerate(map(int, _FRAGMENT_BYTES))
        ]
        near_groups = [groups_by_part[fragment] for fragment in fragments if fragment in groups_by_part]
        if near_groups:
            # More equal fragments mean more agreeing bytes; ties go to the largest group.
            group = max(
                set(near_groups), key=lambda group: (near_groups.count(group), group_pages[group], -group)
            )
        else:
            group = len(main_masks)
            groups_by_part.update(dict.fromkeys(fragments, group))
            main_masks.append(mask)
            group_pages.append(0)
        group_of_mask[number] = group
        group_pages[group] += int(pages[number])
    by_pages = np.argsort(-np.array(group_pages, np.int64), kind="stable")
    of_signature = np.full(len(distinct), -1, np.int64)
    of_signature[clustered] = np.argsort(by_pages)[group_of_mask][index]
    return _Groups(of_signature, [main_masks[group] for group in by_pages])


def _join_ungrouped(distinct: NDArray[np.uint64], group_of_signature: NDArray[np.int64]) -> NDArray[np.int64]:
    joined = group_of_signature.copy()
    is_ungrouped = group_of_signature < 0
    joined[is_ungrouped] = _nearest_groups(
        distinct[is_ungrouped], distinct[~is_ungrouped], group_of_signature[~is_ungrouped]
    )
    return joined


def _nearest_groups(
    signatures: NDArray[np.uint64], accepted: NDArray[np.uint64], groups: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return for each signature the group of the most similar accepted one; -1 if too few bytes agree.

    Ties go to the first group. Signatures that agree except for given bytes are equal when these are cleared,
    so sorting finds them without comparing pairs.
    """
    nearest = np.full(len(signatures), -1, np.int64)
    for byte_masks in _NEAR_BYTES:
        seeking = np.flatnonzero(nearest < 0)
        if not seeking.size or not accepted.size:
            break
        candidate_groups = np.full(seeking.size, np.iinfo(np.int64).max)
        for byte_mask in byte_masks:
            order = np.lexsort((groups, accepted & byte_mask))
            fragments, first_indices = np.unique((accepted & byte_mask)[order], return_index=True)
            target_fragments = signatures[seeking] & byte_mask
            index = np.minimum(np.searchsorted(fragments, target_fragments), len(fragments) - 1)
            is_equal = fragments[index] == target_fragments
            candidate_groups[is_equal] = np.minimum(
                candidate_groups[is_equal], groups[order][first_indices][index][is_equal]
            )
        has_group = candidate_groups < np.iinfo(np.int64).max
        nearest[seeking[has_group]] = candidate_groups[has_group]
    return nearest
