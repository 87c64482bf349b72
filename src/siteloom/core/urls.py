"""Site and shape of a URL, and limits on its size."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from siteloom.core.model import Failure

_NUMBER = re.compile("[0-9]+")
# The usual start of URLs; matching it is many times faster than splitting the URL.
_PLAIN_HOST = re.compile(r"https?://([a-z0-9.-]+)(?=[/?#]|\Z)")

_LONGEST_HOST = 253  # the limit of the DNS; longer ones are not cached

MOST_CHARACTERS = 16_000
"""The longest URL of a page: twice the length that RFC 9110 recommends supporting at least."""

MOST_PARTS = 200
"""The most parts of a page's URL: path segments and query items.

URL patterns distinguish 16 of each; the cost of sorting URLs grows with their parts.
"""

URL_TOO_LARGE = "URL too large"
"""The reason of the failure of a page whose URL exceeds one of these limits."""

_SEPARATOR = re.compile("[/?&]")
_CHARACTERS_SHOWN = 200

LOCAL_SITE = "localhost"
"""The site of addresses without a host, such as those of files."""


def count_parts(url: str) -> int:
    """Count the parts of a URL or of its shape."""
    return 1 + len(_SEPARATOR.findall(url))


def oversized_url(url: str) -> Failure | None:
    """Return the failure of a page whose URL is too large, with the URL shortened; None if it is not."""
    if len(url) > MOST_CHARACTERS:
        detail = f"it has {len(url):,} characters; at most {MOST_CHARACTERS:,} are taken"
    elif (part_count := count_parts(url)) > MOST_PARTS:
        detail = f"it has {part_count:,} parts; at most {MOST_PARTS:,} are taken"
    else:
        return None
    return Failure(f"{url[:_CHARACTERS_SHOWN]}...", URL_TOO_LARGE, detail)


def site_of(url: str) -> str:
    """Return the registered domain of a URL's host, or the host itself if it has none."""
    plain = _PLAIN_HOST.match(url)
    if plain is not None:
        return _site_of_host(plain[1])
    try:
        host = urlsplit(url).hostname
    except ValueError:  # an address like http://[ that no parser accepts
        host = None
    return _site_of_host(host) if host else LOCAL_SITE


def _site_of_host(host: str) -> str:
    return _registered_domain(host) if len(host) <= _LONGEST_HOST else host


def url_shape(url: str) -> str:
    """Return the shape of a URL: its host and path without the parts that vary between similar pages.

    Numbers after the host become `#`, the last segment of a longer path `*`, and only the keys of a query
    stay.
    """
    address = url.partition("#")[0]
    path, _, query = address.partition("?")
    named = path.partition("://")[2]
    host, slash, path_below_host = named.partition("/") if named else ("", "", path)
    path = host + slash + _NUMBER.sub("#", path_below_host)
    folder, slash, last_segment = path.rpartition("/")
    if "/" in folder and last_segment:
        last_segment = "*" + (last_segment[last_segment.rfind(".") :] if "." in last_segment else "")
    keys = sorted({item.partition("=")[0] for item in query.split("&")}) if query else []
    return f"{folder}{slash}{last_segment}" + (f"?{'&'.join(keys)}" if keys else "")


@lru_cache(maxsize=65_536)  # a crawl returns to the same hosts again and again
def _registered_domain(host: str) -> str:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _public_suffixes().privatesuffix(host.rstrip(".")) or host
    return host


@lru_cache(maxsize=1)
def _public_suffixes() -> Any:
    from publicsuffixlist import PublicSuffixList  # noqa: PLC0415 - reads its list when made

    return PublicSuffixList()
