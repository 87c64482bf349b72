"""Settings: one frozen dataclass per stage, each value from the nearest of four places.

defaults < siteloom.toml < environment < flags

A setting `max_bytes` of the stage `parse` is written

    [parse]                       in siteloom.toml
    max_bytes = 20000000
    SITELOOM_PARSE_MAX_BYTES      in the environment
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SETTINGS_FILE = "siteloom.toml"
ENVIRONMENT_PREFIX = "SITELOOM_"

_FLAGS = {"true": True, "false": False, "1": True, "0": False}
"""What flags are in the environment."""

# Up to the last @ before the path: people forget to escape one in a password.
_PASSWORD = re.compile(r"(://[^/@:]*:)[^@]*(?:@[^/@]*)*@")
# Up to the next option, or else to the last #, behind which stands no part of it.
_PASSWORD_OPTION = re.compile(
    r"([?&][^=&\s]*(?:password|passwd|pwd|secret|token)[^=&\s]*=)"
    r"(?:[^&\s]*(?=&)|[^&\s]*(?=#)|[^&\s]*)",
    re.IGNORECASE,
)

# In the rest there must be no @: what stands before it may be a part of a password.
_HOST = re.compile(
    r"([a-z]+://)(?:[^/?#]*@)?([\w.-]+(?::\d+)?|\[[\da-fA-F:.]+\](?::\d+)?)(?:[/?#][^@]*)?",
    re.IGNORECASE,
)


def _setting(default: Any, help_text: str, at_least: int | None = None, at_most: int | None = None) -> Any:
    """A field with its default, its one line of documentation and its bounds."""
    return field(default=default, metadata={"help": help_text, "at_least": at_least, "at_most": at_most})


@dataclass(frozen=True, slots=True)
class PagesSettings:
    """What is taken in from sources."""

    max_bytes: int = _setting(50_000_000, "largest page that is taken in, in bytes", at_least=1)
    warcs: str = _setting(
        "", "folder or address that the WARC files of CDX indexes are in, such as s3://commoncrawl"
    )


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """How pages are fetched from the web."""

    delay: float = _setting(1.0, "least seconds between two requests to a site", at_least=0)
    timeout: int = _setting(30, "most seconds that a page may take", at_least=1)
    most_pages: int = _setting(
        200, "most pages fetched from a start page on, if not told otherwise", at_least=1
    )
    contact: str = _setting("", "address or mailbox that web sites are told to complain to")
    private: bool = _setting(False, "whether addresses within private networks may be fetched too")


@dataclass(frozen=True, slots=True)
class ParseSettings:
    """How much of a page is read; a page past a limit is a failure."""

    max_bytes: int = _setting(20_000_000, "largest page that is parsed, in bytes", at_least=1)
    max_tags: int = _setting(1_000_000, "most tags in a page that is parsed", at_least=1)


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where pages and all that is known about them are kept."""

    workspace: str = _setting(".siteloom", "folder of the workspace")
    url: str = _setting(
        "", "database instead of the workspace's own SQLite, such as postgresql://user@host/name"
    )


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How work is done."""

    jobs: int = _setting(1, "how many things are done at once", at_least=1)


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """Who is told when sites change."""

    webhook: str = _setting("", "address that changes are posted to as JSON")
    command: str = _setting("", "command that gets changes as JSON Lines on its standard input")


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """When a site counts as changed, and what is repaired without a person."""

    threshold: int = _setting(
        30, "share of pages in percent above which something is a change", at_least=1, at_most=100
    )
    accept: int = _setting(
        90, "confidence in percent from which a repair is put in force by itself", at_least=1, at_most=100
    )


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """What the web application takes."""

    max_upload_bytes: int = _setting(2**32, "largest file that can be uploaded, in bytes", at_least=1)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, by stage."""

    pages: PagesSettings = PagesSettings()
    crawl: CrawlSettings = CrawlSettings()
    parse: ParseSettings = ParseSettings()
    store: StoreSettings = StoreSettings()
    run: RunSettings = RunSettings()
    change: ChangeSettings = ChangeSettings()
    alarm: AlarmSettings = AlarmSettings()
    serve: ServeSettings = ServeSettings()


_STAGES: dict[str, Any] = {stage.name: stage.default for stage in fields(Settings)}


class ResolvedSetting(NamedTuple):
    """One setting, its value, and the place the value comes from."""

    name: str
    value: float | str
    origin: str
    help: str

    @property
    def shown(self) -> str:
        """The value as it may be shown: without the password of an address, or all that may be one."""
        if self.name == "alarm.webhook" and self.value:
            return host_only(str(self.value))
        if isinstance(self.value, bool):
            return str(self.value).lower()  # as it is written in siteloom.toml
        if isinstance(self.value, float):
            return f"{self.value:g}"
        return without_passwords(str(self.value))


