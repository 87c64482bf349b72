"""The real pages that benchmarks run on; see `scripts/unpack-data`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from siteloom.core.model import Page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class CorpusSite:
    """The saved pages of one site of the SWDE data set; also a source of pages."""

    folder: Path

    @property
    def name(self) -> str:
        """The site's name, such as `restaurant-zagat`."""
        return self.folder.name.partition("(")[0]

    @property
    def files(self) -> list[Path]:
        """All pages, by number."""
        return sorted(self.folder.iterdir())

    def read(self) -> Iterator[Page]:
        """The pages as they are in the files, each under its file's address."""
        for file in self.files:
            yield Page(file.absolute().as_uri(), file.read_bytes())

    def shards(self) -> tuple[CorpusSite]:
        """The site as it is."""
        return (self,)


def corpus_sites(data: Path) -> list[CorpusSite]:
    """All sites, by vertical and name; none where the data is not there."""
    return [CorpusSite(folder) for folder in sorted(data.glob("swde/*/*(*)"))]


def sample_of_each_site(data: Path, pages: int) -> list[bytes]:
    """Some evenly spaced pages of each site."""
    html = []
    for site in corpus_sites(data):
        files = site.files
        html += [file.read_bytes() for file in files[:: max(1, len(files) // pages)][:pages]]
    return html
