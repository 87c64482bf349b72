"""Pages from files elsewhere: on S3, HDFS, the web, and all else that fsspec reaches.

A file is copied to this machine when it is read, whole, and read from there: by the process that
needs its pages, which may be on another machine than the one that found the file.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from siteloom.arrow import load_pyarrow
from siteloom.config import without_passwords
from siteloom.errors import MissingExtra, SourceError
from siteloom.model import Failure, Skipped
from siteloom.pages.formats import archive_suffix, open_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from siteloom.config import PagesSettings
    from siteloom.pages.source import SourceItem

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_WEB = ("http://", "https://")
_FILE = re.compile(r"file://(?:localhost)?(?=/)")
# What stands behind the path of an address on the web may be a signature that lets anybody read it.
_WEB_QUERY = re.compile(r"(https?://[^\s?#'\"]*)[?#][^\s'\"]*")

# Seconds that a web server may be silent. How long it takes to send all of a file is its own affair.
_SILENCE = 60

# What filesystems call what changes with the content of a file, without signs and in small letters.
# Not the time of the last access, which some tell, too: it changes when a file is read.
_STATE_FIELDS = frozenset(
    {"size", "etag", "contentmd5", "digest", "md5hash", "generation", "created"}
    | {"mtime", "modified", "modify", "lastmodified", "updated"}
)

_UNREADABLE = "unreadable file"
# Filesystems raise errors of packages of their own, which have only parts of their names in common.
_REASONS = (
    (re.compile("FileNotFound|NoSuch"), "missing file"),
    (re.compile("Permission|Forbidden|Credential|Auth"), "no permission"),
    (re.compile("Payload|Incomplete"), "cut off"),
    (re.compile("Connect|Timeout|gaierror"), "connection failed"),
)
_REASONS_BY_STATUS = {
    401: "no permission",
    403: "no permission",
    404: "missing file",
    407: "no permission",
    410: "missing file",
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


def without_query(url: str) -> str:
    """An address without what stands behind its path, if it is one of the web."""
    return url.partition("?")[0].partition("#")[0] if url.startswith(_WEB) else url


def shown(text: str) -> str:
    """The text without the secrets of the addresses in it."""
    return without_passwords(_WEB_QUERY.sub(r"\1", text))


class Listed(NamedTuple):
    """A file that was found in a folder elsewhere; `state` is None where the folder does not tell it."""

    url: str
    state: str | None


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A WARC, Parquet or JSON Lines file elsewhere.

    `state` changes when the content of the file does, as far as its filesystem tells. What is read with
    insistence is an error if it cannot be had now, unless it is not there at all: whoever reads it can try
    again later.
    """

    url: str
    settings: PagesSettings
    with_resources: bool = False
    state: str = ""
    insistent: bool = False

    @classmethod
    def open(
        cls, url: str, settings: PagesSettings, *, with_resources: bool = False, state: str | None = None
    ) -> RemoteFile:
        """Make sure that the file is there, unless its state is known, and that it can be read here."""
        suffix = archive_suffix(without_query(url))
        if not suffix:
            raise _no_source(url)
        if suffix == ".parquet":
            load_pyarrow()
        if state is None:
            info = look_up(url)
            if isinstance(info, Failure):
                raise _error(info)
            if info.get("type") == "directory":
                raise SourceError(f"{shown(url)} is a folder: end it with / to read the files in it.")
            state = _state(info)
        return cls(url, settings, with_resources, state)

    def read(self) -> Iterator[SourceItem]:
        """All that is in the file; one failure if it cannot be had."""
        with tempfile.TemporaryDirectory(prefix="siteloom-") as folder:
            copy = Path(folder, f"pages{archive_suffix(without_query(self.url))}")
            failure = fetch(self.url, copy)
            if failure is not None and self.insistent and failure.reason != "missing file":
                raise SourceError(f"{_error(failure)} The same command goes on where it was.")
            if failure is not None:
                yield failure
                return
            try:
                reader = open_file(copy, self.settings, with_resources=self.with_resources)
            except SourceError as error:
                yield self._told(Failure(str(copy), _UNREADABLE, str(error)), copy)
                return
            assert reader is not None
            for item in reader.read():
                yield self._told(item, copy) if isinstance(item, Failure | Skipped) else item

    def shards(self) -> Sequence[RemoteFile]:
        """The file itself, as it is copied whole."""
        return (self,)

    def _told(self, item: Failure | Skipped, copy: Path) -> Failure | Skipped:
        """What went wrong, told of the file and not of its copy."""
        url = item.url.replace(str(copy), shown(self.url))
        if isinstance(item, Skipped):
            return replace(item, url=url)
        return replace(item, url=url, detail=item.detail.replace(str(copy), shown(self.url)))


def remote_files(location: str) -> list[Listed]:
    """The WARC, Parquet and JSON Lines files below an address that ends in /, or that match a pattern."""
    is_pattern = "*" in location
    if location.startswith(_WEB) and not (is_pattern and archive_suffix(without_query(location))):
        raise _no_source(location)  # the folder of a web server is a page like any other
    try:
        filesystem, path = _filesystem(location)
        infos = filesystem.glob(path, detail=True) if is_pattern else filesystem.find(path, detail=True)
    except FileNotFoundError:
        infos = {}
    except MissingExtra:
        raise
    except Exception as error:
        raise _error(_failure(location, error)) from error
    found = [
        Listed(
            _address(filesystem, location, path, name), _state(info) if info.get("size") is not None else None
        )
        for name, info in sorted(infos.items())
        if info.get("type") != "directory" and archive_suffix(without_query(name))
    ]
    if not found:
        raise no_match(location)
    return found


