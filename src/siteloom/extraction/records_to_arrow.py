"""Records as a flat table of Arrow, for pandas, Polars and DuckDB: what was extracted, read back.

What a column holds follows from what was asked for, never from the records: so a program that reads the
records of today reads those of tomorrow.
"""

from __future__ import annotations

import glob
import json
from collections import Counter
from contextlib import contextmanager
from datetime import date
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from siteloom.core.errors import SiteloomError, SourceError, UsageError
from siteloom.core.foreign_files import leads_out, lines_at_most
from siteloom.core.remote_files import (
    failure_of,
    fetch_needed,
    filesystem_of,
    has_scheme,
    local_path,
    shown,
    source_error,
)
from siteloom.core.table_files import (
    LARGEST_ROWS,
    LIST_SEPARATOR,
    load_pyarrow,
    open_parquet,
    rows_at_a_time,
    small_rows,
    suffix_of,
)
from siteloom.core.wording import some_names
from siteloom.extraction.record_formats import is_database
from siteloom.extraction.record_rows import column_names, lowest_confidence

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import pyarrow as pa

    from siteloom.core.model import ValueType
    from siteloom.extraction.record_rows import Row

_LONGEST_LINE = 300_000_000  # bytes: a page may give 50 million characters, of at most six bytes each
_ROWS_AT_A_TIME = 10_000  # as Python has them they take some ten times as much memory as in Arrow
_FILES = (".jsonl", ".parquet")
_PAGES = "pages"  # of records that were joined
_OF_A_RECORD = ("url", "wrapper", "duplicate_of")
_READ = ("url", "wrapper", "version", "values", "typed", "confidence", "duplicate_of", _PAGES)


class _Part(NamedTuple):
    """A column of a typed attribute: what its name has behind that of the attribute, and what it holds.

    `key` is where the JSON of a typed value has it, None if it is all of the value.
    """

    suffix: str
    key: str | None
    kind: Literal["text", "number", "date"]


_TYPES: Mapping[ValueType, tuple[_Part, ...]] = {
    "text": (_Part("", None, "text"),),
    "number": (_Part("", None, "number"),),
    "price": (_Part("", "amount", "number"), _Part("_currency", "currency", "text")),
    "date": (_Part("", None, "date"),),
    "url": (_Part("", None, "text"),),
    "image": (_Part("", "url", "text"), _Part("_alt", "alt", "text")),
    "rating": (_Part("", "value", "number"), _Part("_best", "best", "number")),
}


def records_table(
    sources: Sequence[str | Path],
    several: Collection[str],
    types: Mapping[str, ValueType],
    read_workspace: Callable[[Path], Iterator[Row]],
) -> pa.Table:
    """The records of sources as a table: see `siteloom.read_records`."""
    if not sources:
        raise UsageError("read_records needs a source: a file of records, or a workspace.")
    if isinstance(several, str):
        raise UsageError(f"several must be a list of names, such as [{several!r}].")
    if unknown := [name for name in types.values() if name not in _TYPES]:
        raise UsageError(f"{unknown[0]!r} is no type: there are {', '.join(_TYPES)}.")
    pyarrow = load_pyarrow()
    table = _Table(pyarrow, several, types)
    for rows in chain.from_iterable(_rows_of(source, pyarrow, read_workspace) for source in sources):
        while some := list(islice(rows, _ROWS_AT_A_TIME)):
            table.add(some)
    return table.finished()


