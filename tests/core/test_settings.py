"""Settings: where they come from, and what is said about bad ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import SettingsError, UsageError
from siteloom.core.settings import (
    ENVIRONMENT_PREFIX,
    ParseSettings,
    Settings,
    StoreSettings,
    load_settings,
    trust_settings_file,
)
from siteloom.core.wording import bounded

NO_FOLDER = Path("/nonexistent")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def with_file(folder: Path, text: str | bytes) -> Path:
    (folder / "siteloom.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def problem(
    folder: Path, environment: dict[str, str] | None = None, flags: dict[str, object] | None = None
) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(folder, environment or {}, flags or {})
    return str(caught.value)


def test_without_anything_given_the_defaults_hold(folder: Path) -> None:
    settings, resolved = load_settings(folder, {}, {})
    assert settings == Settings()
    assert {setting.origin for setting in resolved} == {"default"}


def test_every_setting_is_listed_with_a_line_of_help(folder: Path) -> None:
    settings, resolved = load_settings(folder, {}, {})
    stages = {stage.name: getattr(settings, stage.name) for stage in fields(settings)}
    expected = [f"{name}.{setting.name}" for name, stage in stages.items() for setting in fields(stage)]
    assert [setting.name for setting in resolved] == expected
    for setting in resolved:
        assert len(setting.help) > 10, setting.name
        assert "\n" not in setting.help


def test_every_stage_is_documented() -> None:
    for stage in fields(Settings):
        assert not (type(stage.default).__doc__ or "(").startswith(type(stage.default).__name__ + "(")


@pytest.mark.parametrize(
    ("places", "value", "origin"),
    [
        ("", 1, "default"),
        ("file", 2, "siteloom.toml"),
        ("file environment", 3, "SITELOOM_RUN_JOBS in the environment"),
        ("file environment flag", 4, "command line"),
        ("file flag", 4, "command line"),
        ("environment", 3, "SITELOOM_RUN_JOBS in the environment"),
        ("flag", 4, "command line"),
    ],
)
def test_the_nearest_place_wins(folder: Path, places: str, value: int, origin: str) -> None:
    if "file" in places:
        with_file(folder, "[run]\njobs = 2\n")
    environment = {"SITELOOM_RUN_JOBS": "3"} if "environment" in places else {}
    flags: dict[str, object] = {"run.jobs": 4} if "flag" in places else {"run.jobs": None}
    settings, resolved = load_settings(folder, environment, flags)
    assert settings.run.jobs == value
    (jobs,) = [setting for setting in resolved if setting.name == "run.jobs"]
    assert jobs.value == value
    assert jobs.origin.endswith(origin)


def test_a_text_is_taken_as_it_is(folder: Path) -> None:
    settings, _ = load_settings(
        with_file(folder, '[store]\nworkspace = "ws"'), {"SITELOOM_STORE_URL": "12"}, {}
    )
    assert settings.store.workspace == "ws"
    assert settings.store.url == "12"


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("1", True), ("0", False)])
def test_a_flag_in_the_environment_is_a_word_or_a_digit(folder: Path, text: str, value: bool) -> None:
    settings, resolved = load_settings(folder, {"SITELOOM_CRAWL_PRIVATE": text}, {})
    assert settings.crawl.private is value
    (private,) = [setting for setting in resolved if setting.name == "crawl.private"]
    assert private.shown == str(value).lower()


def test_what_is_no_flag_is_named(folder: Path) -> None:
    sentence = problem(folder, {"SITELOOM_CRAWL_PRIVATE": "maybe"})
    assert "crawl.private must be true or false, but is 'maybe' (SITELOOM_CRAWL_PRIVATE in the" in sentence


def test_other_variables_are_none_of_our_business(folder: Path) -> None:
    settings, _ = load_settings(folder, {"PATH": "x", "siteloom_run_jobs": "9", "SITELOOMX": "1"}, {})
    assert settings == Settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[run]\njobs = 0", "run.jobs must be at least 1, but is 0 ("),
        ("[run]\njobs = -5", "run.jobs must be at least 1, but is -5 ("),
        ("[run]\njobs = 1.5", "run.jobs must be a whole number, but is 1.5 ("),
        ("[run]\njobs = true", "run.jobs must be a whole number, but is True ("),
        ('[run]\njobs = "2"', "run.jobs must be a whole number, but is '2' ("),
        ("[store]\nurl = 5", "store.url must be a text, but is 5 ("),
        ("[crawl]\ndelay = -0.5", "crawl.delay must be at least 0, but is -0.5 ("),
        ("[crawl]\ndelay = nan", "crawl.delay must be a number, but is nan ("),
        ('[crawl]\ndelay = "1"', "crawl.delay must be a number, but is '1' ("),
        ("[crawl]\nprivate = 1", "crawl.private must be true or false, but is 1 ("),
        ("jobs = 2", "'jobs' stands outside a [section] in "),
        ("[run]\njob = 2", "there is no setting run.job ("),
        ("[run.jobs]\na = 2", "run.jobs must be a whole number, but is {'a': 2} ("),
    ],
)
def test_a_bad_value_in_the_file_is_named_with_its_place(folder: Path, text: str, message: str) -> None:
    sentence = problem(with_file(folder, text))
    assert sentence.startswith("Settings need mending: ")
    assert message in sentence
    assert str(folder / "siteloom.toml") in sentence


@pytest.mark.parametrize("text", ["1", "1.0", "1e0"])
def test_seconds_need_not_be_whole(folder: Path, text: str) -> None:
    said = load_settings(folder, {"SITELOOM_CRAWL_DELAY": text}, {})
    assert said == load_settings(folder, {"SITELOOM_CRAWL_DELAY": "1.00"}, {})
    half, _ = load_settings(with_file(folder, "[crawl]\ndelay = 0.5"), {}, {})
    assert half.crawl.delay == 0.5
    whole, resolved = load_settings(with_file(folder, "[crawl]\ndelay = 2"), {}, {})
    assert whole.crawl.delay == 2
    assert [one.shown for one in resolved if one.name == "crawl.delay"] == ["2"]


@pytest.mark.parametrize("text", ["", "x", "1.5", "--5", "5-", "1 2", "9" * 5_000])
def test_a_bad_number_in_the_environment_is_named_with_its_variable(folder: Path, text: str) -> None:
    sentence = problem(folder, {"SITELOOM_RUN_JOBS": text})
    expected = f"run.jobs must be a whole number, but is {text!r} (SITELOOM_RUN_JOBS in the environment)"
    assert bounded(expected) in sentence


@given(st.text())
def test_any_text_in_the_environment_is_a_number_or_a_clear_problem(text: str) -> None:
    environment = {"SITELOOM_RUN_JOBS": text}
    try:
        is_good = int(text) >= 1
    except ValueError:
        is_good = False
    if is_good:
        settings, _ = load_settings(NO_FOLDER, environment, {})
        assert settings.run.jobs == int(text)
    else:
        assert "run.jobs must be" in problem(NO_FOLDER, environment)


@pytest.mark.parametrize(
    ("text", "environment", "flags", "suggestion"),
    [
        ("[parse]\nmax_byte = 1", {}, {}, "perhaps parse.max_bytes is meant"),
        ("[pares]\nmax_tags = 1", {}, {}, "perhaps parse.max_tags is meant"),
        ("", {"SITELOOM_RUN_JOB": "1"}, {}, "perhaps SITELOOM_RUN_JOBS is meant"),
        ("", {}, {"store.workspce": "x"}, "perhaps store.workspace is meant"),
    ],
)
def test_an_unknown_name_gets_a_suggestion(
    folder: Path, text: str, environment: dict[str, str], flags: dict[str, object], suggestion: str
) -> None:
    assert suggestion in problem(with_file(folder, text), environment, flags)


def test_a_name_like_no_other_gets_no_suggestion(folder: Path) -> None:
    sentence = problem(folder, {ENVIRONMENT_PREFIX + "ZZZZZZZZZZZZZZZZ": "1"})
    assert "there is no setting SITELOOM_ZZZZZZZZZZZZZZZZ (the environment)" in sentence
    assert "perhaps" not in sentence


def test_all_mistakes_are_reported_at_once(folder: Path) -> None:
    with_file(folder, "[run]\njobs = 0\n[parse]\nmax_byte = 1\n[nothing]\nat_all = 1\n")
    sentence = problem(
        folder, {"SITELOOM_PAGES_MAX_BYTES": "x", "SITELOOM_NONSENSE": "1"}, {"parse.max_tags": -1}
    )
    for name in (
        "run.jobs",
        "parse.max_byte ",
        "nothing.at_all",
        "pages.max_bytes",
        "SITELOOM_NONSENSE",
        "parse.max_tags",
    ):
        assert name in sentence
    assert sentence.count(";") == 5
    assert "\n" not in sentence


@pytest.mark.parametrize("text", [b"[run", b"\xff", b"x = " + b"[" * 5_000 + b"]" * 5_000, b"a = 1\na = 2"])
def test_a_file_that_is_no_toml_is_one_clear_sentence(folder: Path, text: bytes) -> None:
    sentence = problem(with_file(folder, text))
    assert sentence.startswith(f"{folder / 'siteloom.toml'} cannot be read: ")


def test_a_settings_file_that_is_a_folder_is_one_clear_sentence(folder: Path) -> None:
    (folder / "siteloom.toml").mkdir()
    assert "cannot be read" in problem(folder)


def test_a_bad_setting_is_wrong_use() -> None:
    assert issubclass(SettingsError, UsageError)
    assert SettingsError.exit_status == 2


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        ParseSettings().max_bytes = 5  # type: ignore[misc]


# Files of others

REACHING = """
[alarm]
command = "touch owned"
webhook = "https://evil.example/hook"
[store]
url = "postgresql://evil.example/pages"
workspace = "../elsewhere"
[pages]
warcs = "https://evil.example/"
[crawl]
private = true
sandbox = false
[retention]
days = 1
"""
NAMES = [
    "pages.warcs",
    "crawl.private",
    "crawl.sandbox",
    "store.workspace",
    "store.url",
    "alarm.webhook",
    "alarm.command",
    "retention.days",
]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of someone who has trusted nothing yet, with a home of their own."""
    return {"HOME": str(tmp_path / "home")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return with_file(tmp_path / "project", REACHING)


def test_what_reaches_beyond_its_folder_needs_trust(project: Path, home: dict[str, str]) -> None:
    sentence = problem(project, home)
    assert sentence.startswith(
        f"{project / 'siteloom.toml'} sets {' and '.join(NAMES)}, which can run programs"
    )
    assert "siteloom config --trust" in sentence
    assert "SITELOOM_ALARM_COMMAND" in sentence
    assert "\n" not in sentence


def test_what_is_not_trusted_is_shown_and_does_not_count(project: Path, home: dict[str, str]) -> None:
    settings, resolved = load_settings(project, home, {}, shows_untrusted=True)
    assert settings == Settings()
    assert [setting.name for setting in resolved if setting.needs_trust] == NAMES
    assert "evil.example" in next(one.shown for one in resolved if one.name == "store.url")


def test_a_trusted_file_counts(project: Path, home: dict[str, str]) -> None:
    allowed = trust_settings_file(project, home)
    assert [setting.name for setting in allowed] == NAMES
    settings, resolved = load_settings(project, home, {})
    assert settings.alarm.command == "touch owned"
    assert settings.store == StoreSettings("../elsewhere", "postgresql://evil.example/pages")
    assert not any(setting.needs_trust for setting in resolved)


@pytest.mark.parametrize("change", ["content", "place", "person"])
def test_trust_is_in_one_file_with_one_content_by_one_person(
    project: Path, home: dict[str, str], change: str
) -> None:
    trust_settings_file(project, home)
    if change == "content":
        with_file(project, REACHING.replace("touch owned", "touch mine"))
    elif change == "place":
        project = project.rename(project.parent / "other")
    else:
        home = {"HOME": home["HOME"] + "2"}
    assert "alarm.command" in problem(project, home)


def test_a_file_trusted_again_is_trusted_only_as_it_is_now(project: Path, home: dict[str, str]) -> None:
    trust_settings_file(project, home)
    with_file(project, "[alarm]\ncommand = 'mine'")
    trust_settings_file(project, home)
    assert load_settings(project, home, {})[0].alarm.command == "mine"
    with_file(project, REACHING)
    assert "alarm.command" in problem(project, home)


def test_what_is_trusted_is_kept_for_nobody_else_to_read(project: Path, home: dict[str, str]) -> None:
    trust_settings_file(project, home)
    kept = Path(home["HOME"], ".local/state/siteloom/trusted")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in kept.parent.iterdir()] == ["trusted"]
    elsewhere = {**home, "XDG_STATE_HOME": str(project.parent / "state")}
    trust_settings_file(project, elsewhere)
    assert (project.parent / "state/siteloom/trusted").read_text() == kept.read_text()


