"""What the demo knows of its sites: examples of each template, and how much of what is found is right."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.apps.cli.terminal import Shell
    from siteloom.apps.demo.sites.built_in_page import BuiltinPage
    from siteloom.sources.example_files import ExampleLine
    from siteloom.store.store import Store
    from siteloom.wrappers.wrapper import Wrapper

    Truth = Mapping[str, Sequence[str]]

EXAMPLES = 5
EXAMPLE_RECORDS = 3
_EXPLAINED = ("phone", "website", "cuisine")


class Kind(NamedTuple):
    """The pages of one template, and what is told of a few of them."""

    name: str
    pages: Sequence[BuiltinPage]
    examples: Sequence[ExampleLine]

    @property
    def others(self) -> list[BuiltinPage]:
        """The pages of which nothing or, of a list, not all is told."""
        known = {line.url for line in self.examples if not line.records}
        return [page for page in self.pages if page.page.url not in known]


def annotated(
    store: Store, guide: Iterable[BuiltinPage], directory: Iterable[BuiltinPage]
) -> tuple[Kind, ...]:
    """Kinds of pages, of each of which some are annotated in the workspace."""
    from siteloom.core.settings import Settings
    from siteloom.operations.annotate import AnnotateRequest, annotate
    from siteloom.operations.context import Context

    kinds = (
        _details("guide: restaurants", _of_kind(guide, "restaurant")),
        _details("guide: events", _of_kind(guide, "event")),
        _lists("guide: lists", _of_kind(guide, "list")),
        _details("directory: restaurants", _of_kind(directory, "restaurant")),
    )
    for kind in kinds:
        annotate(Context(store=store, settings=Settings()), AnnotateRequest(examples=tuple(kind.examples)))
    return kinds


def _of_kind(site: Iterable[BuiltinPage], kind: str) -> list[BuiltinPage]:
    return [page for page in site if page.kind == kind]


def _details(name: str, pages: Sequence[BuiltinPage]) -> Kind:
    """Pages of single records, with the values of a few that show much of what differs."""
    from siteloom.sources.example_files import ExampleLine
    from siteloom.templates.sampling import sample

    known = [pages[number] for number in sample([page.page for page in pages], EXAMPLES)]
    return Kind(name, pages, [ExampleLine(page.page.url, page.truth, (), {}) for page in known])


def _lists(name: str, pages: Sequence[BuiltinPage]) -> Kind:
    """List pages, with a few records of the first."""
    from siteloom.sources.example_files import ExampleLine

    return Kind(name, pages, [ExampleLine(pages[0].page.url, {}, pages[0].records[:EXAMPLE_RECORDS], {})])


def show_learning(shell: Shell, store: Store, kinds: Sequence[Kind]) -> None:
    """Learn a wrapper of each kind, and show how it does on all that is no example."""
    from siteloom.operations.annotate import annotated_templates
    from siteloom.operations.context import Context
    from siteloom.operations.learn import learn_template

    rows = []
    wrappers: list[Wrapper] = []
    results: list[bool] = []
    templates = annotated_templates(store)
    template_of = {example.page.url: found for found in templates for example in found.examples}
    for kind in kinds:
        start = time.perf_counter()
        context = Context(store=store, settings=shell.settings)
        learned = learn_template(context, template_of[kind.examples[0].url])[0].learned
        assert learned is not None
        wrapper = learned.wrapper
        seconds = time.perf_counter() - start
        tried = _tried(wrapper, kind)
        records = sum(len(line.records) for line in kind.examples)
        rows.append(
            (
                kind.name,
                f"{records} records" if records else f"{len(kind.examples)} pages",
                len(wrapper.attributes),
                len(kind.others),
                _share(tried),
                f"{seconds:.1f} s",
            )
        )
        wrappers.append(wrapper)
        results += tried
    columns = ("template", "examples", "attributes", "tested", "right", "time")
    shell.show("Wrappers, tested on so many pages", columns, rows)
    shell.say(f"   In all, {sum(results):,} of {len(results):,} values are right.")
    _show_rules(shell, wrappers[0])


def _tried(wrapper: Wrapper, kind: Kind) -> list[bool]:
    """Of each attribute of what is no example, whether it is right."""
    results: list[bool] = []
    known = {line.url: len(line.records) for line in kind.examples}
    for page in kind.others:
        found: list[Truth] = [record.values for record in wrapper.extract_all(page.page)]
        results += _compared_page(found, page, known.get(page.page.url, 0))
    return results


def _compared_page(found: Sequence[Truth], page: BuiltinPage, known: int = 0) -> list[bool]:
    """Of each attribute of each record of a page, but for those known, whether it is right."""
    pairs: Iterable[tuple[Truth, Truth]] = zip_longest(found, page.records or [page.truth], fillvalue={})
    return [right for values, truth in islice(pairs, known, None) for right in _compared(values, truth)]


def _compared(found: Truth, truth: Truth) -> list[bool]:
    """Of each attribute that is there or was found, whether all its values were found and nothing else."""
    names = {**found, **{name: texts for name, texts in truth.items() if texts}}
    return [set(found.get(name, ())) == set(truth.get(name, ())) for name in names]


def _share(results: Sequence[bool]) -> str:
    return f"{sum(results) / max(1, len(results)):.1%}".replace("%", " %")


def _show_rules(shell: Shell, wrapper: Wrapper) -> None:
    from siteloom.wrappers.explanation import rule_words

    shell.say("\n   How some values of the guide's restaurants are found now:")
    for name in _EXPLAINED:
        attribute = wrapper.attributes[name]
        multi = bool(attribute.attribute.multi)
        shell.say(f"   {name}: {rule_words(attribute.rules[0], multi=multi)}")


def show_right(shell: Shell, store: Store, site: Sequence[BuiltinPage]) -> None:
    """Show how much of what was extracted last is right, by kind of page."""
    found: dict[str, list[Truth]] = defaultdict(list)
    for line in store.records():
        row = json.loads(line)
        found[row["url"]].append(row["values"])
    rows = []
    for kind in dict.fromkeys(page.kind for page in site):
        pages = _of_kind(site, kind)
        results = [right for page in pages for right in _compared_page(found[page.page.url], page)]
        records = sum(len(found[page.page.url]) for page in pages)
        rows.append((f"{kind} pages", len(pages), records, _share(results)))
    shell.show("Compared with the truth", ("guide", "pages", "records", "values right"), rows)
