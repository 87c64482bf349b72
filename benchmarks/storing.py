"""The page store: how small, how fast, how much memory, and that all reads back as it was."""

from __future__ import annotations

import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.corpus import CorpusSite, corpus_sites
from benchmarks.measure import Figure, cpu_seconds
from siteloom.core.settings import StoreSettings
from siteloom.operations.page_import import import_pages
from siteloom.store.workspace_folder import open_store

if TYPE_CHECKING:
    from siteloom.store.store import Store

TITLE = "Page store"

_SITES_FOR_SPEED = slice(0, None, 4)  # one site of each vertical


def figures(data: Path) -> list[Figure]:
    sites = corpus_sites(data)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(StoreSettings(workspace=folder), create=True)
        _ingest(store, sites)
        stored = {site.name: site for site in store.sites()}
        ratios = {name: site.bytes / site.packed_bytes for name, site in stored.items()}
        raw = sum(site.bytes for site in stored.values())
        packed = sum(site.packed_bytes for site in stored.values())
        on_disk = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        worst = min(ratios, key=lambda name: ratios[name])
        differing = _differing(store, sites)
        random_access = _random_access(store, sites)
        store.close()
    return [
        Figure(
            "pages",
            f"{sum(site.pages for site in stored.values()):,} of {len(sites)} sites, {raw / 1e6:,.0f} MB",
        ),
        Figure("pages that read back differently", str(differing), "0"),
        Figure("times smaller, packs, all sites", f"{raw / packed:.1f}", "at least 25"),
        Figure("times smaller, packs, worst site", f"{ratios[worst]:.1f} ({worst})", "at least 8"),
        Figure("times smaller, whole workspace with its tables", f"{raw / on_disk:.1f}"),
        *_speed(sites[_SITES_FOR_SPEED]),
        Figure("one page at random, over reading and hashing its file", f"{random_access:.0f} times"),
        *_memory(data),
    ]


def _ingest(store: Store, sites: list[CorpusSite]) -> None:
    for site in sites:
        import_pages(store, [site], site=site.name)


def _differing(store: Store, sites: list[CorpusSite]) -> int:
    files = {file.absolute().as_uri(): file for site in sites for file in site.files}
    differing = 0
    for page in store.pages():
        differing += page.html != files.pop(page.url).read_bytes()
    return differing + len(files)


def _random_access(store: Store, sites: list[CorpusSite]) -> float:
    chosen = random.Random(1).sample([(site.name, file) for site in sites for file in site.files], 200)
    seconds = cpu_seconds(
        {
            "store": lambda: [store.versions(file.absolute().as_uri(), site) for site, file in chosen],
            "file": lambda: [hashlib.blake2b(file.read_bytes()).digest() for _, file in chosen],
        }
    )
    return seconds["store"] / seconds["file"]


def _speed(sites: list[CorpusSite]) -> list[Figure]:
    """CPU seconds of ingesting, as a ratio to reading and hashing the same files."""

    def read_and_hash() -> None:
        for site in sites:
            for page in site.read():
                hashlib.blake2b(page.html).digest()

    with tempfile.TemporaryDirectory() as folder:

        def into_new_store() -> None:
            store = open_store(StoreSettings(workspace=tempfile.mkdtemp(dir=folder)), create=True)
            _ingest(store, sites)
            store.close()

        known = open_store(StoreSettings(workspace=f"{folder}/known"), create=True)
        _ingest(known, sites)
        seconds = cpu_seconds(
            {"read": read_and_hash, "new": into_new_store, "again": lambda: _ingest(known, sites)}
        )
        known.close()
    pages = sum(len(site.files) for site in sites)
    return [
        Figure(
            "ingest, over reading and hashing the files",
            f"{seconds['new'] / seconds['read']:.1f} times ({pages / seconds['new']:,.0f} pages/CPU second)",
        ),
        Figure("ingest of known pages, over the same", f"{seconds['again'] / seconds['read']:.1f} times"),
    ]


def _memory(data: Path) -> list[Figure]:
    """The peak memory of ingesting, in processes of their own."""
    peaks = {}
    for sites in (1, len(corpus_sites(data))):
        command = [sys.executable, "-m", "benchmarks.storing", str(data), str(sites)]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        pages, peak = json.loads(output)
        peaks[pages] = peak
    return [
        Figure(f"peak memory, ingest of {pages:,} pages", f"{peak:.0f} MB") for pages, peak in peaks.items()
    ]


def _print_memory(data: Path, site_count: int) -> None:
    sites = corpus_sites(data)[:site_count]
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(StoreSettings(workspace=folder), create=True)
        _ingest(store, sites)
        pages = sum(site.pages for site in store.sites())
        store.close()
    # Not getrusage, whose peak a process inherits from the one that started it.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (peak,) = re.findall(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    print(json.dumps([pages, int(peak) / 1e3]))


if __name__ == "__main__":
    _print_memory(Path(sys.argv[1]), int(sys.argv[2]))
