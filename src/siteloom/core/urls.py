"""What an address says about the site it belongs to, and whether it is too large to be that of a page."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from siteloom.core.model import Failure

_NUMBER = re.compile("[0-9]+")
# What nearly all URLs begin with; to read these is many times faster than to split any URL.
_PLAIN_HOST = re.compile(r"https?://([a-z0-9.-]+)(?=[/?#]|\Z)")

_LONGEST_HOST = 253  # as the DNS has it; what is longer need not be remembered

MOST_CHARACTERS = 16_000
"""The longest URL of a page: twice the length that RFC 9110 recommends everyone to support at least."""

MOST_PARTS = 200
"""The most parts of the URL of a page, which are the steps of its path and the items of its query.

URL patterns tell 16 of each apart; what a URL costs where URLs are sorted grows with its parts.
"""

URL_TOO_LARGE = "URL too large"
"""Why a page fails whose URL is past one of these limits."""

_SEPARATOR = re.compile("[/?&]")
_CHARACTERS_SHOWN = 200

LOCAL_SITE = "localhost"
"""The site of addresses that name no host, such as those of files."""


def count_parts(url: str) -> int:
    """How many parts a URL has, or its shape."""
    return 1 + len(_SEPARATOR.findall(url))


def oversized_url(url: str) -> Failure | None:
    """The failure that a page is because its URL is too large; the URL is shortened in it."""
    if len(url) > MOST_CHARACTERS:
        detail = f"it has {len(url):,} characters; at most {MOST_CHARACTERS:,} are taken"
    elif (parts := count_parts(url)) > MOST_PARTS:
        detail = f"it has {parts:,} parts; at most {MOST_PARTS:,} are taken"
    else:
        return None
    return Failure(f"{url[:_CHARACTERS_SHOWN]}...", URL_TOO_LARGE, detail)


def site_of(url: str) -> str:
    """The registered domain of a URL's host; the host itself where it has none."""
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
    """What a URL looks like: its host and path with what differs between pages of a kind left out.

    Numbers behind the host become `#`, the last part of a longer path `*`, and of a query only the keys stay.
    """
    address = url.partition("#")[0]
    path, _, query = address.partition("?")
    named = path.partition("://")[2]
    host, slash, rest = named.partition("/") if named else ("", "", path)
    path = host + slash + _NUMBER.sub("#", rest)
    folder, slash, last = path.rpartition("/")
    if "/" in folder and last:
        last = "*" + (last[last.rfind(".") :] if "." in last else "")
    keys = sorted({item.partition("=")[0] for item in query.split("&")}) if query else []
    return f"{folder}{slash}{last}" + (f"?{'&'.join(keys)}" if keys else "")


@lru_cache(maxsize=65_536)  # a crawl comes back to the same hosts over and over
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
