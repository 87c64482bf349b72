"""Which texts of a site are template, page by page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import UnreadablePage, UsageError
from siteloom.core.model import Page
from siteloom.templates.template_text import (
    NO_SEGMENTS,
    LivingTime,
    SegmentCounts,
    SegmentTable,
    merge_counts,
)


def page(*lines: str) -> Page:
    """A page with each line in a block of its own."""
    body = "".join(f"<div>{line}</div>" for line in lines)
    return Page.from_text("http://a.example/", f"<body>{body}</body>")


def template_texts(table: SegmentTable, shown: Page) -> list[str]:
    return [block.text for block in table.blocks(shown) if block.is_template]


def added(table: SegmentTable, pages: Iterable[Page]) -> SegmentTable:
    for one in pages:
        table.add(one)
    return table


def test_mistakes_are_told() -> None:
    with pytest.raises(UsageError, match=r"The rule 'papr' is not known: it is one of share, paper\."):
        SegmentTable("papr")  # type: ignore[arg-type]
    for living in ({"once": 0}, {"longest": 0}, {"once": -5}):
        with pytest.raises(UsageError, match=r"at least one page, not (0|-5)"):
            LivingTime(**living)


def test_the_living_time_grows_from_one_bound_to_the_other() -> None:
    living = LivingTime()
    assert living.for_pages(1) == 1_000
    times = [living.for_pages(pages) for pages in range(1, 200)]
    assert [round(time) for time in times[:5]] == [1_000, 1_597, 2_503, 3_817, 5_600]
    assert all(before <= after <= 20_000 for before, after in pairwise(times))
    assert round(times[-1]) == 20_000


def test_a_text_on_five_pages_is_template_by_the_paper() -> None:
    table = SegmentTable("paper")
    for number in range(10):
        blocks = table.add(page("Menu", f"about {number}"))
        assert [block.is_template for block in blocks] == [number >= 4, False]
    assert table.pages == 10


def test_a_text_counts_once_for_a_page() -> None:
    table = SegmentTable("paper")
    blocks = table.add(page(*["Menu"] * 10))
    assert not any(block.is_template for block in blocks)


def test_the_share_of_the_pages_with_the_path_tells_values_from_template() -> None:
    pages = [page("Menu", f"<b>{'Drama' if number % 4 else 'Comedy'}</b>") for number in range(40)]
    assert template_texts(added(SegmentTable(), pages), pages[1]) == ["Menu"]
    assert template_texts(added(SegmentTable("paper"), pages), pages[1]) == ["Menu", "Drama"]


def test_one_page_in_ten_may_lack_a_template_text() -> None:
    mixed = [page("Other" if number % 10 == 5 else "Menu") for number in range(100)]
    assert template_texts(added(SegmentTable(), mixed), page("Menu")) == ["Menu"]
    too_mixed = [page("Other" if number % 9 == 5 else "Menu") for number in range(100)]
    assert template_texts(added(SegmentTable(), too_mixed), page("Menu")) == []


def test_values_of_pages_that_come_one_after_the_other_are_no_template() -> None:
    """Crawls list the players of a team one after the other."""
    teams = [page(f"Team {number // 150}") for number in range(300)]
    table = added(SegmentTable(), teams)
    assert all(template_texts(table, team) == [] for team in teams)


def test_a_menu_that_came_late_becomes_template() -> None:
    table = added(SegmentTable(), [page("News") for _ in range(300)])
    added(table, [page("Shop") for _ in range(299)])
    assert template_texts(table, page("Shop")) == []
    table.add(page("Shop"))
    assert template_texts(table, page("Shop")) == ["Shop"]
    # What it took the place of still is template of the older pages.
    assert template_texts(table, page("News")) == ["News"]


def test_a_menu_need_not_be_half_of_a_long_crawl() -> None:
    table = added(SegmentTable(living=None), [page(f"Line {number}") for number in range(3_000)])
    added(table, [page("Shop") for _ in range(999)])
    assert template_texts(table, page("Shop")) == []
    table.add(page("Shop"))
    assert template_texts(table, page("Shop")) == ["Shop"]


def test_a_path_that_few_pages_have_tells_nothing() -> None:
    """The style of one advertiser comes with the advertiser's name."""
    others = [page(f"Job {number}") for number in range(500)]
    styled = [page(f"Job {number}", "<u>Acme</u>") for number in range(500, 526)]
    table = added(SegmentTable(), others)
    added(table, styled)
    assert template_texts(table, styled[0]) == []
    added(table, (page(f"Job {number}", "<u>Acme</u>") for number in range(526, 530)))
    assert template_texts(table, styled[0]) == ["Acme"]


def test_a_block_is_template_if_more_than_seven_tenths_of_it_are() -> None:
    table = added(SegmentTable(), [page("<b>seven77</b>" + str(number)) for number in range(20)])
    just, more = table.blocks(page("<b>seven77</b>xyz"))[0], table.blocks(page("<b>seven77</b>xy"))[0]
    assert (just.is_template, more.is_template) == (False, True)
    assert just.are_template == more.are_template == (True, False)
    # A label may be longer than its value, which is kept.
    assert (just.content, more.content) == ("seven77xyz", "xy")


