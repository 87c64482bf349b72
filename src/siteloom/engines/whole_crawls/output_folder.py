"""A folder that many machines write to, on any filesystem of fsspec; each file is whole or not there."""

from __future__ import annotations

import io
import json
import os
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from siteloom.core.atomic_files import sync_to_disk
from siteloom.core.errors import MissingExtra, OutputError, SiteloomError
from siteloom.core.model import Failure
from siteloom.core.settings import without_passwords
from siteloom.core.table_files import load_pyarrow
from siteloom.core.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Rows of one part stand together, so that whoever wants a part reads few groups of them.
_ROWS_OF_A_GROUP = 2_000

SUCCESS = "_SUCCESS"
"""The file that says that all results are there, as those of Spark and Hadoop have it."""

# What Hive escapes in names of folders. It leaves all else as it is, and Spark would not understand it else.
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\{\[\]^\x7f]""")
_LONGEST_NAME = 255  # bytes of the name of a file or a folder, on nearly all filesystems


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """A folder by its path or URL. What is in it is named by paths within it."""

    location: str

    @property
    def shown(self) -> str:
        """The location as it may be shown."""
        return without_passwords(self.location)

    def _files(self) -> tuple[Any, str]:
        """The filesystem, and the folder's path in it."""
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra("A folder of Parquet files", "parquet") from error
        with self._told("opened"):
            files, path = url_to_fs(self.location, **({} if "://" in self.location else {"auto_mkdir": True}))
        return files, path.rstrip("/")

    @contextmanager
    def _told(self, how: str, name: str = "") -> Iterator[None]:
        """Make one sentence of whatever error a filesystem has: many have errors of their own."""
        try:
            yield
        except SiteloomError:
            raise
        except Exception as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error) or repr(error)
            place = f"{self.shown}/{name}" if name else self.shown
            raise OutputError(f"{place} cannot be {how}: {without_passwords(why).rstrip('.')}.") from error

    def write(self, name: str, content: bytes) -> None:
        """Write a file; it appears as a whole, in the place of one that is there."""
        files, folder = self._files()
        target = f"{folder}/{name}"
        temporary = f"{folder}/{_beside(name)}"
        parent = target.rpartition("/")[0]
        with self._told("written", name):
            files.makedirs(parent, exist_ok=True)
            with files.open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                if _is_local(files):
                    os.fsync(file.fileno())  # or after a power cut it may be named, but empty
            if _is_local(files):
                os.replace(temporary, target)  # noqa: PTH105 - as texts, as fsspec has them
                sync_to_disk(parent)
            else:
                files.mv(temporary, target)

    def read(self, name: str) -> bytes | None:
        """The content of a file, if it is there."""
        files, folder = self._files()
        with self._told("read", name):
            try:
                found: bytes = files.cat_file(f"{folder}/{name}")
            except FileNotFoundError:
                return None
        return found

    def read_all(self, names: Sequence[str]) -> list[bytes]:
        """The contents of files that are there; of a place elsewhere many are asked for at a time."""
        files, folder = self._files()
        with self._told("read"):
            all_found = files.cat_ranges([f"{folder}/{name}" for name in names], None, None)
        contents: list[bytes] = []
        for name, found in zip(names, all_found, strict=True):
            if isinstance(found, FileNotFoundError):
                raise self._gone(name) from found
            with self._told("read", name):
                if isinstance(found, Exception):
                    raise found
            contents.append(found)
        return contents

    def names(self, folder: str = "") -> list[str]:
        """The names of what is in a folder of it, sorted."""
        files, root = self._files()
        with self._told("read", folder):
            files.invalidate_cache()  # others write there, too
            try:
                found = files.ls(f"{root}/{folder}".rstrip("/"), detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted(name for path in found if (name := path.rstrip("/").rpartition("/")[2])[:1] != ".")

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it, if it is there."""
        files, root = self._files()
        with self._told("removed", name), suppress(FileNotFoundError):
            if files.exists(f"{root}/{name}"):
                files.invalidate_cache()
                files.rm(f"{root}/{name}", recursive=True)

    def write_rows(self, name: str, table: Any) -> None:
        """Write a table of Arrow as a Parquet file."""
        pyarrow = load_pyarrow()
        content = io.BytesIO()
        pyarrow.parquet.write_table(table, content, compression="zstd", row_group_size=_ROWS_OF_A_GROUP)
        self.write(name, content.getvalue())

    def read_rows(self, name: str) -> Any:
        """A Parquet file as a table of Arrow."""
        pyarrow = load_pyarrow()
        with self.opened(name) as content:
            # In this thread alone: Arrow's own may still hold the file when Python ends, and abort it.
            return pyarrow.parquet.ParquetFile(content, pre_buffer=False).read(use_threads=False)

    @contextmanager
    def opened(self, name: str) -> Iterator[Any]:
        """A file that must be there, to be read in any order."""
        files, folder = self._files()
        with self._told("read", name):
            try:
                with files.open(f"{folder}/{name}", "rb") as file:
                    yield file
            except FileNotFoundError as error:
                raise self._gone(name) from error

    def check_unfinished(self) -> None:
        """Raise an error if another process has finished what is done here, and removed what is needed."""
        if self.read(SUCCESS) is not None:
            raise OutputError(
                f"Another process has finished {self.shown} meanwhile: run the same command again to be told "
                "what came of it."
            )

    def _gone(self, name: str) -> OutputError:
        self.check_unfinished()
        return OutputError(f"{self.shown}/{name} is gone: remove the folder, and begin anew.")


def _beside(name: str) -> str:
    """Where a file of a name is written first; two processes that write the same do not meet."""
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}.{last}.{uuid4().hex}.tmp"


def _is_local(files: Any) -> bool:
    return "file" in (files.protocol if isinstance(files.protocol, tuple) else (files.protocol,))


def site_folder(site: str) -> str:
    """The folder of a site among others, as Hive and all that read its partitions name it."""
    return "site=" + _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", site)


def without_folder(url: str) -> Failure | None:
    """Why there can be no folder for the site of a page, if so."""
    try:
        is_too_long = len(site_folder(site_of(url)).encode()) > _LONGEST_NAME
    except UnicodeEncodeError:
        return Failure(url, "bad site name", "it holds half a character")
    if is_too_long:
        return Failure(url, "bad site name", f"a folder of it would have more than {_LONGEST_NAME} bytes")
    return None


class Rows(NamedTuple):
    """Files of rows that were written for regrouping: see `siteloom.engines.engine.RowFiles`."""

    folder: OutputFolder
    files: Sequence[str]
    schema: Any

    def read(self, file: str, parts: frozenset[int]) -> Iterator[Any]:
        """Batches with the rows of a file that are of some parts."""
        pyarrow = load_pyarrow()
        with self.folder.opened(file) as content, pyarrow.parquet.ParquetFile(content) as opened:
            column = opened.schema_arrow.get_field_index("part")
            for group in range(opened.num_row_groups):
                found = opened.metadata.row_group(group).column(column).statistics
                if any(found.min <= part <= found.max for part in parts):
                    table = opened.read_row_group(group)
                    is_wanted = pyarrow.compute.is_in(
                        table["part"], pyarrow.array(sorted(parts), pyarrow.int32())
                    )
                    yield from table.filter(is_wanted).to_batches()


def as_json(value: object) -> bytes:
    """A value as a small file holds it."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
