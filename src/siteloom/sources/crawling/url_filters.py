"""Which URLs a crawl may fetch (public http only, no private networks) and which pages it collects (include
and exclude patterns).

In a pattern, `*` matches any text and every other character matches itself, so dots and question marks need
no escaping. A pattern that begins with a slash is matched against the path and query, any other against the
whole address. Matching takes no longer than searching for its parts one after the other.
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
"""The reason for refusing an address within a private network."""

ALLOWING_PRIVATE = (
    "to allow this, give --private, or set private = true under [crawl] in siteloom.toml, or "
    "SITELOOM_CRAWL_PRIVATE=true, and start Siteloom again"
)
"""How to allow addresses within private networks."""

_NEVER_IN_A_URL = re.compile(r"[\s\x00-\x1f\x7f\\]")


def checked_url(text: str) -> str:
    """Complete the address of a web page as a person wrote it; raises UsageError if it is not one."""
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
    except ValueError:  # includes encoding errors
        is_page = False
    if not is_page or _NEVER_IN_A_URL.search(url):
        raise UsageError(f"{text!r} is no address of a web page: write it like https://example.org/page.")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"The address of a page on {host} must not hold a name or password: leave it out.")
    return url


_WILDCARD = "*"


class UrlPatterns(NamedTuple):
    """Which pages are collected, all if `include` is empty, and which are not even fetched."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def includes(self, url: str) -> bool:
        """Return whether a page is to be collected."""
        return not self.include or any(matches(url, pattern) for pattern in self.include)

    def excludes(self, url: str) -> bool:
        """Return whether an address must not be fetched."""
        return any(matches(url, pattern) for pattern in self.exclude)


def checked_pattern(text: str) -> str:
    """Check a pattern as a person wrote it; raises UsageError if no address can match it."""
    written = text.strip()
    if not written:
        raise UsageError("A pattern of addresses must not be empty: write it like '/products/*'.")
    if not written.startswith(("/", _WILDCARD, "http://", "https://")):
        raise UsageError(
            f"No address matches the pattern {text!r} as a whole: "
            f"write '*{written.strip(_WILDCARD)}*' for all that contain it, or '/products/*' for a folder."
        )
    return quote(written, safe=string.printable)  # as links are written that have other letters


def matches(url: str, pattern: str) -> bool:
    """Return whether a whole address matches a pattern."""
    text = url.partition("#")[0]
    if pattern.startswith("/"):
        parts = urlsplit(text)
        text = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    prefix, *later_parts = pattern.split(_WILDCARD)
    if not later_parts:
        return text == prefix
    *inner, suffix = later_parts
    if len(text) < len(prefix) + len(suffix) or not (text.startswith(prefix) and text.endswith(suffix)):
        return False
    position, end = len(prefix), len(text) - len(suffix)
    for literal in inner:  # the first match of each leaves the most for those after it
        match_start = text.find(literal, position, end)
        if match_start < 0:
            return False
        position = match_start + len(literal)
    return True


class AnyAddresses(GAIResolver):
    """Resolves host names as the system does."""

    def __init__(self, reactor: Any) -> None:
        super().__init__(reactor, getaddrinfo=self.addresses)  # type: ignore[arg-type]
        self._installed_on = reactor
        self.refused: set[str] = set()
        """Hosts whose addresses may all not be connected to."""

    @classmethod
    def from_crawler(cls, _: Crawler, reactor: Any) -> Self:
        """Create the resolver for a Scrapy crawler."""
        return cls(reactor)

    def install_on_reactor(self) -> None:
        """Replace the reactor's resolver."""
        self._installed_on.installNameResolver(self)

    def addresses(self, host: Any, port: Any, *arguments: Any) -> list[Any]:
        """Return the addresses of a host that may be connected to, as `socket.getaddrinfo` does."""
        try:
            return list(socket.getaddrinfo(host, port, *arguments))
        except UnicodeError as error:  # a name that no host can have
            raise socket.gaierror(str(error)) from error


class PublicAddresses(AnyAddresses):
    """Resolves host names to public addresses only.

    Every connection uses the addresses returned here, resolved at the moment it is made; also to hosts that
    are written as an address, and after redirects.
    """

    def addresses(self, host: Any, port: Any, *arguments: Any) -> list[Any]:
        """Return the public addresses of a host."""
        addresses = super().addresses(host, port, *arguments)
        public = [address_info for address_info in addresses if is_public(address_info[4][0])]
        if addresses and not public:
            self.refused.add(host.lower())
        return public


def resolver() -> Any:
    """Return the resolver for all connections of this process."""
    from twisted.internet import reactor  # noqa: PLC0415 - created when the crawl begins

    return reactor.nameResolver
