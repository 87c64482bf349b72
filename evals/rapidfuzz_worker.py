"""Runs inside RapidFuzz's own environment: texts and values come in as JSON, pairs go out.

To name the best value of each text: {"job": "best", "scorer": name, "texts": [...], "values": [...]} comes
in, [number of the value, or null] goes out. To time a join: {"job": "join", "cutoff": least score} and the
like come in, {"pairs": [number of the text * number of all values + number of the value], "seconds": CPU
seconds} goes out.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from rapidfuzz import fuzz, process  # type: ignore[import-not-found]

_TEXTS_AT_ONCE = 500  # a table of all texts and values would not fit into memory


def main() -> None:
    work = json.load(sys.stdin)
    scorer = getattr(fuzz, work["scorer"])
    json.dump(_best(work, scorer) if work["job"] == "best" else _join(work, scorer), sys.stdout)


def _best(work: dict[str, Any], scorer: Any) -> list[int | None]:
    found = (process.extractOne(text, work["values"], scorer=scorer) for text in work["texts"])
    return [best[2] if best else None for best in found]


def _join(work: dict[str, Any], scorer: Any) -> dict[str, Any]:
    texts, values, cutoff = work["texts"], work["values"], work["cutoff"]
    pairs: list[int] = []
    start = time.process_time()
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        some = texts[first : first + _TEXTS_AT_ONCE]
        scores = process.cdist(some, values, scorer=scorer, score_cutoff=cutoff, dtype=np.uint8, workers=1)
        rows, columns = np.nonzero(scores)
        pairs += ((rows + first) * len(values) + columns).tolist()
    return {"pairs": pairs, "seconds": time.process_time() - start}


if __name__ == "__main__":
    main()
