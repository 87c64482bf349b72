"""By what the store knows things again."""

from __future__ import annotations

from hashlib import blake2b
from urllib.parse import quote

_KEY_BYTES = 16  # 128 bits: no two of a trillion will be equal, not even by intent
_LONGEST_FOLDER_NAME = 100


def content_hash(body: bytes) -> bytes:
    """The same content at the same URL is the same version."""
    return blake2b(body, digest_size=_KEY_BYTES).digest()


def url_key(site: str, url: str) -> bytes:
    """A URL of a site; the same URL may stand in two sites if the user named them."""
    return blake2b(f"{site}\n{url}".encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()


def folder_name(site: str) -> str:
    """A name for a site's folder that no file system refuses and no other site has."""
    name = quote(site, safe="").replace(".", "%2E", 1) if site.startswith(".") else quote(site, safe="")
    if len(name) <= _LONGEST_FOLDER_NAME:
        return name
    return name[:_LONGEST_FOLDER_NAME] + "-" + content_hash(site.encode()).hex()
