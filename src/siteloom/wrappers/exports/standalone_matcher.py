"""Signature and matching in plain Python; copied into exported spiders.

What is below the imports is part of what is exported if signatures are needed, behind that of `plain`.

What is below the imports is part of every Scrapy spider that is exported, behind that of `plain`. It decides
as `siteloom.wrappers.matching` and `siteloom.extraction.extractor` do.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from siteloom.wrappers.exports.standalone_extractor import ATTRIBUTE, agreement, tags

# Signatures: which tags of a page follow each other


def signature(html: bytes) -> str:
    """Eight bytes, each from the least of many hashes: one for each ten tags in a row."""
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
    rows = [numbers[place : place + 10] for place in range(max(len(numbers) - 9, 1))]
    hashes = {mixed(functools.reduce(lambda row, number: row * GOLDEN + number, row)) for row in rows}
    seeds = [GOLDEN * number % 2**64 for number in range(1, 9)]
    return bytes(mixed(min(mixed(one ^ seed) for one in hashes)) % 256 for seed in seeds).hex()


def is_hidden(html: str, start: int, end: int) -> bool:
    """Whether the first type that a tag has is `hidden`: such inputs carry state, not layout."""
    for name, value in ATTRIBUTE.findall(html[start : end - 1]):
        if name.lower() == "type":
            return value.lower() in ("hidden", '"hidden"', "'hidden'")
    return False


GOLDEN = 0x9E3779B97F4A7C15  # odd, with well-mixed bits


@functools.lru_cache(maxsize=1_024)
def tag_number(name: bytes, is_end: bool) -> int:
    """A number of 64 bits for a tag (FNV-1a)."""
    number = 0xCBF29CE484222325
    for byte in name:
        number = (number ^ byte) * 0x100000001B3 % 2**64
    return mixed(number + is_end)


def mixed(number: int) -> int:
    """64 bits of which each depends on all of a number (the finalizer of MurmurHash3)."""
    number %= 2**64
    number = (number ^ number >> 33) * 0xFF51AFD7ED558CCD % 2**64
    number = (number ^ number >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
    return number ^ number >> 33


# Which pages have records: by their addresses, and by their signatures


def fit(pages: dict[str, Any], url: str, page_signature: str) -> str:
    """`good` for a page that is made like some that are known, `near` for one somewhat like them, or nothing.

    An address must look like a known one, and so many bytes of a known signature must be those of the page.
    """
    patterns = pages["url_patterns"]
    needed = [number for pattern, number in patterns.items() if re.fullmatch(pattern, url.partition("#")[0])]
    known = [*pages["masks"], *pages["accepted"]]
    if not known or not needed:
        return "" if patterns and not needed else "good"
    agreeing = [agreement(one, page_signature) for one in known]
    if 8 in agreeing:
        return "good"
    return "near" if max(agreeing[len(pages["masks"]) :], default=0) >= min(needed) else ""


def is_page_of(wrapper: dict[str, Any], found: list[dict[str, list[str]]], page_fit: str) -> bool:
    """Whether there are any values, and half of the mandatory ones; more where the page is merely near."""
    attributes = wrapper["layouts"][0]["attributes"]
    mandatory = {name for name, attribute in attributes.items() if attribute.get("mandatory")}
    most = max((len(mandatory & record.keys()) for record in found), default=0)
    return any(found) and (not mandatory or 2 * most >= len(mandatory) + (page_fit == "near"))