def no_match(location: str) -> SourceError:
    """The error that a pattern or a folder stands for no file."""
    where = "matches" if "*" in location else "is in"
    return SourceError(
        f"No WARC, Parquet or JSON Lines file {where} {shown(location)}: check it, "
        "and name a folder of HTML files by its path alone."
    )


def look_up(url: str) -> Mapping[str, Any] | Failure:
    """What its filesystem tells about a file; or why it cannot be had."""
    try:
        filesystem, path = _filesystem(url)
        info: Mapping[str, Any] = filesystem.info(path)
    except MissingExtra:
        raise
    except Exception as error:  # noqa: BLE001 - filesystems raise errors of packages of their own
        return _failure(url, error)
    return info


def fetch(url: str, copy: Path) -> Failure | None:
    """Copy a file from elsewhere; what went wrong, if anything did."""
    try:
        filesystem, path = _filesystem(url)
        filesystem.get_file(path, str(copy))
    except MissingExtra:
        raise
    except Exception as error:  # noqa: BLE001 - filesystems raise errors of packages of their own
        return _failure(url, error)
    return None


def fetch_list(url: str, copy: Path) -> None:
    """Copy a file that must be there; raises SourceError if it cannot be had."""
    failure = fetch(url, copy)
    if failure is not None:
        raise _error(failure)


def _filesystem(url: str) -> tuple[Any, str]:
    """The filesystem of an address, and the path on it."""
    try:
        import fsspec  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtra("A source that is elsewhere", "parquet") from error
    options = _web_options() if url.startswith(_WEB) else {}
    filesystem, path = fsspec.core.url_to_fs(url, **options)
    return filesystem, path


def _web_options() -> dict[str, Any]:
    """How files are asked of web servers: as they are, however long it takes."""
    import aiohttp  # noqa: PLC0415 - optional, see _failure

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_SILENCE, sock_read=_SILENCE)
    as_it_is = {"headers": {"Accept-Encoding": "identity"}, "auto_decompress": False}
    return {"client_kwargs": {"timeout": timeout, **as_it_is}}


def _address(filesystem: Any, location: str, path: str, name: str) -> str:
    """The address of a file that was found under a path, with the host of the location, if it has one."""
    start = location.rstrip("/").removesuffix(path.rstrip("/"))
    if start != location.rstrip("/"):
        return start + name
    address: str = filesystem.unstrip_protocol(name)
    return address


def _state(info: Mapping[str, Any]) -> str:
    """What changes when the content of a file does, as far as its filesystem tells."""
    named = {re.sub("[^a-z0-9]", "", key.lower()): value for key, value in info.items()}
    return " ".join(
        f"{name}={named[name]}" for name in sorted(_STATE_FIELDS & named.keys()) if named[name] is not None
    )


def _failure(url: str, error: Exception) -> Failure:
    """Why a file cannot be had, in our words as far as there are any."""
    cause = error.__cause__
    # A web server that does not answer, or answers that it will not, is such an error of fsspec, too.
    if isinstance(error, FileNotFoundError) and cause is not None and _reason(cause) is not None:
        error = cause if isinstance(cause, Exception) else error
    if isinstance(error, ImportError):
        missing = cause if isinstance(cause, ImportError) else error
        package = (missing.name or "").partition(".")[0]
        detail = f"needs {package}: pip install {package}" if package else f"cannot be read: {error}"
        return Failure(shown(url), "missing package", detail)
    status = getattr(error, "status", None)
    told = f"{status} {getattr(error, 'message', '')}".strip() if status else str(error)
    # Some put whole listings behind the first line.
    first_line = next(iter(told.splitlines()), type(error).__name__).rstrip(" .:")
    return Failure(shown(url), _reason(error) or _UNREADABLE, shown(first_line))


def _reason(error: BaseException) -> str | None:
    status = getattr(error, "status", None)
    if isinstance(status, int):
        return _REASONS_BY_STATUS.get(status, _UNREADABLE)
    names = " ".join(kind.__name__ for kind in type(error).__mro__)
    return next((reason for pattern, reason in _REASONS if pattern.search(names)), None)


def _error(failure: Failure) -> SourceError:
    """The error that a file which is needed at once cannot be had."""
    match failure.reason:
        case "missing file":
            return SourceError(f"There is no file {failure.url}: check the address.")
        case "missing package":
            return SourceError(f"{failure.url} {failure.detail}.")
        case "no permission":
            return SourceError(
                f"{failure.url} may not be read: check the credentials for it ({failure.detail})."
            )
        case "connection failed":
            return SourceError(f"{failure.url} cannot be reached: {failure.detail}.")
    return SourceError(f"{failure.url} cannot be read: {failure.detail}.")


def _no_source(url: str) -> SourceError:
    if url.startswith(_WEB):
        return SourceError(f"{shown(url)} is on the web: save it first, and name the file or folder.")
    return SourceError(
        f"Cannot tell what {shown(url)} is: elsewhere, sources are files named .warc, .parquet or .jsonl "
        "(.warc and .jsonl also compressed, such as .warc.gz), or a folder of them that ends in /."
    )
