"""The description length of clusters of path sets in bits, exactly and estimated by MinHash.

A cluster contributes three numbers to the description: the paths of its template, the paths that its
documents have beyond the template, and the paths of the template that its documents lack. Contributions are
rows of three floats in that order, and so are the changes that a merge would make to their sums.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.core.compiled import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The last steps of MurmurHash3 for 32 bits, a bijection that mixes well.
_MURMUR_1 = np.uint32(0x85EBCA6B)
_MURMUR_2 = np.uint32(0xC2B2AE35)

# 2 to the 64th over the golden ratio: Knuth's factor for spreading keys over a table.
_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)

# The table of path numbers is filled for hashes with the same first six bits at a time: a sixty-fourth of 20
# million paths still fits into a cache.
_PART_SHIFT = np.uint64(58)
_TABLE_PARTS = 64


class Shape(NamedTuple):
    """The size of the matrices: distinct paths, and documents; floats, since they are multiplied."""

    paths: float
    documents: float


class Supports(NamedTuple):
    """Clusters with their exact supports.

    `paths[starts[k]:ends[k]]` are the paths of cluster k, ascending, and `support` has the number of its
    documents with each. After the first `used` entries, both arrays have room for unions.
    """

    used: int
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    paths: NDArray[np.int32]
    support: NDArray[np.int32]
    sizes: NDArray[np.int64]
    contributions: NDArray[np.float64]


_NO_SUPPORTS = Supports(
    used=0,
    starts=np.empty(0, np.int64),
    ends=np.empty(0, np.int64),
    paths=np.empty(0, np.int32),
    support=np.empty(0, np.int32),
    sizes=np.empty(0, np.int64),
    contributions=np.empty((0, 3), np.float64),
)


class Signatures(NamedTuple):
    """Clusters as extended MinHash signatures.

    `ranks` has the lowest rank of the cluster's paths in each permutation, and `counts` the number of its
    documents with that path; `path_totals` is the sum of the sizes of its documents' path sets.
    """

    ranks: NDArray[np.uint32]
    counts: NDArray[np.int32]
    sizes: NDArray[np.int64]
    path_totals: NDArray[np.int64]
    contributions: NDArray[np.float64]


class Partners(NamedTuple):
    """The partner of maximal Jaccard of each cluster (-1: no cluster shares anything).

    `agreement` counts the permutations in which both have the same rank; `bits` is the description length
    after a merge of the two.
    """

    partner: NDArray[np.int64]
    agreement: NDArray[np.int64]
    bits: NDArray[np.float64]


class NumberedPaths(NamedTuple):
    """Numbered paths: the number of each entry, and the hash and the support of each number."""

    numbers: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    support: NDArray[np.int32]


def number_paths(starts: NDArray[np.int64], hashes: NDArray[np.uint64]) -> NumberedPaths:
    """Number the path hashes of documents from 0; each document is sorted and has no duplicates."""
    return NumberedPaths(*_number_paths(starts, hashes))


def are_essential(
    starts: NDArray[np.int64], paths: NDArray[np.int32], support: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Flag the paths whose support is at least the threshold of their document.

    The threshold is the most frequent support >= 2 among the document's paths, the largest of equally
    frequent ones, and 1 if there is none.
    """
    essential: NDArray[np.bool_] = _are_essential(starts, paths, support)
    return essential


def least_ranks(
    starts: NDArray[np.int64],
    paths: NDArray[np.int32],
    factors: NDArray[np.uint32],
    offsets: NDArray[np.uint32],
) -> NDArray[np.uint32]:
    """Return the lowest rank of each document's paths in each permutation.

    Odd factors make every permutation a bijection, so two paths never tie.
    """
    ranks: NDArray[np.uint32] = _least_ranks(starts, paths, factors, offsets)
    return ranks


def matrix_bits(one_count: float, minus_one_count: float, entries: float) -> float:
    """Return the bits of a matrix at the entropy of its values; all other entries are zeros."""
    return float(_matrix_bits(one_count, minus_one_count, entries))


