"""`siteloom demo`: what Siteloom does, shown on built-in sites."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from siteloom.cli import explain, extract
from siteloom.cli.shell import Shell
from siteloom.cli.status import show_sites
from siteloom.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.builtin import BuiltinPage
    from siteloom.examples_file import ExampleLine
    from siteloom.model import Cluster, Page
    from siteloom.store import PageAddress, Store
    from siteloom.wrapper import Wrapper

    Truth = Mapping[str, Sequence[str]]

NAME = "demo"

_EXAMPLES = 5
_EXAMPLE_RECORDS = 3
_EXPLAINED = ("phone", "website", "cuisine")


def run(
    shell: Shell,
    keep: Annotated[
        str | None,
        typer.Option("--keep", metavar="DIR", help="Keep the demo's pages and workspace in this folder."),
    ] = None,
) -> None:
    """Show on built-in web sites what Siteloom does, step by step."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="siteloom-demo-") as folder:
            _demo(shell, Path(folder))
    elif (Path(keep) / "workspace").exists():
        raise UsageError(f"There is a demo in {keep} already: name another folder, or remove it.")
    else:
        _demo(shell, Path(keep))


def _demo(shell: Shell, folder: Path) -> None:
    from siteloom.builtin import directory_site, guide_site
    from siteloom.config import StoreSettings
    from siteloom.pipeline import cluster_store
    from siteloom.store import open_store

    workspace = StoreSettings(workspace=str(folder / "workspace"))
    store = open_store(workspace, create=True)
    guide = guide_site()
    shell.say("\n1. A crawl of two web sites comes in: a city guide and a restaurant directory.")
    directory = directory_site()
    _ingest(shell, store, folder / "crawl-1.jsonl", [*guide, *directory])

    shell.say("\n2. The same crawl once more: nothing is stored twice.")
    _ingest(shell, store, folder / "crawl-1.jsonl", [])

    shell.say("\n3. Half a year later the guide has been redesigned: each page gets a new version.")
    redesigned = guide_site("redesign")
    _ingest(shell, store, folder / "crawl-2.jsonl", redesigned)
    show_sites(shell, store.sites())

    page = next(page.page for page in guide if page.kind == "restaurant")
    shell.say(f"\n4. The two versions of one page, {page.url}, as the parser sees them:")
    _show_versions(shell, store.versions(page.url))

    shell.say("\n5. Which pages were made from one template? Found by what their tags have in common:")
    clustering, pages = cluster_store(store, "vertex")
    kind_of = {page.page.url: page.kind for page in [*guide, *directory]}
    rows = (
        (
            cluster.id,
            cluster.size,
            cluster.mask,
            ", ".join(f"{count} {kind}" for kind, count in _kinds(cluster, pages, kind_of)),
            len(cluster.template.paths),
        )
        for cluster in clustering.clusters
    )
    shell.show("Templates", ("cluster", "pages", "signature", "what they really are", "shared paths"), rows)

    shell.say(
        f"\n6. Where do the values stand? Learned from {_EXAMPLES} pages of a template with their values, "
        f"for lists from {_EXAMPLE_RECORDS} records;\n   then tried on all others and compared with "
        "the truth:"
    )
    kinds = _annotated(store, redesigned, directory)
    _show_learning(shell, store, kinds)
    store.close()

    user = replace(shell, settings=replace(shell.settings, store=workspace))
    shell.say("\n7. siteloom extract: each page of the workspace finds its wrapper and gives its records:")
    extract.run(user)
    shell.say(
        "   The duplicates are restaurants that stand in several lists of the guide. Nobody annotated a list "
        "of the directory:\n   so its lists have no wrapper, and give nothing rather than something wrong."
    )

    shell.say("\n8. siteloom explain URL: why this wrapper, and where each value comes from:")
    explain.run(user, kinds[-1].others[0].page.url)
    shell.say(
        "\nNext, on your own pages: siteloom init, siteloom ingest FOLDER_OR_FILE, siteloom cluster,\n"
        "siteloom sample, siteloom learn --examples FILE, siteloom extract -o records.jsonl."
    )


def _ingest(shell: Shell, store: Store, file: Path, pages: Iterable[BuiltinPage]) -> None:
    from siteloom.output import Column, open_output
    from siteloom.pages import open_source
    from siteloom.pipeline import ingest

    if pages:
        columns = (Column("url"), Column("html"), Column("fetched_at", "time"))
        with open_output(str(file), columns) as output:
            for builtin in pages:
                page = builtin.page
                output.write({"url": page.url, "html": page.html.decode(), "fetched_at": page.fetched_at})
    report = ingest(store, [open_source(file)], names=[str(file)])
    shell.say(
        f"   read {report.kept:,} pages ({report.bytes / 1e6:.1f} MB): "
        f"{report.new:,} new, {report.changed:,} changed, {report.unchanged:,} unchanged"
    )


