"""ARCHITECTURE.md describes the source tree as it is."""

from __future__ import annotations

import re
import tomllib

from tests.docs.blocks import ROOT, read

SOURCES = ROOT / "src" / "siteloom"
TEXT = read("ARCHITECTURE.md")
TREE = re.findall(r"^```\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)[0]


def test_every_path_that_is_named_exists() -> None:
    paths = re.findall(r"`([a-z_/]+(?:/[a-z_]+(?:\.py)?/?|\.py))`", TEXT)
    assert len(paths) > 40
    assert not [path for path in paths if not (SOURCES / path).exists() and not (ROOT / path).exists()]


def test_every_folder_of_the_tree_exists() -> None:
    named = re.findall(r"(\w+)/", TREE)
    folders = {folder.name for folder in SOURCES.rglob("*") if folder.is_dir()}
    assert not set(named) - folders


def test_the_tree_has_the_layers_that_are_checked() -> None:
    settings = tomllib.loads(read("pyproject.toml"))
    contract, *_ = settings["tool"]["importlinter"]["contracts"]
    layers = [set(layer.split(" | ")) for layer in contract["layers"]]
    shown = [
        set(re.findall(r"^(\w+)/", layer, re.MULTILINE))
        for layer in re.split(r"^─+$", TREE, flags=re.MULTILINE)
    ]
    assert shown == layers


def test_it_fits_on_two_screens() -> None:
    assert len(TEXT.splitlines()) <= 120


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / target).exists(), target
