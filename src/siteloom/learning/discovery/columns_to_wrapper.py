"""Turn columns that a person accepts as attributes into examples for learning a wrapper."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import ExampleError, UsageError
from siteloom.core.model import Example, Failure
from siteloom.core.sequences import evenly_spaced
from siteloom.core.settings import ParseSettings
from siteloom.html.node_paths import find
from siteloom.html.parser import parse
from siteloom.html.visible_text import visible_text
from siteloom.learning.induction.learner import check_example, learn_wrapper
from siteloom.templates.sampling import sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.core.model import Page
    from siteloom.learning.discovery.table_discovery import DiscoveredRow, DiscoveredTable
    from siteloom.wrappers.wrapper import Wrapper

_DIVERSE_EXAMPLES = 10  # as `siteloom sample` offers
_EXAMPLES_OF_ATTRIBUTE = 5
_LIST_PAGES = 4
_RECORDS = 3  # example records of a list page
_LEAST_RECORDS = 2  # of a list page, to show where a record ends
_TRIED = 100  # pages suffice to measure the correct share to a few percent
_ROUNDS = 2
_MORE_EXAMPLES = 5  # per round, of pages that the wrapper got wrong
_LEAST_AGREEMENT = (
    0.8  # a person who accepts a column does not expect more than one in five values to be wrong
)

_Values = dict[str, tuple[str, ...]]


class AcceptedColumns(NamedTuple):
    """Examples of the accepted columns, and the results of a wrapper learned from them.

    `agreement` is the share of values that the wrapper finds exactly as in the column, by attribute;
    `left_out` has the share of the attributes for which it is too low and which the examples leave out.
    `tried` is the number of pages that the wrapper was tried on.
    """

    examples: list[Example]
    agreement: dict[str, float]
    left_out: dict[str, float]
    tried: int


def accept_columns(
    table: DiscoveredTable,
    pages: Iterable[Page],
    names: Mapping[str, str],
    annotated: Sequence[Example] = (),
    *,
    limits: ParseSettings = ParseSettings(),
) -> AcceptedColumns:
    """Make attributes of columns: `names` has the label of a column for each attribute.

    The pages are those of the discovered table. Rows refer to pages by URL, so pages with the same URL are
    ignored. Existing annotations are kept: the examples of annotated pages extend them.
    """
    labels = {column.label for column in table.columns}
    for label in names.values():
        if label not in labels:
            raise UsageError(f"There is no column {label!r}: there are {', '.join(sorted(labels))}.")
    of_url = _by_url(pages)
    if not of_url:
        raise ExampleError("Each of these pages has the URL of another page: examples need distinct URLs.")
    rows = _TableRows(table=table, pages=of_url, names=names, annotated=annotated, limits=limits)
    best = rows.best_trial()
    poor = {name: share for name, share in best.agreement.items() if share < _LEAST_AGREEMENT}
    if not poor:
        return AcceptedColumns(
            examples=best.examples, agreement=best.agreement, left_out={}, tried=rows.tried_pages
        )
    good_names = {name: label for name, label in names.items() if name not in poor}
    if not good_names:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in poor.items())
        raise ExampleError(
            f"None of these columns can be learned: no rule was found for their values, tried on "
            f"{rows.tried_pages} pages ({shares}). Annotate a few pages instead."
        )
    accepted = accept_columns(
        table=table, pages=of_url.values(), names=good_names, annotated=annotated, limits=limits
    )
    return accepted._replace(left_out=poor | accepted.left_out)


def _by_url(pages: Iterable[Page]) -> dict[str, Page]:
    of_url: dict[str, list[Page]] = defaultdict(list)
    for page in pages:
        of_url[page.url].append(page)
    return {url: own[0] for url, own in of_url.items() if len(own) == 1}


class _Trial(NamedTuple):
    examples: list[Example]
    agreement: dict[str, float]
    wrong: list[str]


class _TableRows:
    """The rows of a table by page, with the accepted columns under the names of their attributes."""

    def __init__(
        self,
        table: DiscoveredTable,
        pages: Mapping[str, Page],
        names: Mapping[str, str],
        annotated: Sequence[Example],
        limits: ParseSettings,
    ) -> None:
        self._pages = pages
        self._limits = limits
        self._names = names
        self._is_list = bool(table.record_xpath)
        # An example of another version of its page does not match the rows.
        self._annotated = {
            example.page.url: example
            for example in annotated
            if bool(example.records) == self._is_list
            and example.page.url in pages
            and example.page.html == pages[example.page.url].html
        }
        self._rows_by_url: dict[str, list[DiscoveredRow]] = defaultdict(list)
        for row in table.rows:
            if row.url in pages:
                self._rows_by_url[row.url].append(row)
        self._trial_pages = [pages[url] for url in evenly_spaced(list(self._rows_by_url), _TRIED)]

    @property
    def tried_pages(self) -> int:
        """The number of pages that wrappers are tried on."""
        return len(self._trial_pages)

    def best_trial(self) -> _Trial:
        """Return the best of a few trials, each with more examples of pages that were wrong before."""
        best = self._run_trial(self._examples(self._choose_pages()))
        for _ in range(0 if self._is_list else _ROUNDS):
            more_examples = self._examples(best.wrong[:_MORE_EXAMPLES])
            if not more_examples:
                break
            trial = self._run_trial([*best.examples, *more_examples])
            if sum(trial.agreement.values()) <= sum(best.agreement.values()):
                break
            best = trial
        return best

    def _choose_pages(self) -> Iterable[str]:
        """Choose annotated pages, diverse pages, and enough pages for each attribute."""
        min_records = _LEAST_RECORDS if self._is_list else 0
        urls = [
            url for url, rows in self._rows_by_url.items() if sum(map(self._is_filled, rows)) >= min_records
        ]
        wanted_pages = _LIST_PAGES if self._is_list else _EXAMPLES_OF_ATTRIBUTE
        if self._is_list:
            diverse = evenly_spaced(urls, _LIST_PAGES)
        else:
            numbers = sample([self._pages[url] for url in urls], k=_DIVERSE_EXAMPLES)
            diverse = [urls[number] for number in numbers]
        chosen = dict.fromkeys([*self._annotated, *diverse])
        for label in self._names.values():
            filled = [url for url in urls if any(label in row.values for row in self._rows_by_url[url])]
            missing = wanted_pages - sum(url in filled for url in chosen)
            chosen |= dict.fromkeys(evenly_spaced(filled, max(0, missing)))
        return chosen

    def _examples(self, urls: Iterable[str]) -> list[Example]:
        """Return the examples of pages that can be learned from."""
        candidates = (self._list_example(url) if self._is_list else self._page_example(url) for url in urls)
        return [example for example in candidates if example is not None]

    def _page_example(self, url: str) -> Example | None:
        """Return the example of a page, tied to nodes if possible."""
        page = self._pages[url]
        values, nodes = self._shown(self._rows_by_url[url][0], page)
        annotated = self._annotated.get(url, Example(page))
        values = {**values, **{name: tuple(texts) for name, texts in annotated.values.items()}}
        own = {name: paths for name, paths in nodes.items() if name not in annotated.values}
        for ties in ({**own, **annotated.nodes}, annotated.nodes):
            example = Example(page, values, nodes=ties)
            if _can_be_learned(example, self._limits):
                return example
        return None

    def _list_example(self, url: str) -> Example | None:
        """Return the fullest records of a page, or its annotated records with the accepted attributes."""
        rows = self._rows_by_url[url]
        if url not in self._annotated:
            fullest = sorted(filter(self._is_filled, rows), key=lambda row: -len(self._present_values(row)))
            records = [self._values(row) for row in fullest[:_RECORDS]]
        else:
            records = []
            for record in self._annotated[url].records:
                texts = {
                    tuple(texts_of_attribute) for texts_of_attribute in record.values() if texts_of_attribute
                }
                own = [row for row in rows if texts and texts <= set(row.values.values())]
                if len(own) != 1:
                    return None
                records.append(
                    {
                        **self._values(own[0]),
                        **{name: tuple(texts_of_attribute) for name, texts_of_attribute in record.items()},
                    }
                )
        example = Example(self._pages[url], records=records)
        return example if records and _can_be_learned(example, self._limits) else None

    def _is_filled(self, row: DiscoveredRow) -> bool:
        return bool(self._present_values(row))

    def _present_values(self, row: DiscoveredRow) -> _Values:
        return {name: texts for name, texts in self._values(row).items() if texts}

    def _values(self, row: DiscoveredRow) -> _Values:
        return {attribute: row[label] for attribute, label in self._names.items()}

    def _shown(self, row: DiscoveredRow, page: Page) -> tuple[_Values, _Values]:
        """Return values with their nodes; for running text, the whole visible text of its element."""
        values, nodes = self._values(row), {}
        for attribute, label in self._names.items():
            own = row.nodes.get(label, ())
            if len(own) == len(values[attribute]):
                nodes[attribute] = own
            if own and not own[0].rpartition("/")[2].startswith(("text()", "@")):
                root = parse(page, self._limits.learned)
                element = None if isinstance(root, Failure) else find(root, own[0])
                values[attribute] = () if element is None else (visible_text(element),)
                nodes.pop(attribute, None)
        return values, nodes

    def _run_trial(self, examples: list[Example]) -> _Trial:
        """Learn a wrapper from examples and other annotations, and try it on some pages."""
        urls = {example.page.url for example in examples}
        other_examples = [example for url, example in self._annotated.items() if url not in urls]
        if not any(any(map(self._names.__contains__, names)) for names in map(_filled_names, examples)):
            raise ExampleError(self._why_no_example())
        wrapper = learn_wrapper([*examples, *other_examples], self._trial_pages, limits=self._limits).wrapper
        correct, all_values = Counter[str](), Counter[str]()
        wrong = []
        for page in self._trial_pages:
            expected, extracted = self._expected(page), self._extract_records(wrapper, page)
            for name in self._names:
                expected_counts, found_counts = (
                    Counter(record[name] for record in records if record.get(name))
                    for records in (expected, extracted)
                )
                correct[name] += (expected_counts & found_counts).total()
                all_values[name] += max(expected_counts.total(), found_counts.total())
                if expected_counts != found_counts and page.url not in urls and page.url not in wrong:
                    wrong.append(page.url)
        agreement = {name: correct[name] / max(1, all_values[name]) for name in self._names}
        return _Trial(examples, agreement, wrong)

    def _why_no_example(self) -> str:
        if self._is_list:
            return (
                "None of these columns can be learned: no page has two records with one of them, which are "
                "needed to find where a record ends. Accept them with a column that more records have."
            )
        return "None of these columns can be learned: their values were not found on the pages."

    def _expected(self, page: Page) -> list[_Values]:
        rows = self._rows_by_url[page.url]
        return [self._values(row) for row in rows] if self._is_list else [self._shown(rows[0], page)[0]]

    def _extract_records(self, wrapper: Wrapper, page: Page) -> list[Mapping[str, tuple[str, ...]]]:
        extraction = wrapper.read(page, limits=self._limits)
        return [] if isinstance(extraction, Failure) else [record.values for record in extraction.records]


def _filled_names(example: Example) -> set[str]:
    """Return the attributes for which an example has values."""
    return {name for record in (example.values, *example.records) for name, texts in record.items() if texts}


def _can_be_learned(example: Example, limits: ParseSettings) -> bool:
    try:
        check_example(example, limits)
    except ExampleError:
        return False
    return True
