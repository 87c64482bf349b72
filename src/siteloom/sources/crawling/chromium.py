"""Pages that scripts make, opened in Chromium.

What the server sends is fetched by Scrapy like any other page, by all its rules, and handed to Chromium,
which runs the scripts. Whatever these load goes through a proxy within this process, which connects only to
addresses that may be fetched. Where a script leads to another page, that is a redirect, which Scrapy follows.

Only pages are held to robots.txt and to the delay, not what they load; that is limited by time alone.
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
from siteloom.sources.crawling.crawl_problems import Problem, Refused
from siteloom.sources.crawling.frontier import FOUND
from siteloom.sources.crawling.middlewares import Redirects
from siteloom.sources.crawling.url_filters import resolver

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Playwright
    from scrapy import Request
    from scrapy.crawler import Crawler

# Under these names systems install it; without any of them, the one that Playwright has installed is taken.
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--blink-settings=imagesEnabled=false",  # they make no text, and cost the site most
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",  # which would pass by the proxy
    "--disable-quic",
    "--mute-audio",
)
# Each takes some hundred megabytes, and a processor while it loads.
_AT_ONCE = 4
# Pages that ask for news over and over never get quiet: after so many seconds, what is there counts.
_LONGEST_UNREST = 10.0
# As Playwright 1.65 says it if Chromium refuses to start because it is root, or finds no sandbox.
_NO_SANDBOX = "Chromium sandboxing failed"
# What Scrapy has undone already, or would make a download of a page.
_DROPPED_HEADERS = (b"content-encoding", b"content-length", b"transfer-encoding", b"content-disposition")


class Rendering(Redirects):
    """Puts the document that the scripts of a page have made in the place of what the server sent."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes it."""
        made = super().from_crawler(crawler)
        made.chromium = Chromium(
            crawler.settings["USER_AGENT"], has_sandbox=crawler.settings.getbool("CHROMIUM_SANDBOX")
        )
        crawler.signals.connect(made.chromium.close, signal=signals.spider_closed)
        return made

    chromium: Chromium

    async def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Open a page, and say what became of it, or where it leads to."""
        if FOUND not in request.meta or response.status != 200 or not isinstance(response, HtmlResponse):
            return response
        settings = self.crawler.settings
        html = await self.chromium.rendered(response, settings.getfloat("DOWNLOAD_TIMEOUT"))
        if isinstance(html, Elsewhere):
            led = Response(response.url, 302, {"Location": html.url})
            return super().process_response(request, led)
        body = html.encode("utf-8", "replace")
        if len(body) > settings.getint("DOWNLOAD_MAXSIZE"):
            raise DownloadCancelledError
        headers = {"Content-Type": "text/html; charset=utf-8"}
        return HtmlResponse(response.url, 200, headers, body, request=request, encoding="utf-8")


class Elsewhere(NamedTuple):
    """Where a page leads to by script."""

    url: str


class Chromium:
    """A browser that is started when it is first needed, with a context for each site."""

    def __init__(self, user_agent: str, *, has_sandbox: bool) -> None:
        self._user_agent = user_agent
        self._has_sandbox = has_sandbox
        self._starting = asyncio.Lock()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._contexts: dict[str, BrowserContext] = {}
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._proxy: asyncio.Server | None = None

    async def rendered(self, response: Response, seconds: float) -> str | Elsewhere:
        """The HTML of a page after its scripts have run; one page of a site at a time."""
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
                raise Refused(Problem("too slow", f"not loaded after {seconds:g} seconds")) from error
            except BrowserError as error:
                raise _failed(error) from error
            finally:
                with suppress(BrowserError):
                    await page.close()

    async def close(self) -> None:
        """End all that was started."""
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
                # This machine is no exception; and as Playwright starts it, it resolves no name itself.
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


def _failed(error: BrowserError) -> Refused:
    return Refused(Problem("rendering failed", str(error).partition("\n")[0]))


class _Visit:
    """One page in Chromium, whose document Chromium does not load itself."""

    def __init__(self, page: Page, response: Response, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._page = page
        self._response = response
        self._deadline = loop.time() + seconds
        self._led: asyncio.Future[Elsewhere] = loop.create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_given = False

    async def result(self) -> str | Elsewhere:
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
        left = self._deadline - asyncio.get_running_loop().time()
        with suppress(BrowserTimeout):
            unrest = min(_LONGEST_UNREST, left / 2)  # the other half is for what comes then
            await self._page.wait_for_load_state("networkidle", timeout=unrest * 1_000)
        return await self._page.content()

    async def _answer(self, session: CDPSession, main: str, event: dict[str, Any]) -> None:
        """Say what is to become of a document that the page wants: itself, a frame, or another page."""
        request = {"requestId": event["requestId"]}
        url: str = event["request"]["url"]
        if event["frameId"] != main:
            await session.send("Fetch.continueRequest", request)
        elif not self._is_given:
            self._is_given = True
            await session.send("Fetch.fulfillRequest", {**request, **_as_sent(self._response)})
        else:
            await session.send("Fetch.failRequest", {**request, "errorReason": "Aborted"})
            is_itself = urldefrag(url).url == urldefrag(self._response.url).url
            if not is_itself and not self._led.done():
                self._led.set_result(Elsewhere(url))

    def _do(self, work: Any) -> None:
        """Do something that no one waits for, and that the end of the page may interrupt."""

        async def tried() -> None:
            with suppress(BrowserError):
                await work

        task = asyncio.ensure_future(tried())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _as_sent(response: Response) -> dict[str, Any]:
    """What a server sent, as Chromium takes it."""
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
    """A SOCKS proxy for this machine (RFC 1928) that connects to what `addresses` finds, and nothing else.

    It finds the addresses of a host and connects to one of these very ones, so that a name cannot mean
    another address when it is used than when it was looked at.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError, UnicodeError):
            host, port = await _asked(reader, writer)
            there = await _connected(addresses, host, port)
            # 2: not allowed, or not there, which is all the same to a page.
            writer.write(bytes([5, 0 if there else 2, 0, 1, 0, 0, 0, 0, 0, 0]))
            if there:
                await asyncio.gather(_passed_on(reader, there[1]), _passed_on(there[0], writer))
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    _, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    writer.write(b"\x05\x00")  # whoever asks need not say who they are
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


async def _connected(
    addresses: Callable[[str, int], list[Any]], host: str, port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    loop = asyncio.get_running_loop()
    with suppress(socket.gaierror):
        for _, _, _, _, address in await loop.run_in_executor(None, addresses, host, port):
            with suppress(OSError):
                return await asyncio.open_connection(*address[:2])
    return None


async def _passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while some := await reader.read(65_536):
            writer.write(some)
            await writer.drain()
    finally:
        writer.close()
