"""Every operation stores and returns the same from the command line, as a job and from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from siteloom.operations.cluster import ClusterRequest
from siteloom.operations.operation_table import OPERATIONS
from tests.lived_in import GUIDE, lived_in_workspace
from tests.operations import parity_ingest, parity_known_records, parity_learn
from tests.operations.parity import ParityCase, copied, from_command, from_job, from_python

CASES = [
    *parity_known_records.CASES,
    *parity_learn.CASES,
    ParityCase("cluster", ClusterRequest(), ("cluster",), {}),
    ParityCase("cluster", ClusterRequest(site=GUIDE), ("cluster", "--site", GUIDE), {"site": GUIDE}),
    *parity_ingest.CASES,
]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lived_in_workspace(tmp_path_factory.mktemp("lived-in") / "workspace")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_callers_store_and_return_the_same(case: ParityCase, workspace: Path, tmp_path: Path) -> None:
    expected = from_python(case, copied(workspace, tmp_path / "python"))
    if case.arguments is not None:
        assert from_job(case, copied(workspace, tmp_path / "job")) == expected
    if case.command is not None:
        assert from_command(case, copied(workspace, tmp_path / "command")).rows == expected.rows


def test_every_operation_has_a_case() -> None:
    assert {case.operation for case in CASES} == OPERATIONS.keys()
