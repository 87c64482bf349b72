"""Texts and values that share weighted q-grams: an inverted index, and the join that walks over it.

A text is a run of code points in `codes`, from `starts[i]` to `starts[i + 1]`, its words apart by single
blanks. A gram is as many code points of a padded word as fit exactly into 64 bits.
"""

from __future__ import annotations

import math

import numpy as np

from siteloom.core.compiled import njit

LONGEST_GRAM = 3
_CODE_BITS = np.uint64(21)  # enough for any code point
_BLANK = 32
_BEFORE = np.uint64(35)  # the padding of words: # before, $ behind
_BEHIND = np.uint64(36)
_FREE = np.uint64(0)  # no gram is 0: it has no code point that is
_MIXER = np.uint64(0x9E3779B97F4A7C15)

# Bounds are compared with this much room: sums in another order differ in their last digits.
_ROOM = 1e-9

WHOLE = 255
"""What is left of a value before any of its grams is met."""

# Closed values are looked over for some that can be dropped only every few grams, for each look takes time.
_GRAMS_BETWEEN_LOOKS = 4


@njit(cache=True)
def grams_of(codes, start, end, q, grams):  # type: ignore[no-untyped-def]
    """Write the grams of a text's words, ascending, and say how many there are.

    `grams` must have room for `q` times as many as the text has code points.
    """
    kept = (np.uint64(1) << (_CODE_BITS * np.uint64(q))) - np.uint64(1)
    count = 0
    i = start
    while i < end:
        if codes[i] == _BLANK:
            i += 1
            continue
        gram = np.uint64(0)
        for _ in range(q - 1):
            gram = (gram << _CODE_BITS) | _BEFORE
        while i < end and codes[i] != _BLANK:
            gram = ((gram << _CODE_BITS) | np.uint64(codes[i])) & kept
            grams[count] = gram
            count += 1
            i += 1
        for _ in range(q - 1):
            gram = ((gram << _CODE_BITS) | _BEHIND) & kept
            grams[count] = gram
            count += 1
    grams[:count].sort()
    return count


@njit(cache=True)
def slot_of(table, gram):  # type: ignore[no-untyped-def]
    """Where a gram stands in the hash table, or the free place where it would."""
    mask = np.uint64(table.size - 1)
    slot = (gram * _MIXER) >> np.uint64(32) & mask
    while table[slot] != gram and table[slot] != _FREE:
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(cache=True)
def count_grams(codes, starts, q):  # type: ignore[no-untyped-def]
    """A hash table of all grams of some texts, with how many texts have each and how often it occurs."""
    table = np.zeros(1 << 12, np.uint64)
    texts = np.zeros(table.size, np.int32)
    occurrences = np.zeros(table.size, np.int64)
    used = 0
    grams = np.empty(q * longest(starts), np.uint64)
    for text in range(starts.size - 1):
        count = grams_of(codes, starts[text], starts[text + 1], q, grams)
        if 2 * (used + count) > table.size:
            table, texts, occurrences = _wider(table, texts, occurrences, count)
        for i in range(count):
            slot = slot_of(table, grams[i])
            if table[slot] == _FREE:
                table[slot] = grams[i]
                used += 1
            occurrences[slot] += 1
            if i == 0 or grams[i] != grams[i - 1]:
                texts[slot] += 1
    return table, texts, occurrences


@njit(cache=True)
def _wider(table, texts, occurrences, more):  # type: ignore[no-untyped-def]
    size = 2 * table.size
    while size < 4 * more:
        size *= 2
    new_table = np.zeros(size, np.uint64)
    new_texts = np.zeros(size, np.int32)
    new_occurrences = np.zeros(size, np.int64)
    for old in range(table.size):
        if table[old] != _FREE:
            slot = slot_of(new_table, table[old])
            new_table[slot] = table[old]
            new_texts[slot] = texts[old]
            new_occurrences[slot] = occurrences[old]
    return new_table, new_texts, new_occurrences


