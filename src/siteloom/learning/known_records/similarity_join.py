"""Find texts and values that share weighted q-grams, by an inverted index.

A text is a run of code points in `codes`, from `starts[i]` to `starts[i + 1]`, with single blanks between its
words. A gram is a run of `gram_size` code points of a padded word, packed into 64 bits.
"""

from __future__ import annotations

import math

import numpy as np

from siteloom.core.compiled import njit

LONGEST_GRAM = 3
_CODE_BITS = np.uint64(21)  # enough for any code point
_BLANK = 32
_START_PADDING = np.uint64(35)  # words are padded with # before and $ after
_END_PADDING = np.uint64(36)
_FREE = np.uint64(0)  # marks free slots: no gram is 0, since no code point is
_MIXER = np.uint64(0x9E3779B97F4A7C15)

# Tolerance for comparing bounds: sums in another order differ in their last digits.
_ROOM = 1e-9

WHOLE_RESIDUAL = 255
"""The residual of a value before any of its grams is processed."""

# Closed values are pruned only every few grams, since pruning takes time.
_GRAMS_BETWEEN_LOOKS = 4


@njit(cache=True)
def grams_of(codes, start, end, gram_size, grams):  # type: ignore[no-untyped-def]
    """Write the grams of a text's words into `grams`, ascending, and return their number.

    `grams` must have room for `gram_size` times as many entries as the text has code points.
    """
    gram_mask = (np.uint64(1) << (_CODE_BITS * np.uint64(gram_size))) - np.uint64(1)
    count = 0
    i = start
    while i < end:
        if codes[i] == _BLANK:
            i += 1
            continue
        gram = np.uint64(0)
        for _ in range(gram_size - 1):
            gram = (gram << _CODE_BITS) | _START_PADDING
        while i < end and codes[i] != _BLANK:
            gram = ((gram << _CODE_BITS) | np.uint64(codes[i])) & gram_mask
            grams[count] = gram
            count += 1
            i += 1
        for _ in range(gram_size - 1):
            gram = ((gram << _CODE_BITS) | _END_PADDING) & gram_mask
            grams[count] = gram
            count += 1
    grams[:count].sort()
    return count


@njit(cache=True)
def slot_of(table, gram):  # type: ignore[no-untyped-def]
    """Return the slot of a gram in the hash table, or the free slot where it belongs."""
    mask = np.uint64(table.size - 1)
    slot = (gram * _MIXER) >> np.uint64(32) & mask
    while table[slot] != gram and table[slot] != _FREE:
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(cache=True)
def count_grams(codes, starts, gram_size):  # type: ignore[no-untyped-def]
    """Build a hash table of all grams of some texts, with the numbers of texts and occurrences of each."""
    table = np.zeros(1 << 12, np.uint64)
    texts = np.zeros(table.size, np.int32)
    occurrences = np.zeros(table.size, np.int64)
    used = 0
    grams = np.empty(gram_size * longest(starts), np.uint64)
    for text in range(starts.size - 1):
        count = grams_of(codes, starts[text], starts[text + 1], gram_size, grams)
        if 2 * (used + count) > table.size:
            table, texts, occurrences = _enlarge_table(table, texts, occurrences, count)
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
def _enlarge_table(table, texts, occurrences, needed):  # type: ignore[no-untyped-def]
    size = 2 * table.size
    while size < 4 * needed:
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
    """Return the length of the longest run that begins at one of `starts`."""
    longest_length = 0
    for i in range(starts.size - 1):
        longest_length = max(longest_length, starts[i + 1] - starts[i])
    return longest_length


