"""What a Content-Type header says."""

from __future__ import annotations

import codecs
from email.message import Message
from typing import NamedTuple


class ContentType(NamedTuple):
    """A media type, empty if none was said, and a character encoding, if one was said that is known."""

    media_type: str
    charset: str | None


def content_type(value: bytes | None) -> ContentType:
    """What the value of a header says, if there is one."""
    if not value:
        return ContentType("", None)
    message = Message()
    message["Content-Type"] = value.decode("latin-1")
    charset = message.get_content_charset()
    try:
        known = charset if charset and codecs.lookup(charset) else None
    except (LookupError, ValueError):
        known = None
    return ContentType(message.get_content_type(), known)
