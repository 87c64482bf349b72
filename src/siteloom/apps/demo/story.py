"""The demo's steps, one sentence and one small table each."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from siteloom.apps.cli.terminal import Shell  # noqa: TC001 - typer reads annotations at run time
from siteloom.apps.cli.verbs import clean, explain, extract, history, monitor, relearn, search, watch
from siteloom.apps.cli.verbs.status import show_sites
from siteloom.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from siteloom.apps.demo.sites.built_in_page import BuiltinPage
    from siteloom.core.model import Cluster, Page, Seed
    from siteloom.learning.discovery.table_discovery import DiscoveredTable
    from siteloom.learning.known_records.bootstrap_result import Bootstrapped
    from siteloom.store.queries.clusters import PageAddress
    from siteloom.store.store import Store
    from siteloom.wrappers.wrapper import Wrapper


_ATTRIBUTES_SHOWN = 3
_HITS_SHOWN = 3


def run(
    shell: Shell,
    keep: Annotated[
        str | None,
        typer.Option("--keep", metavar="DIR", help="Keep the demo's pages and workspace in this folder."),
    ] = None,
) -> None:
    """Show on built-in web sites what Siteloom does, step by step.

    It makes two web sites, takes their pages in, learns wrappers, extracts records, lets the sites change and
    mends what broke. Nothing is left behind unless --keep names a folder.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="siteloom-demo-") as folder:
            _demo(shell, Path(folder))
    elif (Path(keep) / "workspace").exists():
        raise UsageError(f"There is a demo in {keep} already: name another folder, or remove it.")
    else:
        _demo(shell, Path(keep))


def _demo(shell: Shell, folder: Path) -> None:
    from siteloom.apps.demo.sites import directory_site, guide_site
    from siteloom.core.settings import AlarmSettings, ChangeSettings, StoreSettings
    from siteloom.store.workspace_folder import open_store

    workspace = StoreSettings(workspace=str(folder / "workspace"))
    store = open_store(workspace, create=True)
    # Nobody is to be alarmed by what is only a show.
    settings = replace(shell.settings, store=workspace, change=ChangeSettings(), alarm=AlarmSettings())
    user = replace(shell, settings=settings)
    guide, directory = guide_site(), directory_site()
    try:
        _take_in(shell, store, folder, guide, directory)
        _wrap(shell, user, store, guide, directory)

        shell.say(
            "\n7. siteloom watch: a few pages of each wrapper are kept, to notice when the site changes:"
        )
        watch.run(user)

        shell.say("\n8. The next crawl. The guide has moved its phone numbers. siteloom monitor:")
        mild = guide_site("mild-change")
        _ingest(shell, store, folder / "mild-change.jsonl", mild)
        monitor.run(user)
        shell.say("\n9. siteloom relearn finds the known numbers on the pages as they are now:")
        _relearn(shell, user, store, mild)

        shell.say("\n10. Half a year later the guide has been redesigned. One page in all its versions:")
        redesigned = guide_site("redesign")
        _ingest(shell, store, folder / "crawl-2.jsonl", redesigned)
        page = next(page.page for page in guide if page.kind == "restaurant")
        _show_versions(shell, store.versions(page.url))
        shell.say("\n11. siteloom monitor:")
        monitor.run(user)
        shell.say("\n12. siteloom relearn, with nobody annotating a page:")
        _relearn(shell, user, store, redesigned)
        shell.say("\n13. siteloom history: every version is kept, and siteloom rollback brings one back:")
        history.run(user)
        _wrap_from_known(shell, store, redesigned, directory)
        _without_annotation(shell, user, directory)
    finally:
        store.close()

    shell.say(
        "\nNext, on your own pages: siteloom init, siteloom ingest FOLDER_OR_FILE, siteloom cluster,\n"
        "siteloom serve to point at values in a browser (or siteloom sample and siteloom learn --examples "
        "FILE),\nsiteloom extract -o records.jsonl. If you have a table of what they tell of, siteloom "
        "bootstrap --seeds\nTABLE.csv --core name instead; with nothing at all, siteloom discover."
    )


def _take_in(
    shell: Shell, store: Store, folder: Path, guide: Sequence[BuiltinPage], directory: Sequence[BuiltinPage]
) -> None:
    """Pages come in, and their templates are found."""
    from siteloom.operations.cluster import cluster_store

    shell.say("\n1. A crawl of two web sites comes in: a city guide and a restaurant directory.")
    _ingest(shell, store, folder / "crawl-1.jsonl", [*guide, *directory])

    shell.say("\n2. The same crawl once more: nothing is stored twice.")
    _ingest(shell, store, folder / "crawl-1.jsonl", [])
    show_sites(shell, store.sites())

    shell.say("\n3. Which pages were made from one template? Found by what their tags have in common:")
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


