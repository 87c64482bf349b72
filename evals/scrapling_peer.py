"""Scrapling's adaptive selectors, in a virtual environment of their own.

How it is used, in its favour wherever there is a choice: on a page before the change the very element that
held a value is saved (`auto_save`), one for each value. From an element that it finds after the change, the
value is read as it could be read before: its whole text, one of its text nodes, or the HTML attribute that
held the value. It is asked in two ways:

- as documented, there is one saved element for a site, that of the first page that has the value; the
  selector is Siteloom's XPath, with `adaptive=True` and the default threshold, so the element is looked for
  again only where the XPath finds nothing;
- at its best, there is a saved element for each page, and it is looked for again on every page (`relocate`),
  as Scrapling itself does not notice that a selector finds something else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from evals.peers import Peer
from siteloom.html.encoding import decode
from siteloom.html.visible_text import normalize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteloom.core.model import Page, Provenance

PEER = Peer("scrapling", ("scrapling==0.5",), "scrapling.parser", "scrapling")

_LAST_STEP = re.compile(r"/(?:text\(\)(?:\[\d+\])?|@(?P<attribute>[\w:-]+))$")


class Saved(NamedTuple):
    """A page before a change, and where on it a value of an attribute was."""

    page: Page
    value: str
    origin: Provenance


class Wanted(NamedTuple):
    """A page after a change, and what was saved of each value of the attributes looked for on it."""

    page: Page
    saved: Mapping[str, Sequence[Saved]]
    is_always_relocated: bool


def relocate(wanted: Sequence[Wanted]) -> list[dict[str, set[str]]]:
    """For each page the texts it finds for each attribute; the peer must be there."""
    work = [
        {
            "html": _text(one.page),
            "always": one.is_always_relocated,
            "saved": {attribute: list(map(_saved, values)) for attribute, values in one.saved.items()},
        }
        for one in wanted
    ]
    return [
        {
            attribute: {normalize(text.removeprefix("mailto:")) for text in texts}
            for attribute, texts in found.items()
        }
        for found in PEER.answer(work)
    ]


def _saved(saved: Saved) -> dict[str, str | None]:
    last = _LAST_STEP.search(saved.origin.node)
    return {
        "html": _text(saved.page),
        "element": _LAST_STEP.sub("", saved.origin.node),
        "selector": saved.origin.xpath,
        "value": saved.value,
        "html_attribute": last["attribute"] if last else None,
    }


def _text(page: Page) -> str:
    return decode(page.html, page.charset)
