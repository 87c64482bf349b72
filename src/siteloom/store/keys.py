"""Keys by which the store identifies pages, URLs and records."""

from __future__ import annotations

from hashlib import blake2b

_KEY_BYTES = 16  # 128 bits: no two of a trillion will be equal, not even by intent
_LONGEST_FOLDER_NAME = 100
# No capitals: some file systems do not distinguish A from a.
_SAFE_IN_FOLDER_NAMES = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_.")


def content_hash(media_type: str, body: bytes) -> bytes:
    """Return the hash of a version's content: the same content of the same type at a URL is one version."""
    content = blake2b(f"{media_type}\n".encode(), digest_size=_KEY_BYTES)
    content.update(body)
    return content.digest()


def url_key(site: str, url: str) -> bytes:
    """Return the key of a URL in a site; the same URL may be in two sites if the user named them."""
    return _digest(f"{len(site)} {site} {url}")


def address_key(url: str) -> bytes:
    """Return the key of a URL, whatever its site."""
    return _digest(url)


def seed_key(source: str, url: str, content: str) -> bytes:
    """Return the key of a known record of a source, with its page, if it has one."""
    return _digest(f"{len(source)} {len(url)} {source} {url} {content}")


def folder_name(site: str) -> str:
    """Return a unique name for a site's folder that every file system accepts."""
    name = "".join(chr(byte) if byte in _SAFE_IN_FOLDER_NAMES else f"%{byte:02x}" for byte in site.encode())
    if name.startswith("."):
        name = f"%{ord('.'):02x}{name[1:]}"
    if len(name) > _LONGEST_FOLDER_NAME:
        return f"{name[:_LONGEST_FOLDER_NAME]}-{_digest(site).hex()}"
    return name or "%"


def _digest(text: str) -> bytes:
    # No stored address has half of a surrogate pair, but one may be looked up.
    return blake2b(text.encode(errors="surrogatepass"), digest_size=_KEY_BYTES).digest()
