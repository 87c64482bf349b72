"""Whether a table of text segments takes values for template: the true values of SWDE pages."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import UnreadablePage
from siteloom.templates.template_text import SegmentTable
from siteloom.templates.text_blocks import PageSegments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evals.swde import SwdeSite
    from siteloom.templates.template_text import SegmentRule

_MOST_EXAMPLES = 5


class Lost(NamedTuple):
    """How many values are judged template, and how many of these are not in the text without template either.

    A value is judged template if each segment of the page that is this value is. It is still in the text if
    one of them stands in a block that is no template block.
    """

    template: int
    left_out: int


class Swallowed(NamedTuple):
    """The true values of a site that stand in text segments of their own, and those that a rule swallows.

    `arriving`: judged when the page is added to the table; `again`: by the table that has seen all pages.
    """

    site: str
    rule: SegmentRule
    values: int
    arriving: Lost
    again: Lost
    examples: tuple[str, ...]


class _Shown(NamedTuple):
    """A true value of a page, and the segments of all blocks in which it stands."""

    what: str
    value: str
    segments: PageSegments


def swallowed(site: SwdeSite, rules: Sequence[SegmentRule], pages: int | None = None) -> Iterator[Swallowed]:
    """The values of a site that each rule swallows, with all pages or some evenly spaced ones."""
    tables = {rule: SegmentTable(rule) for rule in rules}
    parting = SegmentTable()
    varying = _varying(site)
    arriving = dict.fromkeys(rules, Lost(0, 0))
    shown: list[_Shown] = []
    for number in sorted(site.truth) if pages is None else site.evenly_spaced(pages):
        try:
            segments = parting.segments(site.page(number))
        except UnreadablePage:
            continue
        of_page = list(_shown(site, number, varying, segments))
        shown += of_page
        for rule, table in tables.items():
            table.count(segments)
            arriving[rule] = _added(arriving[rule], [_lost(value, table) for value in of_page])
    for rule, table in tables.items():
        lost = [_lost(value, table) for value in shown]
        examples = dict.fromkeys(
            value.what for value, of_value in zip(shown, lost, strict=True) if of_value.template
        )
        again = _added(Lost(0, 0), lost)
        yield Swallowed(
            site.full_name, rule, len(shown), arriving[rule], again, tuple(examples)[:_MOST_EXAMPLES]
        )


def _varying(site: SwdeSite) -> set[str]:
    """The attributes that have different values on the site's pages; what never varies may be template."""
    found: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for of_page in site.truth.values():
        for attribute, values in of_page.items():
            if values:
                found[attribute].add(values)
    return {attribute for attribute, different in found.items() if len(different) > 1}


def _shown(site: SwdeSite, number: str, varying: set[str], segments: PageSegments) -> Iterator[_Shown]:
    """The values of a page that stand on it in segments of their own."""
    blocks_of: defaultdict[str, set[int]] = defaultdict(set)
    for text, block in zip(segments.texts, segments.blocks, strict=True):
        blocks_of[text.strip()].add(block)
    for attribute, values in site.truth[number].items():
        if attribute in varying:
            for value in dict.fromkeys(values):
                if value in blocks_of:
                    yield _Shown(f"{attribute}: {value}", value, _only(segments, sorted(blocks_of[value])))


def _only(segments: PageSegments, blocks: Sequence[int]) -> PageSegments:
    """The segments of some blocks of a page, to be judged alone."""
    numbers = {block: number for number, block in enumerate(blocks)}
    places = [place for place, block in enumerate(segments.blocks) if block in numbers]
    return PageSegments(
        [segments.keys[place] for place in places],
        [segments.paths[place] for place in places],
        [segments.lengths[place] for place in places],
        [segments.texts[place] for place in places],
        [numbers[segments.blocks[place]] for place in places],
        [segments.block_paths[block] for block in blocks],
    )


def _lost(shown: _Shown, table: SegmentTable) -> Lost:
    """1 and 1 for a value that is lost, 1 and 0 for one that is judged template but kept."""
    blocks = table.judged(shown.segments)
    judged = [
        (is_template, block.is_template)
        for block in blocks
        for text, is_template in zip(block.segments, block.are_template, strict=True)
        if text.strip() == shown.value
    ]
    return Lost(all(segment for segment, _ in judged), all(segment and block for segment, block in judged))


def _added(total: Lost, more: Sequence[Lost]) -> Lost:
    return Lost(
        total.template + sum(one.template for one in more), total.left_out + sum(one.left_out for one in more)
    )
