"""The wording of changes and alarms. The names of the change tests stand here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.core.model import ChangeTest

TEST_NAMES: dict[ChangeTest, str] = {
    "shingle": "structure changed",
    "null": "value missing",
    "value": "value changed",
}
"""What people read in place of the papers' names of the tests, which data formats keep: the shingle test, the
null test and the value test."""

_IN_PAGES: dict[ChangeTest, str] = {
    "shingle": "{share} of the pages are unlike those of the wrapper.",
    "null": "{attributes}, on up to {share} of the pages that had values.",
    "value": "{attributes}, values that seem wrong on up to {share} of the pages.",
}
_IN_OUTPUT: dict[ChangeTest, str] = {
    "shingle": "many more pages than before give no record.",
    "null": "{attributes}, in far fewer records than before.",
    "value": "{attributes}, many values are unlike those that the wrapper was learned from.",
}


def change_name(test: str) -> str:
    """The name of a change test for people; of a test of another version of Siteloom, the name itself."""
    return TEST_NAMES.get(cast("ChangeTest", test), test)


def change_names(tests: Iterable[str]) -> str:
    """The names of change tests in one line, each once."""
    return ", ".join(dict.fromkeys(map(change_name, tests)))


def change_sentence(test: ChangeTest, attributes: str, share: str, *, is_of_output: bool) -> str:
    """What a test has found on pages or in the output of a run; `attributes` and `share` are texts."""
    sentences = _IN_OUTPUT if is_of_output else _IN_PAGES
    return f"{change_name(test).capitalize()}: {sentences[test].format(attributes=attributes, share=share)}"
