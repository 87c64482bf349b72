"""Sites over time: pages that clusters of an earlier day no longer take in, although no template changed."""

from __future__ import annotations

import csv
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.model import Page
from siteloom.templates.clustering.methods import page_features
from siteloom.templates.clustering.vertex import assign, cluster_signatures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_NZ_CHANGE = ("2016-08-22", "2016-08-23")  # the day on which the template changed, and the first one after


class FalseAlarms(NamedTuple):
    """One method on pages that were fetched again and again while their template stayed.

    `checked` are the fetches, after the first day, of pages that were in a
    cluster on the first; `alarms` those that no cluster takes in any more.
    `fetched_again` are the fetches of all pages of the first day, in clusters
    or not, and `refused` those of them that no cluster takes in.
    """

    pages: str
    method: str
    first_pages: int
    clusters: int
    coverage: float
    checked: int
    alarms: int
    fetched_again: int
    refused: int

    @property
    def share(self) -> float:
        """False alarms among all that could be."""
        return self.alarms / max(1, self.checked)


class _Fetch(NamedTuple):
    page_id: str
    file: Path


class _Period(NamedTuple):
    """A time without a change of template: the pages of each day or version, in order."""

    name: str
    days: list[list[_Fetch]]


class _Keys(NamedTuple):
    vertex: bytes | None
    paths: bytes | None


def measure(data: Path) -> Iterator[FalseAlarms]:
    for period in _periods(data / "change"):
        for method in ("vertex", "paths"):
            yield _measured(period, method)
        _keys.cache_clear()


def _measured(period: _Period, method: str) -> FalseAlarms:
    first, *later = period.days
    found = cluster_signatures([getattr(_keys(fetch.file), method) for fetch in first])
    known = {first[place].page_id for cluster in found.clusters for place in cluster.members}
    first_ids = {fetch.page_id for fetch in first}
    again = [fetch for day in later for fetch in day if fetch.page_id in first_ids]
    assigned = assign(found.clusters, [getattr(_keys(fetch.file), method) for fetch in again])
    refused = [fetch for fetch, place in zip(again, assigned, strict=True) if place is None]
    return FalseAlarms(
        period.name,
        method,
        len(first),
        len(found.clusters),
        found.coverage,
        sum(fetch.page_id in known for fetch in again),
        sum(fetch.page_id in known for fetch in refused),
        len(again),
        len(refused),
    )


@cache  # a page that did not change is the same file on every day
def _keys(file: Path) -> _Keys:
    features = page_features(Page("", file.read_bytes()), "paths", "one site")
    return _Keys(features.signature, features.sketch)


def _periods(change: Path) -> Iterator[_Period]:
    for name in ("malta_parliament", "denmark_folketing"):
        yield _Period(name, _days(change / name))
    name = "nz_parliament_2016"
    changing, changed = _NZ_CHANGE
    yield _Period(
        f"{name}, before {changing}",
        _days(change / name, lambda row: row["template"] == "A0" and row["snapshot_day"] < changing),
    )
    yield _Period(
        f"{name}, from {changed}",
        _days(change / name, lambda row: row["template"] == "A" and row["snapshot_day"] >= changed),
    )
    for group in ("T1", "T3", "T4", "T6"):  # the others are of one version
        yield _Period(
            f"ipython_doc, {group}", _days(change / "ipython_doc", partial(_has_template_group, group))
        )


def _has_template_group(group: str, row: dict[str, str]) -> bool:
    return row["template_group"] == group


def _days(folder: Path, is_wanted: Callable[[dict[str, str]], bool] = lambda _: True) -> list[list[_Fetch]]:
    with (folder / "truth.csv").open(encoding="utf-8", newline="") as file:
        rows = sorted((row for row in csv.DictReader(file) if is_wanted(row)), key=_day)
    return [
        [_Fetch(row.get("url") or row["page_id"], folder / row["file"]) for row in day]
        for _, day in groupby(rows, key=_day)
    ]


def _day(row: dict[str, str]) -> tuple[int, ...]:
    """A day or a version, so that it sorts."""
    text = row.get("snapshot_day") or row["version"].removeprefix("rel-")
    return tuple(int(part) for part in text.replace("-", ".").split("."))
