"""The pictures of the explanations are those that scripts/draw-pictures draws."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("draw_pictures", str(ROOT / "scripts" / "draw-pictures"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_each_picture_is_as_it_is_drawn_and_shown_on_a_page(drawing: ModuleType) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "explanation").glob("*.md"))
    for name, draw in drawing.PICTURES.items():
        kept = (drawing.IMAGES / f"{name}.svg").read_text(encoding="utf-8")
        assert kept == str(draw()), f"run scripts/draw-pictures: {name}.svg is out of date"
        assert f"(../images/{name}.svg)" in pages


def test_a_text_that_is_too_wide_is_refused(drawing: ModuleType) -> None:
    picture = drawing.Picture(100, "A picture", "A picture of a box")
    with pytest.raises(ValueError, match="too wide"):
        picture.box((20, 40, 60, 50), "a name that does not fit")
    with pytest.raises(ValueError, match="not high enough"):
        picture.box((20, 40, 100, 50), "a box", "with more words than a box of this size can hold")
