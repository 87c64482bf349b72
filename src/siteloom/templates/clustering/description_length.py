"""The bits in which clusters of path sets can be written down, exactly and estimated by MinHash.

A cluster contributes three numbers to the description: the paths of its
template, the paths its documents have beyond the template, and the paths of
the template its documents lack. Contributions are rows of three floats in that
order, and so are the changes that a merge would make to their sums.
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

# The table of path numbers is filled for the hashes with the same first six
# bits at a time: a sixty-fourth of 20 million paths still fits into a cache.
_PART_SHIFT = np.uint64(58)
_TABLE_PARTS = 64


class Shape(NamedTuple):
    """How large the matrices are: the different paths, and the documents. Floats, for their products."""

    paths: float
    documents: float


class Supports(NamedTuple):
    """Clusters with their exact supports.

    `paths[starts[k]:ends[k]]` are the paths of cluster k, ascending, and
    `support` says how many of its documents contain each. Behind the first
    `used` entries of both there is room for unions.
    """

    used: int
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    paths: NDArray[np.int32]
    support: NDArray[np.int32]
    sizes: NDArray[np.int64]
    contributions: NDArray[np.float64]


_NO_SUPPORTS = Supports(
    0,
    np.empty(0, np.int64),
    np.empty(0, np.int64),
    np.empty(0, np.int32),
    np.empty(0, np.int32),
    np.empty(0, np.int64),
    np.empty((0, 3), np.float64),
)


class Signatures(NamedTuple):
    """Clusters as extended MinHash signatures.

    `ranks` holds the least rank of the cluster's paths in each permutation and
    `counts` how many of its documents have that path; `path_totals` is the sum
    of the sizes of its documents' path sets.
    """

    ranks: NDArray[np.uint32]
    counts: NDArray[np.int32]
    sizes: NDArray[np.int64]
    path_totals: NDArray[np.int64]
    contributions: NDArray[np.float64]


class Partners(NamedTuple):
    """For each cluster one of maximal Jaccard with it (-1: none shares anything).

    `agreement` counts the permutations in which both have the same rank;
    `bits` is what the description would take after the two were merged.
    """

    partner: NDArray[np.int64]
    agreement: NDArray[np.int64]
    bits: NDArray[np.float64]


class NumberedPaths(NamedTuple):
    """Paths as numbers: that of each entry, and for each number its hash and its support."""

    numbers: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    support: NDArray[np.int32]


def number_paths(starts: NDArray[np.int64], hashes: NDArray[np.uint64]) -> NumberedPaths:
    """Numbers the path hashes of documents, each sorted and free of repetitions, from 0."""
    return NumberedPaths(*_number_paths(starts, hashes))


def are_essential(
    starts: NDArray[np.int64], paths: NDArray[np.int32], support: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Whether the support of each path is at least the threshold of its document.

    The threshold is the most frequent support >= 2 among the document's paths,
    of equally frequent ones the largest, and 1 where there is none.
    """
    essential: NDArray[np.bool_] = _are_essential(starts, paths, support)
    return essential


def least_ranks(
    starts: NDArray[np.int64],
    paths: NDArray[np.int32],
    factors: NDArray[np.uint32],
    offsets: NDArray[np.uint32],
) -> NDArray[np.uint32]:
    """The least rank of each document's paths in each permutation.

    Odd factors make every permutation a bijection, so two paths never tie.
    """
    ranks: NDArray[np.uint32] = _least_ranks(starts, paths, factors, offsets)
    return ranks


def matrix_bits(ones: float, minus_ones: float, entries: float) -> float:
    """The bits of a matrix of so many entries at the entropy of its values; the rest are zeros."""
    return float(_matrix_bits(ones, minus_ones, entries))


def description_bits(shape: Shape, clusters: int, totals: NDArray[np.float64]) -> float:
    """The bits of all templates and differences, by the sums of the clusters' contributions."""
    return float(_description_bits(shape, clusters, *totals))


