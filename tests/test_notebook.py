"""The notebook of the examples runs from its first cell to its last, and still shows what it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

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
def test_the_notebook_runs_and_finds_what_it_says(tmp_path: Path) -> None:
    stored, again = read_notebook(), read_notebook()
    # A cell that fails raises.
    NotebookClient(again, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert shown(again) == shown(stored)
    assert "{'records': 60, 'pages': 60, 'names that are right': 60}" in shown(again)
    assert list(tmp_path.iterdir()) == []
