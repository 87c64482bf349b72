"""What is said where prices and dates cannot be typed, since the extra that reads them is not installed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from siteloom.apps.cli.main import app
from siteloom.core.model import Example, Page
from siteloom.learning.induction.learner import learn
from tests.apps.cli.command import work_inside


def test_texts_alone_are_told_of_and_doctor_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [Page(f"http://a.example/{n}", f"<h1>{n}</h1><b>${n}.50</b>".encode()) for n in range(1, 5)]
    examples = [Example(page, {"price": [f"${n}.50"]}) for n, page in enumerate(pages, 1)]
    wrapper = learn(examples, schema={"price": {"type": "price"}})
    (tmp_path / "w.json").write_text(wrapper.to_json(), encoding="utf-8")
    lines = [json.dumps({"url": page.url, "html": page.html.decode()}) for page in pages]
    (tmp_path / "pages.jsonl").write_text("\n".join(lines), encoding="utf-8")
    work_inside(tmp_path, monkeypatch)
    extract = ["extract", "pages.jsonl", "--wrapper", "w.json", "-o"]

    def told(*arguments: str) -> str:
        with pytest.raises(SystemExit) as end:
            app(list(arguments))
        assert end.value.code == 0
        return " ".join(capsys.readouterr().err.split())

    assert "siteloom[values]" not in told(*extract, "typed.jsonl")
    monkeypatch.setitem(sys.modules, "price_parser", None)
    assert "Values of type price are given as texts alone" in told(*extract, "texts.jsonl")
    typed, texts = (
        json.loads((tmp_path / name).read_text(encoding="utf-8").splitlines()[0])
        for name in ("typed.jsonl", "texts.jsonl")
    )
    assert typed["values"] == texts["values"] == {"price": ["$1.50"]}
    assert (bool(typed["typed"]), bool(texts["typed"])) == (True, False)
    assert "pip install 'siteloom[values]'" in told("doctor")
