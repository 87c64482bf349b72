"""Bytes to a tree in one step, for the tests."""

from __future__ import annotations

from siteloom.core.model import Failure, Page
from siteloom.html.parser import Element, parse


def tree(html: bytes | str, charset: str | None = None) -> Element:
    """The tree of a page that is known to have one; text is taken for UTF-8."""
    if isinstance(html, str):
        html, charset = html.encode(), "utf-8"
    root = parse(Page("http://a.example/", html, charset=charset))
    assert not isinstance(root, Failure), root
    return root
