"""Which title of another shop is the same book's? The titles of books that are linked by their ISBN.

Four shops of the SWDE data set write many titles differently: with a subtitle, a series, a number. Each title
of a shop whose book another shop has, too, is given to each program, which names the one most similar of all
titles of the other shop. All are given titles that Siteloom has folded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

from evals.peers import Peer, PeerFailed
from evals.swde import swde_sites
from siteloom.learning.known_records.string_similarity import WEAKLY_SIMILAR, WeakIndex
from siteloom.learning.known_records.text_normalisation import folded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    Best = Callable[[Sequence[str], Sequence[str]], Sequence[int | None]]

SPARSE_DOT = Peer(
    "sparse_dot_topn",
    ("sparse_dot_topn==1.2.0", "scikit-learn==1.9.1"),
    "sparse_dot_topn",
    "sparse_dot_topn",
)
RAPIDFUZZ = Peer("rapidfuzz", ("rapidfuzz==3.14.6", "numpy==2.4.6"), "rapidfuzz", "rapidfuzz")

_SHOPS = "book"
_LOW = 0.2  # of two texts that share next to nothing


class Named(NamedTuple):
    """Of the titles that a program was asked for: for how many it named one, and the right one.

    `right_of_different` counts only those that the other shop writes differently.
    """

    named: int
    right: int
    right_of_different: int


class Titles(NamedTuple):
    """How many titles there are, how many of them the other shop writes differently, and how programs did.

    `failed` says why a program has no figures.
    """

    titles: int
    different: int
    by_program: Mapping[str, Named]
    failed: Mapping[str, str]


class _Task(NamedTuple):
    """Titles of a shop with the ISBNs of their books, and the titles that another shop has for each ISBN."""

    texts: list[str]
    isbns: list[str]
    titles_of: Mapping[str, set[str]]

    @property
    def values(self) -> list[str]:
        return sorted({title for titles in self.titles_of.values() for title in titles})


def measure(data: Path) -> Titles:
    """All programs on all pairs of shops."""
    tasks = _tasks(data)
    by_program: dict[str, Named] = {}
    failed: dict[str, str] = {}
    for program, best in _PROGRAMS.items():
        try:
            by_program[program] = Named(*map(sum, zip(*(_named(task, best) for task in tasks), strict=True)))
        except PeerFailed as error:
            failed[program] = str(error)
    return Titles(
        sum(len(task.texts) for task in tasks),
        sum(_is_different(task, place) for task in tasks for place in range(len(task.texts))),
        by_program,
        failed,
    )


def _tasks(data: Path) -> list[_Task]:
    shops = [titles_by_isbn(site.truth.values()) for site in swde_sites(data) if site.vertical == _SHOPS]
    tasks = []
    for one, other in permutations(shops, 2):
        asked = [(title, isbn) for isbn in sorted(one.keys() & other.keys()) for title in sorted(one[isbn])]
        tasks.append(_Task([title for title, _ in asked], [isbn for _, isbn in asked], other))
    return tasks


def titles_by_isbn(records: Iterable[Mapping[str, Sequence[str]]]) -> dict[str, set[str]]:
    """The folded titles of the books with each ISBN, which shops write with text and dashes around it."""
    titles: defaultdict[str, set[str]] = defaultdict(set)
    for record in records:
        for isbn in record.get("isbn_13", ()):
            digits = re.sub(r"\D", "", isbn)[-13:]
            titles[digits].update(folded(title) for title in record.get("title", ()))
    return dict(titles)


def _named(task: _Task, best: Best) -> Named:
    values = task.values
    numbers = best(task.texts, values)
    right = [
        number is not None and values[number] in task.titles_of[isbn]
        for number, isbn in zip(numbers, task.isbns, strict=True)
    ]
    return Named(
        sum(number is not None for number in numbers),
        sum(right),
        sum(is_right and _is_different(task, place) for place, is_right in enumerate(right)),
    )


def _is_different(task: _Task, place: int) -> bool:
    return task.texts[place] not in task.titles_of[task.isbns[place]]


def _siteloom(threshold: float) -> Best:
    """The most similar of the values that its join finds."""

    def best(texts: Sequence[str], values: Sequence[str]) -> list[int | None]:
        found: dict[int, tuple[float, int]] = {}
        joined = WeakIndex(values).join(texts, threshold)
        for text, value, similarity in zip(*(column.tolist() for column in joined), strict=True):
            found[text] = max(found.get(text, (0.0, -1)), (similarity, value))
        return [found[text][1] if text in found else None for text in range(len(texts))]

    return best


def _peer(peer: Peer, **options: str) -> Best:
    return lambda texts, values: peer.answer({"job": "best", "texts": texts, "values": values, **options})


OWN = "Siteloom"
OWN_LOW = f"Siteloom, from {_LOW:g} on"
PEERS = {
    "sparse_dot_topn": SPARSE_DOT,
    "RapidFuzz, `WRatio`": RAPIDFUZZ,
    "RapidFuzz, `token_set_ratio`": RAPIDFUZZ,
}
_PROGRAMS: dict[str, Best] = {
    OWN: _siteloom(WEAKLY_SIMILAR),
    OWN_LOW: _siteloom(_LOW),
    "sparse_dot_topn": _peer(SPARSE_DOT),
    "RapidFuzz, `WRatio`": _peer(RAPIDFUZZ, scorer="WRatio"),
    "RapidFuzz, `token_set_ratio`": _peer(RAPIDFUZZ, scorer="token_set_ratio"),
}