@pytest.mark.parametrize("environment", [{}, {"HOME": "x", "XDG_STATE_HOME": "siteloom-state"}])
def test_without_a_home_nothing_is_trusted(project: Path, environment: dict[str, str]) -> None:
    assert "alarm.command" in problem(project, environment)
    with pytest.raises(SettingsError, match="set HOME or XDG_STATE_HOME"):
        trust_settings_file(project, environment)


def test_the_environment_and_flags_are_ones_own(project: Path, home: dict[str, str]) -> None:
    own = {f"SITELOOM_{name.upper().replace('.', '_')}": "" for name in NAMES}
    own |= {"SITELOOM_CRAWL_PRIVATE": "true", "SITELOOM_ALARM_COMMAND": "logger"}
    own |= {"SITELOOM_CRAWL_SANDBOX": "true", "SITELOOM_RETENTION_DAYS": "0"}
    flags = {"store.url": "postgresql://mine.example/pages"}
    settings, _ = load_settings(project, {**home, **own}, flags)
    assert settings.crawl.private
    assert settings.crawl.sandbox
    assert settings.alarm.command == "logger"
    assert settings.store.url == "postgresql://mine.example/pages"


@pytest.mark.parametrize(
    "text",
    [
        "[store]\nworkspace = 'pages/of/shops'",
        "[pages]\nwarcs = 'archive'",
        "[crawl]\nprivate = false\nsandbox = true\ncontact = 'me@shop.example'",
        "[alarm]\ncommand = ''\nwebhook = ''",
        "[store]\nurl = ''",
        "[retention]\ndays = 0\nversions = 0",
    ],
)
def test_what_stays_in_its_folder_needs_no_trust(folder: Path, home: dict[str, str], text: str) -> None:
    load_settings(with_file(folder, text), home, {})


