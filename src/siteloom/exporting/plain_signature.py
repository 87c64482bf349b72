"""The signature of a page, with nothing but Python: the same as that of `siteloom.signature`.

What is below the imports is part of what is exported if signatures are needed, behind that of `plain`.
"""

from __future__ import annotations

import functools

from siteloom.exporting.plain import ATTRIBUTE, tags

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
