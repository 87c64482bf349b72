"""The documents to look things up in, and those that explain."""

from __future__ import annotations

import json
import re
import warnings

from pydantic import TypeAdapter
from torture.warm import run_warm

from siteloom import Change, Wrapper
from siteloom.apps.server.routes.annotation import Said
from siteloom.core.model import Page, Seed
from siteloom.sources.example_files import read_examples, read_records, read_schema
from siteloom.sources.rows_to_seeds import read_seeds
from tests.apps.cli.command import Command
from tests.apps.cli.verbs.test_serve import served
from tests.docs import shop
from tests.docs.following import Place, followed


@followed("docs/reference/python.md")
def python(place: Place) -> None:
    place.take("workspace", "crawl.jsonl", "wrapper.json")
    for name in ("products.json", "reviews.json"):
        place.write(name, (place.folder / "wrapper.json").read_bytes())
    place.siteloom("extract", "crawl.jsonl", "--wrapper", "wrapper.json", "-o", "records.jsonl")
    place.follow()
    learning, many, table, workspace, known = place.results.values()
    assert "{'name': ('Desk',), 'price': ('$240.00',)}" in learning.stdout
    assert "the nearest text is '$12.99'" in learning.stdout
    assert many.stdout.count("'name':") == shop.COUNT
    assert "49.90" in table.stdout
    assert workspace.stdout.count(shop.ORIGIN) == shop.COUNT
    assert known.stdout.startswith("15 \n")
    assert "{'name': ('Cafe Nettle',), 'phone': ('0113 496 0117',)}" in known.stdout


@followed("docs/reference/settings.md")
def settings(place: Place) -> None:
    place.write("siteloom.toml", '[alarm]\ncommand = "true"\n')
    place.follow()
    assert place.siteloom("config", "-o", "-").stdout.count("siteloom.toml") == 1


@followed(
    "docs/reference/command-line.md",
    not_run={"siteloom VERB [ARGUMENTS] [OPTIONS]": "what calls look like"},
)
def command_line(place: Place) -> None:
    place.follow()


@followed("docs/reference/files.md", not_run={".siteloom/": "names of files, which the entry looks for"})
def files(place: Place) -> None:
    place.take("workspace", "crawl.jsonl")
    place.follow()
    told = place.text_of(".siteloom/")
    for file in (place.folder / ".siteloom").iterdir():
        assert re.search(rf"^  .*\b{re.escape(file.name)}\b", told, re.MULTILINE), file.name
    examples, seeds, schema, records, changes, entities, hits = [
        block.text for block in place.blocks if block.kind == "json"
    ]
    for example in read_examples(str(place.write("examples.jsonl", examples))):
        assert example.url.startswith(shop.ORIGIN)
    (seed,) = read_seeds(str(place.write("seeds.jsonl", seeds)))
    assert isinstance(seed, Seed)
    assert (seed.values["cuisine"], seed.source) == (("Thai", "Vegan"), "chamber of commerce")
    known = read_schema(str(place.write("schema.json", schema)))
    assert known == json.loads(schema)
    (record,) = read_records(str(place.write("records.jsonl", records)))
    assert record.values["price"] == ("$49.90",)
    # What a verb writes has the keys that are shown.
    place.siteloom("extract", "-o", "extracted.jsonl")
    assert list(json.loads(records)) == list(place.rows("extracted.jsonl")[0])
    place.siteloom("search", "lamp", "--in", "records", "-o", "hits.jsonl")
    assert list(json.loads(hits)) == list(place.rows("hits.jsonl")[0])
    table = str(place.write("table.csv", shop.table()))
    place.siteloom("entities", table, "extracted.jsonl", "--core", "name,address", "-o", "entities.jsonl")
    assert list(json.loads(entities)) == list(place.rows("entities.jsonl")[0])
    assert Change(**json.loads(changes)).share == 0.95


@followed("docs/reference/wrapper-format.md")
def wrapper_format(place: Place) -> None:
    place.follow()
    (block,) = place.blocks
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*libxml2")  # it may be of another version than this
        wrapper = Wrapper.from_json(block.text)
    html = '<div class="contact"><p>Phone: 0113 496 0000</p></div>'
    page = Page.from_text("https://www.shop.example/store/1.html", html)
    assert wrapper.extract(page).values == {"phone": ("0113 496 0000",)}
    assert wrapper.footprint.sites == ("shop.example",)


@followed("docs/reference/wrapper-exports.md")
def wrapper_exports(place: Place) -> None:
    place.take("wrapper.json")
    for name, file in (("xslt", "wrapper.xslt"), ("xpath-json", "xpath.json")):
        place.siteloom("export", "--format", name, "--wrapper", "wrapper.json", "-o", file)
    place.follow()
    # What a stylesheet of someone else includes is not read.
    include = '<xsl:include href="secret.xslt"/><xsl:template'
    hostile = (place.folder / "wrapper.xslt").read_text(encoding="utf-8").replace("<xsl:template", include, 1)
    place.write("wrapper.xslt", hostile)
    place.write("secret.xslt", hostile.replace(include, "<xsl:template"))
    refused = run_warm(["-c", place.text_of("from pathlib import Path")], place.folder, place.environment)
    assert "secret.xslt is not read" in refused.stderr
    shown = json.loads(place.text_of("{"))
    assert list(shown) == list(json.loads((place.folder / "xpath.json").read_text(encoding="utf-8")))


@followed("docs/reference/web-api.md")
def web_api(place: Place) -> None:
    place.take("workspace", "crawl.warc.gz")
    siteloom = Command(place.folder)
    assert siteloom("user", "add", "ana", stdin="a long password\n").returncode == 0
    place.environment["KEY"] = place.siteloom("user", "key", "ana", "a test").stdout.strip()
    with served(siteloom) as (address, _):
        place.instead["http://127.0.0.1:8787/"] = address
        place.follow(before='curl -H "Authorization: Bearer $KEY" --json')
        upload = json.loads(place.last.stdout)
        place.instead['"ID"'] = json.dumps(upload["upload"])
        place.follow()
    answers = [json.loads(result.stdout) for result in place.results.values()]
    assert "detail" not in str([list(answer) for answer in answers])
    workbench, _, job, records = answers
    assert workbench["pages"]
    assert job["kind"] == "ingest"
    prices = [record["values"]["price"] for record in records["records"]]
    assert prices
    said = TypeAdapter(Said).validate_json(place.text_of("{"))
    assert said.values["fax"] == []


FORMULAS = {
    "docs/explanation/known-records.md": (
        "log2(seeds with the attribute / seeds that are as similar to the text) {times} similarity²",
        "kappa = (a {minus} c) / (n {minus} c)",
    ),
    "docs/sizing.md": ("core-hours = pages / pages a core-hour",),
}
for document, formulas in FORMULAS.items():
    signs = {"times": "\N{MULTIPLICATION SIGN}", "minus": "\N{MINUS SIGN}"}
    written = [formula.format(**signs) for formula in formulas]
    followed(document, not_run=dict.fromkeys(written, "a formula"))(Place.follow)
for name in ("evaluation", "evaluation/change", "evaluation/clustering", "evaluation/wrappers"):
    followed(f"docs/{name}.md")(Place.follow)
