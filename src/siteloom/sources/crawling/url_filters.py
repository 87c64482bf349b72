"""Which URLs a crawl may fetch (public http only, private networks refused) and which it wants (include
and exclude patterns).

A `*` stands for anything, and all else for itself: dots and question marks, which addresses are full of, need
no care. A pattern that begins with a slash is one of a path with its query, any other of a whole address. It
takes no longer than to look for its parts one after the other, whatever it is.
"""

from __future__ import annotations

import re
import socket
import string
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

from twisted.internet._resolver import GAIResolver

from siteloom.core.errors import UsageError
from siteloom.core.urls import oversized_url
from siteloom.sources.crawling.public_addresses import is_public

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


PRIVATE = "private address"
"""Why an address is refused that is within a private network."""

ALLOWING_PRIVATE = (
    "to allow this, give --private, or set private = true under [crawl] in siteloom.toml, or "
    "SITELOOM_CRAWL_PRIVATE=true, and start Siteloom again"
)
"""What to do about it."""

_NEVER_IN_A_URL = re.compile(r"[\s\x00-\x1f\x7f\\]")


def checked_url(text: str) -> str:
    """The address of a web page as a person wrote it, complete; a UsageError if it is none."""
    written = text.strip()
    url = written if "://" in written else f"https://{written}"
    if failure := oversized_url(url):
        raise UsageError(f"The address {failure.url} is too large: {failure.detail}.")
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        host.encode("idna")
        url.encode()
        is_page = parts.scheme.lower() in ("http", "https") and host != "" and parts.port != 0
    except ValueError:  # an encoding error is one, too
        is_page = False
    if not is_page or _NEVER_IN_A_URL.search(url):
        raise UsageError(f"{text!r} is no address of a web page: write it like https://example.org/page.")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"The address of a page on {host} must not hold a name or password: leave it out.")
    return url


_ANY = "*"


class UrlPatterns(NamedTuple):
    """Which pages are kept, all if `include` is empty, and which are not even fetched."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def keeps(self, url: str) -> bool:
        """Whether a page is one of those that are wanted."""
        return not self.include or any(matches(url, pattern) for pattern in self.include)

    def excludes(self, url: str) -> bool:
        """Whether an address must not be fetched."""
        return any(matches(url, pattern) for pattern in self.exclude)


def checked_pattern(text: str) -> str:
    """A pattern as a person wrote it; a UsageError if no address can match it."""
    written = text.strip()
    if not written:
        raise UsageError("A pattern of addresses must not be empty: write it like '/products/*'.")
    if not written.startswith(("/", _ANY, "http://", "https://")):
        raise UsageError(
            f"No address matches the pattern {text!r} as a whole: "
            f"write '*{written.strip(_ANY)}*' for all that contain it, or '/products/*' for a folder."
        )
    return quote(written, safe=string.printable)  # as links are written that have other letters


def matches(url: str, pattern: str) -> bool:
    """Whether an address is of a pattern, as a whole."""
    text = url.partition("#")[0]
    if pattern.startswith("/"):
        parts = urlsplit(text)
        text = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    first, *rest = pattern.split(_ANY)
    if not rest:
        return text == first
    *inner, last = rest
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    at, end = len(first), len(text) - len(last)
    for part in inner:  # the first place of each leaves the most for those behind it
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


class AnyAddresses(GAIResolver):
    """Finds the addresses of hosts as the system does."""

    def __init__(self, reactor: Any) -> None:
        super().__init__(reactor, getaddrinfo=self.addresses)  # type: ignore[arg-type]
        self._installed_on = reactor
        self.refused: set[str] = set()
        """Hosts that have addresses, of which none may be connected to."""

    @classmethod
    def from_crawler(cls, _: Crawler, reactor: Any) -> Self:
        """As Scrapy makes it."""
        return cls(reactor)

    def install_on_reactor(self) -> None:
        """Take the place of what found addresses before."""
        self._installed_on.installNameResolver(self)

    def addresses(self, host: Any, port: Any, *rest: Any) -> list[Any]:
        """The addresses of a host that may be connected to, as `socket.getaddrinfo` gives them."""
        try:
            return list(socket.getaddrinfo(host, port, *rest))
        except UnicodeError as error:  # a name that no host can have
            raise socket.gaierror(str(error)) from error


class PublicAddresses(AnyAddresses):
    """Finds the public addresses of hosts.

    All connections are made to what is found here, at the moment that they are made; also to hosts that are
    written as an address, and behind redirects.
    """

    def addresses(self, host: Any, port: Any, *rest: Any) -> list[Any]:
        """Those of them that are public."""
        found = super().addresses(host, port, *rest)
        public = [one for one in found if is_public(one[4][0])]
        if found and not public:
            self.refused.add(host.lower())
        return public


def resolver() -> Any:
    """What finds the addresses of hosts for all connections of this process."""
    from twisted.internet import reactor  # noqa: PLC0415 - it is made when the crawl begins

    return reactor.nameResolver
