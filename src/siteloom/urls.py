"""What an address says about the site it belongs to."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

LOCAL_SITE = "localhost"
"""The site of addresses that name no host, such as those of files."""


def site_of(url: str) -> str:
    """The registered domain of a URL's host; the host itself where it has none."""
    try:
        host = urlsplit(url).hostname
    except ValueError:  # an address like http://[ that no parser accepts
        host = None
    return _registered_domain(host) if host else LOCAL_SITE


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