def without_passwords(text: str) -> str:
    """The text with stars in the place of the password of each address in it."""
    return _PASSWORD_OPTION.sub(r"\1***", _PASSWORD.sub(r"\1***@", text))


def host_only(address: str) -> str:
    """The scheme and the host of an address: anything else in the address of a webhook may be its secret."""
    found = _HOST.fullmatch(address)
    return found.expand(r"\1\2") if found else "***"


def load_settings(
    folder: Path, environment: Mapping[str, str], flags: Mapping[str, object]
) -> tuple[Settings, tuple[ResolvedSetting, ...]]:
    """Settings from a folder's siteloom.toml, the environment and flags (`{"store.url": ...}`).

    All mistakes are reported at once.
    """
    problems: list[str] = []
    given: dict[str, tuple[object, str]] = {}  # name -> (value, origin), the nearest place last
    file = folder / SETTINGS_FILE
    for name, value in _from_file(file, problems).items():
        given[name] = (value, str(file))
    for name, value in _from_environment(environment, problems).items():
        given[name] = (value, f"{_variable(name)} in the environment")
    for name, value in flags.items():
        if name not in _names():
            problems.append(_unknown(name, _names(), "command line"))
        elif value is not None:
            given[name] = (value, "command line")

    resolved = []
    stages: dict[str, Any] = {}
    for stage, defaults in _STAGES.items():
        values: dict[str, float | str] = {}
        for setting in fields(defaults):
            name = f"{stage}.{setting.name}"
            value, origin = given.get(name, (setting.default, "default"))
            checked = _checked(
                value, setting.default, setting.metadata["at_least"], setting.metadata["at_most"]
            )
            if isinstance(checked, _Problem):
                problems.append(f"{name} {checked.text}, but is {value!r} ({origin})")
                continue
            values[setting.name] = checked
            resolved.append(ResolvedSetting(name, checked, origin, setting.metadata["help"]))
        stages[stage] = type(defaults)(**values)
    if problems:
        raise SettingsError("Settings need mending: " + "; ".join(problems) + ".")
    return Settings(**stages), tuple(resolved)


def _names() -> dict[str, type]:
    """Every setting's full name with the type of its value."""
    return {
        f"{stage}.{setting.name}": type(setting.default)
        for stage, defaults in _STAGES.items()
        for setting in fields(defaults)
    }


def _variable(name: str) -> str:
    return ENVIRONMENT_PREFIX + name.replace(".", "_").upper()


def _from_file(file: Path, problems: list[str]) -> dict[str, object]:
    if not file.exists():
        return {}
    import tomllib  # noqa: PLC0415 - most runs have no file, and start-up is dear

    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, RecursionError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{file} cannot be read: {error}.") from error
    found: dict[str, object] = {}
    for stage, values in document.items():
        if not isinstance(values, dict):
            problems.append(f"{stage!r} stands outside a [section] in {file}")
            continue
        for key, value in values.items():
            name = f"{stage}.{key}"
            if name in _names():
                found[name] = value
            else:
                problems.append(_unknown(name, _names(), str(file)))
    return found


def _from_environment(environment: Mapping[str, str], problems: list[str]) -> dict[str, object]:
    by_variable = {_variable(name): name for name in _names()}
    found: dict[str, object] = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = by_variable.get(variable)
        if name is None:
            problems.append(_unknown(variable, by_variable, "the environment"))
            continue
        match _names()[name].__name__:
            case "int" | "float" as kind:
                found[name] = _number(text, int if kind == "int" else float)
            case "bool":
                found[name] = _FLAGS.get(text.lower(), text)
            case _:
                found[name] = text
    return found


def _number(text: str, kind: type[int | float]) -> float | str:
    """A number if the text is one of this kind; the text itself is then the mistake to report."""
    try:
        return kind(text)
    except ValueError:
        return text


def _unknown(name: str, known: Mapping[str, object], place: str) -> str:
    import difflib  # noqa: PLC0415 - only mistakes need it

    near = difflib.get_close_matches(name, known, n=1)
    hint = f", perhaps {near[0]} is meant" if near else ""
    return f"there is no setting {name} ({place}){hint}"


class _Problem(NamedTuple):
    text: str


def _checked(
    value: object, default: object, at_least: int | None, at_most: int | None
) -> float | str | _Problem:
    if isinstance(default, str):
        return value if isinstance(value, str) else _Problem("must be a text")
    if isinstance(default, bool):
        return value if isinstance(value, bool) else _Problem("must be true or false")
    if isinstance(default, float):
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            return _Problem("must be a number")
        value = float(value)
    elif not isinstance(value, int) or isinstance(value, bool):
        return _Problem("must be a whole number")
    if at_least is not None and value < at_least:
        return _Problem(f"must be at least {at_least}")
    if at_most is not None and value > at_most:
        return _Problem(f"must be at most {at_most}")
    return value