@njit(cache=True)
def longest(starts):  # type: ignore[no-untyped-def]
    """The length of the longest of the runs that begin at `starts`."""
    most = 0
    for i in range(starts.size - 1):
        most = max(most, starts[i + 1] - starts[i])
    return most


@njit(cache=True)
def norms_of(codes, starts, q, table, idf, unseen_idf):  # type: ignore[no-untyped-def]
    """The norms of texts, and those of what repeated grams add to them."""
    norms = np.zeros(starts.size - 1)
    repeated = np.zeros(starts.size - 1)
    grams = np.empty(q * longest(starts), np.uint64)
    for text in range(starts.size - 1):
        count = grams_of(codes, starts[text], starts[text + 1], q, grams)
        weight = 0.0
        for i in range(count):
            slot = slot_of(table, grams[i])
            rarity = unseen_idf if table[slot] == _FREE else idf[slot]
            weight += rarity
            if i + 1 == count or grams[i + 1] != grams[i]:
                norms[text] += weight**2
                repeated[text] += (weight - rarity) ** 2
                weight = 0.0
    return np.sqrt(norms), np.sqrt(repeated)


@njit(cache=True)
def fill_postings(codes, starts, q, table, idf, posting_starts, order):  # type: ignore[no-untyped-def]
    """The texts of each gram, ascending, once for each time they have it, and what is left of each.

    Texts are numbered by their place in `order`; `posting_starts` is by slot of the table. What is left is
    the norm of the text's grams that are no rarer than this one, as a share of its norm, rounded up.
    """
    postings = np.empty(posting_starts[-1], np.int32)
    left = np.empty(posting_starts[-1], np.uint8)
    ends = posting_starts[:-1].copy()
    most = q * longest(starts)
    grams = np.empty(most, np.uint64)
    slots = np.empty(most, np.int64)
    weights = np.empty(most)
    rarity = np.empty(most)
    for place in range(order.size):
        text = order[place]
        count = grams_of(codes, starts[text], starts[text + 1], q, grams)
        distinct = _weigh(grams, count, table, idf, 0.0, slots, weights, rarity)
        total = np.sum(weights[:distinct] ** 2)
        so_far = 0.0
        of_same_rarity = 0.0
        by_rarity = np.argsort(-rarity[:distinct])
        for k in range(distinct):
            gram = by_rarity[k]
            if k > 0 and rarity[gram] < rarity[by_rarity[k - 1]]:
                so_far += of_same_rarity
                of_same_rarity = 0.0
            of_same_rarity += weights[gram] ** 2
            share = np.sqrt(max(1.0 - so_far / total, 0.0))
            slot = slots[gram]
            for _ in range(round(weights[gram] / rarity[gram])):
                postings[ends[slot]] = place
                left[ends[slot]] = min(math.ceil(share * WHOLE + _ROOM), WHOLE)
                ends[slot] += 1
    return postings, left


@njit(cache=True)
def similarities(x_codes, x_starts, y_codes, y_starts, q, table, idf, unseen_idf):  # type: ignore[no-untyped-def]
    """The cosine of each text of one row with that of the other row beside it."""
    result = np.zeros(x_starts.size - 1)
    xs = np.empty(q * longest(x_starts), np.uint64)
    ys = np.empty(q * longest(y_starts), np.uint64)
    for pair in range(result.size):
        x_count = grams_of(x_codes, x_starts[pair], x_starts[pair + 1], q, xs)
        y_count = grams_of(y_codes, y_starts[pair], y_starts[pair + 1], q, ys)
        product = x_square = y_square = 0.0
        i = j = 0
        while i < x_count or j < y_count:
            gram = xs[i] if j == y_count or (i < x_count and xs[i] <= ys[j]) else ys[j]
            slot = slot_of(table, gram)
            weight = unseen_idf if table[slot] == _FREE else idf[slot]
            x_weight = y_weight = 0.0
            while i < x_count and xs[i] == gram:
                x_weight += weight
                i += 1
            while j < y_count and ys[j] == gram:
                y_weight += weight
                j += 1
            product += x_weight * y_weight
            x_square += x_weight * x_weight
            y_square += y_weight * y_weight
        if x_square > 0 and y_square > 0:
            result[pair] = min(product / np.sqrt(x_square * y_square), 1.0)
    return result


