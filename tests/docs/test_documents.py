"""What the documents say is true: all that stands in them as code runs, and nothing is left out."""

from __future__ import annotations

import importlib
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.core import TyperArgument, TyperOption

from siteloom.apps.cli.main import command_of
from siteloom.apps.cli.verbs import VERBS
from siteloom.core.settings import load_settings
from tests.docs.blocks import DOCUMENTS, ROOT, blocks, read
from tests.docs.entries import start
from tests.docs.following import TABLE, extras, follow_document
from tests.docs.reference import COMMAND, WRITTEN, headings_of, page

FILE_SUFFIXES = {"toml", "db"}
FORMATS = {"wrapper"}  # `siteloom wrapper` is what a file says it is
# The tutorial, which takes long, has a file of its own: another process can follow it meanwhile.
FOLLOWED = [document for document in DOCUMENTS if blocks(document) and document != start.TUTORIAL]


@pytest.mark.parametrize("document", FOLLOWED)
def test_a_document_can_be_followed_to_the_letter(
    document: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if document not in TABLE:
        pytest.fail(
            f"{document} has blocks of code that nothing runs: add it to a module of tests/docs/entries, as "
            "CONTRIBUTING.md says."
        )
    follow_document(document, tmp_path, request)


def test_all_documents_of_the_table_are_there() -> None:
    assert not [document for document in TABLE if document not in DOCUMENTS]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_is_called_in_a_sentence_is_there(document: str) -> None:
    """Verbs and their options; what stands in blocks is run."""
    for call in re.findall(r"`siteloom ([a-z][^`]*)`", read(document)):
        if call in FORMATS:
            continue
        verb, *words = call.split()
        assert verb in VERBS, call
        known = {name for one in command_of(verb).params for name in (*one.opts, *one.secondary_opts)}
        named = {word.partition("=")[0] for word in words if re.match("--?[a-z]", word)}
        assert named <= known, call


@pytest.mark.parametrize("document", DOCUMENTS)
def test_python_names_in_a_sentence_exist(document: str) -> None:
    for name in set(re.findall(r"`(siteloom(?:\.[A-Za-z_]+)+)(?:\([^`]*)?`", read(document))):
        if name.rpartition(".")[2] not in FILE_SUFFIXES:
            assert resolves(name), name


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    value: object = None
    path = ""
    for part in name.split("."):
        path = f"{path}.{part}".lstrip(".")
        if hasattr(value, part):
            value = getattr(value, part)
        elif find_spec(path):
            value = importlib.import_module(path)
        else:
            return False
    return True


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_extras_that_are_named_are_there(document: str) -> None:
    for named in re.findall(r"(?:\.|siteloom)\[([a-z,-]+)\]", read(document)):
        assert set(named.split(",")) <= extras(), named


def test_every_verb_is_documented() -> None:
    reference = read("docs/reference/command-line.md")
    for verb in VERBS:
        assert f"`{verb}" in reference


def test_every_setting_is_documented_with_its_default_and_help() -> None:
    reference = read("docs/reference/settings.md")
    _, settings = load_settings(ROOT, {}, {})
    for setting in settings:
        (row,) = [line for line in reference.splitlines() if f"`{setting.name}`" in line]
        assert setting.help in row
        assert f"| {setting.shown} |".replace("|  |", "| |") in row


def test_every_reason_of_failure_is_documented() -> None:
    reference = read("docs/reference/files.md")
    sources = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))
    reasons = set(re.findall(r'Failure\(\s*[^,"]*(?:f?"[^"]*")?,\s*"([^"]+)"', sources))
    assert len(reasons) > 10
    assert not {reason for reason in reasons if f"`{reason}`" not in reference}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    for target, part in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", read(document)):
        file = (ROOT / document).parent / target if target else ROOT / document
        assert file.exists(), target
        if part:
            assert part in headings_of(file.resolve().relative_to(ROOT).as_posix()), f"{target}#{part}"


@pytest.mark.parametrize("document", WRITTEN)
def test_the_reference_says_what_the_code_says(document: str) -> None:
    assert read(document) == page(document), f"{document} is out of date: {COMMAND} writes it anew."


@pytest.mark.parametrize("verb", VERBS)
def test_each_argument_and_option_is_explained(verb: str) -> None:
    for one in command_of(verb).params:
        assert isinstance(one, TyperArgument | TyperOption)
        assert one.help, (verb, one.name)
