"""Settings: one frozen dataclass per stage, each value from the nearest of four places.

defaults < siteloom.toml < environment < flags

A setting `max_bytes` of the stage `parse` is written

    [parse]                       in siteloom.toml
    max_bytes = 20000000
    SITELOOM_PARSE_MAX_BYTES      in the environment

A file may come with a folder from someone else. What it says that runs programs, removes pages or reaches
beyond its folder counts only if it was trusted (`siteloom.core.settings_loading`).
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.core.errors import SettingsError
from siteloom.core.foreign_files import leads_out, open_ordinary, read_at_most
from siteloom.core.settings_loading import is_trusted, trust

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

SETTINGS_FILE = "siteloom.toml"
ENVIRONMENT_PREFIX = "SITELOOM_"

_DEFAULT = "default"
_LARGEST_FILE = 1_000_000  # bytes, for some twenty lines

_LARGEST = sys.float_info.max

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


def _never(_value: object, _folder: Path) -> bool:
    return False


def _if_set(value: object, _folder: Path) -> bool:
    return bool(value)


def _if_not_set(value: object, _folder: Path) -> bool:
    return not value


def _leads_out(location: str, folder: Path) -> bool:
    """Whether a path or an address may be that of something outside of the folder it is seen from."""
    if "://" in location or location.startswith("/") or ".." in location.split("/"):
        return True
    try:
        return leads_out(folder / location, folder)
    except (OSError, ValueError):  # a circle of links, or no path at all
        return True


def _setting(
    default: Any,
    help_text: str,
    at_least: int | None = None,
    at_most: int | None = None,
    reaches: Callable[[Any, Path], bool] = _never,
) -> Any:
    """A field with its default, its one line of documentation and its bounds.

    `reaches` tells of a value, and the folder of a file that says it, whether it runs programs, removes pages
    or reaches beyond that folder.
    """
    bounds = {"at_least": at_least, "at_most": at_most}
    return field(default=default, metadata={"help": help_text, **bounds, "reaches": reaches})


@dataclass(frozen=True, slots=True)
class PagesSettings:
    """What is taken in from sources."""

    max_bytes: int = _setting(50_000_000, "largest page that is taken in, in bytes", at_least=1)
    warcs: str = _setting(
        "",
        "folder or address that the WARC files of CDX indexes are in, such as s3://commoncrawl",
        reaches=_leads_out,
    )


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """How pages are fetched from the web."""

    delay: float = _setting(1.0, "least seconds between two requests to a site, such as 0.5", at_least=0)
    timeout: int = _setting(30, "most seconds that a page may take", at_least=1)
    most_pages: int = _setting(
        200, "most pages fetched from a start page on, if not told otherwise", at_least=1
    )
    contact: str = _setting("", "address or mailbox that web sites are told to complain to")
    private: bool = _setting(
        False, "whether addresses within private networks may be fetched too", reaches=_if_set
    )
    sandbox: bool = _setting(
        True, "whether pages are opened in Chromium only if it has its sandbox", reaches=_if_not_set
    )


@dataclass(frozen=True, slots=True)
class ParseSettings:
    """How much of a page is read, and how much may come of it; a page past a limit is a failure."""

    max_bytes: int = _setting(20_000_000, "largest page that is parsed, in bytes", at_least=1)
    max_tags: int = _setting(1_000_000, "most tags in a page that is parsed", at_least=1)
    max_tags_learned: int = _setting(
        100_000, "most tags in a page that is learned from, or that a table is discovered in", at_least=1
    )
    max_seconds: float = _setting(
        30.0,
        "most seconds of processor time that a page may take; 0 for no limit",
        at_least=0,
        at_most=86_400,
    )
    max_records: int = _setting(50_000, "most records that a page may give", at_least=1)
    max_characters: int = _setting(
        50_000_000, "most characters that the records of a page may have, or what is left of it", at_least=1
    )

    @property
    def learned(self) -> ParseSettings:
        """The limits where all nodes of a page are compared: that takes up to 50 µs a tag, so they are fewer.

        Of 1,221 pages of 32 real sites none has more than 5,000 tags.
        """
        return replace(self, max_tags=min(self.max_tags, self.max_tags_learned))


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where pages and all that is known about them are kept."""

    workspace: str = _setting(".siteloom", "folder of the workspace", reaches=_leads_out)
    url: str = _setting(
        "",
        "database instead of the workspace's own SQLite, such as postgresql://user@host/name",
        reaches=_if_set,
    )


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How work is done."""

    jobs: int = _setting(1, "how many things are done at once", at_least=1)


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """Who is told when sites change."""

    webhook: str = _setting("", "address that changes are posted to as JSON", reaches=_if_set)
    command: str = _setting(
        "", "command that gets changes as JSON Lines on its standard input", reaches=_if_set
    )


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """When a site counts as changed, and what is repaired without a person."""

    threshold: int = _setting(
        30, "share of pages in percent above which something is a change", at_least=1, at_most=100
    )
    accept: int = _setting(
        90, "confidence in percent from which a repair is put in force by itself", at_least=1, at_most=100
    )


CHANGE_THRESHOLD = ChangeSettings().threshold / 100
"""The default share of pages above which something counts as a change.