def _wrap(
    shell: Shell, user: Shell, store: Store, guide: Sequence[BuiltinPage], directory: Sequence[BuiltinPage]
) -> None:
    """Wrappers are learned and used."""
    from siteloom.apps.demo.truth import EXAMPLE_RECORDS, EXAMPLES, annotated, show_learning

    shell.say(
        f"\n4. Where do the values stand? Learned from {EXAMPLES} pages of a template with their values, "
        f"for lists from {EXAMPLE_RECORDS} records;\n   then tried on all others and compared with "
        "the truth:"
    )
    kinds = annotated(store, guide, directory)
    show_learning(shell, store, kinds)

    shell.say("\n5. siteloom extract: each page of the workspace finds its wrapper and gives its records:")
    extract.run(user)
    shell.say(
        "   The duplicates are restaurants that stand in several lists of the guide. Nobody annotated a list "
        "of the directory:\n   so its lists have no wrapper, and give nothing rather than something wrong."
    )

    shell.say("\n6. siteloom explain URL: why this wrapper, and where each value comes from:")
    explain.run(user, kinds[-1].others[0].page.url)


def _relearn(shell: Shell, user: Shell, store: Store, site: Sequence[BuiltinPage]) -> None:
    """Repair what a change was noticed of, then extract, and show what is right."""
    from siteloom.apps.demo.truth import show_right

    relearn.relearn_workspace(user, [], None, None, most=_ATTRIBUTES_SHOWN)
    for name in [repair.wrapper for repair in store.repairs() if repair.state == "review"]:
        shell.say(
            "\n   The date of the last update is another on every page: it was told by its type, its place, "
            "and\n   by being near the old one of the page. That is a guess, which a person should see. "
            f"Having looked:\n   siteloom relearn --accept {name}"
        )
        relearn.run(user, accept=[name])
    shell.say("\n   siteloom extract again:")
    extract.run(replace(user, quiet=True))
    show_right(shell, store, site)


def _wrap_from_known(
    shell: Shell, store: Store, guide: Sequence[BuiltinPage], directory: Sequence[BuiltinPage]
) -> None:
    """Another site is wrapped from the records of the first."""
    shell.say(
        "\n14. The guide's restaurants are known now, and the directory tells of many of them, in other "
        "words. Suppose\n    that nobody had annotated the directory. siteloom bootstrap wraps it from the "
        "guide's records:"
    )
    show_bootstrap(shell, store, guide, directory)


def _without_annotation(shell: Shell, user: Shell, directory: Sequence[BuiltinPage]) -> None:
    """Tables, clean text and search, which need no examples and no known records."""
    shell.say("\n15. siteloom discover: what varies between the pages of the directory, with no examples:")
    show_discovered(shell, directory)
    shell.say("\n16. siteloom clean: the text of pages without what every page of their site says:")
    clean.run(user)
    place = next(page for page in directory if page.kind == "restaurant")
    words = f"{place.truth['name'][0]} {place.truth['cuisine'][0]}".lower()
    shell.say(f"\n17. siteloom search: clean text and records. The three best hits for: {words}")
    search.run(user, words, limit=_HITS_SHOWN)


def _ingest(shell: Shell, store: Store, file: Path, pages: Iterable[BuiltinPage]) -> None:
    from siteloom.core.table_files import Column, open_output
    from siteloom.operations.page_import import import_pages
    from siteloom.sources.open_sources import open_source

    if pages:
        columns = (Column("url"), Column("html"), Column("fetched_at", "time"))
        with open_output(str(file), columns) as output:
            for builtin in pages:
                page = builtin.page
                output.write({"url": page.url, "html": page.html.decode(), "fetched_at": page.fetched_at})
    report = import_pages(store, [open_source(file)], names=[str(file)])
    shell.say(
        f"   read {report.kept:,} pages ({report.bytes / 1e6:.1f} MB): "
        f"{report.new:,} new, {report.changed:,} changed, {report.unchanged:,} unchanged"
    )


def _show_versions(shell: Shell, versions: Iterable[Page]) -> None:
    from siteloom.core.model import Failure
    from siteloom.html.node_paths import tag_path
    from siteloom.html.parser import parse
    from siteloom.html.visible_text import normalize, text_nodes

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


CORE = ("name", "address")


class _Compared(NamedTuple):
    """Of the pages that have an attribute, or are said to, on how many all its values are right."""

    right: int
    pages: int

    def __str__(self) -> str:
        return f"{self.right:,} of {self.pages:,}"


def show_bootstrap(
    shell: Shell, store: Store, guide: Sequence[BuiltinPage], directory: Sequence[BuiltinPage]
) -> None:
    """Wrap the directory from what was extracted of the guide; show the evidence, and how much is right."""
    from siteloom.learning.known_records.site_bootstrap import bootstrap

    known = list(_extracted(store, [page for page in guide if page.kind == "restaurant"]))
    found = bootstrap(known, [page.page for page in directory], CORE)
    if found.wrapper is None:
        shell.say(f"    {found.reason}")
        return
    places = [page for page in directory if page.kind == "restaurant"]
    compared = {name: _compared(found.wrapper, name, places) for name in found.wrapper.attributes}
    _show_evidence(shell, found, compared)
    total = _Compared(*map(sum, zip(*compared.values(), strict=True)))
    shell.say(
        f"    {found.seeds_matched:,} of {found.seeds:,} known restaurants were found, on "
        f"{found.pages_matched:,} of {found.pages:,} pages. By the truth, {total} values\n    are right, "
        f"on all {len(places):,} restaurants of the directory: also on those that the guide does not know."
    )
    refused = [name for name, one in found.attributes.items() if one.verdict == "refused"]
    if refused:
        shell.say(f"    Refused, for want of a place that agrees with the guide: {', '.join(refused)}.")
    _show_entities(shell, known, found.wrapper, places)