def exact_contributions(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    support: NDArray[np.int32],
    sizes: NDArray[np.int64],
) -> NDArray[np.float64]:
    """What each cluster contributes, by the exact supports of its paths."""
    contributions: NDArray[np.float64] = _exact_contributions(starts, ends, support, sizes)
    return contributions


def exact_changes(clusters: Supports, one: int, others: NDArray[np.int64]) -> NDArray[np.float64]:
    """How merging `one` with each of the others would change the sum of contributions."""
    changes: NDArray[np.float64] = _exact_changes(clusters, one, others)
    return changes


def merge_supports(clusters: Supports, into: int, absorbed: int) -> Supports:
    """The clusters after a merge, with row `absorbed` left as it is. Changes the arrays in place."""
    return Supports(*_merge_supports(clusters, into, absorbed))


def estimated_contributions(
    counts: NDArray[np.int32], sizes: NDArray[np.int64], path_totals: NDArray[np.int64]
) -> NDArray[np.float64]:
    """What each cluster contributes, estimated from its signature's counts."""
    contributions: NDArray[np.float64] = _estimated_contributions(counts, sizes, path_totals)
    return contributions


def estimated_changes(clusters: Signatures, one: int, others: NDArray[np.int64]) -> NDArray[np.float64]:
    """How merging `one` with each of the others would change the sum of contributions, by estimate."""
    changes: NDArray[np.float64] = _estimated_changes(clusters, one, others)
    return changes


def merge_signatures(clusters: Signatures, into: int, absorbed: int) -> None:
    """Makes row `into` the signature of both clusters' union; row `absorbed` is left as it is."""
    _merge_signatures(clusters, into, absorbed)


def cheapest_merge(
    changes: NDArray[np.float64], alive: NDArray[np.int64], totals: NDArray[np.float64], shape: Shape
) -> tuple[float, int, int]:
    """The bits after the best merge of two living clusters, and the two, the earlier one first.

    `changes[later, earlier]` is what merging the two would change.
    """
    bits, earlier, later = _cheapest_merge(changes, alive, totals, shape)
    return float(bits), int(earlier), int(later)


def no_partners(clusters: int) -> Partners:
    """The partners of clusters that have not been compared yet."""
    return Partners(
        np.full(clusters, -1, np.int64), np.zeros(clusters, np.int64), np.full(clusters, np.inf, np.float64)
    )


def compare_all(clusters: Signatures, shape: Shape, found: Partners) -> None:
    """Updates the partners found by comparing every cluster with every other."""
    _compare_all(clusters, clusters.contributions.sum(axis=0), shape, found)


def compare_neighbours(
    clusters: Signatures, order: NDArray[np.int64], reach: int, shape: Shape, found: Partners
) -> None:
    """Updates the partners found by comparing every cluster with the next `reach` ones in an order."""
    _compare_neighbours(clusters, order, reach, clusters.contributions.sum(axis=0), shape, found)


