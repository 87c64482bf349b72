"""A folder that many machines write to, on any filesystem of fsspec; files appear as a whole or never."""

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

# Rows are sorted by partition, so that reading a partition touches few row groups.
_ROWS_OF_A_GROUP = 2_000

SUCCESS = "_SUCCESS"
"""The file that marks results as complete, as in Spark and Hadoop."""

# The characters that Hive escapes in names of folders; Spark does not understand other escapes.
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\{\[\]^\x7f]""")
_LONGEST_NAME = 255  # bytes of the name of a file or a folder, on nearly all filesystems


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """A folder given by its path or URL; its files are named by paths relative to it."""

    location: str

    @property
    def shown(self) -> str:
        """The location without passwords."""
        return without_passwords(self.location)

    def _files(self) -> tuple[Any, str]:
        """Return the filesystem, and the folder's path in it."""
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra("A folder of Parquet files", "parquet") from error
        with self._output_errors("opened"):
            files, path = url_to_fs(self.location, **({} if "://" in self.location else {"auto_mkdir": True}))
        return files, path.rstrip("/")

    @contextmanager
    def _output_errors(self, how: str, name: str = "") -> Iterator[None]:
        """Convert any error of a filesystem to an OutputError; many have exceptions of their own."""
        try:
            yield
        except SiteloomError:
            raise
        except Exception as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error) or repr(error)
            place = f"{self.shown}/{name}" if name else self.shown
            raise OutputError(f"{place} cannot be {how}: {without_passwords(why).rstrip('.')}.") from error

    def write(self, name: str, content: bytes) -> None:
        """Write a file, which appears as a whole and replaces an existing one."""
        files, folder = self._files()
        target = f"{folder}/{name}"
        temporary = f"{folder}/{_temporary_name(name)}"
        parent = target.rpartition("/")[0]
        with self._output_errors("written", name):
            files.makedirs(parent, exist_ok=True)
            with files.open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                if _is_local(files):
                    os.fsync(file.fileno())  # otherwise a power cut may leave an empty file
            if _is_local(files):
                os.replace(temporary, target)  # noqa: PTH105 - as texts, as fsspec has them
                sync_to_disk(parent)
            else:
                files.mv(temporary, target)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, if it exists."""
        files, folder = self._files()
        with self._output_errors("read", name):
            try:
                content: bytes = files.cat_file(f"{folder}/{name}")
            except FileNotFoundError:
                return None
        return content

    def read_all(self, names: Sequence[str]) -> list[bytes]:
        """Return the contents of existing files; a remote filesystem reads many in parallel."""
        files, folder = self._files()
        with self._output_errors("read"):
            results = files.cat_ranges([f"{folder}/{name}" for name in names], None, None)
        contents: list[bytes] = []
        for name, result in zip(names, results, strict=True):
            if isinstance(result, FileNotFoundError):
                raise self._gone(name) from result
            with self._output_errors("read", name):
                if isinstance(result, Exception):
                    raise result
            contents.append(result)
        return contents

    def names(self, folder: str = "") -> list[str]:
        """Return the names in a subfolder, sorted."""
        files, root = self._files()
        with self._output_errors("read", folder):
            files.invalidate_cache()  # other processes write there, too
            try:
                paths = files.ls(f"{root}/{folder}".rstrip("/"), detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted(name for path in paths if (name := path.rstrip("/").rpartition("/")[2])[:1] != ".")

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its content, if it exists."""
        files, root = self._files()
        with self._output_errors("removed", name), suppress(FileNotFoundError):
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
        """Read a Parquet file as a table of Arrow."""
        pyarrow = load_pyarrow()
        with self.opened(name) as content:
            # In this thread only: Arrow's threads may still hold the file when Python exits, and abort it.
            return pyarrow.parquet.ParquetFile(content, pre_buffer=False).read(use_threads=False)

    @contextmanager
    def opened(self, name: str) -> Iterator[Any]:
        """Open an existing file for random access."""
        files, folder = self._files()
        with self._output_errors("read", name):
            try:
                with files.open(f"{folder}/{name}", "rb") as file:
                    yield file
            except FileNotFoundError as error:
                raise self._gone(name) from error

    def check_unfinished(self) -> None:
        """Raise an error if another process has finished this run, and removed its intermediate files."""
        if self.read(SUCCESS) is not None:
            raise OutputError(
                f"Another process has finished {self.shown} meanwhile: run the same command again to be told "
                "what came of it."
            )

    def _gone(self, name: str) -> OutputError:
        self.check_unfinished()
        return OutputError(f"{self.shown}/{name} is gone: remove the folder, and begin anew.")


def _temporary_name(name: str) -> str:
    """Return a unique temporary name for a file, so that two processes can write the same file."""
    folder, slash, file_name = name.rpartition("/")
    return f"{folder}{slash}.{file_name}.{uuid4().hex}.tmp"


def _is_local(files: Any) -> bool:
    return "file" in (files.protocol if isinstance(files.protocol, tuple) else (files.protocol,))


def site_folder(site: str) -> str:
    """Return the folder of a site, named like a partition of Hive."""
    return "site=" + _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", site)


def without_folder(url: str) -> Failure | None:
    """Return why there can be no folder for the site of a page, or None if there can."""
    try:
        is_too_long = len(site_folder(site_of(url)).encode()) > _LONGEST_NAME
    except UnicodeEncodeError:
        return Failure(url, "bad site name", "it holds half a character")
    if is_too_long:
        return Failure(url, "bad site name", f"a folder of it would have more than {_LONGEST_NAME} bytes")
    return None


class Rows(NamedTuple):
    """Files of rows to regroup: see `siteloom.engines.engine.RowFiles`."""

    folder: OutputFolder
    files: Sequence[str]
    schema: Any

    def read(self, file: str, partitions: frozenset[int]) -> Iterator[Any]:
        """Yield batches with the rows of a file that belong to the partitions."""
        pyarrow = load_pyarrow()
        with self.folder.opened(file) as content, pyarrow.parquet.ParquetFile(content) as opened:
            column = opened.schema_arrow.get_field_index("part")
            for group in range(opened.num_row_groups):
                statistics = opened.metadata.row_group(group).column(column).statistics
                if any(statistics.min <= partition <= statistics.max for partition in partitions):
                    table = opened.read_row_group(group)
                    is_selected = pyarrow.compute.is_in(
                        table["part"], pyarrow.array(sorted(partitions), pyarrow.int32())
                    )
                    yield from table.filter(is_selected).to_batches()


def as_json(value: object) -> bytes:
    """Encode a value as JSON for a small file."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
