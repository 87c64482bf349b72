"""One writer at a time."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from siteloom.core.errors import StoreBusy, StoreError
from siteloom.core.file_lock import write_lock
from siteloom.core.settings import StoreSettings
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.patience import SECONDS
from tests.store.helpers import newest, page, put

HOLD_THE_LOCK = """
import sys
from pathlib import Path
from siteloom.core.file_lock import write_lock
with write_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""

HOLD_THE_LOCK_AND_FORK = """
import os, sys
from pathlib import Path
from siteloom.core.file_lock import write_lock
with write_lock(Path(sys.argv[1])):
    worker = os.fork()
    if worker == 0:
        sys.stdin.read()
        os._exit(0)
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_writer_in_the_same_process_is_refused_and_readers_go_on(
    store: Store, store_settings: StoreSettings
) -> None:
    put(store, page("http://a.example/1"))
    other = open_store(store_settings)
    with store.ingesting({}, jobs=1):
        with pytest.raises(StoreBusy, match=rf"Another process \(number {os.getpid()}\) is writing"):
            put(other, page("http://a.example/2"))
        assert set(newest(other)) == {"http://a.example/1"}
        open_store(store_settings).close()
    assert put(other, page("http://a.example/2")).new == 1
    other.close()


def test_a_second_writer_in_another_process_is_refused_until_that_dies(store: Store) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LOCK, store.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreBusy, match=rf"\(number {holder.pid}\)"):
            put(store, page("http://a.example/1"))
        assert store.runs(5) == ()
        holder.kill()
        holder.wait()
        assert put(store, page("http://a.example/1")).new == 1


def test_a_forked_worker_does_not_hold_the_lock_when_the_writer_is_dead(store: Store) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LOCK_AND_FORK, store.folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreBusy), write_lock(store.folder):
            pass
        holder.kill()
        holder.wait()
        # Its worker lives on until its input ends, but lets go of the lock as soon as it runs at all.
        for _ in range(10 * SECONDS):
            with suppress(StoreBusy), write_lock(store.folder):
                return
            time.sleep(0.1)
        pytest.fail("the worker holds the lock")


def test_a_folder_without_room_for_the_lock_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written: No such file"), write_lock(tmp_path / "none"):
        pass


def test_who_waits_is_told_and_gets_the_lock_when_it_is_free(
    store: Store, store_settings: StoreSettings
) -> None:
    told: list[str] = []
    with ExitStack() as holder:

        def let_go() -> None:
            told.append("busy")
            holder.close()

        patient = open_store(store_settings, on_busy=let_go)
        holder.enter_context(write_lock(store.folder))
        assert put(patient, page("http://a.example/1")).new == 1
        assert told == ["busy"]
        with patient.recording("learn", {}):
            pass
        assert told == ["busy"]
        patient.close()


def test_who_looks_whether_there_is_a_writer_is_none(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, page("http://a.example/1"))
    with (store.folder / "lock").open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)  # as is_locked does
        monkeypatch.setattr(time, "sleep", lambda _: fcntl.flock(looking, fcntl.LOCK_UN))
        with write_lock(store.folder):
            pass