def merge_by_estimate(
    clusters: Signatures, order: NDArray[np.int64], partner: NDArray[np.int64], shape: Shape
) -> NDArray[np.int64]:
    """Merges clusters with their partners, in the order given, wherever that lowers the description.

    A cluster or partner that was merged before stands for the cluster it is in
    now. Changes the arrays in place and says into which row each row went.
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
    """As `merge_by_estimate`, but by the exact costs of the same clusters.

    The supports returned replace those given.
    """
    totals = supports.contributions.sum(axis=0)
    merged, rows = _merge_with_partners(clusters, supports, True, order, partner, totals, shape)
    return Supports(*merged), rows


@njit(cache=True)
def _slot(hash_, table, hashes):  # type: ignore[no-untyped-def]
    """Where the number of a hash stands in a table, or the free slot where it belongs."""
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
    for part in range(_TABLE_PARTS):
        table[:] = -1
        first = count
        for document in range(positions.size):
            i = positions[document]
            while i < starts[document + 1] and entries[i] >> _PART_SHIFT == part:
                slot = _slot(entries[i], table, hashes)
                if table[slot] < 0:
                    if count == hashes.size:
                        hashes = _doubled(hashes)
                        support = _doubled(support)
                    hashes[count] = entries[i]
                    support[count] = 0
                    table[slot] = count
                    count += 1
                    if 2 * (count - first) > table.size:
                        table = np.full(2 * table.size, np.int32(-1), np.int32)
                        for number in range(first, count):
                            table[_slot(hashes[number], table, hashes)] = number
                        slot = _slot(entries[i], table, hashes)
                numbers[i] = table[slot]
                support[numbers[i]] += 1
                i += 1
            positions[document] = i
    return numbers, hashes[:count].copy(), support[:count].copy()


@njit(cache=True)
def _mode(values):  # type: ignore[no-untyped-def]
    """The most frequent of ascending values >= 2, the largest of several; 1 where there is none."""
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
        least = ranks[document]
        for i in range(starts[document], starts[document + 1]):
            path = np.uint32(paths[i])
            for q in range(factors.size):
                rank = np.uint32(np.uint32(path * factors[q]) + offsets[q])
                rank = np.uint32(rank ^ (rank >> np.uint32(16)))
                rank = np.uint32(rank * _MURMUR_1)
                rank = np.uint32(rank ^ (rank >> np.uint32(13)))
                rank = np.uint32(rank * _MURMUR_2)
                rank = np.uint32(rank ^ (rank >> np.uint32(16)))
                least[q] = min(least[q], rank)
    return ranks


@njit(cache=True)
def _value_bits(count, entries):  # type: ignore[no-untyped-def]
    # An estimate may exceed what fits; a value that fills its matrix costs nothing.
    if count <= 0 or count >= entries:
        return 0.0
    return count * math.log2(entries / count)


@njit(cache=True)
def _matrix_bits(ones, minus_ones, entries):  # type: ignore[no-untyped-def]
    bits = _value_bits(ones, entries) + _value_bits(minus_ones, entries)
    filled = ones + minus_ones
    if filled < entries:
        # log1p, because nearly all of a large matrix is zeros
        bits -= (entries - filled) * math.log1p(-filled / entries) / math.log(2)
    return bits


@njit(cache=True)
def _description_bits(shape, clusters, template, extra, missing):  # type: ignore[no-untyped-def]
    """Equation 1 without its part for the members, which no merge changes."""
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
def _union(clusters, one, other):  # type: ignore[no-untyped-def]
    """The paths of two clusters and how many documents of both contain each."""
    i, end_i = clusters.starts[one], clusters.ends[one]
    j, end_j = clusters.starts[other], clusters.ends[other]
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
def _minus(merged, one, other):  # type: ignore[no-untyped-def]
    return merged[0] - one[0] - other[0], merged[1] - one[1] - other[1], merged[2] - one[2] - other[2]


@njit(cache=True)
def _exact_change(clusters, one, other):  # type: ignore[no-untyped-def]
    _, support = _union(clusters, one, other)
    merged = _exact_contribution(support, clusters.sizes[one] + clusters.sizes[other])
    return _minus(merged, clusters.contributions[one], clusters.contributions[other])


@njit(cache=True)
def _exact_changes(clusters, one, others):  # type: ignore[no-untyped-def]
    changes = np.empty((others.size, 3), np.float64)
    for x in range(others.size):
        changes[x] = _exact_change(clusters, one, others[x])
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
    """Lemmas 3 and 4 of TEXT, from the counts of a signature.

    `total` sums all counts, `in_template` is how many reach the template's
    threshold and `template_total` sums those. The documents hold `path_total`
    paths in all, the permutations show `total` of them.
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
def _estimated_merge(clusters, one, other):  # type: ignore[no-untyped-def]
    """What two clusters would contribute as one."""
    size = clusters.sizes[one] + clusters.sizes[other]
    total = 0
    in_template = 0
    template_total = 0
    for q in range(clusters.ranks.shape[1]):
        count = 0
        if clusters.ranks[one, q] <= clusters.ranks[other, q]:
            count += clusters.counts[one, q]
        if clusters.ranks[other, q] <= clusters.ranks[one, q]:
            count += clusters.counts[other, q]
        total += count
        if 2 * count > size:
            in_template += 1
            template_total += count
    path_total = clusters.path_totals[one] + clusters.path_totals[other]
    return _estimate(total, in_template, template_total, size, path_total)


