"""Files elsewhere: on S3, HDFS, the web, and all else that fsspec reaches.

What goes wrong there is told in one sentence, whatever package it comes from, and no address is told
with its password or its signature.
"""

from __future__ import annotations

import re
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import uuid4

from siteloom.core.errors import MissingExtra, OutputError, SourceError, UsageError
from siteloom.core.foreign_files import TooLargeError, read_at_most
from siteloom.core.model import Failure
from siteloom.core.settings import without_passwords

if TYPE_CHECKING:
    from collections.abc import Mapping

WEB = ("http://", "https://")
"""How addresses of the web begin."""

MISSING = "missing file"
"""Why a file cannot be had that is not there, as a `Failure` says it."""

LARGEST_OF_RECORDS = 1 << 30
"""Bytes of the largest file of records or watches that is read: some hundred thousand pages have less."""

# Examples, schemas, wrappers and the files of other tools have some megabytes at most.
_LARGEST = 1 << 26

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_FILE = re.compile(r"file://(?:localhost)?(?=/)")
# Under these names fsspec 2026.9 has files of this machine, and repositories on it.
_OF_THIS_MACHINE = re.compile(r"(?:file|local|asynclocal|git|dvc)://", re.IGNORECASE)
# What stands behind the path of an address on the web may be a signature that lets anybody read it.
_WEB_QUERY = re.compile(r"(https?://[^\s?#'\"]*)[?#][^\s'\"]*")

# Seconds that a web server may be silent. How long it takes to send all of a file is its own affair.
_SILENCE = 60

_UNREADABLE = "unreadable file"
_UNREACHABLE = "connection failed"
_NO_PACKAGE = "missing package"
_NO_FILESYSTEM = "unknown filesystem"
_NO_CREDENTIALS = "no credentials"
# Filesystems raise errors of packages of their own, which have only parts of their names in common.
_REASONS = (
    (re.compile("FileNotFound|NoSuch"), MISSING),
    (re.compile("Credential"), _NO_CREDENTIALS),
    (re.compile("Permission|Forbidden|Auth"), "no permission"),
    (re.compile("Payload|Incomplete"), "cut off"),
    (re.compile("Connect|Timeout|gaierror"), _UNREACHABLE),
)
_REASONS_BY_STATUS = {
    401: "no permission",
    403: "no permission",
    404: MISSING,
    407: "no permission",
    410: MISSING,
}


def has_scheme(location: str) -> bool:
    """Whether a location is an address such as s3://bucket/file, and no path."""
    return _SCHEME.match(location) is not None


def local_path(location: str) -> str | None:
    """The path that a location names on this machine; None if it is elsewhere."""
    if not has_scheme(location):
        return location
    start = _FILE.match(location)
    return unquote(location[start.end() :]) if start else None


def leads_to_this_machine(address: str) -> bool:
    """Whether an address may be read from the files of this machine, such as local://x or zip://a::file://b."""
    return "::" in address or _OF_THIS_MACHINE.match(address) is not None


def without_query(url: str) -> str:
    """An address without what stands behind its path, if it is one of the web."""
    return url.partition("?")[0].partition("#")[0] if url.startswith(WEB) else url


def folders_above(url: str) -> list[str]:
    """The folders that a file elsewhere is in, the nearest first."""
    scheme, _, path = without_query(url).partition("://")
    names = path.split("/")[:-1]
    return [f"{scheme}://{'/'.join(names[:count])}" for count in range(len(names), 0, -1)]


def shown(text: str) -> str:
    """The text without the secrets of the addresses in it."""
    return without_passwords(_WEB_QUERY.sub(r"\1", text))


def filesystem_of(url: str) -> tuple[Any, str]:
    """The filesystem of an address, and the path on it."""
    try:
        import fsspec  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtra("A file that is elsewhere", "parquet") from error
    options = _web_options() if url.startswith(WEB) else {}
    filesystem, path = fsspec.core.url_to_fs(url, **options)
    return filesystem, path