The paper on Vertex tried 10 to 50 % (Gulhane et al., ICDE 2011); docs/evaluation/change.md says what each
finds on real sites."""


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """What the web application takes."""

    max_upload_bytes: int = _setting(2**32, "largest file that can be uploaded, in bytes", at_least=1)
    timeout: int = _setting(
        30,
        "seconds after which a client is disconnected that does nothing, though the server waits for it",
        at_least=1,
    )


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """How long what came from pages is kept."""

    days: int = _setting(
        0,
        "days after which a page that was not seen again is forgotten; 0 keeps all for ever",
        at_least=0,
        reaches=_if_set,  # the workspace may be one that a flag or the environment names
    )
    versions: int = _setting(
        0, "most versions of a page that are kept; 0 keeps all", at_least=0, reaches=_if_set
    )


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
    retention: RetentionSettings = RetentionSettings()


_STAGES: dict[str, Any] = {stage.name: stage.default for stage in fields(Settings)}


class ResolvedSetting(NamedTuple):
    """One setting, its value, and the place the value comes from.

    A value that `needs_trust` was told by a file that nobody trusted, or is a default that leads out of the
    folder by a link; it does not count.
    """

    name: str
    value: float | str
    origin: str
    help: str
    needs_trust: bool = False

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
    match = _HOST.fullmatch(address)
    return match.expand(r"\1\2") if match else "***"


def load_settings(
    folder: Path,
    environment: Mapping[str, str],
    flags: Mapping[str, object],
    *,
    shows_untrusted: bool = False,
) -> tuple[Settings, tuple[ResolvedSetting, ...]]:
    """Settings from a folder's siteloom.toml, the environment and flags (`{"store.url": ...}`).

    All mistakes are reported at once. What a file says that nobody trusted, and that reaches further than it
    may, is an error, too; with `shows_untrusted` it is only listed, and the defaults count.
    """
    problems: list[str] = []
    values_by_name: dict[str, tuple[object, str]] = {}  # name -> (value, origin), the nearest place last
    file = folder / SETTINGS_FILE
    content = _content(file)
    for name, value in _from_file(content, file, problems).items():
        values_by_name[name] = (value, str(file))
    for name, value in _from_environment(environment, problems).items():
        values_by_name[name] = (value, f"{_variable(name)} in the environment")
    for name, value in flags.items():
        if name not in _names():
            problems.append(_unknown(name, _names(), "command line"))
        elif value is not None:
            values_by_name[name] = (value, "command line")

    is_own = is_trusted(file, content, environment)
    resolved = []
    stages: dict[str, Any] = {}
    for stage, defaults in _STAGES.items():
        values: dict[str, float | str] = {}
        for setting in fields(defaults):
            name = f"{stage}.{setting.name}"
            default: Any = setting.default
            value, origin = values_by_name.get(name, (default, _DEFAULT))
            checked = _checked(
                value, setting.default, setting.metadata["at_least"], setting.metadata["at_most"]
            )
            if isinstance(checked, _Problem):
                problems.append(f"{name} {checked.text}, but is {value!r} ({origin})")
                continue
            is_of_folder = origin in (str(file), _DEFAULT)  # a default may be a link that came with it
            needs_trust = is_of_folder and not is_own and setting.metadata["reaches"](checked, folder)
            values[setting.name] = default if needs_trust else checked
            resolved.append(ResolvedSetting(name, checked, origin, setting.metadata["help"], needs_trust))
        stages[stage] = type(defaults)(**values)
    if problems:
        raise SettingsError("Settings need mending: " + "; ".join(problems) + ".")
    untrusted = [setting for setting in resolved if setting.needs_trust]
    if untrusted and not shows_untrusted:
        raise SettingsError(" ".join(_not_trusted(folder, untrusted)))
    return Settings(**stages), tuple(resolved)


def trust_settings_file(folder: Path, environment: Mapping[str, str]) -> tuple[ResolvedSetting, ...]:
    """Trust a folder's siteloom.toml as it is now; returns what of it counts only because of that."""
    file = folder / SETTINGS_FILE
    content = _content(file)
    if not content:
        raise SettingsError(f"There is nothing to trust: {file} is missing or empty.")
    _, resolved = load_settings(folder, {}, {}, shows_untrusted=True)
    if _content(file) != content:
        raise SettingsError(f"{file} has changed meanwhile: look at it, and try again.")
    trust(file, content, environment)
    return tuple(setting for setting in resolved if setting.needs_trust)


