"""What fetches pages, in a world where only 127.0.0.1 is public, and names lead where they should not."""

from __future__ import annotations

import socket
from typing import Any

from siteloom.sources.crawling import __main__, url_filters

NAMES = {
    "inside.example": ["127.0.0.2"],
    "both.example": ["127.0.0.2", "127.0.0.1"],
    "outside.example": ["127.0.0.1"],
}
ask_the_system = socket.getaddrinfo


def is_public(address: str) -> bool:
    return address == "127.0.0.1"


def getaddrinfo(host: str, *rest: Any) -> list[Any]:
    return [found for name in NAMES.get(host, [host]) for found in ask_the_system(name, *rest)]


if __name__ == "__main__":
    url_filters.is_public = is_public  # type: ignore[attr-defined]
    socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]
    __main__.main()
