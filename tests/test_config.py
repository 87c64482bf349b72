"""Settings: where they come from, and what is said about bad ones."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.config import ENVIRONMENT_PREFIX, ParseSettings, Settings, load_settings
from siteloom.errors import SettingsError, UsageError

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
    assert (
        f"run.jobs must be a whole number, but is {text!r} (SITELOOM_RUN_JOBS in the environment)" in sentence
    )


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