class _Table:
    """A table that grows by rows, and by the attributes that they bring."""

    def __init__(self, pa: Any, several: Collection[str], types: Mapping[str, ValueType]) -> None:
        self._pa = pa
        self._several = dict.fromkeys(several)
        self._types = types
        self._attributes: dict[str, None] = {}  # each once, in the order they came
        self._texts: Counter[str] = Counter()  # of typed attributes: those with a text, and those read so
        self._read: Counter[str] = Counter()
        self._batches: list[Any] = []
        self._with_pages = False

    def add(self, rows: list[Row]) -> None:
        columns: dict[str, list[Any]] = {
            "url": [row["url"] for row in rows],
            "wrapper": [row["wrapper"] for row in rows],
            "version": [row.get("version") for row in rows],
            "confidence": [lowest_confidence(row) for row in rows],
            "duplicate_of": [row.get("duplicate_of") for row in rows],
        }
        if any(_PAGES in row for row in rows):
            self._with_pages = True
            columns[_PAGES] = [[page["url"] for page in row.get(_PAGES) or ()] for row in rows]
        kinds = dict(_FIXED)
        found = dict.fromkeys(name for row in rows for name in row["values"])
        self._attributes |= found
        for attribute in found:
            for part in self._parts(attribute):
                key = _key(attribute, part)
                kinds[key] = self._kind(attribute, part)
                columns[key] = [self._cell(row, attribute, part) for row in rows]
        try:
            cells = {
                name: self._pa.array(column, self._arrow(kinds[name])) for name, column in columns.items()
            }
        except (self._pa.ArrowException, UnicodeEncodeError) as error:
            raise SourceError(f"The records cannot be read as a table: {error}.") from error
        self._batches.append(self._pa.table(cells))

    def finished(self) -> Any:
        for attribute, count in self._texts.items():
            if count and not self._read[attribute]:
                kind = self._types[attribute]
                raise UsageError(
                    f"{attribute} has no typed value in these records, so it cannot be read as {kind}: "
                    f"leave it out of types, or learn its wrapper with a schema that says so."
                )
        attributes = dict.fromkeys((*self._attributes, *self._types, *self._several))
        parts = [(attribute, part) for attribute in attributes for part in self._parts(attribute)]
        own = [name for name in _FIXED if name != _PAGES or self._with_pages]
        names = column_names([attribute + part.suffix for attribute, part in parts], own)
        behind = own.index("confidence")
        kinds = {
            **{name: _FIXED[name] for name in own[:behind]},
            **{_key(attribute, part): self._kind(attribute, part) for attribute, part in parts},
            **{name: _FIXED[name] for name in own[behind:]},
        }
        schema = self._pa.schema([(name, self._arrow(kind)) for name, kind in kinds.items()])
        table = self._pa.concat_tables([schema.empty_table(), *self._batches], promote_options="default")
        return table.select(list(kinds)).rename_columns([*own[:behind], *names, *own[behind:]])

    def _parts(self, attribute: str) -> tuple[_Part, ...]:
        return _TYPES[self._types.get(attribute, "text")]

    def _kind(self, attribute: str, part: _Part) -> str:
        return f"{part.kind}s" if attribute in self._several else part.kind

    def _arrow(self, kind: str) -> Any:
        pa = self._pa
        single = {"text": pa.string(), "number": pa.float64(), "integer": pa.int64(), "date": pa.date32()}
        return single[kind] if kind in single else pa.list_(single[kind.removesuffix("s")])

    def _cell(self, row: Row, attribute: str, part: _Part) -> object:
        texts = row["values"].get(attribute)
        if not texts:
            return None
        kind = self._types.get(attribute, "text")
        if kind == "text":
            return texts if attribute in self._several else LIST_SEPARATOR.join(texts)
        self._texts[attribute] += 1
        typed = row["typed"].get(attribute)
        if not typed:
            return None
        self._read[attribute] += 1
        if attribute not in self._several and len(typed) > 1:
            raise UsageError(
                f"{row['url']} has {len(typed)} values of {attribute}: name it in several to get lists."
            )
        cells = [_typed_cell(value, part, kind, attribute, row["url"]) for value in typed]
        return cells if attribute in self._several else cells[0]


_FIXED = {
    "url": "text",
    "wrapper": "text",
    "version": "integer",
    "confidence": "number",
    "duplicate_of": "text",
    _PAGES: "texts",
}


def _key(attribute: str, part: _Part) -> str:
    """What the column of an attribute is called as long as not all names are known."""
    return f"\n{attribute}\n{part.suffix}"


def _typed_cell(value: Any, part: _Part, kind: str, attribute: str, url: str) -> object:
    if value is None:
        return None
    try:
        if part.key is not None:
            # Parquet has what is more than a text as JSON.
            value = (json.loads(value) if isinstance(value, str) else value)[part.key]
        elif not isinstance(value, str):
            raise TypeError(value)  # noqa: TRY301 - told below, as all that is of another type
        if value is None or part.kind == "text":
            return value
        # A date may have a time behind it, which days of the calendar leave out.
        return float(value) if part.kind == "number" else date.fromisoformat(value[:10])
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"The {attribute} of {url} is no {kind}: leave it out of types, or name its own type."
        ) from error


def _rows_of(
    source: str | Path, pa: Any, read_workspace: Callable[[Path], Iterator[Row]]
) -> Iterator[Iterator[Row]]:
    """The rows of a source, one file after the other."""
    location = str(source)
    local = location if isinstance(source, Path) else local_path(location)
    if isinstance(source, str) and is_database(location):
        raise SourceError(
            f"{shown(location)} is a database: read its table with pandas, DuckDB or the like instead."
        )
    # Elsewhere what has another ending is the folder of a run: to ask would take as long as to read it.
    is_file = _is_file(Path(local)) if local is not None else suffix_of(location) in (*_FILES, ".csv")
    if is_file and suffix_of(location) not in _FILES:
        why = (
            "is a flat table already: read it with pandas.read_csv, or extract to .jsonl or .parquet"
            if suffix_of(location) == ".csv"
            else "is no file of records: give a .jsonl or .parquet file that siteloom extract -o wrote"
        )
        raise SourceError(f"{shown(location)} {why}.")
    if local is not None and (Path(local) / "workspace.json").exists():
        yield read_workspace(Path(local))
        return
    for file in [local or location] if is_file else _of_run(local or location):
        yield _of_file(Path(file), pa) if local is not None else _of_copy(file, pa)


