"""What the demo shows of known records: a site is wrapped from those of another."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from siteloom.builtin import BuiltinPage
    from siteloom.cli.shell import Shell
    from siteloom.model import Seed
    from siteloom.redundancy import Bootstrapped
    from siteloom.store import Store
    from siteloom.wrapper import Wrapper

CORE = ("name", "address")


class _Compared(NamedTuple):
    """Of the pages that have an attribute, or are said to, on how many all its values are right."""

    right: int
    pages: int

    def __str__(self) -> str:
        return f"{self.right:,} of {self.pages:,}"


def show_bootstrap(
    shell: Shell, store: Store, guide: Sequence[BuiltinPage], directory: Sequence[BuiltinPage]
) -> None:
    """Wrap the directory from what was extracted of the guide; show the evidence, and how much is right."""
    from siteloom.redundancy import bootstrap

    known = list(_extracted(store, [page for page in guide if page.kind == "restaurant"]))
    found = bootstrap(known, [page.page for page in directory], CORE)
    if found.wrapper is None:
        shell.say(f"    {found.reason}")
        return
    places = [page for page in directory if page.kind == "restaurant"]
    compared = {name: _compared(found.wrapper, name, places) for name in found.wrapper.attributes}
    _show_evidence(shell, found, compared)
    total = _Compared(*map(sum, zip(*compared.values(), strict=True)))
    shell.say(
        f"    {found.seeds_matched:,} of {found.seeds:,} known restaurants were found, on "
        f"{found.pages_matched:,} of {found.pages:,} pages. By the truth, {total} values\n    are right, "
        f"on all {len(places):,} restaurants of the directory: also on those that the guide does not know."
    )
    refused = [name for name, one in found.attributes.items() if one.verdict == "refused"]
    if refused:
        shell.say(f"    Refused, for want of a place that agrees with the guide: {', '.join(refused)}.")
    _show_entities(shell, known, found.wrapper, places)


def _extracted(store: Store, pages: Sequence[BuiltinPage]) -> Iterator[Seed]:
    """The records of some pages of one site, as `siteloom extract` has found them last."""
    from siteloom.seed_files import seed_of
    from siteloom.urls import site_of

    wanted = {page.page.url for page in pages}
    for line in store.records():
        row = json.loads(line)
        if row["url"] in wanted:
            yield seed_of(row, site_of(row["url"]))


def _compared(wrapper: Wrapper, name: str, pages: Sequence[BuiltinPage]) -> _Compared:
    pairs = [
        (set(wrapper.extract(page.page).values.get(name, ())), set(page.truth.get(name, ())))
        for page in pages
    ]
    told = [(found, truth) for found, truth in pairs if found or truth]
    return _Compared(sum(found == truth for found, truth in told), len(told))


def _show_evidence(shell: Shell, found: Bootstrapped, compared: dict[str, _Compared]) -> None:
    rows = [
        (name, one.verdict, f"{one.agreement:.0%}", f"{one.shuffled:.0%}", compared.get(name, "-"))
        for name, one in found.attributes.items()
    ]
    columns = ("attribute", "verdict", "agreement", "by chance", "right by the truth")
    shell.show("The directory, with none of its pages annotated", columns, rows)


def _show_entities(
    shell: Shell, known: Sequence[Seed], wrapper: Wrapper, pages: Sequence[BuiltinPage]
) -> None:
    from siteloom.model import Seed
    from siteloom.redundancy.linking import link
    from siteloom.urls import site_of

    seeds = [
        *known,
        *(Seed(wrapper.extract(page.page).values, site_of(page.page.url), page.page.url) for page in pages),
    ]
    entities = link(seeds, CORE)
    on_both = [entity for entity in entities if len({seeds[member].source for member in entity.members}) > 1]
    differing = Counter(
        name for entity in on_both for name, agreed in entity.values.items() if agreed.conflicts
    )
    shown = ", ".join(f"{name} of {count:,}" for name, count in differing.most_common())
    shell.say(
        f"    siteloom entities: the {len(seeds):,} records of both sites tell of {len(entities):,} "
        f"restaurants, of which {len(on_both):,} are on both.\n    There the sites differ in "
        f"{shown or 'nothing'}."
    )
