"""How a find is shown: a title and a snippet, and where in them stands what was asked for.

Places are numbers of characters. What they are marked with is for those to decide who show them, and who
know what must be escaped there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from siteloom.words import words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from siteloom.model import IndexDocument, Passage
    from siteloom.words import Word

_SNIPPET = 200  # characters: about two lines of a terminal
_BEFORE = 60  # of them before the first find
_MOST_VALUES = 4
_CUT = "…"
_BETWEEN_VALUES = " | "


class Highlighted(NamedTuple):
    """A text, and the places in it that show what was asked for, as starts and ends."""

    text: str
    places: tuple[tuple[int, int], ...] = ()

    def marked(self, before: str, after: str) -> str:
        """The text with marks around each place."""
        parts, end = [], 0
        for start, stop in self.places:
            parts += [self.text[end:start], before, self.text[start:stop], after]
            end = stop
        return "".join([*parts, self.text[end:]])


@dataclass(frozen=True, slots=True)
class Hit:
    """A page or a record that was found.

    `attributes` are those of a record whose values show what was asked for, and `values` are all of them.
    """

    url: str
    site: str
    cluster: str | None
    kind: Literal["page", "record"]
    score: float
    title: Highlighted
    snippet: Highlighted
    attributes: tuple[str, ...]
    values: Mapping[str, tuple[str, ...]]


def shown_hit(
    document: IndexDocument,
    cluster: str | None,
    score: float,
    phrases: Collection[tuple[str, ...]],
    attribute: str | None = None,
) -> Hit:
    """A document as it is shown to whoever asked for some phrases, maybe in one attribute only."""
    is_page = document.kind == "page"
    titles = [passage for passage in document.passages if passage.field == "title"]
    others = [passage for passage in document.passages if passage.field != "title"]
    title = titles[0].text if titles else ""
    values: dict[str, tuple[str, ...]] = {}
    found: dict[str, None] = {}
    for passage in () if is_page else document.passages:
        values[passage.attribute] = (*values.get(passage.attribute, ()), passage.text)
        if attribute in (None, passage.attribute) and places_in(passage.text, phrases):
            found[passage.attribute] = None
    return Hit(
        document.url,
        document.site,
        cluster,
        document.kind,
        score,
        Highlighted(title, places_in(title, phrases)),
        _page_snippet(others, phrases) if is_page else _record_snippet(others, phrases),
        tuple(found),
        values,
    )


def _page_snippet(passages: Sequence[Passage], phrases: Collection[tuple[str, ...]]) -> Highlighted:
    text = " ".join("".join(passage.text for passage in passages).split())
    found = _finds(text, phrases)
    begin = _best_window(found)
    start, end = _whole_words(text, begin, begin + _SNIPPET)
    before, after = (_CUT if start else ""), (_CUT if end < len(text) else "")
    shift = len(before) - start
    places = _united(
        (place + shift, stop + shift) for place, stop, _ in found if start <= place and stop <= end
    )
    return Highlighted(f"{before}{text[start:end]}{after}", places)


def _record_snippet(passages: Iterable[Passage], phrases: Collection[tuple[str, ...]]) -> Highlighted:
    """The values with what was asked for come first, each with its attribute."""
    ordered = sorted(passages, key=lambda passage: not places_in(passage.text, phrases))
    text, places = "", []
    for passage in ordered[:_MOST_VALUES]:
        text += f"{_BETWEEN_VALUES if text else ''}{passage.attribute}: "
        value = passage.text if len(passage.text) <= _SNIPPET else f"{passage.text[:_SNIPPET]}{_CUT}"
        places += [(start + len(text), end + len(text)) for start, end in places_in(value, phrases)]
        text += value
    return Highlighted(text, tuple(places))


def _best_window(found: Sequence[tuple[int, int, int]]) -> int:
    """Where a snippet begins that shows the most different phrases; the first of such."""
    best, begin = 0, 0
    shown: Counter[int] = Counter()
    after = 0  # the first find that the window does not show
    for start, _, first in found:
        while after < len(found) and found[after][1] <= start + _SNIPPET - _BEFORE:
            shown[found[after][2]] += 1
            after += 1
        if len(shown) > best:
            best, begin = len(shown), max(0, start - _BEFORE)
        shown[first] -= 1
        if not shown[first]:
            del shown[first]
    return begin


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """A range of a text, made a little smaller so that it does not cut words, if there are blanks."""
    if start:
        blank = text.find(" ", start, start + _BEFORE // 2)
        start = blank + 1 if blank >= 0 else start
    if end < len(text):
        blank = text.rfind(" ", end - _BEFORE // 2, end)
        end = blank if blank >= 0 else end
    return start, min(end, len(text))


def places_in(text: str, phrases: Collection[tuple[str, ...]]) -> tuple[tuple[int, int], ...]:
    """Where phrases stand in a text, as starts and ends in their order."""
    return _united((start, end) for start, end, _ in _finds(text, phrases))


def _united(places: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Places in their order; those that overlap or touch are one."""
    united: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return tuple(united)


def _finds(text: str, phrases: Collection[tuple[str, ...]]) -> list[tuple[int, int, int]]:
    """Where phrases stand in a text, and which of them."""
    numbered: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
    for number, phrase in enumerate(phrases):
        numbered.setdefault(phrase[0], []).append((number, phrase))
    stream: list[tuple[str, Word]] = [(term, word) for word in words(text) for term in word.terms]
    found = []
    for place, (term, word) in enumerate(stream):
        for number, phrase in numbered.get(term, ()):
            row = stream[place : place + len(phrase)]
            if tuple(follower for follower, _ in row) == phrase:
                found.append((word.start, row[-1][1].end, number))
    return found