def test_by_the_paper_a_template_block_is_template_throughout() -> None:
    table = added(SegmentTable("paper"), [page("<b>seven77</b>" + str(number)) for number in range(20)])
    (block,) = table.blocks(page("<b>seven77</b>xy"))
    assert block.are_template == (True, True)
    assert block.content == ""


def test_an_early_page_can_be_judged_again_later() -> None:
    table = SegmentTable()
    first = page("Menu", "first")
    assert not any(block.is_template for block in table.add(first))
    added(table, (page("Menu", str(number)) for number in range(8)))
    seen = table.pages
    assert [block.is_template for block in table.blocks(first)] == [True, False]
    assert table.pages == seen


def test_a_page_without_a_tree_is_refused_and_not_counted() -> None:
    table = SegmentTable()
    with pytest.raises(UnreadablePage, match="empty page"):
        table.add(Page("http://a.example/", b""))
    assert table.pages == 0


def test_a_page_without_text_has_no_blocks() -> None:
    table = SegmentTable()
    assert table.add(Page.from_text("http://a.example/", "<body><img></body>")) == ()
    assert table.pages == 1


def test_what_was_not_met_for_long_is_forgotten_and_can_come_again() -> None:
    living = LivingTime(once=5, longest=20, rate=0.5)
    table = added(SegmentTable("paper", living=living), [page("Menu") for _ in range(5)])
    assert 14 < living.for_pages(5) < 15
    added(table, (page(f"<b>{number}</b>") for number in range(14)))
    assert template_texts(table, page("Menu")) == ["Menu"]
    table.add(page("<b>14</b>"))
    assert template_texts(table, page("Menu")) == []
    added(table, (page("Menu") for _ in range(5)))
    assert template_texts(table, page("Menu")) == ["Menu"]


def test_an_endless_stream_takes_little_room() -> None:
    living = LivingTime(once=50, longest=200)
    table = SegmentTable(living=living)
    sizes = []
    for number in range(1_000):
        table.add(page("Menu", f"about {number}", f"<b>and {number}</b>"))
        sizes.append(len(table))
    assert max(sizes) == max(sizes[:60]) <= 3 + 2 * 52
    assert template_texts(table, page("Menu")) == ["Menu"]


letters = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=4), max_size=60)


def pages_of(site: Sequence[Sequence[str]]) -> list[Page]:
    """A page for each list of letters; the first four stand at one path, the others at another."""
    return [page(*(text if text < "e" else f"<b>{text}</b>" for text in texts)) for texts in site]


class BruteForce:
    """A table that looks through all its pages whenever it is asked."""

    def __init__(self, living: LivingTime) -> None:
        self.living = living
        self.met: defaultdict[str, list[int]] = defaultdict(list)
        self.now = 0

    def add(self, texts: Sequence[str]) -> None:
        self.now += 1
        for text in set(texts):
            self.met[text].append(self.now)
        for text, pages in list(self.met.items()):
            if self.now - pages[-1] > self.living.for_pages(len(pages)):
                del self.met[text]

    def is_template(self, text: str) -> bool:
        return len(self.met.get(text, ())) >= 5


@given(letters)
def test_the_table_is_what_brute_force_finds(site: list[list[str]]) -> None:
    living = LivingTime(once=3, longest=9, rate=0.4)
    table, twin = SegmentTable("paper", living=living), BruteForce(living)
    for texts, one in zip(site, pages_of(site), strict=True):
        twin.add(texts)
        assert [(block.text, block.is_template) for block in table.add(one)] == [
            (text, twin.is_template(text)) for text in texts
        ]


@given(letters, st.integers(0, 60))
def test_counts_of_parts_add_up(site: list[list[str]], cut: int) -> None:
    pages = pages_of(site)
    whole = added(SegmentTable(living=None), pages).counts()
    first, second = (added(SegmentTable(living=None), part).counts() for part in (pages[:cut], pages[cut:]))
    assert_same(merge_counts(first, second, None), whole)
    assert_same(merge_counts(NO_SEGMENTS, whole, None), whole)
    assert_same(merge_counts(whole, NO_SEGMENTS, None), whole)


def assert_same(one: SegmentCounts, other: SegmentCounts) -> None:
    assert one.pages == other.pages
    for column, its_twin in zip(one[1:], other[1:], strict=True):
        np.testing.assert_array_equal(column, its_twin)


@given(letters, st.integers(0, 60))
def test_a_table_goes_on_where_another_ended(site: list[list[str]], cut: int) -> None:
    living = LivingTime(once=3, longest=9, rate=0.4)
    pages = pages_of(site)
    whole = added(SegmentTable(living=living), pages)
    begun = added(SegmentTable(living=living), pages[:cut])
    continued = added(SegmentTable.from_counts(begun.counts(), living=living), pages[cut:])
    assert_same(continued.counts(), whole.counts())
    assert [continued.blocks(one) for one in pages] == [whole.blocks(one) for one in pages]


def test_merging_forgets_what_is_due() -> None:
    living = LivingTime(once=5, longest=20, rate=0.5)
    first = added(SegmentTable(living=None), [page("once")]).counts()
    later = added(SegmentTable(living=None), [page("<b>x</b>")] * 6).counts()
    kept = merge_counts(first, later._replace(pages=5), living)
    assert kept.keys.size == 4
    assert merge_counts(first, later, living).keys.size == 2
