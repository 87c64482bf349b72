"""What is said of a release is said alike everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import siteloom

ROOT = Path(__file__).parents[1]


def sections() -> list[str]:
    """The headings of the changelog, the newest first."""
    return re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)


def cited(name: str) -> str:
    """What the file for those who cite says of the software."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^{name}: (.+)$", text, re.MULTILINE)
    return str(found)


def test_the_changelog_begins_with_what_is_not_released_and_goes_on_with_this_version() -> None:
    unreleased, newest, *_ = sections()
    assert unreleased == "Unreleased"
    assert re.fullmatch(rf"{re.escape(siteloom.__version__)} - \d{{4}}-\d\d-\d\d", newest)


def test_what_is_cited_is_this_version() -> None:
    assert f"{cited('version')} - {cited('date-released')}" == sections()[1]
