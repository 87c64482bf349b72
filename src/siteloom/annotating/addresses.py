"""Where what belongs to an archived page may be loaded from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

# Browsers drop these wherever they stand in an address, and these at its ends.
_DROPPED = re.compile("[\t\n\r]")
_TRIMMED = "".join(map(chr, range(0x21)))

_IMAGE_IN_ADDRESS = re.compile("data:image/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses in one document, made into such as may be loaded.

    `base` is what relative ones start from; `resource` gives the address at which the copy in the
    archive is served, None if there is none; with `remote`, the web itself will do then.
    """

    base: str
    resource: Callable[[str], str | None]
    remote: bool = False

    def harmless(self, address: str) -> str | None:
        """Where to load from what the document has at an address; None if from nowhere."""
        address = _DROPPED.sub("", address).strip(_TRIMMED)
        if _IMAGE_IN_ADDRESS.match(address):
            return address
        absolute = self.absolute(address)
        if absolute is None:
            return None
        kept = self.resource(absolute)
        if kept is None and self.remote and urlsplit(absolute).scheme in {"http", "https"}:
            return absolute
        return kept

    def absolute(self, address: str) -> str | None:
        """An address in full, without its fragment; None for one that cannot be read or is empty."""
        address = address.strip(_TRIMMED).replace(" ", "%20")
        try:
            return urldefrag(urljoin(self.base, address)).url if address else None
        except ValueError:  # like http://[
            return None