def _extracted(store: Store, pages: Sequence[BuiltinPage]) -> Iterator[Seed]:
    """The records of some pages of one site, as `siteloom extract` has found them last."""
    from siteloom.core.urls import site_of
    from siteloom.sources.rows_to_seeds import seed_of

    wanted = {page.page.url for page in pages}
    for line in store.records():
        row = json.loads(line)
        if row["url"] in wanted:
            yield seed_of(row, site_of(row["url"]))


def _compared(wrapper: Wrapper, name: str, pages: Sequence[BuiltinPage]) -> _Compared:
    pairs = [
        (set(wrapper.extract(page.page).values.get(name, ())), set(page.truth.get(name, ())))
        for page in pages
    ]
    told = [(found, truth) for found, truth in pairs if found or truth]
    return _Compared(sum(found == truth for found, truth in told), len(told))


def _show_evidence(shell: Shell, found: Bootstrapped, compared: dict[str, _Compared]) -> None:
    rows = [
        (name, one.verdict, f"{one.agreement:.0%}", f"{one.shuffled:.0%}", compared.get(name, "-"))
        for name, one in found.attributes.items()
    ]
    columns = ("attribute", "verdict", "agreement", "by chance", "right by the truth")
    shell.show("The directory, with none of its pages annotated", columns, rows)


def _show_entities(
    shell: Shell, known: Sequence[Seed], wrapper: Wrapper, pages: Sequence[BuiltinPage]
) -> None:
    from siteloom.core.model import Seed
    from siteloom.core.urls import site_of
    from siteloom.learning.known_records.entity_linking import link

    seeds = [
        *known,
        *(Seed(wrapper.extract(page.page).values, site_of(page.page.url), page.page.url) for page in pages),
    ]
    entities = link(seeds, CORE)
    on_both = [entity for entity in entities if len({seeds[member].source for member in entity.members}) > 1]
    differing = Counter(
        name for entity in on_both for name, agreed in entity.values.items() if agreed.conflicts
    )
    shown = ", ".join(f"{name} of {count:,}" for name, count in differing.most_common())
    shell.say(
        f"    siteloom entities: the {len(seeds):,} records of both sites tell of {len(entities):,} "
        f"restaurants, of which {len(on_both):,} are on both.\n    There the sites differ in "
        f"{shown or 'nothing'}."
    )


_COLUMNS_SHOWN = 12
_HELD = 0.95  # of the pages that have an attribute, on which its column must have the values


def show_discovered(shell: Shell, directory: Sequence[BuiltinPage]) -> None:
    """The tables of the directory's restaurants and of its lists, and which columns are which attributes."""
    from siteloom.apps.cli.verbs.discover import examples_of
    from siteloom.learning.discovery.table_discovery import discover

    places = [page for page in directory if page.kind == "restaurant"]
    table = discover(page.page for page in places)
    held = _held(table, places)
    rows = [
        (
            column.label,
            column.type,
            f"{column.filled:.0%}",
            examples_of(table, column),
            held.get(column.label),
        )
        for column in table.columns[:_COLUMNS_SHOWN]
    ]
    columns = ("column", "type", "filled", "for example", "by the truth")
    shell.show(f"{len(table.rows):,} pages, {len(table.columns)} columns", columns, rows)
    attributes = {name for page in places for name, values in page.truth.items() if values}
    lists = [page for page in directory if page.kind == "list"]
    records = sum(len(page.records) for page in lists)
    items = discover(page.page for page in lists)
    shell.say(
        f"    {len(held)} of {len(attributes)} attributes have a column. Lists are told from other pages: "
        f"those of the directory give {len(items.rows):,} rows\n    for {records:,} records. siteloom "
        "discover --accept COLUMN makes an attribute of a column, and learns a wrapper."
    )


def _held(table: DiscoveredTable, pages: Sequence[BuiltinPage]) -> dict[str, str]:
    """The attribute that a column holds, by its label; of several columns, the first."""
    held: dict[str, str] = {}
    for name in sorted({name for page in pages for name in page.truth}):
        rows = [
            (row, page.truth[name])
            for row, page in zip(table.rows, pages, strict=True)
            if page.truth.get(name)
        ]
        for column in table.columns:
            right = sum(set(values) <= set(row[column.label]) for row, values in rows)
            if rows and right >= _HELD * len(rows):
                held.setdefault(column.label, name)
                break
    return held