@njit(cache=True)
def norms_of(codes, starts, gram_size, table, idf, unseen_idf):  # type: ignore[no-untyped-def]
    """Return the norms of texts, and the norms of what repeated grams add to them."""
    norms = np.zeros(starts.size - 1)
    repeated = np.zeros(starts.size - 1)
    grams = np.empty(gram_size * longest(starts), np.uint64)
    for text in range(starts.size - 1):
        count = grams_of(codes, starts[text], starts[text + 1], gram_size, grams)
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
def fill_postings(codes, starts, gram_size, table, idf, posting_starts, order):  # type: ignore[no-untyped-def]
    """Return the texts of each gram, ascending, once for each occurrence, and the residual of each text.

    Texts are numbered by their index in `order`; `posting_starts` is by slot of the table. The residual is
    the norm of the text's grams that are no rarer than this one, as a share of its norm, rounded up.
    """
    postings = np.empty(posting_starts[-1], np.int32)
    residuals = np.empty(posting_starts[-1], np.uint8)
    ends = posting_starts[:-1].copy()
    max_grams = gram_size * longest(starts)
    grams = np.empty(max_grams, np.uint64)
    slots = np.empty(max_grams, np.int64)
    weights = np.empty(max_grams)
    rarity = np.empty(max_grams)
    for place in range(order.size):
        text = order[place]
        count = grams_of(codes, starts[text], starts[text + 1], gram_size, grams)
        distinct = _weigh(grams, count, table, idf, 0.0, slots, weights, rarity)
        total = np.sum(weights[:distinct] ** 2)
        norm_so_far = 0.0
        of_same_rarity = 0.0
        by_rarity = np.argsort(-rarity[:distinct])
        for k in range(distinct):
            gram = by_rarity[k]
            if k > 0 and rarity[gram] < rarity[by_rarity[k - 1]]:
                norm_so_far += of_same_rarity
                of_same_rarity = 0.0
            of_same_rarity += weights[gram] ** 2
            share = np.sqrt(max(1.0 - norm_so_far / total, 0.0))
            slot = slots[gram]
            for _ in range(round(weights[gram] / rarity[gram])):
                postings[ends[slot]] = place
                residuals[ends[slot]] = min(math.ceil(share * WHOLE_RESIDUAL + _ROOM), WHOLE_RESIDUAL)
                ends[slot] += 1
    return postings, residuals