@njit(cache=True)
def join(  # type: ignore[no-untyped-def]
    codes, starts, q, table, idf, unseen_idf, posting_starts, postings, left, norms, repeated, threshold
):
    """All pairs of a text and an indexed value whose cosine reaches the threshold, and their cosines.

    Values are numbered by ascending norm. The grams of a text are taken rarest first. What those still to
    come can add is bounded (see `_still_possible`), more tightly for values of large norm: those from `end`
    on cannot reach the threshold if they have not been met by then, and are closed. `end` falls with each
    gram, so that little is read of the long postings of frequent grams. Nor can a value reach it of which
    too little is left when it is first met: the rest of the text and of the value add at most the product
    of their norms.
    """
    pair_texts = np.empty(1024, np.int32)
    pair_values = np.empty(1024, np.int32)
    pair_similarities = np.empty(1024, np.float32)
    pairs = 0
    least_norm = _least_norms(norms, repeated, threshold)
    products = np.zeros(norms.size)
    met = np.empty(norms.size, np.int32)
    closed = np.empty(norms.size, np.int32)
    left_of = np.empty(norms.size, np.uint8)  # of the values met, when they were met last
    most = q * longest(starts)
    grams = np.empty(most, np.uint64)
    slots = np.empty(most, np.int64)
    weights = np.empty(most)
    rarity = np.empty(most)
    for text in range(starts.size - 1):
        count = grams_of(codes, starts[text], starts[text + 1], q, grams)
        distinct = _weigh(grams, count, table, idf, unseen_idf, slots, weights, rarity)
        total = 0.0
        excess = 0.0
        for i in range(distinct):
            total += weights[i] ** 2
            excess += (weights[i] - rarity[i]) ** 2
        norm = np.sqrt(total)
        # Grams that a text has once add at most the square of a value's norm: it must not be too small.
        first = np.searchsorted(norms, (threshold - _ROOM) * norm - np.sqrt(excess))
        end = last = np.searchsorted(least_norm, (1 + _ROOM) * norm)
        order = np.argsort(-rarity[:distinct])
        rest = total
        met_count = closed_count = 0
        for k in range(distinct):
            gram = order[k]
            slot = slots[gram]
            if slot < 0:
                rest -= weights[gram] ** 2
                continue
            low, high = posting_starts[slot], posting_starts[slot + 1]
            low += np.searchsorted(postings[low:high], first)
            high = low + np.searchsorted(postings[low:high], last)
            middle = low + np.searchsorted(postings[low:high], end)
            if end > first:
                new_end = first
                if rest >= (threshold * threshold - _ROOM) * total:
                    new_end = max(first, np.searchsorted(least_norm, (rest / total + _ROOM) * norm))
                new_middle = low + np.searchsorted(postings[low:middle], new_end)
                if new_end == first or middle - new_middle > met_count:
                    end, middle = new_end, new_middle
                    still_open = 0
                    for i in range(met_count):
                        value = met[i]
                        if value < end:
                            met[still_open] = value
                            still_open += 1
                        else:
                            closed[closed_count] = value
                            closed_count += 1
                    met_count = still_open
                    closed_count = _still_possible(
                        closed, closed_count, products, left_of, norms, repeated, norm, rest, threshold
                    )
            product = weights[gram] * rarity[gram]
            least_left = WHOLE * (threshold - _ROOM) * norm / np.sqrt(max(rest, _ROOM))
            for p in range(low, middle):
                value = postings[p]
                if products[value] == 0.0:
                    if left[p] < least_left:
                        continue
                    met[met_count] = value
                    met_count += 1
                products[value] += product
                left_of[value] = left[p]
            rest -= weights[gram] ** 2
            if closed_count > 0:
                _add_to(
                    closed, closed_count, products, left_of, product, postings[middle:high], left[middle:high]
                )
            if k % _GRAMS_BETWEEN_LOOKS == 0:
                closed_count = _still_possible(
                    closed, closed_count, products, left_of, norms, repeated, norm, rest, threshold
                )
            if closed_count == 0 and end <= first:
                break
        for i in range(met_count):
            closed[closed_count] = met[i]
            closed_count += 1
        closed_count = _still_possible(
            closed, closed_count, products, left_of, norms, repeated, norm, 0.0, threshold
        )
        while pairs + closed_count > pair_texts.size:
            pair_texts = np.concatenate((pair_texts, np.empty_like(pair_texts)))
            pair_values = np.concatenate((pair_values, np.empty_like(pair_values)))
            pair_similarities = np.concatenate((pair_similarities, np.empty_like(pair_similarities)))
        for i in range(closed_count):
            value = closed[i]
            pair_texts[pairs] = text
            pair_values[pairs] = value
            pair_similarities[pairs] = min(products[value] / (norm * norms[value]), 1.0)
            products[value] = 0.0
            pairs += 1
    return pair_texts[:pairs], pair_values[:pairs], pair_similarities[:pairs]


