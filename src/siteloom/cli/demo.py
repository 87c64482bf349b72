"""`siteloom demo`: what Siteloom does, shown on built-in sites."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from siteloom.cli.shell import Shell
from siteloom.cli.status import show_sites
from siteloom.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.builtin import BuiltinPage
    from siteloom.model import Cluster, Page, Record
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

    store = open_store(StoreSettings(workspace=str(folder / "workspace")), create=True)
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
    store.close()

    shell.say(
        f"\n6. Where do the values stand? Learned from {_EXAMPLES} pages of a template with their values, "
        f"for lists from {_EXAMPLE_RECORDS} records;\n   then extracted from all others and compared with "
        "the truth:"
    )
    _show_learning(shell, redesigned, directory)
    shell.say(
        "\nNext, on your own pages: siteloom init, siteloom ingest FOLDER_OR_FILE, siteloom cluster,\n"
        "siteloom sample, siteloom learn --examples FILE."
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


class _Trial(NamedTuple):
    """A wrapper of one template, and how right it is on pages that it was not learned from."""

    name: str
    examples: str
    wrapper: Wrapper
    pages: int
    values: int
    right: int
    seconds: float


def _show_learning(shell: Shell, guide: Sequence[BuiltinPage], directory: Sequence[BuiltinPage]) -> None:
    restaurants = _of_kind(guide, "restaurant")
    first, examples = _try_details("guide: restaurants", restaurants)
    trials = [
        first,
        _try_details("guide: events", _of_kind(guide, "event"))[0],
        _try_list("guide: lists", _of_kind(guide, "list")),
        _try_details("directory: restaurants", _of_kind(directory, "restaurant"))[0],
    ]
    shell.show(
        "Wrappers, tested on so many pages",
        ("template", "examples", "attributes", "tested", "right", "time"),
        (
            (
                trial.name,
                trial.examples,
                len(trial.wrapper.attributes),
                trial.pages,
                f"{trial.right / trial.values:.1%}".replace("%", " %"),
                f"{trial.seconds:.1f} s",
            )
            for trial in trials
        ),
    )
    right, values = sum(trial.right for trial in trials), sum(trial.values for trial in trials)
    shell.say(f"   In all, {right:,} of {values:,} values are right.")
    _show_wrapper(shell, first.wrapper, next(page for page in restaurants if page not in examples))


def _of_kind(site: Iterable[BuiltinPage], kind: str) -> list[BuiltinPage]:
    return [page for page in site if page.kind == kind]


def _try_details(name: str, site: Sequence[BuiltinPage]) -> tuple[_Trial, list[BuiltinPage]]:
    """Learn from a few pages and try the others; the few are returned, too."""
    from siteloom.learning import learn
    from siteloom.model import Example
    from siteloom.sampling import sample

    start = time.perf_counter()
    pages = [page.page for page in site]
    known = [site[number] for number in sample(pages, _EXAMPLES)]
    wrapper = learn([Example(page.page, page.truth) for page in known], pages)
    seconds = time.perf_counter() - start
    others = [page for page in site if page not in known]
    results = [
        is_right for page in others for is_right in _compared(wrapper.extract(page.page).values, page.truth)
    ]
    trial = _Trial(name, f"{len(known)} pages", wrapper, len(others), len(results), sum(results), seconds)
    return trial, known


def _try_list(name: str, site: Sequence[BuiltinPage]) -> _Trial:
    """Learn from a few records of one page, and try all others of all pages."""
    from siteloom.learning import learn
    from siteloom.model import Example

    start = time.perf_counter()
    pages = [page.page for page in site]
    wrapper = learn([Example(pages[0], records=site[0].records[:_EXAMPLE_RECORDS])], pages)
    seconds = time.perf_counter() - start
    results: list[bool] = []
    for number, page in enumerate(site):
        found: list[Truth] = [record.values for record in wrapper.extract_all(page.page)]
        known = 0 if number else _EXAMPLE_RECORDS
        pairs: Iterable[tuple[Truth, Truth]] = zip_longest(found, page.records, fillvalue={})
        for values, truth in islice(pairs, known, None):
            results += _compared(values, truth)
    return _Trial(
        name, f"{_EXAMPLE_RECORDS} records", wrapper, len(site), len(results), sum(results), seconds
    )


def _compared(found: Truth, truth: Truth) -> list[bool]:
    """Of each attribute that is there or was found, whether all its values were found and nothing else."""
    names = {**found, **{name: texts for name, texts in truth.items() if texts}}
    return [set(found.get(name, ())) == set(truth.get(name, ())) for name in names]


def _show_wrapper(shell: Shell, wrapper: Wrapper, other: BuiltinPage) -> None:
    from siteloom.wrapper.explain import rule_words

    shell.say("\n   How some values of the guide's restaurants are found now:")
    for name in _EXPLAINED:
        attribute = wrapper.attributes[name]
        multi = bool(attribute.attribute.multi)
        shell.say(f"   {name}: {rule_words(attribute.rules[0], multi=multi)}")
    shell.say(f"\n   One of the other pages, {other.page.url}:")
    _show_record(shell, wrapper.extract(other.page))


def _show_record(shell: Shell, record: Record) -> None:
    rows = (
        (name, ", ".join(texts), f"{min(record.confidence[name]):.3f}")
        for name, texts in record.values.items()
    )
    shell.show("", ("attribute", "values", "confidence"), rows)
