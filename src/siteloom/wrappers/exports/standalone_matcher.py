"""Compute signatures and match pages in plain Python; copied into exported spiders.

The code below the imports is part of every exported Scrapy spider, and of page objects that need signatures,
after the code of `standalone_extractor`. It decides as `siteloom.wrappers.matching` and
`siteloom.extraction.extractor` do.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from siteloom.wrappers.exports.standalone_extractor import ATTRIBUTE, agreement, tags

# Signatures: which tags of a page follow each other


def signature(html: bytes) -> str:
    """Return eight bytes in hexadecimal, each from the smallest of the hashes of all rows of ten tags."""
    if html.startswith((b"\xff\xfe", b"\xfe\xff")):
        html = html.decode("utf-16", "replace").encode("utf-8", "replace")
    text = html.decode("latin-1").replace("\x0c", " ")
    numbers = [
        tag_number(name.encode("latin-1").lower(), is_end)
        for start, end, is_end, name in tags(text)
        if name.lower() not in ("script", "style", "meta", "link")
        and (is_end or name.lower() != "input" or not is_hidden(text, start + len("<input"), end))
    ]
    if not numbers:
        return ""
    rows = [numbers[first_tag : first_tag + 10] for first_tag in range(max(len(numbers) - 9, 1))]
    hashes = {mixed(functools.reduce(lambda row, number: row * GOLDEN + number, row)) for row in rows}
    seeds = [GOLDEN * number % 2**64 for number in range(1, 9)]
    return bytes(mixed(min(mixed(row_hash ^ seed) for row_hash in hashes)) % 256 for seed in seeds).hex()


def is_hidden(html: str, start: int, end: int) -> bool:
    """Return whether the first type of a tag is `hidden`: such inputs carry state, not layout."""
    for name, value in ATTRIBUTE.findall(html[start : end - 1]):
        if name.lower() == "type":
            return value.lower() in ("hidden", '"hidden"', "'hidden'")
    return False


GOLDEN = 0x9E3779B97F4A7C15  # odd, with well-mixed bits


@functools.lru_cache(maxsize=1_024)
def tag_number(name: bytes, is_end: bool) -> int:
    """Return a 64-bit number for a tag (FNV-1a)."""
    number = 0xCBF29CE484222325
    for byte in name:
        number = (number ^ byte) * 0x100000001B3 % 2**64
    return mixed(number + is_end)


def mixed(number: int) -> int:
    """Mix a number into 64 bits that each depend on all of it (the finalizer of MurmurHash3)."""
    number %= 2**64
    number = (number ^ number >> 33) * 0xFF51AFD7ED558CCD % 2**64
    number = (number ^ number >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
    return number ^ number >> 33


# Which pages have records: by their addresses, and by their signatures


def fit(pages: dict[str, Any], url: str, page_signature: str) -> str:
    """Return `good` for a page built like a known one, `near` for one somewhat like them, or an empty text.

    The address must match a known pattern, and the page must share enough bytes of a known signature.
    """
    patterns = pages["url_patterns"]
    needed = [number for pattern, number in patterns.items() if re.fullmatch(pattern, url.partition("#")[0])]
    known_signatures = [*pages["masks"], *pages["accepted"]]
    if not known_signatures or not needed:
        return "" if patterns and not needed else "good"
    agreeing = [agreement(known_signature, page_signature) for known_signature in known_signatures]
    if 8 in agreeing:
        return "good"
    return "near" if max(agreeing[len(pages["masks"]) :], default=0) >= min(needed) else ""


def is_page_of(wrapper: dict[str, Any], page_records: list[dict[str, list[str]]], page_fit: str) -> bool:
    """Return whether there are any values, and half of the mandatory ones; more if the fit is `near`."""
    attributes = wrapper["layouts"][0]["attributes"]
    mandatory = {name for name, attribute in attributes.items() if attribute.get("mandatory")}
    most_mandatory = max((len(mandatory & record.keys()) for record in page_records), default=0)
    return any(page_records) and (
        not mandatory or 2 * most_mandatory >= len(mandatory) + (page_fit == "near")
    )