@njit(cache=True)
def _least_norms(norms, repeated, threshold):  # type: ignore[no-untyped-def]
    """For each value, the norm below which no text can reach it or any value behind it; ascending.

    Grams that a value has once add at most the square of the text's norm.
    """
    least = threshold * norms - repeated
    for value in range(norms.size - 2, -1, -1):
        least[value] = min(least[value], least[value + 1])
    return least


@njit(cache=True)
def _weigh(grams, count, table, idf, unseen_idf, slots, weights, rarity):  # type: ignore[no-untyped-def]
    """The slots of distinct grams, -1 if not in the table, with their weights; and how many there are."""
    distinct = 0
    for i in range(count):
        if i > 0 and grams[i] == grams[i - 1]:
            weights[distinct - 1] += rarity[distinct - 1]
        else:
            slot = slot_of(table, grams[i])
            is_seen = table[slot] != _FREE
            slots[distinct] = slot if is_seen else -1
            rarity[distinct] = weights[distinct] = idf[slot] if is_seen else unseen_idf
            distinct += 1
    return distinct


@njit(cache=True)
def _still_possible(closed, count, products, left_of, norms, repeated, norm, rest, threshold):  # type: ignore[no-untyped-def]
    """Keep in front the values that can still reach the threshold, and say how many; forget the others.

    The grams to come, with the squared norm `rest` in the text, can add no more than the product of its
    root and the norm of what is left of the value; and no more than `rest`, but for what the value has
    repeated.
    """
    root = np.sqrt(max(rest, 0.0))
    kept = 0
    for i in range(count):
        value = closed[i]
        left = norms[value] * left_of[value] / WHOLE
        most = products[value] + root * min(left, root + repeated[value])
        if most >= (threshold - _ROOM) * norm * norms[value]:
            closed[kept] = value
            kept += 1
        else:
            products[value] = 0.0
    return kept


@njit(cache=True)
def _add_to(closed, count, products, left_of, product, postings, left):  # type: ignore[no-untyped-def]
    """Add a gram's product to those of the closed values that have it, by the shorter of two ways."""
    if 16 * count < postings.size:
        for i in range(count):
            p = np.searchsorted(postings, closed[i])
            while p < postings.size and postings[p] == closed[i]:
                products[closed[i]] += product
                left_of[closed[i]] = left[p]
                p += 1
    else:
        for p in range(postings.size):
            value = postings[p]
            if products[value] > 0.0:
                products[value] += product
                left_of[value] = left[p]