@pytest.mark.parametrize(
    "text",
    [
        "[store]\nworkspace = '/srv/pages'",
        "[store]\nworkspace = 'a/../../b'",
        "[pages]\nwarcs = '/etc'",
        "[pages]\nwarcs = 'file:///etc'",
        "[pages]\nwarcs = 's3://bucket'",
        "[retention]\nversions = 1",
    ],
)
def test_what_leads_out_of_its_folder_needs_trust(folder: Path, home: dict[str, str], text: str) -> None:
    assert "siteloom config --trust" in problem(with_file(folder, text), home)


@pytest.mark.parametrize("name", ["link", "link/inside", "sub/link", "circle"])
@pytest.mark.parametrize("setting", ["[store]\nworkspace", "[pages]\nwarcs"])
def test_a_link_that_leads_out_of_the_folder_needs_trust(
    tmp_path: Path, home: dict[str, str], setting: str, name: str
) -> None:
    folder = tmp_path / "cloned"
    (tmp_path / "victim").mkdir()
    (folder / "sub").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path / "victim")
    (folder / "sub/link").symlink_to("../../victim")
    (folder / "circle").symlink_to("circle")
    assert "siteloom config --trust" in problem(with_file(folder, f"{setting} = '{name}'"), home)


@pytest.mark.parametrize("target", ["../victim", "../missing", ".siteloom"])
def test_the_default_workspace_needs_trust_if_it_leads_out_of_the_folder(
    tmp_path: Path, home: dict[str, str], target: str
) -> None:
    folder = tmp_path / "cloned"
    folder.mkdir()
    (tmp_path / "victim").mkdir()
    (folder / ".siteloom").symlink_to(target)
    said = problem(folder, home)
    assert said.startswith(f"{folder}/.siteloom leads out of this folder by a symbolic link: ")
    assert "alarm.command" in problem(with_file(folder, "[alarm]\ncommand = 'x'"), home)
    assert said in problem(folder, home)
    _, resolved = load_settings(folder, home, {}, shows_untrusted=True)
    assert {one.name for one in resolved if one.needs_trust} == {"store.workspace", "alarm.command"}
    # Whoever names it means it, and so does whoever trusts the folder's file.
    with_file(folder, "[parse]\nmax_bytes = 7")
    load_settings(folder, home, {"store.workspace": ".siteloom"})
    load_settings(folder, {**home, "SITELOOM_STORE_WORKSPACE": ".siteloom"}, {})
    assert [one.name for one in trust_settings_file(folder, home)] == ["store.workspace"]
    load_settings(folder, home, {})


