"""The text of a page without the template of its site."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.model import Page
    from siteloom.template import Block, SegmentTable


def clean_text(page: Page, table: SegmentTable) -> str:
    """The text of a page without template, a line for each block; the page is not taken into the table."""
    return text_of(table.blocks(page))


def text_of(blocks: Iterable[Block]) -> str:
    """What is no template of some blocks, a line for each that has any."""
    return "\n".join(text for block in blocks if (text := block.content))
