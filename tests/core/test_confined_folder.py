"""Files below a folder, which no link in it leads away from."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from siteloom.core.confined_folder import ConfinedFolder


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    (folder / "below").mkdir(parents=True)
    for name in ("file", "below/file"):
        (folder / name).write_bytes(b"precious")
    return folder


@pytest.fixture
def folder(tmp_path: Path, victim: Path) -> ConfinedFolder:
    """A folder with links to a folder, to a file, and to nothing."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "folder").symlink_to(victim)
    (root / "file").symlink_to(victim / "file")
    (root / "missing").symlink_to(victim / "missing")
    return ConfinedFolder(root)


def content(folder: Path) -> dict[str, bytes | None]:
    """What is below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


Use = Callable[[ConfinedFolder, str], object]
USES: dict[str, Use] = {
    "open to read": lambda folder, name: folder.open(name, "rb").close(),
    "open to write": lambda folder, name: folder.open(name, "wb").close(),
    "open to append": lambda folder, name: folder.open(name, "ab").close(),
    "open to change": lambda folder, name: folder.open(name, "r+b").close(),
    "open anew": lambda folder, name: folder.open(name, "xb").close(),
    "read": lambda folder, name: folder.read(name),
    "make": lambda folder, name: folder.make_folder(name),
    "make below": lambda folder, name: folder.make_folder(f"{name}/new/below"),
    "sync": lambda folder, name: folder.sync(name),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize(
    "name", ["folder", "file", "missing", "folder/file", "folder/below/file", "folder/new"]
)
def test_links_are_refused(folder: ConfinedFolder, victim: Path, name: str, use: Use) -> None:
    before = content(victim)
    with pytest.raises(OSError, match=r"symbolic link|exists|Not a directory"):
        use(folder, name)
    assert content(victim) == before


@pytest.mark.parametrize(
    "name", ["folder", "file", "missing", "folder/file", "folder/below", "folder/below/file"]
)
def test_nothing_is_written_removed_or_named_anew_behind_a_link(
    folder: ConfinedFolder, victim: Path, name: str
) -> None:
    before = content(victim)
    (folder.root / "own").write_bytes(b"own")
    for use in (folder.remove, folder.remove_tree, folder.remove_folder):
        with suppress(OSError):
            use(name)
        assert content(victim) == before
    (folder.root / "link").symlink_to(victim)
    for old, new in (("own", f"link/{name}"), (f"link/{name}", "stolen"), ("link/file", "stolen")):
        with pytest.raises(OSError, match="symbolic link"):
            folder.rename(old, new)
    with pytest.raises(OSError, match="symbolic link"):
        folder.write("link/file", b"x")
    assert content(victim) == before
    assert folder.read("own") == b"own"


def test_a_link_itself_can_be_removed_or_replaced(folder: ConfinedFolder, victim: Path) -> None:
    before = content(victim)
    assert sorted(folder.links()) == ["file", "folder", "missing"]
    folder.remove("missing")
    folder.remove_tree("folder")
    folder.write("file", b"own")
    assert folder.read("file") == b"own"
    assert list(folder.links()) == []
    assert content(victim) == before


def test_a_tree_is_removed_without_what_its_links_lead_to(folder: ConfinedFolder, victim: Path) -> None:
    before = content(victim)
    folder.make_folder("own/below")
    (folder.root / "own/below/link").symlink_to(victim)
    assert "own/below/link" in folder.links()
    folder.remove_tree("own")
    assert not folder.is_folder("own")
    assert content(victim) == before


def test_a_link_is_neither_a_file_nor_a_folder(folder: ConfinedFolder) -> None:
    folder.make_folder("own")
    folder.write("own/file", b"")
    assert (folder.is_folder("own"), folder.is_file("own")) == (True, False)
    assert (folder.is_folder("own/file"), folder.is_file("own/file")) == (False, True)
    for name in ("folder", "file", "missing", "folder/file", "none", "none/below", "own/file/below"):
        assert not folder.is_folder(name)
        assert not folder.is_file(name)
    with pytest.raises(OSError, match="symbolic link"):
        folder.names("folder")
    assert folder.names("own") == ["file"]
    assert folder.names("none") == []


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", ".."])
def test_a_path_stays_below_the_folder(folder: ConfinedFolder, name: str) -> None:
    for use in (*USES.values(), ConfinedFolder.remove):
        with pytest.raises(ValueError, match="no path below"):
            use(folder, name)


def test_a_named_pipe_is_not_waited_for(folder: ConfinedFolder) -> None:
    os.mkfifo(folder.root / "pipe")
    for mode in ("rb", "r+b", "wb", "ab"):
        with pytest.raises(OSError, match=r"no ordinary file|No such device"):
            folder.open("pipe", mode)


@pytest.mark.parametrize("mode", ["wb", "ab", "r+b", "a+b"])
def test_a_file_that_has_another_name_is_not_written(folder: ConfinedFolder, victim: Path, mode: str) -> None:
    (folder.root / "hard").hardlink_to(victim / "file")
    before = content(victim)
    with pytest.raises(OSError, match="a hard link"):
        folder.open("hard", mode)
    assert content(victim) == before
    assert folder.read("hard") == b"precious"
    folder.write("hard", b"own")  # which puts another file in its place
    assert folder.read("hard") == b"own"
    assert content(victim) == before


def test_opening_to_write_empties_a_file(folder: ConfinedFolder) -> None:
    folder.write("own", b"long")
    with folder.open("own", "wb") as file:
        file.write(b"x")
    assert folder.read("own") == b"x"


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "disk")
    folder = ConfinedFolder(tmp_path / "root")
    folder.write("file", b"own")
    assert (tmp_path / "disk/file").read_bytes() == b"own"
    assert folder.names() == ["file"]


def test_an_error_names_the_file(folder: ConfinedFolder) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        folder.read("none")
    assert missing.value.filename == str(folder.root / "none")
