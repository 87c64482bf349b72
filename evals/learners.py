"""The learners that are compared: Siteloom's methods, and a vote of absolute paths.

A learner is given annotated and unlabelled pages of one site and answers for other pages of it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, get_args

import siteloom
from siteloom.core.errors import ExampleNotFound
from siteloom.core.model import Example, Failure
from siteloom.html.parser import parse
from siteloom.html.visible_text import normalize, text_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteloom.core.model import Page
    from siteloom.wrappers.wrapper import Wrapper

Method = Literal["united", "vertex"]

ABSOLUTE_PATHS = "absolute-paths"
METHODS: tuple[Method, ...] = get_args(Method)


class Found(NamedTuple):
    """What a learner found on a page; the confidence of each value, if it tells."""

    values: Mapping[str, Sequence[str]]
    confidence: Mapping[str, Sequence[float]]


class Answers(NamedTuple):
    """What was found on each page, which values of examples were of no use, and why nothing was learned."""

    found: list[Found]
    left_out: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class Learner(Protocol):
    """One for each site, so that it may keep what it needs again for another number of examples."""

    def __call__(
        self, examples: Sequence[Example], unlabelled: Sequence[Page], pages: Sequence[Page]
    ) -> Answers:
        """Learn, then extract from `pages`."""
        ...


class Siteloom:
    """Siteloom itself."""

    def __init__(self, method: Method) -> None:
        self._method = method

    def __call__(
        self, examples: Sequence[Example], unlabelled: Sequence[Page], pages: Sequence[Page]
    ) -> Answers:
        """Learn, then extract from `pages`."""
        wrapper, left_out = learned(examples, unlabelled, self._method)
        records = [wrapper.extract(page) for page in pages]
        return Answers([Found(record.values, record.confidence) for record in records], left_out)


def learned(
    examples: Sequence[Example], unlabelled: Sequence[Page], method: Method
) -> tuple[Wrapper, tuple[str, ...]]:
    """A wrapper, and the values of examples that could not be used.

    Some true values do not stand on their pages (the data set is wrong there). A
    person could not annotate them, so their attribute is left out of that example.
    """
    left_out: list[str] = []
    while True:
        try:
            return siteloom.learn(examples, unlabelled=unlabelled, method=method), tuple(left_out)
        except ExampleNotFound as error:
            left_out.append(str(error))
            examples = _without(examples, error)


class AbsolutePathVote:
    """A deliberately naive learner: absolute paths that at least half of the examples with a value agree on.

    Values come in the order of votes, then of the page.
    """

    def __init__(self) -> None:
        self._tables: dict[str, dict[str, str]] = {}

    def __call__(
        self,
        examples: Sequence[Example],
        unlabelled: Sequence[Page],  # noqa: ARG002 - it has no use for them
        pages: Sequence[Page],
    ) -> Answers:
        """Learn, then extract from `pages`."""
        attributes = {attribute for example in examples for attribute in example.values}
        paths = {attribute: self._voted(attribute, examples) for attribute in attributes}
        return Answers([self._found(paths, page) for page in pages])

    def _voted(self, attribute: str, examples: Sequence[Example]) -> list[str]:
        votes: Counter[str] = Counter()
        voters = [example for example in examples if example.values[attribute]]
        for example in voters:
            values = example.values[attribute]
            votes.update(path for path, text in self._table(example.page).items() if text in values)
        return [path for path, count in votes.most_common() if count >= len(voters) / 2]

    def _found(self, paths: Mapping[str, Sequence[str]], page: Page) -> Found:
        table = self._table(page)
        values = {
            attribute: [table[path] for path in candidates if path in table]
            for attribute, candidates in paths.items()
        }
        return Found(values, {})

    def _table(self, page: Page) -> dict[str, str]:
        """Every text of a page by its absolute path."""
        if page.url not in self._tables:
            self._tables[page.url] = _texts_by_path(page)
        return self._tables[page.url]


def _texts_by_path(page: Page) -> dict[str, str]:
    root = parse(page)
    if isinstance(root, Failure):
        return {}
    tree = root.getroottree()
    return {
        f"{tree.getpath(node.parent)}/text()[{node.number}]": normalize(node.text)
        for node in text_nodes(root)
    }


def _without(examples: Sequence[Example], error: ExampleNotFound) -> list[Example]:
    """The examples without the attribute whose value is not on its page."""
    kept = []
    for example in examples:
        values = dict(example.values)
        if example.page.url == error.url and error.value in map(normalize, values.get(error.attribute, ())):
            del values[error.attribute]
        kept.append(Example(example.page, values))
    if all(len(new.values) == len(old.values) for new, old in zip(kept, examples, strict=True)):
        raise error  # it names a value that no example has
    return kept
