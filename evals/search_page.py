"""What docs/evaluation/search.md says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evals.tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence

_PAGE = Path(__file__).parents[1] / "docs" / "evaluation" / "search.md"

_TEXT = """# How well search finds

Written by `python -m evals DATA --only search`.

{queries} queries over {pages:,} pages of the {sites} development sites of SWDE, all in one index. A query
is made of what is known of a page: some words of what its record is called (the title of a book, the name
of a player, the model of a camera; each word is kept with a probability of .8, five words at most), and two
times out of three one or two words of another of its values. The site is not named. The page is found at
the rank of the first hit that is the page, or another one with the same values, among the first
{looked_at}.

{table}

- *All fields alike*: the words of titles and headings count as those of any other text.
- *All text*: they count eight and four times as much.
- *Template text* is what the segment table of the site says after it has seen the {of_a_site} pages.
- *Common* is a text that stands at its path on one in five of the pages with the path, and on five at
  least. It counts half. These queries are found as well without: what tells nothing at all is template text
  already, and how rare a word is counts anyway.
- *In their title or side by side*: of the first {looked_at} hits, those with all words in their title count
  half as much again, and those double that have them side by side in the order in which they were typed.
- *Records* are the true values, as a wrapper without mistakes extracts them ({records:,}); a page and its
  record count as one hit.
- *Size* is that of the database of the index, with the texts that snippets are made from.

Template text costs ranks since its words stand on pages that are about something else, and room since it is
indexed with every page.
"""


class Outcome(NamedTuple):
    """How well pages are found by one way to index them, and the bytes that it takes."""

    name: str
    reciprocal_rank: float
    on_first_page: float
    size: int


def write_page(outcomes: Sequence[Outcome], **numbers: int) -> None:
    rows = [
        [one.name, f"{one.reciprocal_rank:.3f}", f"{one.on_first_page:.3f}", f"{one.size / 1e6:.1f} MB"]
        for one in outcomes
    ]
    shown = table(["indexed", "mean reciprocal rank", "among the first ten", "size"], rows)
    print(shown)
    _PAGE.write_text(_TEXT.format(table=shown, **numbers), encoding="utf-8")
