"""Addresses of web pages as people write them, and what is said of those that may not be fetched."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from siteloom.errors import UsageError
from siteloom.urls import oversized_url

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
