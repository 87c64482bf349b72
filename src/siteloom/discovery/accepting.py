"""Columns that a person accepts as attributes: examples of them, from which a wrapper is learned."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from siteloom.dom import find, parse, visible_text
from siteloom.errors import ExampleError, UsageError
from siteloom.learning import check_example, learn
from siteloom.model import Example, Failure
from siteloom.sampling import sample
from siteloom.spacing import evenly_spaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.discovery.table import DiscoveredRow, DiscoveredTable
    from siteloom.model import Page
    from siteloom.wrapper import Wrapper

_DIVERSE_EXAMPLES = 10  # as `siteloom sample` offers
_EXAMPLES_OF_ATTRIBUTE = 5
_LIST_PAGES = 4
_RECORDS = 3  # of a list page, which teach the list
_TRIED = 100  # pages are enough to tell the share that is right to some percent
_ROUNDS = 2
_MORE_EXAMPLES = 5  # a round, of pages that the wrapper got wrong


class Accepted(NamedTuple):
    """Examples of the accepted columns, and what a wrapper learned from them finds.

    `agreement` is the share of rows on which it finds just what the column has, by attribute.
    """

    examples: list[Example]
    agreement: dict[str, float]


def accept_columns(table: DiscoveredTable, pages: Iterable[Page], names: Mapping[str, str]) -> Accepted:
    """Make attributes of columns: `names` has the label of a column for each attribute.

    The pages are those that the table was discovered in. As rows know their page by its address, pages
    of one address teach nothing.
    """
    known = {column.label for column in table.columns}
    for label in names.values():
        if label not in known:
            raise UsageError(f"There is no column {label!r}: there are {', '.join(sorted(known))}.")
    rows = _Rows(table, _by_url(pages), names)
    examples = rows.list_examples() if table.record_xpath else rows.examples()
    if not examples:
        raise ExampleError("None of these columns can be learned: their values were not found on the pages.")
    best = rows.tried(examples)
    for _ in range(0 if table.record_xpath else _ROUNDS):
        more = [example for url in best.wrong[:_MORE_EXAMPLES] if (example := rows.example(url)) is not None]
        if not more:
            break
        examples = [*examples, *more]
        trial = rows.tried(examples)
        if sum(trial.agreement.values()) > sum(best.agreement.values()):
            best = trial
    return Accepted(best.examples, best.agreement)


def _by_url(pages: Iterable[Page]) -> dict[str, Page]:
    of_url: dict[str, list[Page]] = defaultdict(list)
    for page in pages:
        of_url[page.url].append(page)
    return {url: own[0] for url, own in of_url.items() if len(own) == 1}


class _Trial(NamedTuple):
    examples: list[Example]
    agreement: dict[str, float]
    wrong: list[str]


class _Rows:
    """The rows of a table by page, with the accepted columns under the names of their attributes."""

    def __init__(self, table: DiscoveredTable, pages: Mapping[str, Page], names: Mapping[str, str]) -> None:
        self._pages = pages
        self._names = names
        self._is_list = bool(table.record_xpath)
        self._of_page: dict[str, list[DiscoveredRow]] = defaultdict(list)
        for row in table.rows:
            if row.url in pages:
                self._of_page[row.url].append(row)

    def examples(self) -> list[Example]:
        """Of pages that differ, and of enough for each attribute."""
        urls = list(self._of_page)
        diverse = sample([self._pages[url] for url in urls], k=_DIVERSE_EXAMPLES)
        chosen = dict.fromkeys(urls[number] for number in diverse)
        for label in self._names.values():
            filled = [url for url in urls if label in self._of_page[url][0].values]
            missing = _EXAMPLES_OF_ATTRIBUTE - sum(url in filled for url in chosen)
            chosen |= dict.fromkeys(evenly_spaced(filled, max(0, missing)))
        return [example for url in chosen if (example := self.example(url)) is not None]

    def example(self, url: str) -> Example | None:
        """What a page shows, tied to nodes; None if that cannot be learned from."""
        values, nodes = self._shown(self._of_page[url][0], self._pages[url])
        for example in (
            Example(self._pages[url], values, nodes=nodes),
            Example(self._pages[url], values),
        ):
            try:
                check_example(example)
            except ExampleError:
                continue
            return example
        return None

    def list_examples(self) -> list[Example]:
        """Of the fullest records of a few pages."""
        pages = evenly_spaced([url for url, rows in self._of_page.items() if len(rows) > 1], _LIST_PAGES)
        return [
            Example(
                self._pages[url],
                records=[self._values(row) for row in self._fullest(self._of_page[url])],
            )
            for url in pages
        ]

    def _fullest(self, rows: Sequence[DiscoveredRow]) -> list[DiscoveredRow]:
        by_filled = sorted(rows, key=lambda row: -sum(map(bool, self._values(row).values())))
        return by_filled[:_RECORDS]

    def _values(self, row: DiscoveredRow) -> dict[str, tuple[str, ...]]:
        return {attribute: row[label] for attribute, label in self._names.items()}

    def _shown(
        self, row: DiscoveredRow, page: Page
    ) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
        """Values with their nodes; of running text, all that its element shows."""
        values, nodes = self._values(row), {}
        for attribute, label in self._names.items():
            own = row.nodes.get(label, ())
            if len(own) == len(values[attribute]):
                nodes[attribute] = own
            if own and not own[0].rpartition("/")[2].startswith(("text()", "@")):
                root = parse(page)
                element = None if isinstance(root, Failure) else find(root, own[0])
                values[attribute] = () if element is None else (visible_text(element),)
                nodes.pop(attribute, None)
        return values, nodes

    def tried(self, examples: list[Example]) -> _Trial:
        """What a wrapper that is learned from examples finds on some pages."""
        some = [self._pages[url] for url in evenly_spaced(list(self._of_page), _TRIED)]
        wrapper = learn(examples, some)
        right = dict.fromkeys(self._names, 0)
        wrong, rows = [], 0
        for page in some:
            expected = self._expected(page)
            found = self._found(wrapper, page)
            rows += len(expected)
            is_right = len(found) == len(expected)
            for one, other in zip(found, expected, strict=False):
                for attribute in self._names:
                    agrees = one.get(attribute, ()) == other.get(attribute, ())
                    right[attribute] += agrees
                    is_right &= agrees
            if not is_right and page.url not in {example.page.url for example in examples}:
                wrong.append(page.url)
        return _Trial(examples, {name: count / rows for name, count in right.items()}, wrong)

    def _expected(self, page: Page) -> list[Mapping[str, tuple[str, ...]]]:
        rows = self._of_page[page.url]
        return [self._values(row) for row in rows] if self._is_list else [self._shown(rows[0], page)[0]]

    def _found(self, wrapper: Wrapper, page: Page) -> list[Mapping[str, tuple[str, ...]]]:
        records = wrapper.extract_all(page) if self._is_list else (wrapper.extract(page),)
        return [record.values for record in records]
