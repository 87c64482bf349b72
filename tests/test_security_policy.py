"""What SECURITY.md promises is tested where it says."""

from __future__ import annotations

import re
from pathlib import Path

from siteloom.core.settings import load_settings

ROOT = Path(__file__).parents[1]


def test_every_test_that_is_named_is_there() -> None:
    named = re.findall(r"`(tests/[^`]+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(named) > 15
    assert not [file for file in named if not (ROOT / file).is_file()]


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)", (ROOT / "SECURITY.md").read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target


def test_every_setting_that_needs_trust_is_listed(tmp_path: Path) -> None:
    """Those of which some value does, tried with a value of its type that leads elsewhere."""
    _, known = load_settings(tmp_path, {}, {})
    reaching = set()
    for setting in known:
        values = {bool: ("true", "false"), str: ("'https://elsewhere.example/'",), int: ("1",)}
        stage, _, name = setting.name.partition(".")
        for value in values.get(type(setting.value), ()):
            (tmp_path / "siteloom.toml").write_text(f"[{stage}]\n{name} = {value}\n", encoding="utf-8")
            _, resolved = load_settings(tmp_path, {}, {}, shows_untrusted=True)
            reaching |= {one.name for one in resolved if one.needs_trust}
    documented = (
        (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8").partition("## Files of others")[2]
    )
    assert reaching == set(re.findall(r"\b(?:alarm|store|crawl|pages|retention)\.[a-z]+\b", documented))
    assert len(reaching) == 9
