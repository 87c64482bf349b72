"""Files below a folder, reached without following symbolic links, and written through no hard link.

The folder may have been made by someone else, and a link in it could lead to any file of the person who uses
the folder. So each step of a path is opened from the handle of the step before it, and a step that is a link
is an error. So is writing to a file that has another name, too: what is there may be anyone's.

What is made there is for its owner alone, unless it is said to be shared: folders have mode 0700 and files
0600, or less where the umask is stricter.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from siteloom.core.foreign_files import ordinary

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK: opening a named pipe would wait for its other end.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_UNFINISHED = ".unfinished"
# By whether they are shared.
_FOLDER_MODES = {False: 0o700, True: 0o777}
_FILE_MODES = {False: 0o600, True: 0o666}


class LinkError(OSError):
    """There is a symbolic link where none may be."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.ELOOP, "it is a symbolic link, and links are not followed here", str(path))


class HardLinkError(OSError):
    """A file that is to be written has another name, too, and would change there as well."""

    def __init__(self, path: Path) -> None:
        why = "it has another name, too (a hard link), and is not written: replace it with a copy of it"
        super().__init__(errno.EMLINK, why, str(path))


@dataclass(frozen=True, slots=True)
class ConfinedFolder:
    """A folder whose files are named by relative paths.

    The folder itself may be a link, because the person who uses it has named it. A method that meets a link,
    or anything else that is neither a file nor a folder, raises an OSError that says so.
    """

    root: Path
    is_shared: bool = False
    """Whether what is made in it has the permissions of any new file."""

    def open(self, name: str, mode: str) -> IO[bytes]:
        """Open a file in one of the binary modes of `open`."""
        return open(self.root / name, mode, opener=lambda _, flags: self._open_file(name, flags))

    def read(self, name: str) -> bytes:
        """The content of a file."""
        with self.open(name, "rb") as file:
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Write a file as a whole or not at all, so that it survives a power cut."""
        unfinished = f"{name}{_UNFINISHED}"
        with self.open(unfinished, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        self.rename(unfinished, name)
        self.sync(str(PurePosixPath(name).parent))

    def names(self, folder: str = ".") -> list[str]:
        """The names in a folder, in order; none if it is missing."""
        try:
            with self._opened(folder) as handle:
                return sorted(os.listdir(handle))  # noqa: PTH208 - a path has no handle
        except FileNotFoundError:
            return []

    def modified_at(self, name: str) -> float:
        """When a file or folder was last modified, in seconds since the epoch."""
        with self._above(name) as (handle, last):
            return os.stat(last, dir_fd=handle, follow_symlinks=False).st_mtime

    def is_file(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return stat.S_ISREG(self._mode(name))

    def is_folder(self, name: str) -> bool:
        """Whether there is a folder of this name."""
        return stat.S_ISDIR(self._mode(name))

    def make_folder(self, name: str) -> None:
        """Make a folder and those above it, as far as they are missing; the confined folder itself, too."""
        mode = _FOLDER_MODES[self.is_shared]
        self.root.mkdir(mode, exist_ok=True)
        path = PurePosixPath(name)
        for folder in reversed([path, *path.parents[:-1]]):
            with self._above(str(folder)) as (handle, last), suppress(FileExistsError):
                os.mkdir(last, mode, dir_fd=handle)
        with self._opened(name):
            """It is a folder, and no link to one."""

    def rename(self, old: str, new: str) -> None:
        """Give a file another name; a file that has this name is replaced."""
        with self._above(old) as (old_folder, old_last), self._above(new) as (new_folder, new_last):
            os.rename(old_last, new_last, src_dir_fd=old_folder, dst_dir_fd=new_folder)

    def remove(self, name: str) -> None:
        """Remove a file, or a link itself; nothing happens if it is missing."""
        with suppress(FileNotFoundError), self._above(name) as (handle, last):
            os.unlink(last, dir_fd=handle)

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder."""
        with self._above(name) as (handle, last):
            os.rmdir(last, dir_fd=handle)

    def remove_tree(self, name: str) -> None:
        """Remove a folder with all it holds, or a link itself."""
        if not self.is_folder(name):
            self.remove(name)
            return
        with self._above(name) as (handle, last):
            shutil.rmtree(last, dir_fd=handle)

    def sync(self, name: str = ".") -> None:
        """Return when a file, or the names in a folder, are on the disk."""
        with self._above(name) as (handle, last):
            opened = _open_at(handle, last, os.O_RDONLY | _FILE, self.root / name)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)

    def links(self) -> Iterator[str]:
        """The paths of all symbolic links below the folder."""
        for folder, folders, files in os.walk(self.root):
            for name in (*folders, *files):
                path = Path(folder, name)
                if path.is_symlink():
                    yield str(path.relative_to(self.root))

    def _mode(self, name: str) -> int:
        try:
            with self._above(name) as (handle, last):
                return os.stat(last, dir_fd=handle, follow_symlinks=False).st_mode
        except (FileNotFoundError, NotADirectoryError, LinkError):
            return 0

    def _open_file(self, name: str, flags: int) -> int:
        path = self.root / name
        with self._above(name) as (handle, last):
            # Emptied only once it is known what it is.
            opened = _open_at(handle, last, (flags | _FILE) & ~os.O_TRUNC, path, _FILE_MODES[self.is_shared])
        ordinary(opened, path)
        try:
            if flags & os.O_ACCMODE != os.O_RDONLY and os.fstat(opened).st_nlink > 1:
                raise HardLinkError(path)
            if flags & os.O_TRUNC:
                os.ftruncate(opened, 0)
        except OSError:
            os.close(opened)
            raise
        return opened

    @contextmanager
    def _opened(self, folder: str) -> Iterator[int]:
        """A handle of a folder."""
        handle = os.open(self.root, _FOLDER)
        try:
            path = self.root
            for step in PurePosixPath(folder).parts:
                path /= step
                above, handle = handle, _open_at(handle, step, _FOLDER | os.O_NOFOLLOW, path)
                os.close(above)
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def _above(self, name: str) -> Iterator[tuple[int, str]]:
        """A handle of the folder that a file or folder is in, and its name there."""
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{name} is no path below {self.root}")
        with self._opened(str(path.parent)) as handle:
            yield handle, path.name or "."


def _open_at(folder: int, name: str, flags: int, path: Path, mode: int = 0) -> int:
    try:
        return os.open(name, flags, mode, dir_fd=folder)
    except OSError as error:
        if path.is_symlink():
            raise LinkError(path) from error
        raise OSError(error.errno, error.strerror, str(path)) from error