def look_up(url: str) -> Mapping[str, Any] | Failure:
    """What its filesystem tells about a file; or why it cannot be had."""
    try:
        filesystem, path = filesystem_of(url)
        info: Mapping[str, Any] = filesystem.info(path)
    except MissingExtra:
        raise
    except Exception as error:  # noqa: BLE001 - filesystems raise errors of packages of their own
        return failure_of(url, error)
    return info


def fetch(url: str, copy: Path, most_bytes: int | None = None) -> Failure | None:
    """Copy a file from elsewhere, if it has no more than so many bytes; what went wrong, if anything did."""
    try:
        filesystem, path = filesystem_of(url)
        filesystem.get_file(path, str(copy), **({} if most_bytes is None else _up_to(most_bytes)))
    except MissingExtra:
        raise
    except TooLargeError as error:
        return Failure(shown(url), _UNREADABLE, error.strerror or "")
    except Exception as error:  # noqa: BLE001 - filesystems raise errors of packages of their own
        return failure_of(url, error)
    return None


def _up_to(most_bytes: int) -> dict[str, Any]:
    """What makes a filesystem that counts bytes stop copying behind so many: a server may send for ever."""
    from fsspec.callbacks import Callback  # noqa: PLC0415 - optional

    def count(size: int | None, value: int, **_: object) -> None:
        if max(size or 0, value) > most_bytes:
            raise TooLargeError("it", most_bytes, "bytes")

    return {"callback": Callback(hooks={"count": count})}


def fetch_needed(url: str, copy: Path, most_bytes: int | None = None) -> None:
    """Copy a file that must be there; raises SourceError if it cannot be had."""
    failure = fetch(url, copy, most_bytes)
    if failure is not None:
        raise source_error(failure)


def read_range(url: str, start: int, end: int) -> bytes | Failure:
    """The bytes of a file elsewhere from one place to another, and no others; or why they cannot be had."""
    try:
        filesystem, path = filesystem_of(url)
        content: bytes = filesystem.cat_file(path, start=start, end=end)
    except MissingExtra:
        raise
    except Exception as error:  # noqa: BLE001 - filesystems raise errors of packages of their own
        return failure_of(url, error)
    if len(content) > end - start:  # and they are others than were asked for
        return Failure(shown(url), _UNREADABLE, "its server gives whole files only")
    return content


def read_file(location: str, most_bytes: int = _LARGEST) -> bytes:
    """All of a file, here or elsewhere: OSError if it cannot be read here, SourceError if not from there."""
    path = local_path(location)
    if path is not None:
        with Path(path).open("rb") as file:
            return read_at_most(file, most_bytes)
    with TemporaryDirectory(prefix="siteloom-") as folder:
        copy = Path(folder, "copy")
        fetch_needed(location, copy, most_bytes)
        if copy.is_dir():  # which some filesystems make of a folder
            raise SourceError(f"{shown(location)} is a folder: name a file in it.")
        return copy.read_bytes()


def lines_of_file(location: str, most_bytes: int = _LARGEST) -> IO[bytes]:
    """The lines of a file, which is read like `read_file` does."""
    return BytesIO(read_file(location, most_bytes))


def check_writable(url: str) -> None:
    """Raise now what will keep a file from being written elsewhere, such as a server that does not answer.

    Whether it may be written is only known once it is: there are places that may be written and not read.
    """
    if url.startswith(WEB):
        raise UsageError(f"{shown(url)} is on the web, where nothing can be written: give -o another place.")
    found = look_up(url)
    if not isinstance(found, Failure):
        if found.get("type") == "directory":
            raise OutputError(f"{shown(url)} is a folder: give the name of a file in it.")
    elif found.reason in (_UNREACHABLE, _NO_PACKAGE, _NO_FILESYSTEM, _NO_CREDENTIALS):
        raise _output_error(found)