@njit(cache=True)
def _estimated_change(clusters, one, other):  # type: ignore[no-untyped-def]
    merged = _estimated_merge(clusters, one, other)
    return _minus(merged, clusters.contributions[one], clusters.contributions[other])


@njit(cache=True)
def _estimated_changes(clusters, one, others):  # type: ignore[no-untyped-def]
    changes = np.empty((others.size, 3), np.float64)
    for x in range(others.size):
        changes[x] = _estimated_change(clusters, one, others[x])
    return changes


@njit(cache=True)
def _merge_signatures(clusters, into, absorbed):  # type: ignore[no-untyped-def]
    clusters.contributions[into] = _estimated_merge(clusters, into, absorbed)
    for q in range(clusters.ranks.shape[1]):
        if clusters.ranks[absorbed, q] < clusters.ranks[into, q]:
            clusters.ranks[into, q] = clusters.ranks[absorbed, q]
            clusters.counts[into, q] = clusters.counts[absorbed, q]
        elif clusters.ranks[absorbed, q] == clusters.ranks[into, q]:
            clusters.counts[into, q] += clusters.counts[absorbed, q]
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
def _compare(clusters, one, other, totals, shape, found):  # type: ignore[no-untyped-def]
    """Makes two clusters each other's partners where no better one was found.

    Better is a larger agreement; then fewer bits; then an earlier cluster.
    """
    agreement = 0
    for q in range(clusters.ranks.shape[1]):
        agreement += clusters.ranks[one, q] == clusters.ranks[other, q]
    if agreement == 0 or agreement < min(found.agreement[one], found.agreement[other]):
        return
    change = _estimated_change(clusters, one, other)
    bits = _bits_after(shape, clusters.sizes.size - 1, totals, change)
    for cluster, partner in ((one, other), (other, one)):
        if agreement < found.agreement[cluster]:
            continue
        if agreement == found.agreement[cluster]:
            if bits > found.bits[cluster]:
                continue
            if bits == found.bits[cluster] and partner >= found.partner[cluster]:
                continue
        found.partner[cluster] = partner
        found.agreement[cluster] = agreement
        found.bits[cluster] = bits


@njit(cache=True)
def _compare_all(clusters, totals, shape, found):  # type: ignore[no-untyped-def]
    for one in range(clusters.sizes.size):
        for other in range(one):
            _compare(clusters, one, other, totals, shape, found)


@njit(cache=True)
def _compare_neighbours(clusters, order, reach, totals, shape, found):  # type: ignore[no-untyped-def]
    for x in range(order.size):
        for y in range(x + 1, min(x + 1 + reach, order.size)):
            _compare(clusters, order[x], order[y], totals, shape, found)


@njit(cache=True)
def _row_of(rows, cluster):  # type: ignore[no-untyped-def]
    """The row into which a cluster has gone by now; shortens the way there."""
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
        one = _row_of(rows, cluster)
        other = _row_of(rows, partner[cluster])
        if one == other:
            continue
        change = _exact_change(supports, one, other) if exact else _estimated_change(clusters, one, other)
        bits = _bits_after(shape, count - 1, totals, change)
        if bits < current:
            into = min(one, other)
            absorbed = max(one, other)
            _merge_signatures(clusters, into, absorbed)
            if exact:
                supports = _merge_supports(supports, into, absorbed)
            rows[absorbed] = into
            for part in range(3):
                totals[part] += change[part]
            current = bits
            count -= 1
    for cluster in range(rows.size):
        rows[cluster] = _row_of(rows, cluster)
    return supports, rows