@njit(cache=True)
def similarities(x_codes, x_starts, y_codes, y_starts, gram_size, table, idf, unseen_idf):  # type: ignore[no-untyped-def]
    """Return the cosine of each pair of texts at the same index."""
    result = np.zeros(x_starts.size - 1)
    xs = np.empty(gram_size * longest(x_starts), np.uint64)
    ys = np.empty(gram_size * longest(y_starts), np.uint64)
    for pair in range(result.size):
        x_count = grams_of(x_codes, x_starts[pair], x_starts[pair + 1], gram_size, xs)
        y_count = grams_of(y_codes, y_starts[pair], y_starts[pair + 1], gram_size, ys)
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
    codes,
    starts,
    gram_size,
    table,
    idf,
    unseen_idf,
    posting_starts,
    postings,
    residuals,
    norms,
    repeated,
    threshold,
):
    """Return all pairs of a text and an indexed value whose cosine reaches the threshold, with their cosines.

    Values are numbered by ascending norm. The grams of a text are processed from the rarest to the most
    frequent. The contribution of the remaining grams is bounded (see `_still_possible`), more tightly for
    values of large norm: values from `end` on cannot reach the threshold if they were not met before, and are
    closed. `end` falls with each gram, so that little is read of the long postings of frequent grams. A value
    with a small residual when it is first met cannot reach the threshold either: the remaining grams of the
    text and of the value add at most the product of their norms.
    """
    pair_texts = np.empty(1024, np.int32)
    pair_values = np.empty(1024, np.int32)
    pair_similarities = np.empty(1024, np.float32)
    pairs = 0
    least_norms = _least_norms(norms, repeated, threshold)
    products = np.zeros(norms.size)
    met = np.empty(norms.size, np.int32)
    closed = np.empty(norms.size, np.int32)
    last_residuals = np.empty(norms.size, np.uint8)  # of the values met, at their last gram
    max_grams = gram_size * longest(starts)
    grams = np.empty(max_grams, np.uint64)
    slots = np.empty(max_grams, np.int64)
    weights = np.empty(max_grams)
    rarity = np.empty(max_grams)
    for text in range(starts.size - 1):
        count = grams_of(codes, starts[text], starts[text + 1], gram_size, grams)
        distinct = _weigh(grams, count, table, idf, unseen_idf, slots, weights, rarity)
        total = 0.0
        excess = 0.0
        for i in range(distinct):
            total += weights[i] ** 2
            excess += (weights[i] - rarity[i]) ** 2
        norm = np.sqrt(total)
        # Unrepeated grams of the text add at most the square of a value's norm, so that must not be too
        # small.
        low_value = np.searchsorted(norms, (threshold - _ROOM) * norm - np.sqrt(excess))
        end = high_value = np.searchsorted(least_norms, (1 + _ROOM) * norm)
        order = np.argsort(-rarity[:distinct])
        remaining = total
        met_count = closed_count = 0
        for k in range(distinct):
            gram = order[k]
            slot = slots[gram]
            if slot < 0:
                remaining -= weights[gram] ** 2
                continue
            low, high = posting_starts[slot], posting_starts[slot + 1]
            low += np.searchsorted(postings[low:high], low_value)
            high = low + np.searchsorted(postings[low:high], high_value)
            middle = low + np.searchsorted(postings[low:high], end)
            if end > low_value:
                new_end = low_value
                if remaining >= (threshold * threshold - _ROOM) * total:
                    new_end = max(low_value, np.searchsorted(least_norms, (remaining / total + _ROOM) * norm))
                new_middle = low + np.searchsorted(postings[low:middle], new_end)
                if new_end == low_value or middle - new_middle > met_count:
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
                        closed,
                        closed_count,
                        products,
                        last_residuals,
                        norms,
                        repeated,
                        norm,
                        remaining,
                        threshold,
                    )
            product = weights[gram] * rarity[gram]
            min_residual = WHOLE_RESIDUAL * (threshold - _ROOM) * norm / np.sqrt(max(remaining, _ROOM))
            for posting in range(low, middle):
                value = postings[posting]
                if products[value] == 0.0:
                    if residuals[posting] < min_residual:
                        continue
                    met[met_count] = value
                    met_count += 1
                products[value] += product
                last_residuals[value] = residuals[posting]
            remaining -= weights[gram] ** 2
            if closed_count > 0:
                _add_to(
                    closed,
                    closed_count,
                    products,
                    last_residuals,
                    product,
                    postings[middle:high],
                    residuals[middle:high],
                )
            if k % _GRAMS_BETWEEN_LOOKS == 0:
                closed_count = _still_possible(
                    closed,
                    closed_count,
                    products,
                    last_residuals,
                    norms,
                    repeated,
                    norm,
                    remaining,
                    threshold,
                )
            if closed_count == 0 and end <= low_value:
                break
        for i in range(met_count):
            closed[closed_count] = met[i]
            closed_count += 1
        closed_count = _still_possible(
            closed, closed_count, products, last_residuals, norms, repeated, norm, 0.0, threshold
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
    """Return for each value the norm below which no text can reach it or any later value; ascending.

    Unrepeated grams of the value add at most the square of the text's norm.
    """
    least_norms = threshold * norms - repeated
    for value in range(norms.size - 2, -1, -1):
        least_norms[value] = min(least_norms[value], least_norms[value + 1])
    return least_norms


@njit(cache=True)
def _weigh(grams, count, table, idf, unseen_idf, slots, weights, rarity):  # type: ignore[no-untyped-def]
    """Write the slots (-1 if not in the table) and weights of distinct grams; return their number."""
    distinct = 0
    for i in range(count):
        if i > 0 and grams[i] == grams[i - 1]:
            weights[distinct - 1] += rarity[distinct - 1]
        else:
            slot = slot_of(table, grams[i])
            is_indexed = table[slot] != _FREE
            slots[distinct] = slot if is_indexed else -1
            rarity[distinct] = weights[distinct] = idf[slot] if is_indexed else unseen_idf
            distinct += 1
    return distinct


@njit(cache=True)
def _still_possible(closed, count, products, last_residuals, norms, repeated, norm, remaining, threshold):  # type: ignore[no-untyped-def]
    """Move the values that can still reach the threshold to the front, and return their number.

    The remaining grams, with the squared norm `remaining` in the text, add at most the product of its root
    and the value's residual norm; and at most `remaining`, except for the repeated grams of the value.
    """
    root = np.sqrt(max(remaining, 0.0))
    possible_count = 0
    for i in range(count):
        value = closed[i]
        residual_norm = norms[value] * last_residuals[value] / WHOLE_RESIDUAL
        bound = products[value] + root * min(residual_norm, root + repeated[value])
        if bound >= (threshold - _ROOM) * norm * norms[value]:
            closed[possible_count] = value
            possible_count += 1
        else:
            products[value] = 0.0
    return possible_count


@njit(cache=True)
def _add_to(closed, count, products, last_residuals, product, postings, residuals):  # type: ignore[no-untyped-def]
    """Add a gram's product to the closed values that have it, by search or by scan, whichever is shorter."""
    if 16 * count < postings.size:
        for i in range(count):
            posting = np.searchsorted(postings, closed[i])
            while posting < postings.size and postings[posting] == closed[i]:
                products[closed[i]] += product
                last_residuals[closed[i]] = residuals[posting]
                posting += 1
    else:
        for posting in range(postings.size):
            value = postings[posting]
            if products[value] > 0.0:
                products[value] += product
                last_residuals[value] = residuals[posting]
