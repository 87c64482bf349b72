"""`siteloom crawl`: pages from the web."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.browser_arguments import NoSandboxOption, check_sandbox_option
from siteloom.apps.cli.result_tables import (
    FailuresOption,
    SiteOption,
    show_counts,
    show_first,
    tell_ingested,
    write_failures,
)
from siteloom.apps.cli.terminal import Shell
from siteloom.apps.cli.verbs.forget import forget_what_expired
from siteloom.core.errors import SourceError, UsageError
from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.core.remote_files import shown
from siteloom.core.table_files import STANDARD_OUTPUT, Column, check_destination, new_file
from siteloom.core.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from siteloom.sources.crawling.crawl_journal import CrawlProgress
    from siteloom.sources.crawling.crawl_source import Crawl

NAME = "crawl"

# As many shapes as fit on a screen; -o writes all.
_SHAPES_SHOWN = 40
_SHAPE_COLUMNS = (
    Column("shape"),
    Column("urls", "integer"),
    Column("fetched", "integer"),
    Column("kept", "flag"),
    Column("example"),
)


def run(
    shell: Shell,
    urls: Annotated[
        list[str],
        typer.Argument(
            metavar="URL", help="Where to start: a page of each site, such as https://example.org/."
        ),
    ],
    pages: Annotated[
        int | None,
        typer.Option("--pages", metavar="N", help="Fetch at most so many pages [crawl.most_pages, 200]."),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include",
            metavar="PATTERN",
            help="Keep only pages whose URL matches, such as '/products/*'; others are walked for their "
            "links, and do not count. May be given several times.",
            show_default=False,
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="PATTERN",
            help="Fetch no page whose URL matches, such as '*/calendar/*'; may be given several times.",
            show_default=False,
        ),
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option(
            "--delay",
            metavar="S",
            help="Least seconds between two requests to a site, such as 0.5 [crawl.delay, 1].",
        ),
    ] = None,
    sitemap: Annotated[
        bool, typer.Option("--sitemap/--no-sitemap", help="Look for URLs in the sitemaps of the hosts, too.")
    ] = True,
    private: Annotated[
        bool, typer.Option("--private", help="Allow addresses within private networks, this time.")
    ] = False,
    render: Annotated[
        bool,
        typer.Option(
            "--render",
            help="Open each page in Chromium, and take what its scripts make of it; needs the extra render.",
        ),
    ] = False,
    no_sandbox: NoSandboxOption = False,
    requisites: Annotated[
        bool,
        typer.Option("--requisites", help="Fetch the stylesheets of pages, too, for showing them later."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Fetch only the URLs, robots.txt and sitemaps, and list what is found by shape."
        ),
    ] = False,
    site: SiteOption = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the pages to an archive instead of the workspace: .warc, .warc.gz or .warc.zst, here "
            "or at s3://... and the like; with --dry-run, what is found: .jsonl, .csv, .parquet or -.",
        ),
    ] = None,
    failures: FailuresOption = None,
) -> None:
    """Fetch pages from the web into the workspace.

    Links and sitemaps are followed within the site of each URL, as robots.txt allows, in such an order that
    URLs of all shapes get their share of the pages: a small crawl shows all templates of a site. In a
    PATTERN, * stands for anything; one that begins with / is matched with the path and the query, any other
    with the whole URL.

    The workspace is made if it is not there. It is safe to stop this at any time: the same command goes on
    where it was, and once it is finished, begins anew. Other verbs may write to the workspace meanwhile.
    Needs the extra crawl.
    """
    if failures:
        check_destination(failures)
    check_sandbox_option(no_sandbox, renders=render)
    crawl = _crawl(shell, urls, pages, include or (), exclude or (), delay, sitemap, private, no_sandbox)
    crawl = replace(crawl, renders=render, with_requisites=requisites)
    if dry_run:
        if output is not None:
            check_destination(output)
        _look_ahead(shell, crawl, output, failures)
    elif output is not None:
        if site is not None:
            raise UsageError(
                "--site is for pages in the workspace, and -o writes them to a file: leave one out."
            )
        with new_file(output) as file:
            _crawl_to_file(shell, crawl, file, shown(output), failures)
    else:
        _crawl_to_workspace(shell, crawl, site, failures)


def _crawl(
    shell: Shell,
    urls: Sequence[str],
    pages: int | None,
    include: Sequence[str],
    exclude: Sequence[str],
    delay: str | None,
    with_sitemaps: bool,
    private: bool,
    no_sandbox: bool,
) -> Crawl:
    from siteloom.sources.crawling.crawl_source import Crawl
    from siteloom.sources.crawling.url_filters import UrlPatterns, checked_pattern, checked_url

    for url in urls:
        if "://" not in url and Path(url).exists():
            raise UsageError(f"{url} is a file or folder: siteloom ingest reads those, crawl takes URLs.")
    starts = tuple(dict.fromkeys(map(checked_url, urls)))
    if pages is not None and pages < len(starts):
        raise UsageError(f"--pages must be at least {len(starts)}, as many as there are URLs, not {pages}.")
    settings = shell.settings.crawl
    settings = replace(
        settings,
        delay=settings.delay if delay is None else _seconds(delay),
        private=settings.private or private,
        sandbox=settings.sandbox and not no_sandbox,
    )
    patterns = UrlPatterns(tuple(map(checked_pattern, include)), tuple(map(checked_pattern, exclude)))
    return Crawl(
        starts,
        pages or max(len(starts), settings.most_pages),
        follows=True,
        settings=settings,
        pages=shell.settings.pages,
        patterns=patterns,
        with_sitemaps=with_sitemaps,
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = nan
    if not 0 <= seconds < inf:
        raise UsageError(f"--delay is a number of seconds from 0 on, such as 0.5, not {text}.")
    return seconds


def _crawl_to_workspace(shell: Shell, crawl: Crawl, site: str | None, failures: str | None) -> None:
    from siteloom.operations.crawl import crawl_into, journal_file

    crawl.check()  # before there is a workspace without a page
    with shell.store(create=True) as store:
        with ExitStack() as line:
            advance: Callable[[int], None]

            def begin(progress: CrawlProgress) -> None:
                nonlocal advance
                if progress.fetched:
                    left = len(progress.discovered) - len(progress.fetched)
                    shell.say(
                        f"The same crawl was stopped after {plural(progress.pages, 'page')}: going on from "
                        f"there, with {left:,} known URLs left. To begin anew, remove "
                        f"{journal_file(store, crawl, site)}."
                    )
                measuring = shell.measuring("Fetching", crawl.most_pages, progress.pages)
                advance = line.enter_context(measuring)

            try:
                report, is_finished, before = crawl_into(
                    store,
                    crawl,
                    site=site,
                    jobs=shell.settings.run.jobs,
                    on_begin=begin,
                    on_item=lambda item: advance(1) if isinstance(item, Page) else None,
                )
            except KeyboardInterrupt:
                line.close()
                shell.say("The same command goes on where this one was stopped.")
                raise
        tell_ingested(shell, store, report, failures, "Fetched into")
        forget_what_expired(shell, store)
    _check_any(crawl, report.kept + before, report.failures, report.skipped)
    if not is_finished:
        raise SourceError("The crawl ended early, as shown above: the same command goes on where it was.")


def _crawl_to_file(shell: Shell, crawl: Crawl, file: Path, name: str, failures: str | None) -> None:
    from siteloom.sources.crawling.crawl_source import CrawlEnded
    from siteloom.sources.warc_writer import open_warc

    crawl.check()  # before there is a file without a page
    failed: list[Failure] = []
    skipped: Counter[str] = Counter()
    count = resources = 0
    is_finished = False
    try:
        with (
            shell.measuring("Fetching", crawl.most_pages) as advance,
            open_warc(file) as warc,
            closing(crawl.events()) as events,
        ):
            for event in events:
                match event:
                    case Page():
                        warc.write_page(event)
                        count += 1
                        advance(1)
                    case Resource():
                        warc.write_resource(event)
                        resources += 1
                    case Failure():
                        failed.append(event)
                    case Skipped():
                        skipped[event.reason] += 1
                    case CrawlEnded():
                        is_finished = True
    finally:
        if not count:
            file.unlink(missing_ok=True)
    write_failures(shell, failures, failed)
    by_reason = Counter(one.reason for one in failed)
    counts = [("pages", count), *([("stylesheets", resources)] if resources else [])]
    show_counts(shell, f"Written to {name}", counts, by_reason, skipped)
    if failed:
        show_first(shell, failed)
    _check_any(crawl, count, by_reason, skipped)
    if not is_finished:
        raise SourceError(
            f"The crawl ended early, as shown above: what was fetched until then is in {name}; "
            "to begin anew, remove it, or name another file."
        )


def _look_ahead(shell: Shell, crawl: Crawl, output: str | None, failures: str | None) -> None:
    from siteloom.operations.crawl import look_ahead

    found = look_ahead(crawl)
    write_failures(shell, failures, found.failures)
    rows = [
        {
            "shape": one.shape,
            "urls": one.urls,
            "fetched": one.fetched,
            "kept": one.is_kept,
            "example": one.example,
        }
        for one in found.shapes
    ]
    if output is not None:
        shell.write(output, _SHAPE_COLUMNS, rows)
        if output != STANDARD_OUTPUT:
            shell.say(f"What was found, by shape, is in {shown(output)}.")
    else:
        _show_shapes(shell, crawl, rows)
    if found.failures:
        show_first(shell, found.failures)
    _check_any(
        crawl, len(crawl.urls) - len(found.failures), Counter(one.reason for one in found.failures), {}
    )


def _show_shapes(shell: Shell, crawl: Crawl, rows: Sequence[dict[str, object]]) -> None:
    names = [column.name for column in _SHAPE_COLUMNS if column.name != "kept" or crawl.patterns.include]
    shell.show(
        f"URLs found by shape, and how many of {crawl.most_pages:,} pages would be of each",
        names,
        [[row[name] for name in names] for row in rows[:_SHAPES_SHOWN]],
    )
    if len(rows) > _SHAPES_SHOWN:
        shell.say(f"{len(rows) - _SHAPES_SHOWN:,} more shapes are left out: -o FILE writes all.")
    shell.say(
        "Only the start pages, robots.txt and sitemaps were fetched, and nothing is kept: "
        "further pages will lead to more URLs."
    )


def _check_any(crawl: Crawl, pages: int, failures: Mapping[str, int], skipped: Mapping[str, int]) -> None:
    """Refuse to end well without a page."""
    from siteloom.sources.crawling.crawl_source import WALKED

    if pages:
        return
    if walked := skipped.get(WALKED, 0):
        patterns = " or ".join(f"'{pattern}'" for pattern in crawl.patterns.include)
        raise SourceError(
            f"No page matches --include {patterns}, of {plural(walked, 'page')} that were walked for links: "
            "--dry-run lists the URLs by shape."
        )
    all_of_them = "failed" if failures else "were skipped"
    raise SourceError(f"No page could be fetched: all of them {all_of_them}, as shown above.")
