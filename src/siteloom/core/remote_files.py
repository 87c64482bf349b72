"""Remote files: on S3, HDFS, the web, and any other filesystem of fsspec.

Errors of all packages are reported in one sentence, and addresses never with a password or signature.
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
"""The schemes of web addresses."""

MISSING = "missing file"
"""The reason of the `Failure` of a file that does not exist."""

LARGEST_OF_RECORDS = 1 << 30
"""The largest file of records or watches in bytes: those of some hundred thousand pages are smaller."""

# Examples, schemas, wrappers and the files of other tools have some megabytes at most.
_LARGEST = 1 << 26

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_FILE = re.compile(r"file://(?:localhost)?(?=/)")
# The schemes by which fsspec 2026.9 reaches files of this machine, and repositories on it.
_OF_THIS_MACHINE = re.compile(r"(?:file|local|asynclocal|git|dvc)://", re.IGNORECASE)
# The query of a web address may be a signature that lets anybody read the file.
_WEB_QUERY = re.compile(r"(https?://[^\s?#'\"]*)[?#][^\s'\"]*")

# Seconds that a web server may be silent. The total time of a transfer is not limited.
_SILENCE = 60

_UNREADABLE = "unreadable file"
_UNREACHABLE = "connection failed"
_NO_PACKAGE = "missing package"
_NO_FILESYSTEM = "unknown filesystem"
_NO_CREDENTIALS = "no credentials"
# Filesystems raise errors of their own packages, which only share parts of their names.
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
    """Return whether a location is an address such as s3://bucket/file, and not a path."""
    return _SCHEME.match(location) is not None


def local_path(location: str) -> str | None:
    """Return the local path of a location; None if it is remote."""
    if not has_scheme(location):
        return location
    start = _FILE.match(location)
    return unquote(location[start.end() :]) if start else None


def leads_to_this_machine(address: str) -> bool:
    """Return whether an address may lead to local files, such as local://x or zip://a::file://b."""
    return "::" in address or _OF_THIS_MACHINE.match(address) is not None


def without_query(url: str) -> str:
    """Return a web address without query and fragment; any other address unchanged."""
    return url.partition("?")[0].partition("#")[0] if url.startswith(WEB) else url


def folders_above(url: str) -> list[str]:
    """Return the folders above a remote file, nearest first."""
    scheme, _, path = without_query(url).partition("://")
    names = path.split("/")[:-1]
    return [f"{scheme}://{'/'.join(names[:count])}" for count in range(len(names), 0, -1)]


def shown(text: str) -> str:
    """Return the text without the secrets of the addresses in it."""
    return without_passwords(_WEB_QUERY.sub(r"\1", text))


def filesystem_of(url: str) -> tuple[Any, str]:
    """Return the filesystem of an address, and the path on it."""
    try:
        import fsspec  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtra("A file that is elsewhere", "parquet") from error
    options = _web_options() if url.startswith(WEB) else {}
    filesystem, path = fsspec.core.url_to_fs(url, **options)
    return filesystem, path


def look_up(url: str) -> Mapping[str, Any] | Failure:
    """Return what the filesystem tells about a file, or why the file cannot be read."""
    try:
        filesystem, path = filesystem_of(url)
        info: Mapping[str, Any] = filesystem.info(path)
    except MissingExtra:
        raise
    except Exception as error:  # noqa: BLE001 - filesystems raise errors of packages of their own
        return failure_of(url, error)
    return info


def fetch(url: str, copy: Path, most_bytes: int | None = None) -> Failure | None:
    """Copy a remote file to a local one, up to a size; returns a failure if that is not possible."""
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
    """Return options that stop copying after a number of bytes, because a server may send without end."""
    from fsspec.callbacks import Callback  # noqa: PLC0415 - optional

    def count(size: int | None, value: int, **_: object) -> None:
        if max(size or 0, value) > most_bytes:
            raise TooLargeError("it", most_bytes, "bytes")

    return {"callback": Callback(hooks={"count": count})}


def fetch_needed(url: str, copy: Path, most_bytes: int | None = None) -> None:
    """Copy a remote file to a local one; raises SourceError if that is not possible."""
    failure = fetch(url, copy, most_bytes)
    if failure is not None:
        raise source_error(failure)


def read_range(url: str, start: int, end: int) -> bytes | Failure:
    """Read a range of bytes of a remote file, or return why that is not possible."""
    try:
        filesystem, path = filesystem_of(url)
        content: bytes = filesystem.cat_file(path, start=start, end=end)
    except MissingExtra:
        raise
    except Exception as error:  # noqa: BLE001 - filesystems raise errors of packages of their own
        return failure_of(url, error)
    if len(content) > end - start:  # the server ignored the range
        return Failure(shown(url), _UNREADABLE, "its server gives whole files only")
    return content


