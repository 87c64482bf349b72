"""Wrappers with their names, read from files and folders."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.core.errors import WrapperError
from siteloom.core.foreign_files import OutsideError, TooLargeError, leads_out
from siteloom.core.remote_files import LARGEST_OF_RECORDS, has_scheme, local_path, read_file, shown
from siteloom.core.table_files import decoded_bytes, load_pyarrow
from siteloom.core.values import lacks_extra
from siteloom.wrappers.matching import NamedWrapper
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def read_wrapper(
    name: str,
    version: int | None,
    text: str,
    site: str | None = None,
    *,
    tell: Callable[[str], object] | None = None,
) -> NamedWrapper:
    """A wrapper from its JSON; a WrapperError names it.

    What its user should know, such as that another parser was used to learn it, goes to `tell` if that is
    given, and is a Python warning otherwise.
    """
    try:
        if tell is None:
            return NamedWrapper(name, version, Wrapper.from_json(text), site)
        with warnings.catch_warnings(record=True, action="always") as caught:
            named = NamedWrapper(name, version, Wrapper.from_json(text), site)
    except WrapperError as error:
        raise WrapperError(f"{name}: {error}") from error
    for warning in caught:
        tell(f"{named}: {warning.message}")
    return named


def untyped_note(wrappers: Iterable[NamedWrapper]) -> str | None:
    """A sentence on the types of values that cannot be read without an extra; None if all can."""
    types = {rules.attribute.type for named in wrappers for rules in named.wrapper.attributes.values()}
    untyped = sorted(kind for kind in types if kind is not None and lacks_extra(kind))
    if not untyped:
        return None
    return (
        f"Values of type {' and '.join(untyped)} are given as texts alone: to have them typed, "
        "install the extra with pip install 'siteloom[values]'."
    )


_WRAPPER_SUFFIX = ".json"
_LARGEST_MARK = 1_000_000  # bytes: a mark only holds a few counts


def wrappers_of_files(
    files: Sequence[str], *, tell: Callable[[str], object] | None = None
) -> list[NamedWrapper]:
    """The wrappers of files, each named as its file; those whose files have the same name, by their paths.

    A folder that `siteloom bootstrap` has made, here or elsewhere, has a wrapper for each of some sites. For
    `tell` see `read_wrapper`.
    """
    texts = [
        text
        for file in files
        for text in (_texts_of_folder(file) if _is_folder(file) else [_text_of_file(file)])
    ]
    names = Counter(text.name for text in texts)
    return [
        read_wrapper(text.name if names[text.name] == 1 else text.path, None, text.text, tell=tell)
        for text in texts
    ]


class _FileText(NamedTuple):
    """The JSON of a wrapper, its name, and the path that no other has."""

    name: str
    path: str
    text: str


def _is_folder(location: str) -> bool:
    if has_scheme(location):  # asking the server would take as long as reading it
        return not location.lower().endswith(_WRAPPER_SUFFIX)
    return Path(location).is_dir()


def _text_of_file(file: str) -> _FileText:
    try:
        text = read_file(file).decode("utf-8")
    except FileNotFoundError as error:
        raise WrapperError(f"There is no wrapper {shown(file)}: check the path.") from error
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise WrapperError(f"The wrapper {shown(file)} cannot be read: {why}.") from error
    return _FileText(PurePosixPath(file).stem, shown(file), text)


def _texts_of_folder(location: str) -> list[_FileText]:
    """The wrappers of sites that are in a folder of Parquet files by site: see
    `siteloom.engines.whole_crawls`.
    """
    pyarrow = load_pyarrow()
    from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra, with PyArrow
    from pyarrow.dataset import ParquetFileFormat, dataset, partitioning  # noqa: PLC0415

    format_with_dictionary = ParquetFileFormat(dictionary_columns={"wrapper"})
    by_site = partitioning(pyarrow.schema([("site", pyarrow.string())]), flavor="hive")
    try:
        files, path = url_to_fs(location)
        mark = files.cat_file(f"{path.rstrip('/')}/_SUCCESS", start=0, end=_LARGEST_MARK)
        outcomes = json.loads(mark).get("outcomes")
        if outcomes and outcomes["wrapped"]:
            of_sites = dataset(path, filesystem=files, format=format_with_dictionary, partitioning=by_site)
            _check_links(location, of_sites.files)
            _check_texts(of_sites.schema, pyarrow)
            table = of_sites.to_table(["site", "wrapper"])
            _check_size(table, pyarrow)
            rows = table.to_pylist()
    except FileNotFoundError:
        outcomes = None
    except (ImportError, OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise WrapperError(f"The wrappers of {shown(location)} cannot be read: {shown(why)}.") from error
    if outcomes is None:
        raise WrapperError(
            f"The wrapper {shown(location)} cannot be read: it is no file, and no folder that "
            "siteloom bootstrap has finished."
        )
    if not outcomes["wrapped"]:
        raise WrapperError(f"There is no wrapper in {shown(location)}: no site could be wrapped.")
    return sorted(
        _FileText(row["site"], f"{shown(location)}/{row['site']}", row["wrapper"])
        for row in rows
        if row["wrapper"] is not None
    )


def _check_texts(schema: Any, pyarrow: Any) -> None:
    """Raise ValueError if the wrapper column is not dictionary-encoded."""
    kind = dict(zip(schema.names, schema.types, strict=True)).get("wrapper")
    if kind is not None and not pyarrow.types.is_dictionary(kind):
        raise ValueError("its column wrapper holds no texts")


def _check_size(table: Any, pyarrow: Any) -> None:
    """Raise TooLargeError if the decoded wrappers are too large: one stored text may serve many sites."""
    size = sum(decoded_bytes(batch.columns, pyarrow) for batch in table.to_batches())
    if size > LARGEST_OF_RECORDS:
        raise TooLargeError("what they say", LARGEST_OF_RECORDS, "bytes")


def _check_links(location: str, files: Sequence[str]) -> None:
    """Raise OutsideError if a link leads out of a local folder, which may come from an untrusted source."""
    folder = local_path(location)
    for file in map(Path, files if folder is not None else ()):
        if leads_out(file, Path(folder or "/")):
            raise OutsideError(file, Path(folder or "/"))
