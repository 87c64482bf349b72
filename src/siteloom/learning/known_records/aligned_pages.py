"""Find the pages of a site that show known records, and the positions of each attribute on them."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.core.sequences import evenly_spaced
from siteloom.html.page_text_arrays import INNER
from siteloom.learning.known_records.attribute_slots import find_slots
from siteloom.learning.known_records.page_positions import positions_of, template_rows
from siteloom.learning.known_records.record_arrays import (
    NO_KIND,
    kind_number,
    scramble,
    seed_table,
    text_forms,
)
from siteloom.learning.known_records.record_page_alignment import (
    Pairs,
    RowIndex,
    align,
    candidate_pairs,
    matched_rows,
    possible_pairs,
    weigh_matches,
)
from siteloom.learning.known_records.text_normalisation import folded

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from siteloom.core.model import Seed
    from siteloom.html.page_text_arrays import PageTexts
    from siteloom.learning.known_records.attribute_slots import Slot
    from siteloom.learning.known_records.page_positions import Positions
    from siteloom.learning.known_records.record_arrays import SeedAttribute, SeedTable, TextForms
    from siteloom.learning.known_records.record_page_alignment import Alignment, TextMatches

    Flags = NDArray[np.bool_]
    Ints = NDArray[np.int32]

LEAST_PAGES = 10
"""Pages that must show known records: beta of the paper on content redundancy."""

_LEAST_TIMES_CHANCE = 3.0  # minimum ratio of the score to that of records with shuffled values
_COMPARED_SEEDS = 1_000  # suffice to see whether two attributes have the same values
_SAME_VALUES = 0.5
_MIN_DISTINCT_SHARE = 0.5  # distinct values, as a share of seeds
_LEVELS_AROUND = 3  # few suffice, since `page_texts` leaves out elements with many texts
_SAME_ROWS = 0.5  # share of common rows from which two positions count as the same


class KnownRecords(NamedTuple):
    """Known records, prepared once to be compared with the pages of any number of sites.

    `seeds` is the number of input seeds, and `numbers` has the number of the seed behind each record: equal
    seeds are one record, whatever their sources. `copies` maps attributes to others with the same values,
    such as a name in capitals or in a URL; they add no information.
    """

    table: SeedTable
    core: Collection[str]
    seeds: int
    numbers: Sequence[int]
    copies: Mapping[str, str]

    @property
    def unusable_reason(self) -> str | None:
        """Why no page can be matched with these records, or None if pages can be."""
        if len(self.table.attributes) > 1:
            return None
        return (
            f"The seeds have only {self.table.attributes[0].name}: a page can be matched with a record only "
            "if two attributes agree."
        )


def known_records(seeds: Sequence[Seed], core: Collection[str]) -> KnownRecords:
    """Prepare seeds to be found on pages; the core attributes are those that identify a record."""
    numbers = list({_seed_key(seed): number for number, seed in enumerate(seeds)}.values())
    copies = _copies(seeds, core)
    table = seed_table([_without(seeds[number], copies) for number in numbers])
    return KnownRecords(table=table, core=core, seeds=len(seeds), numbers=numbers, copies=copies)


class KnownPages(NamedTuple):
    """The pages of a site matched with known records, and the positions of attributes.

    `seeds` has the number of the input seed behind each record, and `copies` the attributes with the same
    values as another: see `KnownRecords`.
    """

    table: SeedTable
    texts: PageTexts
    positions: Positions
    matches: Mapping[str, TextMatches]
    pairs: Pairs
    slots: Mapping[str, Sequence[Slot]]
    rows: RowIndex
    seeds: Sequence[int]
    copies: Mapping[str, str]

    def attribute(self, name: str) -> SeedAttribute:
        """Return the known values of an attribute."""
        return next(attribute for attribute in self.table.attributes if attribute.name == name)

    @property
    def pages(self) -> Ints:
        """The numbers of the pages that show known records."""
        return np.unique(self.pairs.page)


class NoOverlap(NamedTuple):
    """Why a site cannot be wrapped, with the numbers of seeds and pages that matched."""

    reason: str
    seeds: int = 0
    pages: int = 0


class ShownRecords(NamedTuple):
    """Pages and the records that they may show, ordered by page, with the bits of evidence for each pair."""

    page: Ints
    record: Ints
    bits: NDArray[np.float64]


def shown_records(records: KnownRecords, texts: PageTexts) -> ShownRecords:
    """Return the records that pages may show, judged for each page by itself.

    The pages may be of any sites. The result includes all that `known_pages` finds on a site, so
    `known_pages` refuses a site with fewer than `LEAST_PAGES` such pages.
    """
    text_numbers = np.arange(len(texts.texts), dtype=np.int32)
    forms = [text_forms(text) for text in texts.texts]
    rows = RowIndex(texts, np.ones(len(texts.page), np.bool_))
    pairs, bits = possible_pairs(records.table, _text_matches(records.table, forms, text_numbers), rows)
    return ShownRecords(*pairs, bits)


def too_few(records: int, seeds: int, shown_on: int, pages: int, but: str = "") -> NoOverlap:
    """Return the refusal of a site where too few seeds seem to be on its pages."""
    overlap = _overlap(records=records, seeds=seeds, shown_on=shown_on, pages=pages)
    reason = f"Not enough overlap: {overlap}{but}; at least {LEAST_PAGES} must be about one each."
    return NoOverlap(reason, records, shown_on)


def _overlap(records: int, seeds: int, shown_on: int, pages: int) -> str:
    return f"{records:,} of {seeds:,} known records seem to be on {shown_on:,} of {pages:,} pages"


def known_pages(records: KnownRecords, texts: PageTexts) -> KnownPages | NoOverlap:
    """Find the pages that show known records with at least one core value, or why there are none."""
    if records.unusable_reason is not None:
        return NoOverlap(records.unusable_reason)
    table, core = records.table, records.core
    is_open = ~template_rows(texts)
    open_texts = np.unique(texts.text[is_open])
    forms = [text_forms(texts.texts[number]) for number in open_texts.tolist()]
    kinds = np.full(len(texts.texts), NO_KIND, np.int32)
    kinds[open_texts] = [kind_number(text.key) for text in forms]
    positions = positions_of(texts, kinds)
    matches = _text_matches(table, forms, open_texts)
    lists = np.zeros(0, np.int32)
    while True:
        rows = RowIndex(texts, is_open)
        alignment = _align(table=table, matches=matches, rows=rows, positions=positions, core=core)
        if alignment is None or not len(alignment.lists):
            break
        lists = np.union1d(lists, alignment.lists)
        is_open &= ~np.isin(texts.page, alignment.lists)
    pairs = Pairs(lists[:0], lists[:0]) if alignment is None else alignment.pairs
    matched, page_count = len(np.unique(pairs.record)), len(np.unique(pairs.page))
    if alignment is None or page_count < LEAST_PAGES:
        but = f", and {len(lists):,} pages list several" if len(lists) else ""
        return too_few(records=matched, seeds=records.seeds, shown_on=page_count, pages=texts.pages, but=but)
    chance_alignment = _align(
        table=scramble(table, np.random.default_rng(0)),
        matches=matches,
        rows=rows,
        positions=positions,
        core=core,
    )
    if chance_alignment is not None and alignment.score < _LEAST_TIMES_CHANCE * chance_alignment.score:
        overlap = _overlap(records=matched, seeds=records.seeds, shown_on=page_count, pages=texts.pages)
        reason = f"Not enough overlap: {overlap}, but nearly as many match if their values are mixed up."
        return NoOverlap(reason, matched, page_count)
    names = [attribute.name for attribute in table.attributes]
    by_name = dict(zip(names, matches, strict=True))
    slots = _slots(
        table=table,
        matches=by_name,
        pairs=alignment.pairs,
        is_open=is_open,
        positions=positions,
        kinds=kinds,
        texts=texts,
    )
    return KnownPages(
        table=table,
        texts=texts,
        positions=positions,
        matches=by_name,
        pairs=alignment.pairs,
        slots=slots,
        rows=rows,
        seeds=records.numbers,
        copies=records.copies,
    )


def _text_matches(table: SeedTable, forms: Sequence[TextForms], numbers: Ints) -> list[TextMatches]:
    """Match texts with known values, by attribute; `numbers` has the number of each text on the pages."""
    return [weigh_matches(attribute, attribute.matches(forms), numbers) for attribute in table.attributes]


def _copies(seeds: Sequence[Seed], core: Collection[str]) -> dict[str, str]:
    """Return attributes whose values mostly equal those of another except for case and word order."""
    forms_by_name: dict[str, dict[int, set[str]]] = {}
    for number, seed in enumerate(evenly_spaced(seeds, _COMPARED_SEEDS)):
        for name, texts in seed.values.items():
            forms = {" ".join(sorted(folded(text).split())) for text in texts} - {""}
            if forms:
                forms_by_name.setdefault(name, {})[number] = forms
    # Yes and no agree in many attributes by chance; equal names are no accident.
    varied_names = {
        name: forms_by_seed
        for name, forms_by_seed in forms_by_name.items()
        if len(set().union(*forms_by_seed.values())) > _MIN_DISTINCT_SHARE * len(forms_by_seed)
    }
    copies: dict[str, str] = {}
    for name, other_name in permutations(sorted(varied_names, key=lambda name: name not in core), 2):
        if name not in copies and other_name not in core and other_name not in copies:
            common_seeds = varied_names[name].keys() & varied_names[other_name].keys()
            equal_count = sum(
                not varied_names[name][number].isdisjoint(varied_names[other_name][number])
                for number in common_seeds
            )
            if equal_count > _SAME_VALUES * len(common_seeds):
                copies[other_name] = name
    return copies


def _without(seed: Seed, names: Collection[str]) -> Seed:
    return replace(seed, values={name: texts for name, texts in seed.values.items() if name not in names})


def _seed_key(seed: Seed) -> frozenset[tuple[str, tuple[str, ...]]]:
    return frozenset((name, tuple(texts)) for name, texts in seed.values.items())


def _slots(
    table: SeedTable,
    matches: Mapping[str, TextMatches],
    pairs: Pairs,
    is_open: Flags,
    positions: Positions,
    kinds: Ints,
    texts: PageTexts,
) -> dict[str, list[Slot]]:
    """Find the positions of attributes. A position belongs only to the attribute with most evidence."""
    rows = RowIndex(texts, is_open)
    slots_by_name = {
        attribute.name: find_slots(
            attribute=attribute,
            matches=matches[attribute.name],
            pairs=pairs,
            rows=rows,
            positions=positions,
            kinds=kinds,
        )
        for attribute in table.attributes
    }
    is_claimed = np.zeros(len(texts.page), np.bool_)
    by_bits = sorted(
        table.attributes, key=lambda named: -max((slot.bits for slot in slots_by_name[named.name]), default=0)
    )
    for attribute in by_bits:
        slots = slots_by_name[attribute.name]
        if any(np.mean(is_claimed[positions.rows_at(slot.position)]) > _SAME_ROWS for slot in slots):
            unclaimed_rows = RowIndex(texts, is_open & ~is_claimed)
            slots = find_slots(
                attribute=attribute,
                matches=matches[attribute.name],
                pairs=pairs,
                rows=unclaimed_rows,
                positions=positions,
                kinds=kinds,
            )
            slots_by_name[attribute.name] = slots
        for slot in slots:
            if slot.is_believed:
                rows_at = positions.rows_at(slot.position)
                is_claimed[rows_at] = True
                is_claimed |= _surrounding_rows(texts, rows_at)
    return slots_by_name


def _surrounding_rows(texts: PageTexts, rows: NDArray[np.int64]) -> Flags:
    """Flag the rows of elements around some texts, such as an element with a label and its value."""
    parents = np.array([above for above, _ in texts.paths], np.int64)
    inner = np.flatnonzero(texts.form == INNER)
    own = texts.page[inner].astype(np.int64) << 32 | texts.path[inner]
    around = np.zeros(len(texts.page), np.bool_)
    path = texts.path[rows].astype(np.int64)
    for _ in range(_LEVELS_AROUND):
        path = np.where(path >= 0, parents[path], path)
        around[inner[np.isin(own, texts.page[rows].astype(np.int64) << 32 | path)]] = True
    return around


def _align(
    table: SeedTable,
    matches: Sequence[TextMatches],
    rows: RowIndex,
    positions: Positions,
    core: Collection[str],
) -> Alignment | None:
    pairs = candidate_pairs(table, matches, rows)
    matched = [
        matched_rows(attribute=attribute, matches=text_matches, pairs=pairs, rows=rows)
        for attribute, text_matches in zip(table.attributes, matches, strict=True)
    ]
    return align(table=table, pairs=pairs, matched=matched, positions=positions, texts=rows.texts, core=core)
