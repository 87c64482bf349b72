"""Render pages that scripts build, in Chromium.

Scrapy fetches the page like any other, by all its rules, and passes the response to Chromium, which runs the
scripts. Whatever these load goes through a proxy within this process, which connects only to addresses that
may be fetched. If a script leads to another page, that is a redirect, which Scrapy follows.

robots.txt and the delay apply only to pages, not to what they load; that is limited by time alone.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import shutil
import socket
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urldefrag

from playwright.async_api import Error as BrowserError
from playwright.async_api import TimeoutError as BrowserTimeout
from playwright.async_api import async_playwright
from scrapy import signals
from scrapy.exceptions import DownloadCancelledError
from scrapy.http import HtmlResponse, Response

from siteloom.core.errors import SourceError
from siteloom.core.urls import site_of
from siteloom.sources.crawling.crawl_problems import CrawlProblem, RequestRefused
from siteloom.sources.crawling.frontier import DISCOVERED_URL
from siteloom.sources.crawling.middlewares import Redirects
from siteloom.sources.crawling.url_filters import resolver

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Playwright
    from scrapy import Request
    from scrapy.crawler import Crawler

# The names under which systems install it; without any of them, Playwright's own is used.
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--blink-settings=imagesEnabled=false",  # images add no text, and cost the site most
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",  # which would bypass the proxy
    "--disable-quic",
    "--mute-audio",
)
# Each takes some hundred megabytes, and a processor while it loads.
_MAX_OPEN_PAGES = 4
# Seconds until a page that keeps loading is read as it is.
_LONGEST_SETTLING = 10.0
# Playwright 1.65's message if Chromium refuses to start as root or without a sandbox.
_NO_SANDBOX = "Chromium sandboxing failed"
# Headers that Scrapy has already processed, or that would turn a page into a download.
_DROPPED_HEADERS = (b"content-encoding", b"content-length", b"transfer-encoding", b"content-disposition")


class Rendering(Redirects):
    """Replaces the server's response by the document after its scripts have run."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes it."""
        middleware = super().from_crawler(crawler)
        middleware.chromium = Chromium(
            crawler.settings["USER_AGENT"], has_sandbox=crawler.settings.getbool("CHROMIUM_SANDBOX")
        )
        crawler.signals.connect(middleware.chromium.close, signal=signals.spider_closed)
        return middleware

    chromium: Chromium

    async def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Render a page, and return the resulting document or the redirect of a script."""
        if (
            DISCOVERED_URL not in request.meta
            or response.status != 200
            or not isinstance(response, HtmlResponse)
        ):
            return response
        settings = self.crawler.settings
        html = await self.chromium.rendered(response, settings.getfloat("DOWNLOAD_TIMEOUT"))
        if isinstance(html, ScriptRedirect):
            redirect = Response(response.url, 302, {"Location": html.url})
            return super().process_response(request, redirect)
        body = html.encode("utf-8", "replace")
        if len(body) > settings.getint("DOWNLOAD_MAXSIZE"):
            raise DownloadCancelledError
        headers = {"Content-Type": "text/html; charset=utf-8"}
        return HtmlResponse(response.url, 200, headers, body, request=request, encoding="utf-8")


class ScriptRedirect(NamedTuple):
    """The address that a script leads to."""

    url: str


class Chromium:
    """A browser that starts when it is first needed, with a context for each site."""

    def __init__(self, user_agent: str, *, has_sandbox: bool) -> None:
        self._user_agent = user_agent
        self._has_sandbox = has_sandbox
        self._starting = asyncio.Lock()
        self._places = asyncio.Semaphore(_MAX_OPEN_PAGES)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._contexts: dict[str, BrowserContext] = {}
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._proxy: asyncio.Server | None = None

    async def rendered(self, response: Response, seconds: float) -> str | ScriptRedirect:
        """Return the HTML of a page after its scripts have run; one page per site at a time."""
        site = site_of(response.url)
        async with self._turns[site], self._places:
            try:
                page = await (await self._context(site)).new_page()
            except BrowserError as error:
                raise _failed(error) from error
            try:
                async with asyncio.timeout(seconds):
                    return await _Visit(page, response, seconds).result()
            except (TimeoutError, BrowserTimeout) as error:
                raise RequestRefused(
                    CrawlProblem("too slow", f"not loaded after {seconds:g} seconds")
                ) from error
            except BrowserError as error:
                raise _failed(error) from error
            finally:
                with suppress(BrowserError):
                    await page.close()

    async def close(self) -> None:
        """Stop the browser, Playwright and the proxy."""
        if self._browser is not None:
            with suppress(BrowserError):
                await self._browser.close()
        if self._playwright is not None:
            await self._playwright.stop()
        if self._proxy is not None:
            self._proxy.close()

    async def _context(self, site: str) -> BrowserContext:
        async with self._starting:
            if self._browser is None or not self._browser.is_connected():
                self._contexts.clear()
                self._browser = await self._started()
            if site not in self._contexts:
                self._contexts[site] = await self._browser.new_context(
                    user_agent=self._user_agent, accept_downloads=False, service_workers="block"
                )
            return self._contexts[site]

    async def _started(self) -> Browser:
        if self._playwright is None:
            self._playwright = await async_playwright().start()
        chromium = self._playwright.chromium
        program = next(filter(None, map(shutil.which, _NAMES)), chromium.executable_path)
        if not Path(program).exists():
            raise SourceError(
                "Pages that scripts make need Chromium, and there is none: install it, or run "
                "playwright install chromium."
            )
        if self._proxy is None:
            self._proxy = await serve_proxy(resolver().addresses)
        port = self._proxy.sockets[0].getsockname()[1]
        try:
            return await chromium.launch(
                executable_path=program,
                args=list(_FLAGS),
                # Loopback addresses go through the proxy as well; Chromium resolves no names itself.
                proxy={"server": f"socks5://127.0.0.1:{port}", "bypass": "<-loopback>"},
                chromium_sandbox=self._has_sandbox,
            )
        except BrowserError as error:
            if _NO_SANDBOX in str(error):
                raise SourceError(
                    f"{program} cannot have its sandbox here, and pages could break out of it: allow user "
                    "namespaces on this machine, or give --no-sandbox if you trust these sites."
                ) from error
            why = str(error).partition("\n")[0].rstrip(".")
            raise SourceError(f"Chromium cannot be started from {program}: {why}.") from error


def _failed(error: BrowserError) -> RequestRefused:
    return RequestRefused(CrawlProblem("rendering failed", str(error).partition("\n")[0]))


class _Visit:
    """One page in Chromium, whose document is provided rather than loaded."""

    def __init__(self, page: Page, response: Response, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._page = page
        self._response = response
        self._deadline = loop.time() + seconds
        self._led: asyncio.Future[ScriptRedirect] = loop.create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_document_sent = False

    async def result(self) -> str | ScriptRedirect:
        self._page.on("popup", lambda popup: self._do(popup.close()))
        session = await self._page.context.new_cdp_session(self._page)
        tree: dict[str, Any] = await session.send("Page.getFrameTree")
        main = tree["frameTree"]["frame"]["id"]
        session.on("Fetch.requestPaused", lambda event: self._do(self._answer(session, main, event)))
        await session.send("Fetch.enable", {"patterns": [{"resourceType": "Document"}]})
        opening = asyncio.ensure_future(self._opened())
        try:
            await asyncio.wait((opening, self._led), return_when=asyncio.FIRST_COMPLETED)
            return self._led.result() if self._led.done() else opening.result()
        finally:
            opening.cancel()
            with suppress(BrowserError, asyncio.CancelledError):
                await opening

    async def _opened(self) -> str:
        await self._page.goto(self._response.url, wait_until="load", timeout=0)
        seconds_left = self._deadline - asyncio.get_running_loop().time()
        with suppress(BrowserTimeout):
            settling = min(_LONGEST_SETTLING, seconds_left / 2)  # the other half is for what follows
            await self._page.wait_for_load_state("networkidle", timeout=settling * 1_000)
        return await self._page.content()

    async def _answer(self, session: CDPSession, main: str, event: dict[str, Any]) -> None:
        """Answer a request for a document: the page itself, a frame, or another page."""
        request = {"requestId": event["requestId"]}
        url: str = event["request"]["url"]
        if event["frameId"] != main:
            await session.send("Fetch.continueRequest", request)
        elif not self._is_document_sent:
            self._is_document_sent = True
            await session.send("Fetch.fulfillRequest", {**request, **_response_for_chromium(self._response)})
        else:
            await session.send("Fetch.failRequest", {**request, "errorReason": "Aborted"})
            is_itself = urldefrag(url).url == urldefrag(self._response.url).url
            if not is_itself and not self._led.done():
                self._led.set_result(ScriptRedirect(url))

    def _do(self, work: Any) -> None:
        """Start background work that closing the page may interrupt."""

        async def tried() -> None:
            with suppress(BrowserError):
                await work

        task = asyncio.ensure_future(tried())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _response_for_chromium(response: Response) -> dict[str, Any]:
    """Convert a server's response to Chromium's format."""
    headers = [
        {"name": name.decode("latin-1"), "value": value.decode("latin-1")}
        for name, values in response.headers.items()
        if name.lower() not in _DROPPED_HEADERS
        for value in values
    ]
    return {
        "responseCode": 200,
        "responseHeaders": headers,
        "body": base64.b64encode(response.body).decode(),
    }


async def serve_proxy(addresses: Callable[[str, int], list[Any]]) -> asyncio.Server:
    """Start a local SOCKS proxy (RFC 1928) that connects only to addresses that `addresses` returns.

    It resolves a host and connects to one of the returned addresses, so that a name cannot resolve to another
    address between check and use.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError, UnicodeError):
            host, port = await _requested_address(reader, writer)
            there = await _connect(addresses, host, port)
            # 2: not allowed, or not reachable, which makes no difference to a page.
            writer.write(bytes([5, 0 if there else 2, 0, 1, 0, 0, 0, 0, 0, 0]))
            if there:
                await asyncio.gather(_forward(reader, there[1]), _forward(there[0], writer))
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


async def _requested_address(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    _, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    writer.write(b"\x05\x00")  # no authentication
    _, command, _, kind = await reader.readexactly(4)
    if kind == 3:
        (length,) = await reader.readexactly(1)
        host = (await reader.readexactly(length)).decode("ascii")
    else:
        host = str(ipaddress.ip_address(await reader.readexactly(4 if kind == 1 else 16)))
    port = int.from_bytes(await reader.readexactly(2))
    if command != 1:
        raise EOFError("only connections are made")
    return host, port


async def _connect(
    addresses: Callable[[str, int], list[Any]], host: str, port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    loop = asyncio.get_running_loop()
    with suppress(socket.gaierror):
        for _, _, _, _, address in await loop.run_in_executor(None, addresses, host, port):
            with suppress(OSError):
                return await asyncio.open_connection(*address[:2])
    return None


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
    finally:
        writer.close()
