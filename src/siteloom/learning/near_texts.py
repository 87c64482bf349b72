"""The text of a page that is most like one that is not there, to be told in a message."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from siteloom.learning.seen_texts import fold

if TYPE_CHECKING:
    from collections.abc import Iterable

COMPARED_CHARACTERS = 200
"""So much of a text is compared; with the next, it bounds the time that is taken on any page."""

_POOL_CHARACTERS = 2_000_000
_LEAST_LIKENESS = 0.3


class NearTexts:
    """The texts of a page, each once, with the trigrams they are compared by."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: list[str] = []
        self._compared: list[str] = []
        self._trigram_counts: list[int] = []
        self._with_trigram: dict[str, list[int]] = {}
        known: set[str] = set()
        left = _POOL_CHARACTERS
        for text in texts:
            if text in known:
                continue
            if left < 0:
                break
            left -= len(text)
            known.add(text)
            folded = fold(text).casefold()
            trigrams = _trigrams(folded)
            for trigram in trigrams:
                self._with_trigram.setdefault(trigram, []).append(len(self._texts))
            self._texts.append(text)
            self._compared.append(folded)
            self._trigram_counts.append(len(trigrams))

    def nearest(self, value: str) -> str | None:
        """The one that is most like a value, which is not blank; None if nothing is alike."""
        wanted = fold(value).casefold()
        holding = [index for index, text in enumerate(self._compared) if wanted in text]
        if holding:
            return self._texts[min(holding, key=lambda index: (len(self._texts[index]), index))]
        trigrams = _trigrams(wanted)
        common: Counter[int] = Counter()
        for trigram in trigrams:
            common.update(self._with_trigram.get(trigram, ()))
        likeness = {
            index: 2 * count / (len(trigrams) + self._trigram_counts[index])
            for index, count in common.items()
        }
        best = max(likeness, key=lambda index: (likeness[index], -index), default=None)
        return None if best is None or likeness[best] < _LEAST_LIKENESS else self._texts[best]


def _trigrams(text: str) -> set[str]:
    padded = f" {text[:COMPARED_CHARACTERS]} "
    return {padded[at : at + 3] for at in range(len(padded) - 2)}
