"""Small pieces of HTML that all layouts are put together from."""

from __future__ import annotations

from html import escape
from html.entities import codepoint2name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

HTML5 = "<!DOCTYPE html>"


def text(value: str) -> str:
    """Text made safe for HTML, in an attribute as well."""
    return escape(value)


def entity_text(value: str) -> str:
    """Text as older systems wrote it: every letter beyond ASCII as a named entity."""
    return "".join(
        c if c.isascii() else f"&{codepoint2name.get(ord(c), f'#{ord(c)}')};" for c in escape(value)
    )


def unbroken(value: str) -> str:
    """Text whose spaces are no-break spaces, so that a browser keeps it on one line."""
    return text(value).replace(" ", "&nbsp;")


def link(href: str, label: str, attributes: str = "") -> str:
    """A link with a plain text label."""
    return f'<a href="{text(href)}"{attributes and " " + attributes}>{text(label)}</a>'


def mail_link(address: str) -> str:
    """A link that opens a letter to the address it shows."""
    return link(f"mailto:{address}", address)


def phone_href(phone: str) -> str:
    """The address a telephone dials: "tel:+441174960123"."""
    return "tel:+44" + phone.replace(" ", "").removeprefix("0")


def joined(*parts: str | None) -> str:
    """The parts that are there, one below the other."""
    return "\n".join(part for part in parts if part)


def repeated(parts: Iterable[str]) -> str:
    """The parts in a row without anything between them."""
    return "".join(parts)
