"""Which addresses may be fetched."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from siteloom.errors import UsageError

# Networks without IPv4 reach it under this prefix, with the IPv4 address behind it (RFC 6052).
_TRANSLATED = IPv6Network("64:ff9b::/96")

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


def is_public(address: str) -> bool:
    """Whether an IP address is one that anybody on the internet can reach.

    Private, loopback, link-local, multicast and reserved ones are not, nor IPv6 addresses that stand for
    such an IPv4 address.
    """
    found = ip_address(address)
    if isinstance(found, IPv6Address):
        inner = _ipv4_within(found)
        if inner is not None:
            return _is_public(inner)
    return _is_public(found)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    is_special = address.is_multicast or address.is_reserved or getattr(address, "is_site_local", False)
    return address.is_global and not is_special


def _ipv4_within(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets to an IPv6 address go to in the end, if it names one."""
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour
