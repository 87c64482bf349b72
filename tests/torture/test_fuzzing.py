"""Every target bears its seeds and some hundred changes of them, and the fuzzer finds what is planted."""

from __future__ import annotations

import json
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torture.fuzz_targets import all_targets, load_target
from torture.fuzz_targets.cutting import Cutter, edited
from torture.fuzz_targets.mutating import mutations
from torture.fuzzing import fuzz, ordeals
from torture.ordeals import Plan

needs_atheris = pytest.mark.skipif(
    find_spec("atheris") is None, reason="atheris is not installed: pip install --group torture"
)

# By name, since to load them all takes longer than to find out which tests there are.
NAMES = {
    "pages": "page_tree page_signature page_records exported_wrapper learned_from_pages changed_pages "
    "clustered_pages clean_page archived_page stylesheet embedded_data typed_text",
    "archives": "warc_file wacz_file cdx_file linked_folder source_list table_of_records json_lines_file "
    "parquet_file folder_of_pages pack_file",
    "files": "examples_file wrapper_json watch_json seed_file peer_file settings_file",
    "workspaces": "workspace_database",
    "addresses": "learned_url_patterns sitemap page_links ip_addresses search_query",
}
# Of targets that take tens of milliseconds a run, fewer: none takes much more than a second.
RUNS = 200
FEWER_RUNS = {
    "pages.page_records": 40,
    "pages.exported_wrapper": 40,
    "pages.learned_from_pages": 40,
    "pages.changed_pages": 4,
    "pages.clustered_pages": 60,
    "pages.page_tree": 100,
    "pages.archived_page": 100,
    "pages.clean_page": 100,
    "pages.embedded_data": 60,
    "files.examples_file": 60,
    "files.wrapper_json": 40,
    "files.watch_json": 20,
    "addresses.learned_url_patterns": 15,
}
SECONDS_OF_A_RUN = 10  # of the processor, by which what hangs is told from what only waits for others


@pytest.mark.parametrize(
    "name", [f"{module}.{name}" for module, names in NAMES.items() for name in names.split()]
)
def test_seeds_and_changes_of_them_are_borne(name: str) -> None:
    target = load_target(name)
    seeds = list(target.seeds())
    assert seeds
    with warnings.catch_warnings(action="ignore"):
        for data in seeds:  # not timed: the first of them may have functions compiled
            target.run(data)
        for data in mutations(seeds, target.words, FEWER_RUNS.get(name, RUNS), seed=1):
            start = time.process_time()
            target.run(data)
            assert time.process_time() - start < SECONDS_OF_A_RUN, data


def test_no_target_is_left_out() -> None:
    assert list(all_targets()) == [
        f"{module}.{name}" for module, names in NAMES.items() for name in names.split()
    ]


def test_the_same_seed_gives_the_same_changes() -> None:
    first, second = (list(mutations([b"abc", b"<p>"], [b"word"], 50, seed=7)) for _ in range(2))
    assert first == second
    assert first != list(mutations([b"abc", b"<p>"], [b"word"], 50, seed=8))
    assert len(set(first)) > 30


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.binary(max_size=40))
def test_an_edited_document_is_still_json_and_the_original_as_it_was(document: object, data: bytes) -> None:
    before = json.dumps(document)
    json.dumps(edited(document, Cutter(data)))
    assert json.dumps(document) == before
    assert json.dumps(edited(document, Cutter(b""))) == before


def test_edits_reach_what_is_deep_inside() -> None:
    document = {"a": [{"b": "deep"}], "c": 1}
    seen = {
        json.dumps(edited(document, Cutter(data))) for data in mutations([b"\1\1\1\1\1\0\7"], [], 300, seed=1)
    }
    assert len(seen) > 50
    assert any('"deep"' not in text and '"b"' in text for text in seen)


# The fuzzer itself


@needs_atheris
def test_the_fuzzer_finds_a_planted_fault(tmp_path: Path) -> None:
    fuzzed = fuzz("planted", [b"look"], [], Plan(0.6, 1, tmp_path), "tests.torture.planted_fault")
    assert "the planted fault" in fuzzed.fault, fuzzed
    (found,) = fuzzed.faulty_inputs
    assert found.read_bytes().startswith(b"loom")


@needs_atheris
def test_a_target_is_fuzzed_by_which_code_it_reaches(tmp_path: Path) -> None:
    target = load_target("addresses.sitemap")
    fuzzed = fuzz("addresses.sitemap", target.seeds(), target.words, Plan(0.02, 1, tmp_path))
    assert not fuzzed.fault
    assert fuzzed.runs > 10
    assert fuzzed.reached > 10
    assert fuzzed.corpus > 1


def test_without_the_fuzzer_the_report_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("torture.fuzzing.find_spec", lambda _: None)
    (only,) = ordeals(Plan(0.01, 1, tmp_path))
    assert not only.is_borne
    assert only.found.startswith("atheris is not installed")
