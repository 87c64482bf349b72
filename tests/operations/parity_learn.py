"""Parity cases: annotate, learn, extract, finish."""

from __future__ import annotations

import json
from pathlib import Path

from siteloom.operations.annotate import AnnotateRequest
from siteloom.operations.cluster import TemplateRequest
from siteloom.operations.explain import ExplainRequest
from siteloom.operations.export import ExportRequest
from siteloom.operations.extract import ExtractRequest, FinishRequest
from siteloom.operations.learn import LearnRequest
from siteloom.operations.sample import SampleRequest
from siteloom.sources.example_files import ExampleLine
from siteloom.store.store import Store
from tests.apps.demo.sites import guide, of_kind
from tests.lived_in import GUIDE
from tests.maintenance.guide import restaurants
from tests.operations.parity import ParityCase

EXAMPLES = "examples.jsonl"
RESTAURANTS = f"{GUIDE}/1"


def write_examples(store: Store) -> None:
    """Write a few examples beside the workspace, where the command line is run."""
    Path(store.folder.parent / EXAMPLES).write_text(
        "".join(
            json.dumps(
                {"url": line.url, "values": {name: list(texts) for name, texts in line.values.items()}}
            )
            + "\n"
            for line in _lines()
        )
    )


def _lines() -> list[ExampleLine]:
    entities = [one.entity for one in restaurants()[4:6]]
    pages = of_kind(guide("redesign"), "restaurant")
    return [ExampleLine(one.page.url, one.truth, (), {}) for one in pages if one.entity in entities]


CASES = [
    ParityCase("template", TemplateRequest(with_paths=True, with_tags=True), ("template", "--paths")),
    ParityCase("sample", SampleRequest(), ("sample",)),
    ParityCase("explain", ExplainRequest(url=_lines()[0].url), ("explain", _lines()[0].url)),
    ParityCase(
        "export",
        ExportRequest(format="xslt", wrapper=RESTAURANTS),
        ("export", "--format", "xslt", "--wrapper", RESTAURANTS),
    ),
    ParityCase("annotate", AnnotateRequest(examples=tuple(_lines()))),
    ParityCase("learn", LearnRequest(), ("learn",), {}),
    ParityCase(
        "learn",
        LearnRequest(cluster=RESTAURANTS),
        ("learn", "--cluster", RESTAURANTS),
        {"cluster": RESTAURANTS},
    ),
    ParityCase(
        "learn",
        LearnRequest(examples=tuple(_lines())),
        ("learn", "--examples", EXAMPLES),
        prepare=write_examples,
    ),
    ParityCase("extract", ExtractRequest(), ("extract",), {}),
    ParityCase("extract", ExtractRequest(site=GUIDE), ("extract", "--site", GUIDE), {"site": GUIDE}),
    ParityCase(
        "finish",
        FinishRequest(cluster=RESTAURANTS),
        arguments={"cluster": RESTAURANTS},
    ),
]
