"""The notebook of the examples runs from its first cell to its last, and still shows what it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.patience import SECONDS

NOTEBOOK = Path(__file__).parents[1] / "examples" / "records.ipynb"


def read_notebook() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


def shown(notebook: Any) -> list[str]:
    """What the code cells say, each as text."""
    return [
        output.get("text") or output["data"]["text/plain"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]


@pytest.mark.filterwarnings("default")  # of a kernel's own libraries
def test_the_notebook_runs_and_finds_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored, again = read_notebook(), read_notebook()
    temporary, beside = tmp_path / "temporary", tmp_path / "beside"
    temporary.mkdir()
    beside.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))  # where it leaves its files
    # A cell that fails raises.
    NotebookClient(again, timeout=SECONDS, resources={"metadata": {"path": str(beside)}}).execute()
    assert shown(again) == shown(stored)
    assert "{'records': 60, 'pages': 60, 'names that are right': 60}" in shown(again)
    assert list(beside.iterdir()) == []
