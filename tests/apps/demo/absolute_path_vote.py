"""A deliberately naive learner: absolute paths that two of three example pages agree on.

It is the yardstick for the built-in sites. Where it does well, a site is too easy
to tell good learners from bad ones.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lxml import etree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from siteloom.apps.demo.sites.built_in_page import BuiltinPage

EXAMPLE_COUNT = 3
VOTES_NEEDED = 2

Values = frozenset[str]
PathTable = dict[str, str]


@dataclass(frozen=True)
class Annotated:
    """A page as the learner sees it: every text and attribute by its absolute path."""

    texts: PathTable
    truth: Mapping[str, Values]


def annotated(page: BuiltinPage) -> Annotated:
    """The page parsed, with its truth as sets."""
    truth = {attribute: frozenset(values) for attribute, values in page.truth.items()}
    return Annotated(dict(_texts(page.page.html)), truth)


def evenly_spaced(count: int, offset: int = 0) -> tuple[int, ...]:
    """The positions of the example pages among `count` pages."""
    return tuple((count * part // EXAMPLE_COUNT + offset) % count for part in range(EXAMPLE_COUNT))


def learn(examples: Sequence[Annotated]) -> dict[str, frozenset[str]]:
    """For each attribute the paths that hold one of its values on enough of the examples."""
    return {
        attribute: _voted(_paths_of(example.texts, example.truth[attribute]) for example in examples)
        for attribute in examples[0].truth
    }


def score(paths: Mapping[str, frozenset[str]], pages: Sequence[Annotated]) -> float:
    """Mean over the attributes of the F1 of value sets that are exactly right."""
    return sum(_strict_f1(attribute, paths[attribute], pages) for attribute in paths) / len(paths)


def vote_score(examples_from: Sequence[Annotated], pages: Sequence[Annotated], offset: int = 0) -> float:
    """Learn from three pages of the first series and score all others of the second."""
    chosen = evenly_spaced(len(examples_from), offset)
    paths = learn([examples_from[index] for index in chosen])
    return score(paths, [page for index, page in enumerate(pages) if index not in chosen])


def normalised(text: str) -> str:
    """The text with every run of white space, no-break spaces included, as one space."""
    return " ".join(text.split())


def _texts(html: bytes) -> Iterator[tuple[str, str]]:
    tree = etree.HTML(html, etree.HTMLParser(encoding="utf-8")).getroottree()
    for element in tree.iter(etree.Element):
        if element.tag in ("script", "style"):
            continue
        path = tree.getpath(element)
        for number, text in enumerate(element.xpath("text()"), 1):
            if normalised(text):
                yield f"{path}/text()[{number}]", normalised(text)
        for name, value in element.attrib.items():
            yield f"{path}/@{name}", normalised(value)


def _paths_of(texts: PathTable, values: Values) -> set[str]:
    return {path for path, text in texts.items() if text in values}


def _voted(path_sets: Iterable[set[str]]) -> frozenset[str]:
    votes = Counter(path for paths in path_sets for path in paths)
    return frozenset(path for path, count in votes.items() if count >= VOTES_NEEDED)


def _strict_f1(attribute: str, paths: frozenset[str], pages: Sequence[Annotated]) -> float:
    outputs = [frozenset(page.texts[path] for path in paths if path in page.texts) for page in pages]
    truths = [page.truth[attribute] for page in pages]
    correct = sum(bool(output) and output == truth for output, truth in zip(outputs, truths, strict=True))
    with_output, with_truth = sum(map(bool, outputs)), sum(map(bool, truths))
    # 2PR/(P+R) with P = correct/with_output and R = correct/with_truth.
    return 2 * correct / (with_output + with_truth) if correct else 0.0