def put(file: Path, url: str) -> None:
    """Copy a file of this machine to a place elsewhere, where it appears whole or not at all."""
    try:
        filesystem, path = filesystem_of(url)
        if _can_rename(filesystem):
            _put_by_renaming(file, filesystem, path)
        else:
            # No folder is made: there are none, and for the first one, a bucket would be.
            filesystem.put_file(str(file), path)
    except MissingExtra:
        raise
    except Exception as error:
        raise _output_error(failure_of(url, error)) from error


def _put_by_renaming(file: Path, filesystem: Any, path: str) -> None:
    folder, slash, name = path.rpartition("/")
    if folder:
        filesystem.makedirs(folder, exist_ok=True)
    temporary = f"{folder}{slash}.{name}.{uuid4().hex}.tmp"
    try:
        filesystem.put_file(str(file), temporary)
        filesystem.mv(temporary, path)
    except BaseException:
        with suppress(Exception):  # it may not be there; and why it cannot be removed is no news
            filesystem.rm_file(temporary)
        raise


def _can_rename(filesystem: Any) -> bool:
    """Whether a file gets another name without being copied.

    Where it is copied, as on S3 and its like, a file is only ever seen whole, and a copy is for nothing.
    """
    from fsspec import AbstractFileSystem  # noqa: PLC0415 - optional

    return getattr(type(filesystem), "mv", None) is not AbstractFileSystem.mv


def _web_options() -> dict[str, Any]:
    """How files are asked of web servers: as they are, however long it takes."""
    import aiohttp  # noqa: PLC0415 - optional, see failure_of

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_SILENCE, sock_read=_SILENCE)
    as_it_is = {"headers": {"Accept-Encoding": "identity"}, "auto_decompress": False}
    return {"client_kwargs": {"timeout": timeout, **as_it_is}}


def failure_of(url: str, error: Exception) -> Failure:
    """Why a file cannot be had, in our words as far as there are any."""
    cause = error.__cause__
    # A web server that does not answer, or answers that it will not, is such an error of fsspec, too.
    if isinstance(error, FileNotFoundError) and cause is not None and _reason(cause) is not None:
        error = cause if isinstance(cause, Exception) else error
    if isinstance(error, ImportError):
        missing = cause if isinstance(cause, ImportError) else error
        package = (missing.name or "").partition(".")[0]
        detail = f"needs {package}: pip install {package}" if package else f"cannot be read: {error}"
        return Failure(shown(url), _NO_PACKAGE, detail)
    status = getattr(error, "status", None)
    told = f"{status} {getattr(error, 'message', '')}".strip() if status else str(error)
    # Some put whole listings behind the first line.
    first_line = next(iter(told.splitlines()), type(error).__name__).rstrip(" .:")
    return Failure(shown(url), _reason(error) or _UNREADABLE, shown(first_line))


def _reason(error: BaseException) -> str | None:
    status = getattr(error, "status", None)
    if isinstance(status, int):
        return _REASONS_BY_STATUS.get(status, _UNREADABLE)
    if isinstance(error, ValueError) and str(error).startswith("Protocol not known"):
        return _NO_FILESYSTEM
    names = " ".join(kind.__name__ for kind in type(error).__mro__)
    return next((reason for pattern, reason in _REASONS if pattern.search(names)), None)


def source_error(failure: Failure) -> SourceError:
    """The error that a file which is needed at once cannot be had."""
    if failure.reason == MISSING:
        return SourceError(f"There is no file {failure.url}: check the address.")
    return SourceError(_sentence(failure, "read"))


def _output_error(failure: Failure) -> OutputError:
    return OutputError(_sentence(failure, "written"))


def _sentence(failure: Failure, done: str) -> str:
    match failure.reason:
        case "missing package":
            return f"{failure.url} {failure.detail}."
        case "no permission" | "no credentials":
            return f"{failure.url} may not be {done}: check the credentials for it ({failure.detail})."
        case "connection failed":
            return f"{failure.url} cannot be reached: {failure.detail}."
    return f"{failure.url} cannot be {done}: {failure.detail}."
