"""`siteloom crawl`: pages from the web."""

from __future__ import annotations

from collections import Counter
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
    show_imported,
    write_failures,
)
from siteloom.apps.cli.source_arguments import verb_context
from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import NoPageImported, SourceError, UsageError
from siteloom.core.remote_files import shown
from siteloom.core.table_files import STANDARD_OUTPUT, Column, check_destination, new_file
from siteloom.core.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteloom.operations.crawl import CrawlRequest
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
    from siteloom.operations.crawl import CrawlRequest, planned_crawl

    if failures:
        check_destination(failures)
    check_sandbox_option(no_sandbox, renders=render)
    for url in urls:
        if "://" not in url and Path(url).exists():
            raise UsageError(f"{url} is a file or folder: siteloom ingest reads those, crawl takes URLs.")
    request = CrawlRequest(
        urls=tuple(urls),
        follow=True,
        most_pages=None if pages is None else max(1, pages),  # too few are refused below
        site=site,
        include=tuple(include or ()),
        exclude=tuple(exclude or ()),
        sitemaps=sitemap,
        render=render,
        requisites=requisites,
        delay=None if delay is None else _seconds(delay),
        private=private or None,
        sandbox=False if no_sandbox else None,
    )
    plan = planned_crawl(shell.settings, request)
    if pages is not None and pages < len(plan.urls):
        raise UsageError(
            f"--pages must be at least {len(plan.urls)}, as many as there are URLs, not {pages}."
        )
    if dry_run:
        if output is not None:
            check_destination(output)
        _preview(shell, plan, output, failures)
    elif output is not None:
        if site is not None:
            raise UsageError(
                "--site is for pages in the workspace, and -o writes them to a file: leave one out."
            )
        with new_file(output) as file:
            _crawl_to_file(shell, plan, file, shown(output), failures)
    else:
        plan.check()  # before there is a workspace without a page
        _crawl_to_workspace(shell, plan, request, failures)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = nan
    if not 0 <= seconds < inf:
        raise UsageError(f"--delay is a number of seconds from 0 on, such as 0.5, not {text}.")
    return seconds


def _crawl_to_workspace(shell: Shell, plan: Crawl, request: CrawlRequest, failures: str | None) -> None:
    from siteloom.operations.crawl import crawl, journal_file

    is_empty = False
    with verb_context(shell, None, create=True) as context:
        journal = journal_file(context.store, plan, request.site)
        if journal.exists():
            shell.say(f"A crawl of these URLs is unfinished: to begin anew, remove {journal}.")
        try:
            result = crawl(context, request)
        except NoPageImported as error:
            result, is_empty = error.result, True
        except KeyboardInterrupt:
            shell.say("The same command goes on where this one was stopped.")
            raise
        write_failures(shell, failures, context.store.failures(result.run))
    show_imported(shell, result, f"Fetched into {context.store.folder}")
    if is_empty:
        raise _no_page_fetched(plan, result.failures, result.skipped)
    if not result.is_finished:
        raise SourceError("The crawl ended early, as shown above: the same command goes on where it was.")


def _crawl_to_file(shell: Shell, plan: Crawl, file: Path, name: str, failures: str | None) -> None:
    from siteloom.operations.crawl import archive_crawl

    plan.check()  # before there is a file without a page
    with shell.progress() as progress:
        result = archive_crawl(plan, file, progress)
    write_failures(shell, failures, result.failures)
    by_reason = Counter(failure.reason for failure in result.failures)
    counts = [("pages", result.pages)]
    if result.resources:
        counts.append(("stylesheets", result.resources))
    show_counts(shell, f"Written to {name}", counts, by_reason, result.skipped)
    if result.failures:
        show_first(shell, result.failures)
    if not result.pages:
        raise _no_page_fetched(plan, by_reason, result.skipped)
    if not result.is_finished:
        raise SourceError(
            f"The crawl ended early, as shown above: what was fetched until then is in {name}; "
            "to begin anew, remove it, or name another file."
        )


def _preview(shell: Shell, plan: Crawl, output: str | None, failures: str | None) -> None:
    from siteloom.operations.crawl import preview_crawl

    result = preview_crawl(plan)
    write_failures(shell, failures, result.failures)
    rows = [
        {
            "shape": group.pattern,
            "urls": group.urls,
            "fetched": group.fetched,
            "kept": group.is_kept,
            "example": group.example,
        }
        for group in result.url_groups
    ]
    if output is not None:
        shell.write(output, _SHAPE_COLUMNS, rows)
        if output != STANDARD_OUTPUT:
            shell.say(f"What was found, by shape, is in {shown(output)}.")
    else:
        _show_shapes(shell, plan, rows)
    if result.failures:
        show_first(shell, result.failures)
    if len(result.failures) == result.starts:
        raise _no_page_fetched(plan, Counter(failure.reason for failure in result.failures), {})


def _show_shapes(shell: Shell, plan: Crawl, rows: Sequence[dict[str, object]]) -> None:
    names = [column.name for column in _SHAPE_COLUMNS if column.name != "kept" or plan.patterns.include]
    shell.show(
        f"URLs found by shape, and how many of {plan.most_pages:,} pages would be of each",
        names,
        [[row[name] for name in names] for row in rows[:_SHAPES_SHOWN]],
    )
    if len(rows) > _SHAPES_SHOWN:
        shell.say(f"{len(rows) - _SHAPES_SHOWN:,} more shapes are left out: -o FILE writes all.")
    shell.say(
        "Only the start pages, robots.txt and sitemaps were fetched, and nothing is kept: "
        "further pages will lead to more URLs."
    )


def _no_page_fetched(plan: Crawl, failures: Mapping[str, int], skipped: Mapping[str, int]) -> SourceError:
    """The error that no page could be fetched, and why."""
    from siteloom.sources.crawling.crawl_source import WALKED

    if walked := skipped.get(WALKED, 0):
        patterns = " or ".join(f"'{pattern}'" for pattern in plan.patterns.include)
        return SourceError(
            f"No page matches --include {patterns}, of {plural(walked, 'page')} that were walked for links: "
            "--dry-run lists the URLs by shape."
        )
    all_of_them = "failed" if failures else "were skipped"
    return SourceError(f"No page could be fetched: all of them {all_of_them}, as shown above.")