def _show_versions(shell: Shell, versions: Iterable[Page]) -> None:
    from siteloom.dom import normalize, parse, tag_path, text_nodes
    from siteloom.model import Failure

    rows = []
    for page in versions:
        root = parse(page)
        if isinstance(root, Failure):
            continue
        texts = list(text_nodes(root))
        heading = next(text for text in texts if text.parent.tag == "h1")
        paths = {tag_path(text.parent) for text in texts}
        rows.append(
            (
                f"{page.fetched_at:%Y-%m-%d}",
                normalize(heading.text),
                tag_path(heading.parent),
                len(texts),
                len(paths),
            )
        )
    shell.show("", ("fetched", "heading", "its path", "texts", "different paths"), rows)


def _kinds(
    cluster: Cluster, pages: Sequence[PageAddress], kind_of: Mapping[str, str]
) -> list[tuple[str, int]]:
    """How many pages of each kind are in a cluster, the most common kind first."""
    return Counter(kind_of[pages[member].url] for member in cluster.members).most_common()


class _Kind(NamedTuple):
    """The pages of one template, and what is told of a few of them."""

    name: str
    pages: Sequence[BuiltinPage]
    examples: Sequence[ExampleLine]

    @property
    def others(self) -> list[BuiltinPage]:
        """The pages of which nothing or, of a list, not all is told."""
        known = {line.url for line in self.examples if not line.records}
        return [page for page in self.pages if page.page.url not in known]


def _annotated(
    store: Store, guide: Iterable[BuiltinPage], directory: Iterable[BuiltinPage]
) -> tuple[_Kind, ...]:
    """Kinds of pages, of each of which some are annotated in the workspace."""
    from siteloom.pipeline import annotate

    kinds = (
        _details("guide: restaurants", _of_kind(guide, "restaurant")),
        _details("guide: events", _of_kind(guide, "event")),
        _lists("guide: lists", _of_kind(guide, "list")),
        _details("directory: restaurants", _of_kind(directory, "restaurant")),
    )
    for kind in kinds:
        annotate(store, kind.examples)
    return kinds


def _of_kind(site: Iterable[BuiltinPage], kind: str) -> list[BuiltinPage]:
    return [page for page in site if page.kind == kind]


def _details(name: str, pages: Sequence[BuiltinPage]) -> _Kind:
    """Pages of single records, with the values of a few that show much of what differs."""
    from siteloom.examples_file import ExampleLine
    from siteloom.sampling import sample

    known = [pages[number] for number in sample([page.page for page in pages], _EXAMPLES)]
    return _Kind(name, pages, [ExampleLine(page.page.url, page.truth, (), {}) for page in known])


def _lists(name: str, pages: Sequence[BuiltinPage]) -> _Kind:
    """List pages, with a few records of the first."""
    from siteloom.examples_file import ExampleLine

    return _Kind(name, pages, [ExampleLine(pages[0].page.url, {}, pages[0].records[:_EXAMPLE_RECORDS], {})])


def _show_learning(shell: Shell, store: Store, kinds: Sequence[_Kind]) -> None:
    from siteloom.pipeline import annotated_templates, learn_template

    rows = []
    wrappers: list[Wrapper] = []
    results: list[bool] = []
    templates = annotated_templates(store)
    template_of = {example.page.url: found for found in templates for example in found.examples}
    for kind in kinds:
        start = time.perf_counter()
        wrapper = learn_template(store, template_of[kind.examples[0].url]).learned.wrapper
        seconds = time.perf_counter() - start
        tried = _tried(wrapper, kind)
        records = sum(len(line.records) for line in kind.examples)
        rows.append(
            (
                kind.name,
                f"{records} records" if records else f"{len(kind.examples)} pages",
                len(wrapper.attributes),
                len(kind.others),
                f"{sum(tried) / len(tried):.1%}".replace("%", " %"),
                f"{seconds:.1f} s",
            )
        )
        wrappers.append(wrapper)
        results += tried
    columns = ("template", "examples", "attributes", "tested", "right", "time")
    shell.show("Wrappers, tested on so many pages", columns, rows)
    shell.say(f"   In all, {sum(results):,} of {len(results):,} values are right.")
    _show_rules(shell, wrappers[0])


def _tried(wrapper: Wrapper, kind: _Kind) -> list[bool]:
    """Of each attribute of what is no example, whether it is right."""
    results: list[bool] = []
    known = {line.url: len(line.records) for line in kind.examples}
    for page in kind.others:
        found: list[Truth] = [record.values for record in wrapper.extract_all(page.page)]
        pairs: Iterable[tuple[Truth, Truth]] = zip_longest(found, page.records or [page.truth], fillvalue={})
        for values, truth in islice(pairs, known.get(page.page.url, 0), None):
            results += _compared(values, truth)
    return results


def _compared(found: Truth, truth: Truth) -> list[bool]:
    """Of each attribute that is there or was found, whether all its values were found and nothing else."""
    names = {**found, **{name: texts for name, texts in truth.items() if texts}}
    return [set(found.get(name, ())) == set(truth.get(name, ())) for name in names]


def _show_rules(shell: Shell, wrapper: Wrapper) -> None:
    from siteloom.wrapper.explain import rule_words

    shell.say("\n   How some values of the guide's restaurants are found now:")
    for name in _EXPLAINED:
        attribute = wrapper.attributes[name]
        multi = bool(attribute.attribute.multi)
        shell.say(f"   {name}: {rule_words(attribute.rules[0], multi=multi)}")
