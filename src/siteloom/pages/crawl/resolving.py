"""Which addresses hosts have, and which of them may be connected to."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from twisted.internet._resolver import GAIResolver

from siteloom.pages.crawl.public_addresses import is_public

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


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