def test_a_default_workspace_within_the_folder_needs_none(folder: Path, home: dict[str, str]) -> None:
    (folder / "there").mkdir()
    (folder / ".siteloom").symlink_to("there")
    load_settings(folder, home, {})


def test_a_link_within_the_folder_needs_no_trust(folder: Path, home: dict[str, str]) -> None:
    (folder / "there").mkdir()
    (folder / "link").symlink_to("there")
    load_settings(with_file(folder, "[store]\nworkspace = 'link'\n[pages]\nwarcs = 'link'"), home, {})


def test_a_link_to_a_trusted_file_is_not_trusted(tmp_path: Path, project: Path, home: dict[str, str]) -> None:
    """Its paths and commands would be those of the folder of the link, which someone else may have made."""
    trust_settings_file(project, home)
    cloned = tmp_path / "cloned"
    cloned.mkdir()
    (cloned / "siteloom.toml").symlink_to(project / "siteloom.toml")
    assert "alarm.command" in problem(cloned, home)


@pytest.mark.parametrize("content", [None, ""])
def test_there_must_be_something_to_trust(folder: Path, home: dict[str, str], content: str | None) -> None:
    if content is not None:
        with_file(folder, content)
    with pytest.raises(SettingsError, match="nothing to trust"):
        trust_settings_file(folder, home)


def test_a_file_without_end_is_one_clear_sentence(folder: Path) -> None:
    with (folder / "siteloom.toml").open("wb") as file:
        file.truncate(10**12)  # which takes no room on the disk
    assert "it has more than 1,000,000 bytes" in problem(folder)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_settings_file_that_is_no_file_is_one_clear_sentence(
    folder: Path, make: Callable[[Path], None]
) -> None:
    make(folder / "siteloom.toml")
    assert "it is no ordinary file" in problem(folder)


@pytest.mark.parametrize("digits", [400, 5_000])
def test_a_number_of_very_many_digits_is_one_clear_sentence(folder: Path, digits: int) -> None:
    assert problem(with_file(folder, f"[crawl]\ndelay = {'9' * digits}")).endswith(".")
