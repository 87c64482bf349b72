"""Full disks and disks that may only be read: a little of what `make torture` does at length."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from torture.kills import finished_faults, state_faults
from torture.ordeals import Plan
from torture.processes import start
from torture.workspaces import Prepared, prepared_stages

from siteloom.core.errors import StoreError
from siteloom.core.file_lock import write_lock
from siteloom.store.workspace_folder import open_store
from torture import disks

mounts = pytest.mark.skipif(not disks.can_mount(), reason="only the superuser may mount a small disk")


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Prepared]:
    return prepared_stages(tmp_path_factory.mktemp("prepared"), None, ("ingest", "learn", "extract"))


@pytest.mark.parametrize("room", [20_000, 150_000])
def test_files_that_cannot_grow_end_a_run_with_a_sentence_and_spoil_nothing(
    stages: Sequence[Prepared], tmp_path: Path, room: int
) -> None:
    place = stages[0].place.copy(tmp_path / "place")
    ended = start(place.folder, *stages[0].stage.arguments, largest_file=room).end()
    assert ended.status == 1
    assert ended.is_clear, ended.said
    assert "cannot be" in ended.said
    assert state_faults(stages[0], place) + finished_faults(stages[0], place) == []


@mounts
def test_a_full_disk_is_named_and_all_is_well_once_there_is_room(
    stages: Sequence[Prepared], tmp_path: Path
) -> None:
    ingest, _, extract = stages
    for one in (ingest, extract):
        _, faults = disks.full_disk(Plan(0.25, 1, tmp_path), one)
        assert faults == []


@mounts
def test_no_part_of_a_file_is_left_on_a_full_disk(stages: Sequence[Prepared], tmp_path: Path) -> None:
    _, faults = disks.full_output(Plan(1, 1, tmp_path), stages, ("records.jsonl", "records.csv"))
    assert faults == []


@mounts
def test_a_server_goes_on_once_there_is_room(stages: Sequence[Prepared], tmp_path: Path) -> None:
    _, faults = disks.full_server(Plan(0.25, 1, tmp_path), stages)
    assert faults == []


@mounts
def test_a_workspace_that_may_only_be_read_is_read(stages: Sequence[Prepared], tmp_path: Path) -> None:
    _, faults = disks.read_only(Plan(1, 1, tmp_path), stages, (("status",), ("seeds",), ("cluster",)))
    assert faults == []


@mounts
def test_the_lock_is_held_on_a_full_disk_and_the_sentence_says_that_it_is_full(
    stages: Sequence[Prepared],
) -> None:
    with disks.small_disk() as disk:
        place = stages[-1].place.copy(disk.folder / "place")
        workspace = Path(place.settings.workspace)
        (workspace / "lock").unlink()
        with closing(open_store(place.settings)) as store:
            disk.leave(0)
            with write_lock(workspace):
                pass
            full = rf"^The disk of the workspace {workspace} is full: make room, then try again\.$"
            with pytest.raises(StoreError, match=full):
                store.save_wrapper("w", "s", "x" * 100_000, "learn")
        shutil.rmtree(place.folder)