def _is_file(path: Path) -> bool:
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except (OSError, ValueError) as error:
        raise SourceError(f"{path} cannot be opened: {error}.") from error
    if not exists:
        raise SourceError(f"There is no file or folder {path}: check the path.")
    return not is_folder


def _of_run(folder: str) -> list[str]:
    """The files of a run of an engine, by site."""
    folder = folder.rstrip("/")
    try:
        filesystem, path = filesystem_of(folder)
        files = sorted(filesystem.glob(f"{glob.escape(path)}/site=*/*.parquet"))
        is_done = filesystem.exists(f"{path}/_SUCCESS")
    except SiteloomError:
        raise
    except Exception as error:
        raise source_error(failure_of(folder, error)) from error
    if not is_done:
        not_done = "its run is not done: start the same command again"
        why = not_done if files else "it is no workspace, and no run wrote it"
        raise SourceError(f"The folder {shown(folder)} has no records that can be read: {why}.")
    # Killed processes leave files whose names begin with a dot.
    found = [folder + file.removeprefix(path) for file in files if "/." not in file.removeprefix(path)]
    for file in map(Path, () if has_scheme(folder) else found):
        if leads_out(file, Path(folder)):
            raise SourceError(f"{file} cannot be read: it leads out of {folder} by a link.")
    return found


def _of_copy(url: str, pa: Any) -> Iterator[Row]:
    """The rows of a file elsewhere, of which there is a copy while they are read."""
    with TemporaryDirectory(prefix="siteloom-") as folder:
        copy = Path(folder, f"records{suffix_of(url)}")
        fetch_needed(url, copy)
        try:
            yield from _of_file(copy, pa)
        except SourceError as error:
            raise SourceError(str(error).replace(str(copy), shown(url))) from error


def _of_file(path: Path, pa: Any) -> Iterator[Row]:
    return _of_parquet(path, pa) if suffix_of(path.name) == ".parquet" else _of_json_lines(path)


def _of_json_lines(path: Path) -> Iterator[Row]:
    with _source_errors(path), path.open("rb") as file:
        for number, line in enumerate(lines_at_most(file, _LONGEST_LINE), 1):
            if line.isspace():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise SourceError(f"Line {number} of {path} is no JSON: {error}.") from error
            if not _is_record(row):
                raise SourceError(
                    f"Line {number} of {path} is no record: give a file that siteloom extract -o wrote."
                )
            yield row


def _is_record(row: object) -> bool:
    return isinstance(row, dict) and all(
        isinstance(row.get(name), kind)
        for name, kind in (
            ("url", str),
            ("wrapper", str),
            ("values", dict),
            ("typed", dict),
            ("confidence", dict),
        )
    )


def _of_parquet(path: Path, pa: Any) -> Iterator[Row]:
    errors = (OSError, ValueError, pa.ArrowException)
    with _source_errors(path, errors), open_parquet(path, pa) as file:
        names = file.schema_arrow.names
        if missing := [name for name in _OF_A_RECORD if name not in names]:
            raise SourceError(
                f"{path} holds no records, for it has no column {missing[0]}: it has {some_names(names)}."
            )
        wanted = [name for name in _READ if name in names]
        batch_rows = rows_at_a_time(file, range(file.num_row_groups), wanted, _ROWS_AT_A_TIME)
        for batch in file.iter_batches(batch_rows, columns=wanted):
            for rows in small_rows(batch, pa):
                if rows is None:
                    raise SourceError(f"{path} cannot be read: a row has over {LARGEST_ROWS:,} bytes.")
                yield from map(_from_parquet, rows.to_pylist())


def _from_parquet(row: Row) -> Row:
    """A row as JSON Lines have it: without the attributes that it lacks."""
    parts = {name: _filled(row.get(name) or {}) for name in ("values", "typed", "confidence")}
    return {**row, **parts}


def _filled(part: Mapping[str, Any]) -> dict[str, Any]:
    return {attribute: listed for attribute, listed in part.items() if listed}


@contextmanager
def _source_errors(path: Path, kinds: tuple[type[Exception], ...] = (OSError,)) -> Iterator[None]:
    try:
        yield
    except kinds as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise SourceError(f"{path} cannot be read: {why}.") from error
