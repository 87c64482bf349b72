"""`siteloom demo`: what Siteloom does, shown on built-in sites."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.cli.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.builtin import BuiltinPage
    from siteloom.model import Page
    from siteloom.store import Store

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
    else:
        _demo(shell, Path(keep))


def _demo(shell: Shell, folder: Path) -> None:
    from siteloom.builtin import directory_site, guide_site
    from siteloom.config import StoreSettings
    from siteloom.store import open_store

    store = open_store(StoreSettings(workspace=str(folder / "workspace")), create=True)
    guide = guide_site()
    shell.say("\n1. A crawl of two web sites comes in: a city guide and a restaurant directory.")
    _ingest(shell, store, folder / "crawl-1.jsonl", [*guide, *directory_site()])

    shell.say("\n2. The same crawl once more: nothing is stored twice.")
    _ingest(shell, store, folder / "crawl-1.jsonl", [])

    shell.say("\n3. Half a year later the guide has been redesigned: each page gets a new version.")
    _ingest(shell, store, folder / "crawl-2.jsonl", guide_site("redesign"))
    _show_sites(shell, store)

    page = next(page.page for page in guide if page.kind == "restaurant")
    shell.say(f"\n4. The two versions of one page, {page.url}, as the parser sees them:")
    _show_versions(shell, store.versions(page.url))
    store.close()
    shell.say(
        "\nNext, on your own pages: siteloom init, then siteloom ingest FOLDER_OR_FILE, then siteloom status."
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


def _show_sites(shell: Shell, store: Store) -> None:
    rows = [
        (site.name, site.pages, site.versions, site.bytes / 1e6, site.bytes / site.packed_bytes)
        for site in store.sites()
    ]
    shell.show("What is stored", ("site", "pages", "versions", "MB", "times smaller packed"), rows)


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
