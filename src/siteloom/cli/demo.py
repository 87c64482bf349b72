"""`siteloom demo`: what Siteloom does, shown on built-in sites."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.cli.shell import Shell
from siteloom.cli.status import show_sites
from siteloom.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.builtin import BuiltinPage
    from siteloom.model import Cluster, Page
    from siteloom.store import PageAddress, Store

NAME = "demo"


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
    _ingest(shell, store, folder / "crawl-2.jsonl", guide_site("redesign"))
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
    shell.say("\nNext, on your own pages: siteloom init, siteloom ingest FOLDER_OR_FILE, siteloom cluster.")


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
