"""Whether a page is one of those that an exported wrapper is for, with nothing but Python.

What is below the imports is part of every Scrapy spider that is exported, behind that of `plain`. It decides
as `siteloom.matching` and `siteloom.extraction` do.
"""

from __future__ import annotations

import re
from typing import Any

from siteloom.exporting.plain import agreement

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
