"""`siteloom examples`: what another tool was taught, as examples."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from siteloom.apps.cli.source_arguments import (
    SourcesArgument,
    as_lines,
    check_text_file,
    stored_pages,
    write_text,
)
from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import ExampleError, ExampleNotFound, SiteloomError, UsageError
from siteloom.core.table_files import STANDARD_OUTPUT
from siteloom.core.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from siteloom.core.model import Page
    from siteloom.sources.other_tools.tool_model import Layout, PeerExample, Sample
    from siteloom.store.store import Store

NAME = "examples"

# Fewer pages often share a value by chance.
_ENOUGH_TO_COMPARE = 3


def run(
    shell: Shell,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A sitemap of Web Scraper, a model of AutoScraper or a sample of Portia (JSON).",
            show_default=False,
        ),
    ],
    sources: SourcesArgument = None,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="At most so many pages of a kind.")] = 20,
    kind: Annotated[
        int | None,
        typer.Option(
            "--kind",
            metavar="N",
            min=1,
            help="Only pages of this kind, of those that are told; learn SOURCE takes one kind.",
        ),
    ] = None,
    pages: Annotated[
        str | None,
        typer.Option("--pages", metavar="FILE", help="Write the pages of Portia here, as JSON Lines."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the examples here, as JSON Lines."),
    ] = None,
) -> None:
    """Make examples of what another scraper was taught.

    They are for siteloom learn --examples. The rules of MODEL are followed on the pages of SOURCE, or of the
    workspace, and what they find there is written: read it before you learn from it. A page with less than
    half of what the rules look for gives no example, and a value that siteloom learn would not find on its
    page is left out and counted. Samples of Portia bring their pages with them, which --pages writes. What
    cannot be taken over is told. CSS selectors, those of Web Scraper and of later samples of Portia, need
    the extra crawl.
    """
    from siteloom.sources.other_tools.tool_files import read_peer_file

    if output is None:
        raise UsageError("Give -o FILE.jsonl for the examples, which siteloom learn --examples then takes.")
    for file, what in ((output, "Examples are"), (pages, "Pages are")):
        if file is not None:
            check_text_file(file, what, ".jsonl")
    known = read_peer_file(model)
    if known.samples and sources:
        raise UsageError(f"{model} brings its own pages: leave SOURCE out, and give --pages FILE for them.")
    if pages is not None and not known.samples:
        raise UsageError(
            f"--pages is for samples of Portia: the pages that {known.tool} learns from are not kept."
        )
    if kind is not None and kind > len(known.layouts):
        raise UsageError(
            f"There is no kind {kind}: {model} has rules for {len(known.layouts)} kinds of pages."
        )
    for sentence in known.left_out:
        shell.say(sentence)
    wanted = [each for number, each in enumerate(known.layouts, 1) if kind in (None, number)]
    if known.samples:
        found = _checked(known.samples)
    else:
        with stored_pages(shell, sources) as store:
            found = _checked(_on_pages(shell, store, known.layouts, k, kind))
    _tell(shell, found, {name for layout in wanted for name in layout.attributes})
    if not found.rows:
        raise ExampleError(
            f"Nothing that {known.tool} was taught is on these pages: no examples were written."
        )
    write_text(output, as_lines(found.rows))
    if pages is not None:
        rows = [{"url": each.page.url, "html": each.page.html.decode("utf-8")} for each in known.samples]
        write_text(pages, as_lines(rows))
    if output != STANDARD_OUTPUT:
        count = plural(len(found.rows), "example")
        shell.say(
            f"{count} of what {known.tool} was taught {'is' if len(found.rows) == 1 else 'are'} in {output}."
        )


class _Found(NamedTuple):
    """The lines of the examples, and what was left out of them: why, and how often."""

    rows: list[dict[str, object]]
    dropped: Counter[str]


def _on_pages(
    shell: Shell, store: Store, layouts: Sequence[Layout], k: int, kind: int | None
) -> Iterator[Sample]:
    """Some pages of each kind, or of one, with what the rules find on them."""
    from siteloom.core.model import Failure
    from siteloom.core.sequences import evenly_spaced
    from siteloom.html.parser import parse
    from siteloom.html.time_limit import within
    from siteloom.operations.annotate import find_page
    from siteloom.sources.other_tools.tool_model import Sample, best_example

    kinds: dict[int, list[tuple[str, PeerExample]]] = {number: [] for number, _ in enumerate(layouts, 1)}
    without = unread = 0
    limits = shell.settings.parse
    with shell.counting("Looking at") as advance:
        for page in store.pages():
            advance(1)
            root = parse(page, limits)
            # On some pages, a pattern that another tool was taught takes for ever.
            best = (
                root
                if isinstance(root, Failure)
                else within(limits.max_seconds, page.url, partial(best_example, layouts, root))
            )
            if isinstance(best, Failure):
                unread += 1
            elif best is None:
                without += 1
            else:
                kinds[best[0] + 1].append((page.url, best[1]))
    for (number, found), layout in zip(kinds.items(), layouts, strict=True):
        names = ", ".join(layout.attributes)
        shell.say(f"Kind {number}: {plural(len(found), 'page')} with half at least of {names}.")
    if without:
        shell.say(f"{plural(without, 'page')} with less, of which no example is made.")
    if unread:
        shell.say(f"{plural(unread, 'page')} could not be read.")
    if kind is None and sum(map(bool, kinds.values())) > 1:
        shell.say("With a SOURCE, siteloom learn takes the examples of one kind: --kind N writes only those.")
    for number, found in kinds.items():
        for url, example in evenly_spaced(found, k) if kind in (None, number) else ():
            if (placed := find_page(store, url)) is not None:
                yield Sample(placed[1], example)


def _checked(samples: Iterable[Sample]) -> _Found:
    """The examples, without what the learner would not find on their pages."""
    found = _Found([], Counter())
    for sample in samples:
        row = _checked_row(sample.page, sample.example, found.dropped)
        if row is not None:
            found.rows.append(row)
    return found


def _checked_row(page: Page, example: PeerExample, dropped: Counter[str]) -> dict[str, object] | None:
    from siteloom.core.model import Example
    from siteloom.learning.induction.learner import check_example

    values = {name: list(texts) for name, texts in example.values.items()}
    records = [{name: list(texts) for name, texts in record.items()} for record in example.records]
    while values or records:
        try:
            check_example(Example(page, values, records))
        except ExampleNotFound as error:
            dropped[f"{error.attribute} does not stand on its page as it was found"] += 1
            values.pop(error.attribute, None)
            for record in records:
                record.pop(error.attribute, None)
            records = [record for record in records if record]
        except SiteloomError as error:
            dropped[str(error).rstrip(".")] += 1
            return None
        else:
            return {"url": page.url, "records": records} if records else {"url": page.url, "values": values}
    return None


def _tell(shell: Shell, found: _Found, wanted: set[str]) -> None:
    """Show how many pages have each attribute, and what was left out."""
    counts: Counter[str] = Counter()
    for row in found.rows:
        records = row.get("records") or [row.get("values", {})]
        assert isinstance(records, list)
        counts.update(dict.fromkeys((name for record in records for name in record), 1))
    if counts:
        shell.show("Examples", ("attribute", "pages with it"), counts.items())
    if missing := sorted(wanted - set(counts)):
        shell.say(f"No example has {', '.join(missing)}.")
    for name, text, count in _same_everywhere(found.rows):
        shell.say(
            f"{name} is {text!r} in all of its {count} examples: "
            "take it out of them if it stands in a menu or the like."
        )
    for why, count in found.dropped.items():
        shell.say(f"Left out {'once' if count == 1 else f'{count:,} times'}: {why}.")


def _same_everywhere(rows: Iterable[dict[str, object]]) -> Iterator[tuple[str, str, int]]:
    """What rules find on each page: often a menu, which they count their way to; and in how many examples."""
    by_name: dict[str, list[set[str]]] = {}
    for row in rows:
        values = row.get("values", {})
        assert isinstance(values, dict)
        for name, texts in values.items():
            by_name.setdefault(name, []).append(set(texts))
    for name, found in by_name.items():
        if len(found) >= _ENOUGH_TO_COMPARE:
            for text in sorted(set.intersection(*found)):
                yield name, text, len(found)