def read_file(location: str, most_bytes: int = _LARGEST) -> bytes:
    """Read a whole file; raises OSError for a local file, and SourceError for a remote one."""
    path = local_path(location)
    if path is not None:
        with Path(path).open("rb") as file:
            return read_at_most(file, most_bytes)
    with TemporaryDirectory(prefix="siteloom-") as folder:
        copy = Path(folder, "copy")
        fetch_needed(location, copy, most_bytes)
        if copy.is_dir():  # some filesystems copy a folder
            raise SourceError(f"{shown(location)} is a folder: name a file in it.")
        return copy.read_bytes()


def lines_of_file(location: str, most_bytes: int = _LARGEST) -> IO[bytes]:
    """Return the lines of a file, read as in `read_file`."""
    return BytesIO(read_file(location, most_bytes))


def check_writable(url: str) -> None:
    """Raise early if a remote file cannot be written, such as when the server does not answer.

    Missing permission shows only when it is written: some locations may be written but not read.
    """
    if url.startswith(WEB):
        raise UsageError(f"{shown(url)} is on the web, where nothing can be written: give -o another place.")
    info = look_up(url)
    if not isinstance(info, Failure):
        if info.get("type") == "directory":
            raise OutputError(f"{shown(url)} is a folder: give the name of a file in it.")
    elif info.reason in (_UNREACHABLE, _NO_PACKAGE, _NO_FILESYSTEM, _NO_CREDENTIALS):
        raise _output_error(info)


def put(file: Path, url: str) -> None:
    """Copy a local file to a remote location, where it appears as a whole or not at all."""
    try:
        filesystem, path = filesystem_of(url)
        if _can_rename(filesystem):
            _put_by_renaming(file, filesystem, path)
        else:
            # Object stores have no folders, and creating the first one would create a bucket.
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
        with suppress(Exception):  # it may not exist, and the first error matters more
            filesystem.rm_file(temporary)
        raise


def _can_rename(filesystem: Any) -> bool:
    """Return whether a filesystem renames without copying.

    Where renaming copies, as on S3, files only ever appear as a whole, so renaming is not needed.
    """
    from fsspec import AbstractFileSystem  # noqa: PLC0415 - optional

    return getattr(type(filesystem), "mv", None) is not AbstractFileSystem.mv


def _web_options() -> dict[str, Any]:
    """Return options for web servers: no compression, no limit on the total time."""
    import aiohttp  # noqa: PLC0415 - optional, see failure_of

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_SILENCE, sock_read=_SILENCE)
    unmodified = {"headers": {"Accept-Encoding": "identity"}, "auto_decompress": False}
    return {"client_kwargs": {"timeout": timeout, **unmodified}}


def failure_of(url: str, error: Exception) -> Failure:
    """Translate an error of a filesystem to a failure with a fixed reason, if it is known."""
    cause = error.__cause__
    # fsspec also raises FileNotFoundError if a web server does not answer, or refuses.
    if isinstance(error, FileNotFoundError) and cause is not None and _reason(cause) is not None:
        error = cause if isinstance(cause, Exception) else error
    if isinstance(error, ImportError):
        missing = cause if isinstance(cause, ImportError) else error
        package = (missing.name or "").partition(".")[0]
        detail = f"needs {package}: pip install {package}" if package else f"cannot be read: {error}"
        return Failure(shown(url), _NO_PACKAGE, detail)
    status = getattr(error, "status", None)
    message = f"{status} {getattr(error, 'message', '')}".strip() if status else str(error)
    # Some messages have whole listings after the first line.
    first_line = next(iter(message.splitlines()), type(error).__name__).rstrip(" .:")
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
    """Return the error for a file that is needed and cannot be read."""
    if failure.reason == MISSING:
        return SourceError(f"There is no file {failure.url}: check the address.")
    return SourceError(_sentence(failure, "read"))


def _output_error(failure: Failure) -> OutputError:
    return OutputError(_sentence(failure, "written"))


def _sentence(failure: Failure, participle: str) -> str:
    match failure.reason:
        case "missing package":
            return f"{failure.url} {failure.detail}."
        case "no permission" | "no credentials":
            return f"{failure.url} may not be {participle}: check the credentials for it ({failure.detail})."
        case "connection failed":
            return f"{failure.url} cannot be reached: {failure.detail}."
    return f"{failure.url} cannot be {participle}: {failure.detail}."