def description_bits(shape: Shape, clusters: int, totals: NDArray[np.float64]) -> float:
    """Return the bits of all templates and differences, by the sums of the clusters' contributions."""
    return float(_description_bits(shape, clusters, *totals))


def exact_contributions(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    support: NDArray[np.int32],
    sizes: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the contribution of each cluster, by the exact supports of its paths."""
    contributions: NDArray[np.float64] = _exact_contributions(starts, ends, support, sizes)
    return contributions


def exact_changes(clusters: Supports, cluster: int, other_clusters: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how merging a cluster with each of the others would change the sum of contributions."""
    changes: NDArray[np.float64] = _exact_changes(clusters, cluster, other_clusters)
    return changes


def merge_supports(clusters: Supports, into: int, absorbed: int) -> Supports:
    """Merge two clusters in place and return the result; row `absorbed` stays unchanged."""
    return Supports(*_merge_supports(clusters, into, absorbed))


def estimated_contributions(
    counts: NDArray[np.int32], sizes: NDArray[np.int64], path_totals: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Estimate the contribution of each cluster from its signature's counts."""
    contributions: NDArray[np.float64] = _estimated_contributions(counts, sizes, path_totals)
    return contributions


def estimated_changes(
    clusters: Signatures, cluster: int, other_clusters: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Estimate how merging a cluster with each of the others would change the sum of contributions."""
    changes: NDArray[np.float64] = _estimated_changes(clusters, cluster, other_clusters)
    return changes


def merge_signatures(clusters: Signatures, into: int, absorbed: int) -> None:
    """Replace row `into` by the signature of both clusters' union; row `absorbed` stays unchanged."""
    _merge_signatures(clusters, into, absorbed)


def cheapest_merge(
    changes: NDArray[np.float64], alive: NDArray[np.int64], totals: NDArray[np.float64], shape: Shape
) -> tuple[float, int, int]:
    """Return the bits after the best merge of two living clusters, and the two, the earlier one first.

    `changes[later, earlier]` is the change that merging the two would make.
    """
    bits, earlier, later = _cheapest_merge(changes, alive, totals, shape)
    return float(bits), int(earlier), int(later)


def no_partners(clusters: int) -> Partners:
    """Return the initial partners of clusters before any comparison."""
    return Partners(
        np.full(clusters, -1, np.int64), np.zeros(clusters, np.int64), np.full(clusters, np.inf, np.float64)
    )


def compare_all(clusters: Signatures, shape: Shape, partners: Partners) -> None:
    """Update the partners by comparing every cluster with every other."""
    _compare_all(clusters, clusters.contributions.sum(axis=0), shape, partners)


def compare_neighbours(
    clusters: Signatures, order: NDArray[np.int64], reach: int, shape: Shape, partners: Partners
) -> None:
    """Update the partners by comparing every cluster with the next `reach` ones in an order."""
    _compare_neighbours(clusters, order, reach, clusters.contributions.sum(axis=0), shape, partners)


def merge_by_estimate(
    clusters: Signatures, order: NDArray[np.int64], partner: NDArray[np.int64], shape: Shape
) -> NDArray[np.int64]:
    """Merge clusters with their partners, in the order given, wherever that shortens the description.

    A cluster or partner that was merged before stands for the cluster it is in now. The arrays change in
    place; the result has the row into which each row was merged.
    """
    totals = clusters.contributions.sum(axis=0)
    rows: NDArray[np.int64] = _merge_with_partners(
        clusters, _NO_SUPPORTS, False, order, partner, totals, shape
    )[1]
    return rows


def merge_exactly(
    clusters: Signatures,
    supports: Supports,
    order: NDArray[np.int64],
    partner: NDArray[np.int64],
    shape: Shape,
) -> tuple[Supports, NDArray[np.int64]]:
    """Merge clusters as `merge_by_estimate` does, but by their exact costs.

    The returned supports replace the given ones.
    """
    totals = supports.contributions.sum(axis=0)
    merged, rows = _merge_with_partners(clusters, supports, True, order, partner, totals, shape)
    return Supports(*merged), rows


@njit(cache=True)
def _slot(hash_, table, hashes):  # type: ignore[no-untyped-def]
    """Return the slot of a hash's number in a table, or the free slot where it belongs."""
    mask = np.uint64(table.size - 1)
    mixed = hash_ * _GOLDEN_RATIO
    slot = (mixed ^ (mixed >> np.uint64(32))) & mask
    while table[slot] >= 0 and hashes[table[slot]] != hash_:
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(cache=True)
def _doubled(array):  # type: ignore[no-untyped-def]
    return np.concatenate((array, np.empty_like(array)))


@njit(cache=True)
def _number_paths(starts, entries):  # type: ignore[no-untyped-def]
    numbers = np.empty(entries.size, np.int32)
    hashes = np.empty(1024, np.uint64)
    support = np.empty(1024, np.int32)
    table = np.full(1024, np.int32(-1), np.int32)
    count = 0
    positions = starts[:-1].copy()
    # Sorted documents let the table hold one part of the hashes at a time.
    for table_part in range(_TABLE_PARTS):
        table[:] = -1
        part_start = count
        for document in range(positions.size):
            i = positions[document]
            while i < starts[document + 1] and entries[i] >> _PART_SHIFT == table_part:
                slot = _slot(entries[i], table, hashes)
                if table[slot] < 0:
                    if count == hashes.size:
                        hashes = _doubled(hashes)
                        support = _doubled(support)
                    hashes[count] = entries[i]
                    support[count] = 0
                    table[slot] = count
                    count += 1
                    if 2 * (count - part_start) > table.size:
                        table = np.full(2 * table.size, np.int32(-1), np.int32)
                        for number in range(part_start, count):
                            table[_slot(hashes[number], table, hashes)] = number
                        slot = _slot(entries[i], table, hashes)
                numbers[i] = table[slot]
                support[numbers[i]] += 1
                i += 1
            positions[document] = i
    return numbers, hashes[:count].copy(), support[:count].copy()


@njit(cache=True)
def _mode(values):  # type: ignore[no-untyped-def]
    """Return the most frequent of ascending values >= 2, the largest of several; 1 if there is none."""
    mode = 1
    longest = 0
    run = 0
    for i in range(values.size):
        run = run + 1 if i > 0 and values[i] == values[i - 1] else 1
        if values[i] >= 2 and run >= longest:
            longest = run
            mode = values[i]
    return mode


@njit(cache=True)
def _are_essential(starts, paths, support):  # type: ignore[no-untyped-def]
    essential = np.empty(paths.size, np.bool_)
    for document in range(starts.size - 1):
        entries = slice(starts[document], starts[document + 1])
        supports = support[paths[entries]]
        essential[entries] = supports >= _mode(np.sort(supports))
    return essential


@njit(cache=True)
def _least_ranks(starts, paths, factors, offsets):  # type: ignore[no-untyped-def]
    ranks = np.full((starts.size - 1, factors.size), np.uint32(0xFFFFFFFF), np.uint32)
    for document in range(starts.size - 1):
        document_ranks = ranks[document]
        for i in range(starts[document], starts[document + 1]):
            path = np.uint32(paths[i])
            for permutation in range(factors.size):
                rank = np.uint32(np.uint32(path * factors[permutation]) + offsets[permutation])
                rank = np.uint32(rank ^ (rank >> np.uint32(16)))
                rank = np.uint32(rank * _MURMUR_1)
                rank = np.uint32(rank ^ (rank >> np.uint32(13)))
                rank = np.uint32(rank * _MURMUR_2)
                rank = np.uint32(rank ^ (rank >> np.uint32(16)))
                document_ranks[permutation] = min(document_ranks[permutation], rank)
    return ranks


@njit(cache=True)
def _value_bits(count, entries):  # type: ignore[no-untyped-def]
    # An estimate may exceed what fits; a value that fills its matrix costs nothing.
    if count <= 0 or count >= entries:
        return 0.0
    return count * math.log2(entries / count)


@njit(cache=True)
def _matrix_bits(one_count, minus_one_count, entries):  # type: ignore[no-untyped-def]
    bits = _value_bits(one_count, entries) + _value_bits(minus_one_count, entries)
    filled = one_count + minus_one_count
    if filled < entries:
        # log1p, because nearly all of a large matrix is zeros
        bits -= (entries - filled) * math.log1p(-filled / entries) / math.log(2)
    return bits


@njit(cache=True)
def _description_bits(shape, clusters, template, extra, missing):  # type: ignore[no-untyped-def]
    """Evaluate Equation 1 without its term for the members, which no merge changes."""
    templates = _matrix_bits(template, 0.0, shape.paths * clusters)
    return templates + _matrix_bits(extra, missing, shape.paths * shape.documents)


@njit(cache=True)
def _bits_after(shape, clusters, totals, change):  # type: ignore[no-untyped-def]
    return _description_bits(
        shape, clusters, totals[0] + change[0], totals[1] + change[1], totals[2] + change[2]
    )


@njit(cache=True)
def _exact_contribution(support, size):  # type: ignore[no-untyped-def]
    template = 0.0
    extra = 0.0
    missing = 0.0
    for count in support:
        if 2 * count > size:
            template += 1
            missing += size - count
        else:
            extra += count
    return template, extra, missing


@njit(cache=True)
def _exact_contributions(starts, ends, support, sizes):  # type: ignore[no-untyped-def]
    contributions = np.empty((sizes.size, 3), np.float64)
    for k in range(sizes.size):
        contributions[k] = _exact_contribution(support[starts[k] : ends[k]], sizes[k])
    return contributions


@njit(cache=True)
def _union(clusters, cluster, other_cluster):  # type: ignore[no-untyped-def]
    """Return the paths of two clusters, and the number of documents of both with each."""
    i, end_i = clusters.starts[cluster], clusters.ends[cluster]
    j, end_j = clusters.starts[other_cluster], clusters.ends[other_cluster]
    paths = np.empty(end_i - i + end_j - j, np.int32)
    support = np.empty(paths.size, np.int32)
    count = 0
    while i < end_i or j < end_j:
        in_one = i < end_i and (j >= end_j or clusters.paths[i] <= clusters.paths[j])
        in_other = j < end_j and (i >= end_i or clusters.paths[j] <= clusters.paths[i])
        paths[count] = clusters.paths[i] if in_one else clusters.paths[j]
        support[count] = 0
        if in_one:
            support[count] += clusters.support[i]
            i += 1
        if in_other:
            support[count] += clusters.support[j]
            j += 1
        count += 1
    return paths[:count], support[:count]


@njit(cache=True)
def _minus(merged, contribution, other_contribution):  # type: ignore[no-untyped-def]
    return (
        merged[0] - contribution[0] - other_contribution[0],
        merged[1] - contribution[1] - other_contribution[1],
        merged[2] - contribution[2] - other_contribution[2],
    )


@njit(cache=True)
def _exact_change(clusters, cluster, other_cluster):  # type: ignore[no-untyped-def]
    _, support = _union(clusters, cluster, other_cluster)
    merged = _exact_contribution(support, clusters.sizes[cluster] + clusters.sizes[other_cluster])
    return _minus(merged, clusters.contributions[cluster], clusters.contributions[other_cluster])


@njit(cache=True)
def _exact_changes(clusters, cluster, other_clusters):  # type: ignore[no-untyped-def]
    changes = np.empty((other_clusters.size, 3), np.float64)
    for x in range(other_clusters.size):
        changes[x] = _exact_change(clusters, cluster, other_clusters[x])
    return changes


@njit(cache=True)
def _merge_supports(clusters, into, absorbed):  # type: ignore[no-untyped-def]
    used, starts, ends, paths, support, sizes, contributions = clusters
    union_paths, union_support = _union(clusters, into, absorbed)
    end = used + union_paths.size
    if end > paths.size:
        room = np.empty(end, np.int32)
        paths = np.concatenate((paths, room))
        support = np.concatenate((support, room))
    paths[used:end] = union_paths
    support[used:end] = union_support
    starts[into] = used
    ends[into] = end
    sizes[into] += sizes[absorbed]
    contributions[into] = _exact_contribution(union_support, sizes[into])
    return Supports(end, starts, ends, paths, support, sizes, contributions)


@njit(cache=True)
def _estimate(total, in_template, template_total, size, path_total):  # type: ignore[no-untyped-def]
    """Evaluate Lemmas 3 and 4 of TEXT, from the counts of a signature.

    `total` sums all counts, `in_template` is the number of counts that reach the template's threshold, and
    `template_total` sums those. The documents have `path_total` paths in all, of which the permutations show
    `total`.
    """
    scale = path_total / total
    return (
        in_template * scale,
        (total - template_total) * scale,
        (size * in_template - template_total) * scale,
    )


@njit(cache=True)
def _estimated_contributions(counts, sizes, path_totals):  # type: ignore[no-untyped-def]
    contributions = np.empty((sizes.size, 3), np.float64)
    for k in range(sizes.size):
        total = 0
        in_template = 0
        template_total = 0
        for count in counts[k]:
            total += count
            if 2 * count > sizes[k]:
                in_template += 1
                template_total += count
        contributions[k] = _estimate(total, in_template, template_total, sizes[k], path_totals[k])
    return contributions


@njit(cache=True)
def _estimated_merge(clusters, cluster, other_cluster):  # type: ignore[no-untyped-def]
    """Return the contribution of two clusters as one."""
    size = clusters.sizes[cluster] + clusters.sizes[other_cluster]
    total = 0
    in_template = 0
    template_total = 0
    for permutation in range(clusters.ranks.shape[1]):
        count = 0
        if clusters.ranks[cluster, permutation] <= clusters.ranks[other_cluster, permutation]:
            count += clusters.counts[cluster, permutation]
        if clusters.ranks[other_cluster, permutation] <= clusters.ranks[cluster, permutation]:
            count += clusters.counts[other_cluster, permutation]
        total += count
        if 2 * count > size:
            in_template += 1
            template_total += count
    path_total = clusters.path_totals[cluster] + clusters.path_totals[other_cluster]
    return _estimate(total, in_template, template_total, size, path_total)


@njit(cache=True)
def _estimated_change(clusters, cluster, other_cluster):  # type: ignore[no-untyped-def]
    merged = _estimated_merge(clusters, cluster, other_cluster)
    return _minus(merged, clusters.contributions[cluster], clusters.contributions[other_cluster])


@njit(cache=True)
def _estimated_changes(clusters, cluster, other_clusters):  # type: ignore[no-untyped-def]
    changes = np.empty((other_clusters.size, 3), np.float64)
    for x in range(other_clusters.size):
        changes[x] = _estimated_change(clusters, cluster, other_clusters[x])
    return changes


@njit(cache=True)
def _merge_signatures(clusters, into, absorbed):  # type: ignore[no-untyped-def]
    clusters.contributions[into] = _estimated_merge(clusters, into, absorbed)
    for permutation in range(clusters.ranks.shape[1]):
        if clusters.ranks[absorbed, permutation] < clusters.ranks[into, permutation]:
            clusters.ranks[into, permutation] = clusters.ranks[absorbed, permutation]
            clusters.counts[into, permutation] = clusters.counts[absorbed, permutation]
        elif clusters.ranks[absorbed, permutation] == clusters.ranks[into, permutation]:
            clusters.counts[into, permutation] += clusters.counts[absorbed, permutation]
    clusters.sizes[into] += clusters.sizes[absorbed]
    clusters.path_totals[into] += clusters.path_totals[absorbed]


@njit(cache=True)
def _cheapest_merge(changes, alive, totals, shape):  # type: ignore[no-untyped-def]
    best = np.inf
    best_earlier = -1
    best_later = -1
    for x in range(alive.size):
        for y in range(x):
            bits = _bits_after(shape, alive.size - 1, totals, changes[alive[x], alive[y]])
            if bits < best:
                best = bits
                best_earlier = alive[y]
                best_later = alive[x]
    return best, best_earlier, best_later


@njit(cache=True)
def _compare(clusters, first_cluster, second_cluster, totals, shape, partners):  # type: ignore[no-untyped-def]
    """Make two clusters each other's partners where they have no better one.

    A larger agreement is better, then fewer bits, then an earlier cluster.
    """
    agreement = 0
    for permutation in range(clusters.ranks.shape[1]):
        agreement += clusters.ranks[first_cluster, permutation] == clusters.ranks[second_cluster, permutation]
    if agreement == 0 or agreement < min(
        partners.agreement[first_cluster], partners.agreement[second_cluster]
    ):
        return
    change = _estimated_change(clusters, first_cluster, second_cluster)
    bits = _bits_after(shape, clusters.sizes.size - 1, totals, change)
    for cluster, partner in ((first_cluster, second_cluster), (second_cluster, first_cluster)):
        if agreement < partners.agreement[cluster]:
            continue
        if agreement == partners.agreement[cluster]:
            if bits > partners.bits[cluster]:
                continue
            if bits == partners.bits[cluster] and partner >= partners.partner[cluster]:
                continue
        partners.partner[cluster] = partner
        partners.agreement[cluster] = agreement
        partners.bits[cluster] = bits


@njit(cache=True)
def _compare_all(clusters, totals, shape, partners):  # type: ignore[no-untyped-def]
    for first_cluster in range(clusters.sizes.size):
        for second_cluster in range(first_cluster):
            _compare(clusters, first_cluster, second_cluster, totals, shape, partners)


@njit(cache=True)
def _compare_neighbours(clusters, order, reach, totals, shape, partners):  # type: ignore[no-untyped-def]
    for x in range(order.size):
        for y in range(x + 1, min(x + 1 + reach, order.size)):
            _compare(clusters, order[x], order[y], totals, shape, partners)


@njit(cache=True)
def _row_of(rows, cluster):  # type: ignore[no-untyped-def]
    """Return the row into which a cluster was merged, compressing the path to it."""
    while rows[cluster] != cluster:
        rows[cluster] = rows[rows[cluster]]
        cluster = rows[cluster]
    return cluster


@njit(cache=True)
def _merge_with_partners(clusters, supports, exact, order, partner, totals, shape):  # type: ignore[no-untyped-def]
    rows = np.arange(clusters.sizes.size)
    count = rows.size
    current = _description_bits(shape, count, totals[0], totals[1], totals[2])
    for cluster in order:
        row = _row_of(rows, cluster)
        partner_row = _row_of(rows, partner[cluster])
        if row == partner_row:
            continue
        change = (
            _exact_change(supports, row, partner_row)
            if exact
            else _estimated_change(clusters, row, partner_row)
        )
        bits = _bits_after(shape, count - 1, totals, change)
        if bits < current:
            into = min(row, partner_row)
            absorbed = max(row, partner_row)
            _merge_signatures(clusters, into, absorbed)
            if exact:
                supports = _merge_supports(supports, into, absorbed)
            rows[absorbed] = into
            for index in range(3):
                totals[index] += change[index]
            current = bits
            count -= 1
    for cluster in range(rows.size):
        rows[cluster] = _row_of(rows, cluster)
    return supports, rows