def _not_trusted(folder: Path, settings: list[ResolvedSetting]) -> Iterator[str]:
    for setting in settings:
        if setting.origin == _DEFAULT:
            link = folder / str(setting.value)
            yield (
                f"{link} leads out of this folder by a symbolic link: if the link is yours, name it with "
                f"--workspace or set {_variable(setting.name)} in the environment; if not, remove it."
            )
    names = [setting.name for setting in settings if setting.origin != _DEFAULT]
    if not names:
        return
    file = folder / SETTINGS_FILE
    them = "them" if len(names) > 1 else "it"
    yield (
        f"{file} sets {' and '.join(names)}, which can run programs, remove pages or reach beyond this "
        "folder: if the file is yours, let siteloom config --trust remember that; if not, remove "
        f"{them} there or set {' and '.join(map(_variable, names))} in the environment."
    )


def _names() -> dict[str, type]:
    """Every setting's full name with the type of its value."""
    return {
        f"{stage}.{setting.name}": type(setting.default)
        for stage, defaults in _STAGES.items()
        for setting in fields(defaults)
    }


def _variable(name: str) -> str:
    return ENVIRONMENT_PREFIX + name.replace(".", "_").upper()


def _content(file: Path) -> bytes:
    """All of a settings file; nothing if there is none."""
    try:
        with open_ordinary(file) as opened:
            return read_at_most(opened, _LARGEST_FILE)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror or error}.") from error


def _from_file(content: bytes, file: Path, problems: list[str]) -> dict[str, object]:
    if not content:
        return {}
    import tomllib  # noqa: PLC0415 - most runs have no file, and start-up is dear

    try:
        document = tomllib.loads(content.decode("utf-8"))
    except (RecursionError, ValueError) as error:  # also for numbers of thousands of digits
        raise SettingsError(f"{file} cannot be read: {error}.") from error
    values_by_name: dict[str, object] = {}
    for stage, values in document.items():
        if not isinstance(values, dict):
            problems.append(f"{stage!r} stands outside a [section] in {file}")
            continue
        for key, value in values.items():
            name = f"{stage}.{key}"
            if name in _names():
                values_by_name[name] = value
            else:
                problems.append(_unknown(name, _names(), str(file)))
    return values_by_name


def _from_environment(environment: Mapping[str, str], problems: list[str]) -> dict[str, object]:
    by_variable = {_variable(name): name for name in _names()}
    values_by_name: dict[str, object] = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = by_variable.get(variable)
        if name is None:
            problems.append(_unknown(variable, by_variable, "the environment"))
            continue
        match _names()[name].__name__:
            case "int" | "float" as kind:
                values_by_name[name] = _number(text, int if kind == "int" else float)
            case "bool":
                values_by_name[name] = _FLAGS.get(text.lower(), text)
            case _:
                values_by_name[name] = text
    return values_by_name


def _number(text: str, kind: type[int | float]) -> float | str:
    """A number if the text is one of this kind; the text itself is then the mistake to report."""
    try:
        return kind(text)
    except ValueError:
        return text


def _unknown(name: str, names: Mapping[str, object], place: str) -> str:
    import difflib  # noqa: PLC0415 - only mistakes need it

    near = difflib.get_close_matches(name, names, n=1)
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
        if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= _LARGEST:
            return _Problem("must be a number")
        value = float(value)
    elif not isinstance(value, int) or isinstance(value, bool):
        return _Problem("must be a whole number")
    if at_least is not None and value < at_least:
        return _Problem(f"must be at least {at_least}")
    if at_most is not None and value > at_most:
        return _Problem(f"must be at most {at_most}")
    return value
