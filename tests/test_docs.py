"""What the documents say is true: their commands and code run, and nothing is left out."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from torture.warm import run_warm

from siteloom.builtin import directory_site, guide_site
from siteloom.cli import VERBS
from siteloom.config import load_settings
from siteloom.learning import learn
from siteloom.model import Example

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def read(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def commands(document: str) -> list[str]:
    """The `siteloom` commands and the small shell lines of a document, in order."""
    lines = re.findall(r"^    (.+)$", read(document), re.MULTILINE)
    return [line for line in lines if line.startswith(("siteloom ", "echo "))]


def code(document: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", read(document), re.MULTILINE | re.DOTALL)


def run(folder: Path, example: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What Python code does."""
    return run_warm(["-c", example, *arguments], folder, os.environ)


def follow(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """What a line does that is typed into a shell."""
    program, *arguments = shlex.split(line)
    if program == "siteloom" and not {"|", ">", ">>", "<", "&&", ";"} & set(arguments):
        return run_warm(["-m", "siteloom", *arguments], folder, os.environ)
    scripts = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    folder = tmp_path / "saved-pages"
    folder.mkdir()
    for number, page in enumerate(guide_site()[:3]):
        (folder / f"{number}.html").write_bytes(page.page.html)
    archive = tmp_path / "crawl.warc.gz"
    archive.write_bytes(b"")
    (example,) = code("README.md")
    result = run(tmp_path, example)
    assert result.returncode == 0, result.stderr
    assert guide_site()[0].page.url in result.stdout
    assert "1 pages could not be read" in result.stdout


def test_the_example_of_learning_runs(tmp_path: Path) -> None:
    (example,) = [block for block in code("docs/reference/python.md") if "siteloom.learn(" in block]
    result = run(tmp_path, example)
    assert result.returncode == 0, result.stderr
    assert "{'name': ('Desk',), 'price': ('$240.00',)}" in result.stdout
    assert "the nearest text is '$12.99'" in result.stdout


def test_the_example_of_known_records_runs(tmp_path: Path) -> None:
    (example,) = [block for block in code("docs/reference/python.md") if "siteloom.bootstrap(" in block]
    result = run(tmp_path, example)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("15 \n")
    assert "{'name': ('Cafe Nettle',), 'phone': ('0113 496 0117',)}" in result.stdout


def test_sites_are_wrapped_from_a_table_to_the_letter(tmp_path: Path) -> None:
    attributes = ("name", "address", "phone", "cuisine", "opened")
    # A quarter of the restaurants is enough, and takes a quarter of the time.
    sites = (guide_site(), directory_site())
    entities = sorted({str(page.entity) for site in sites for page in site if page.kind == "restaurant"})
    some = {*entities[::4], None}  # lists are about none
    known, directory = ([page for page in site if page.entity in some] for site in sites)
    with (tmp_path / "restaurants.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(attributes)
        for page in known:
            if page.kind == "restaurant":
                table.writerow("; ".join(page.truth[name]) for name in attributes)
    for name, site in (("guide", known), ("directory", directory)):
        lines = [json.dumps({"url": page.page.url, "html": page.page.html.decode()}) for page in site]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    document = "docs/how-to/start-from-a-table.md"
    for command in commands(document):
        result = follow(tmp_path, command)
        assert result.returncode == 0, (command, result.stderr)
    entries = {page.page.url: page.truth for page in directory if page.kind == "restaurant"}
    with (tmp_path / "records.csv").open(encoding="utf-8", newline="") as file:
        found = {row["url"]: row for row in csv.DictReader(file)}
    assert found.keys() == entries.keys()
    assert all((found[url]["name"],) == truth["name"] for url, truth in entries.items())
    with (tmp_path / "sites.csv").open(encoding="utf-8", newline="") as file:
        assert {row["outcome"] for row in csv.DictReader(file)} == {"wrapped"}
    (example,) = code(document)
    told = run(tmp_path, example)
    assert told.returncode == 0, told.stderr
    assert "opened refused" in told.stdout
    assert told.stdout.count("'address':") == 3


@pytest.mark.parametrize(
    ("document", "kind"),
    [("docs/how-to/wrap-a-site.md", "restaurant"), ("docs/how-to/wrap-list-pages.md", "list")],
)
def test_the_examples_of_using_wrappers_run(tmp_path: Path, document: str, kind: str) -> None:
    pages = [page for page in guide_site() if page.kind == kind][:4]
    lines = [json.dumps({"url": page.page.url, "html": page.page.html.decode()}) for page in pages]
    (tmp_path / "crawl.jsonl").write_text("\n".join(lines), encoding="utf-8")
    example = Example(pages[0].page, pages[0].truth, pages[0].records[:3])
    wrapper = learn([example], [page.page for page in pages])
    (tmp_path / "wrapper.json").write_text(wrapper.to_json(), encoding="utf-8")
    (code_block,) = code(document)
    result = run(tmp_path, code_block)
    assert result.returncode == 0, result.stderr
    assert all(page.page.url in result.stdout for page in pages)


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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target
