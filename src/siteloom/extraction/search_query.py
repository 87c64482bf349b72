"""Parse a search query, rank the hits, and highlight the words in title and snippet.

Places are numbers of characters. What they are marked with is for those to decide who show them, and who
know what must be escaped there.

All words must be there, whatever parts them. Words in quotes must stand side by side, and what has a minus
before it must not be there. Whatever else is typed are words, too: only a query without any
is wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from siteloom.core.errors import UsageError
from siteloom.core.word_tokenizer import terms, words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from siteloom.core.model import FoundDocument, IndexDocument, Passage
    from siteloom.core.word_tokenizer import Word


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


_QUOTES = '"\u201c\u201d\u201e'  # as typed, and as text programs turn them
# A quote may be left open; a minus counts at the beginning of a word only.
_PART = re.compile(
    rf"(?P<minus>(?<!\S)-)?(?:[{_QUOTES}](?P<phrase>[^{_QUOTES}]*)[{_QUOTES}]?|(?P<word>[^\s{_QUOTES}]+))"
)

# No one types more; whoever pastes a whole text is served with the beginning of it.
_MOST_PHRASES = 32
_MOST_TERMS = 64


class Query(NamedTuple):
    """What is asked for: phrases of one or more terms that must be there, and such that must not."""

    wanted: tuple[tuple[str, ...], ...]
    unwanted: tuple[tuple[str, ...], ...]


def parse_query(text: str) -> Query:
    """The query that a person types."""
    wanted: dict[tuple[str, ...], None] = {}
    unwanted: dict[tuple[str, ...], None] = {}
    for part in _PART.finditer(text):
        typed = part["word"] if part["phrase"] is None else part["phrase"]
        if part["minus"]:
            unwanted[tuple(terms(typed))[:_MOST_TERMS]] = None
        elif part["phrase"] is None:
            wanted.update(dict.fromkeys(_parted(typed)))
        else:
            wanted[tuple(terms(typed))[:_MOST_TERMS]] = None
    wanted.pop((), None)
    unwanted.pop((), None)
    if not wanted:
        hint = " besides what is excluded" if unwanted else ""
        raise UsageError(f"There is no word to look for{hint}: give at least one.")
    return Query(tuple(wanted)[:_MOST_PHRASES], tuple(unwanted)[:_MOST_PHRASES])


def _parted(typed: str) -> Iterator[tuple[str, ...]]:
    """What is typed without a blank, such as O'Brien, by what parts words; what nothing parts is a phrase."""
    phrase: list[str] = []
    end = 0
    for word in words(typed):
        if word.start > end:
            yield tuple(phrase[:_MOST_TERMS])
            phrase = []
        phrase += word.terms
        end = word.end
    yield tuple(phrase[:_MOST_TERMS])


LOOKED_AT = 50
"""So many of the best finds are put into a better order."""

# How much more a find counts that has all that was asked for in its title, or side by side in any text. With
# half or double of each, pages of real sites are found about as well: see docs/evaluation/search.md.
_IN_TITLE = 0.5
_SIDE_BY_SIDE = 1.0


def best_first(
    found: Sequence[FoundDocument], wanted: Sequence[tuple[str, ...]], attribute: str | None = None
) -> list[FoundDocument]:
    """Finds in the order of their scores, which become higher for those that fit well.

    With an attribute, all that counts is what stands in the values of this attribute.
    """
    fitting = [one._replace(score=one.score * _fit(one, wanted, attribute)) for one in found[:LOOKED_AT]]
    return [*sorted(fitting, key=lambda one: -one.score), *found[LOOKED_AT:]]


def _fit(found: FoundDocument, wanted: Sequence[tuple[str, ...]], attribute: str | None) -> float:
    passages = [one for one in found.document.passages if attribute in (None, one.attribute)]
    titles = [passage.text for passage in passages if passage.field == "title"]
    pairs = [(*phrase, *following) for phrase, following in pairwise(wanted)]
    in_title = _share(titles, wanted)
    side_by_side = _share([passage.text for passage in passages], pairs) if pairs else 0.0
    return 1 + _IN_TITLE * in_title + _SIDE_BY_SIDE * side_by_side


def _share(texts: Iterable[str], phrases: Collection[tuple[str, ...]]) -> float:
    """The share of phrases that stand in any of the texts."""
    rows = [f" {' '.join(terms(text))} " for text in texts]
    return sum(any(f" {' '.join(phrase)} " in row for row in rows) for phrase in phrases) / len(phrases)
