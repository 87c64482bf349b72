"""Changes in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siteloom.core.model import ChangeTest

_OF_PAGES: dict[ChangeTest, str] = {
    "shingle": "{share} of the pages are not made like those that the wrapper is for.",
    "null": "{attributes}: not found any more on up to {share} of the pages that had values.",
    "value": "{attributes}: values that seem wrong on up to {share} of the pages.",
}
_OF_OUTPUT: dict[ChangeTest, str] = {
    "shingle": "Many more pages than before give no record.",
    "null": "{attributes}: far fewer records than before have a value.",
    "value": "{attributes}: many values are unlike those that the wrapper was learned from.",
}


def change_sentence(test: ChangeTest, attributes: str, share: str, *, is_of_output: bool) -> str:
    """What a test has found, seen on pages or in the output of a run; what is named is in words already."""
    words = _OF_OUTPUT if is_of_output else _OF_PAGES
    return words[test].format(attributes=attributes, share=share)
