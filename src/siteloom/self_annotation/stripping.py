"""Pages as they would be without their markup for machines."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from siteloom.dom.encoding import in_utf8
from siteloom.kernels.markup import name_hash, scan_tags

if TYPE_CHECKING:
    from siteloom.model import Page

_NAMES = frozenset(
    b"""
    itemprop itemscope itemtype itemid itemref
    property typeof vocab prefix about resource datatype inlist
    """.split()
)
_ATTRIBUTE = re.compile(
    rb"""[\s/]*+ ([^\s/>] [^\s/>=]*+) (?: \s*+ = \s*+ ( "[^"]*+" | '[^']*+' | [^\s>]*+ ) )?+""", re.VERBOSE
)
_TAG_NAME = re.compile(rb"<[^\s/>]*+")
_SAYS_PROPERTY = frozenset({b"itemprop", b"property"})
_FOR_PREVIEWS = re.compile(rb"""\bname\s*+=\s*+["']?+(?:twitter|og):""", re.IGNORECASE)
_META, _LINK = name_hash("meta"), name_hash("link")


def without_markup(page: Page) -> Page:
    """A page less the HTML attributes that say what its values are.

    No element goes, so that all stand where they stood; those that are only there for machines are empty.
    Scripts stay, for nothing is read from them anyway.
    """
    html = in_utf8(page.html, page.charset)
    tags = scan_tags(html)
    parts: list[bytes] = []
    end = 0
    for start, stop, name, is_end in zip(
        tags.start.tolist(), tags.end.tolist(), tags.name, tags.is_end.tolist(), strict=True
    ):
        if is_end:
            continue
        tag = html[start:stop]
        stripped = _without_attributes(tag, is_unseen=name in (_META, _LINK))
        if stripped != tag:
            parts += [html[end:start], stripped]
            end = stop
    if not parts:
        return page
    return replace(page, html=b"".join([*parts, html[end:]]), charset="utf-8")


def _without_attributes(tag: bytes, *, is_unseen: bool) -> bytes:
    name = _TAG_NAME.match(tag)
    attributes = [] if name is None else list(_ATTRIBUTE.finditer(tag, name.end(), len(tag) - 1))
    if name is None or not attributes:
        return tag
    is_marked = any(found[1].lower() in _SAYS_PROPERTY for found in attributes)
    is_for_machines = is_unseen and (is_marked or _FOR_PREVIEWS.search(tag) is not None)

    def is_kept(found: re.Match[bytes]) -> bool:
        match found[1].lower():
            case b"content":
                return not (is_marked or is_for_machines)
            case b"href":
                return not is_for_machines
            case b"rel" | b"rev":  # v:directedBy is RDFa, nofollow is not
                return b":" not in (found[2] or b"")
            case other:
                return other not in _NAMES

    kept = [found for found in attributes if is_kept(found)]
    if len(kept) == len(attributes):
        return tag
    # One that stood right behind another's quotes must not grow together with what is before it now.
    parts = (found[0] if found[0][:1].isspace() else b" " + found[0] for found in kept)
    return b"".join([name[0], *parts, b">"])
