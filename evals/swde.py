"""The SWDE data set: saved pages of real sites with the true values of their attributes.

Hao et al., SIGIR 2011. Values are whole text nodes.
"""

from __future__ import annotations

import hashlib
import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from siteloom.core.model import Page
from siteloom.html.visible_text import normalize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# The data set's authors put the address in front of each page, in a tag of their own.
_ADDRESS = re.compile(rb"\A(?:\xef\xbb\xbf)?<base href=\"([^\"]*)\"/?>", re.IGNORECASE)
_NO_VALUE = "<NULL>"


@dataclass(frozen=True, slots=True)
class SwdeSite:
    """A site with the truth about each page: page number, attribute, values (none: an empty tuple)."""

    vertical: str
    name: str
    folder: Path
    truth: Mapping[str, Mapping[str, tuple[str, ...]]]

    @property
    def full_name(self) -> str:
        """The site's name with its vertical, such as `restaurant-zagat`."""
        return f"{self.vertical}-{self.name}"

    def evenly_spaced(self, pages: int) -> list[str]:
        """The numbers of some pages, evenly spaced over the site."""
        numbers = sorted(self.truth)
        return numbers[:: max(1, len(numbers) // pages)][:pages]

    def page(self, number: str) -> Page:
        """A page as its site served it, under its own address."""
        content = (self.folder / f"{number}.htm").read_bytes()
        address = _ADDRESS.match(content)
        if address is None:
            raise ValueError(f"{self.folder}/{number}.htm does not begin with its address")
        return Page(
            html.unescape(address[1].decode("utf-8", "replace")), content[address.end() :], charset="utf-8"
        )


def swde_sites(data: Path) -> Iterator[SwdeSite]:
    """All sites of the data set that are there, by vertical and name."""
    for folder in sorted(data.glob("swde/*/*(*)")):
        vertical, _, name = folder.name.partition("(")[0].partition("-")
        truth: dict[str, dict[str, tuple[str, ...]]] = {
            file.stem: {} for file in sorted(folder.glob("*.htm"))
        }
        for file in sorted((data / "swde" / "groundtruth" / vertical).glob(f"{vertical}-{name}-*.txt")):
            attribute = file.stem.rpartition("-")[2]
            for number, values in _read_values(file).items():
                truth[number][attribute] = values
        yield SwdeSite(vertical, name, folder, truth)


def fingerprint(data: Path) -> str:
    """Tells one corpus from another: floors hold only for the corpus they were measured on."""
    digest = hashlib.sha256()
    for file in sorted(file for part in ("change", "swde") for file in (data / part).rglob("*.*")):
        digest.update(f"{file.relative_to(data)} {file.stat().st_size}\n".encode())
    return digest.hexdigest()[:16]


def _read_values(file: Path) -> dict[str, tuple[str, ...]]:
    lines = file.read_text(encoding="utf-8-sig").splitlines()[2:]
    values = {}
    for line in lines:
        number, _, *texts = line.split("\t")
        values[number] = tuple(normalize(html.unescape(text)) for text in texts if text != _NO_VALUE)
    return values
