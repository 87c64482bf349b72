"""Any bytes as a file that people write or get from others: examples, wrappers, watches, seeds, settings."""

from __future__ import annotations

import csv
import json
import time
import warnings
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from siteloom.apps.demo.sites import guide_site
from siteloom.core.errors import (
    ExampleError,
    SettingsError,
    SiteloomError,
    SourceError,
    UsageError,
    WatchError,
    WrapperError,
)
from siteloom.core.model import Example, Failure, Footprint, Page, Seed
from siteloom.core.settings import load_settings
from siteloom.extraction.record_rows import record_row
from siteloom.html.parser import parse
from siteloom.learning.induction.learner import learn
from siteloom.maintenance.change_tests import monitor
from siteloom.maintenance.watch_file import watch_from_json, watch_to_json
from siteloom.maintenance.watched_pages import watch
from siteloom.sources.example_files import read_examples
from siteloom.sources.other_tools.tool_files import read_peer_file
from siteloom.sources.other_tools.tool_model import best_example
from siteloom.sources.rows_to_seeds import read_seeds, seed_of
from siteloom.wrappers.matching import Matcher, NamedWrapper
from siteloom.wrappers.wrapper import Wrapper
from torture.fuzz_targets.cutting import Cutter, as_json, edited, json_or_edits
from torture.fuzz_targets.pages import any_wrapper
from torture.fuzz_targets.target import Target, is_writable, written

# A page and a wrapper of some kilobytes take milliseconds; what takes longer than this would take for ever
# on a page of megabytes.
_SECONDS = 5.0

URL = "http://a.example/page/1"
_PAGE = (
    "<html><head><title>Blue Fern</title></head><body><div class=card id=main><h1>Blue Fern</h1>"
    "<p class=phone>Phone: <b>555 0100</b></p><p>Opened 3 April 2011, rated 4.5 of 5</p><ul>"
    + "".join(f"<li><a href=/d/{n}>Dish {n}</a> <i>$ {n}.99</i><img src={n}.png></li>" for n in range(4))
    + "</ul></div></body></html>"
)
_OTHER = _PAGE.replace("Blue Fern", "Red Oak").replace("0100", "0199").replace("Dish", "Plate")
_EXAMPLES = [
    {
        "url": URL,
        "values": {"name": ["Blue Fern"], "phone": "555 0100", "fax": []},
        "nodes": {"name": ["/html[1]/body[1]/div[1]/h1[1]/text()[1]"]},
    },
    {
        "url": "http://a.example/page/2",
        "records": [{"dish": ["Plate 0"], "price": ["$ 0.99"]}, {"dish": ["Plate 2"]}],
    },
]


def examples_file(data: bytes) -> None:
    """Examples are learned from, or one sentence says why not."""
    cut = Cutter(data)
    if cut.number(4) == 0:
        content = cut.rest()
    else:
        rows = edited(_EXAMPLES, cut)
        content = b"\n".join(as_json(row).encode() for row in (rows if isinstance(rows, list) else [rows]))
    try:
        lines = read_examples(str(written("examples.jsonl", content)))
    except ExampleError as error:
        _check_message(error)
        return
    pages = {
        URL: Page.from_text(URL, _PAGE),
        "http://a.example/page/2": Page.from_text("http://a.example/page/2", _OTHER),
    }
    examples = [line.on(pages.get(line.url, pages[URL])) for line in lines[:3]]
    try:
        wrapper = learn(examples, list(pages.values()))
    except SiteloomError:
        return
    _check_wrapper(wrapper)


def _check_message(error: SiteloomError) -> None:
    assert is_writable(str(error)), "a message that cannot be shown"


def wrapper_json(data: bytes) -> None:
    """An error, or a wrapper that is written as it was read and extracts safely and soon."""
    text = json_or_edits(data, _wrappers())
    with warnings.catch_warnings(action="ignore"):
        try:
            wrapper = Wrapper.from_json(text)
        except WrapperError as error:
            _check_message(error)
            return
    _check_wrapper(wrapper)


def _check_wrapper(wrapper: Wrapper) -> None:
    start = time.process_time()
    written_again = wrapper.to_json()
    written_again.encode()
    with warnings.catch_warnings(action="ignore"):
        assert Wrapper.from_json(written_again) == wrapper
    wrapper.explain()
    for html in (_PAGE, _OTHER):
        for record in wrapper.extract_all(Page.from_text(URL, html)):
            json.dumps(record_row(record, "w", 1), allow_nan=False)
    Matcher([NamedWrapper("w", None, wrapper)]).match(Page.from_text(URL, _PAGE))
    taken = time.process_time() - start
    assert taken < _SECONDS, f"{taken:.0f} s"


@cache
def _wrappers() -> list[Any]:
    pages = guide_site()
    single, lists = pages[:8], [page for page in pages if page.kind == "list"][:4]
    wrappers = (
        learn([Example(p.page, p.truth) for p in single[:3]], [p.page for p in single]),
        learn([Example(p.page, records=p.records[:3]) for p in lists[:2]], [p.page for p in lists]),
        any_wrapper(),
        replace(any_wrapper(), earlier=(replace(any_wrapper(), footprint=Footprint(accepted=("00" * 8,))),)),
    )
    return [json.loads(wrapper.to_json()) for wrapper in wrappers]


def watch_json(data: bytes) -> None:
    """An error, or a watch that is written as it was read and can be checked."""
    text = json_or_edits(data, [_watch()])
    with warnings.catch_warnings(action="ignore"):
        try:
            found = watch_from_json(text)
        except WatchError:
            return
        assert watch_from_json(watch_to_json(found)) == found
        monitor(found, [one.page for one in found.bellwethers])


@cache
def _watch() -> Any:
    pages = [page.page for page in guide_site()[:8]]
    wrapper = Wrapper.from_json(json.dumps(_wrappers()[0]))
    return json.loads(watch_to_json(watch(wrapper, pages)))


_SEEDS_CSV = b'name,phone,name,_source,_confidence\n"Blue\nFern",555 0100,B,x,0.5\nRed;Oak,-,,,\n\n"a""b",c\n'
_SEED_ROWS = [
    {"name": "Blue Fern", "n": 4.0, "ok": True, "a": {"b": ["c", None], "d": {"e": 1}}, "_confidence": 0.5},
    {"url": URL, "wrapper": "w", "values": {"name": ["x"]}, "confidence": {"name": [0.5]}},
]


def seed_file(data: bytes) -> None:
    """Known records of CSV or JSON Lines, or what is wrong with them."""
    cut = Cutter(data)
    how = cut.number(4)
    if how == 3:
        rows = edited(_SEED_ROWS, cut)
        listed = rows if isinstance(rows, list) else [rows]
        content = b"\n".join(as_json(row).encode() for row in listed)
        for row in listed:
            with suppress(UsageError):
                seed_of(row)
    else:
        content = cut.rest()
    limit = csv.field_size_limit()
    path = written(("s.csv", "s.tsv", "s.jsonl", "s.jsonl")[how], content)
    try:
        for seed in read_seeds(str(path), several={"name": ";"}, on_problem=lambda _: None):
            _check_seed(seed)
    except (SourceError, UsageError) as error:
        _check_message(error)
    assert csv.field_size_limit() == limit


def _check_seed(seed: Seed) -> None:
    assert 0 <= seed.confidence <= 1
    for name, texts in seed.values.items():
        assert name
        assert texts
        assert all(text == " ".join(text.split()) and text for text in texts)


_MARKED = '<h1 data-scrapy-annotate="{&quot;annotations&quot;:{&quot;content&quot;:&quot;name&quot;}}">'
_PEERS: list[Any] = [
    {
        "_id": "x",
        "startUrl": [URL],
        "selectors": [
            {
                "id": "card",
                "type": "SelectorElement",
                "selector": "ul > li",
                "parentSelectors": ["_root"],
                "multiple": True,
            },
            {
                "id": "dish",
                "type": "SelectorText",
                "selector": "a",
                "parentSelectors": ["card"],
                "regex": "[A-Z]\\w+",
            },
            {"id": "img", "type": "SelectorImage", "selector": "img, i", "parentSelectors": ["card"]},
            {
                "id": "name",
                "type": "SelectorText",
                "selector": "h1:nth-of-type(1)",
                "parentSelectors": ["_root"],
            },
            {"id": "more", "type": "SelectorLink", "selector": "a", "parentSelectors": ["_root"]},
        ],
    },
    {
        "stack_list": [
            {
                "content": [
                    ["html", {"class": ""}, 0],
                    ["body", {"style": ""}, 0],
                    ["div", {"class": ["card"]}, 0],
                    ["h1", {}, 0],
                ],
                "wanted_attr": None,
                "is_non_rec_text": False,
                "alias": "name",
            }
        ]
    },
    {
        "url": URL,
        "original_body": _PAGE,
        "plugins": {
            "annotations-plugin": {
                "extracts": [
                    {"id": "c", "item_container": True, "selector": "li", "repeated": True},
                    {
                        "id": "f",
                        "container_id": "c",
                        "selector": "li > a",
                        "data": {"1": {"attribute": "content", "field": "dish"}},
                    },
                ]
            }
        },
    },
    {
        "templates": [
            {
                "url": URL,
                "original_body": _PAGE,
                "annotated_body": _PAGE.replace("<h1>", _MARKED),
            }
        ]
    },
]


def peer_file(data: bytes) -> None:
    """What another tool was taught is taken over, or one sentence says why not."""
    path = written("peer.json", json_or_edits(data, _PEERS).encode("utf-8", "replace"))
    start = time.process_time()
    try:
        model = read_peer_file(path)
    except SourceError:
        return
    root = parse(Page.from_text(URL, _PAGE))
    assert not isinstance(root, Failure)
    best_example(model.layouts, root)
    for layout in model.layouts:
        assert all(isinstance(name, str) for name in layout.attributes)
    for sample in model.samples:
        assert sample.example.attributes
    taken = time.process_time() - start
    assert taken < _SECONDS, f"{taken:.0f} s"


_SETTINGS = (
    (
        b"[parse]\nmax_bytes = 20_000_000\nmax_tags = 5\n[crawl]\ndelay = 1.5\nprivate = true\n"
        b"[store]\nurl = 'postgresql://u:p@h/n'\n"
    ),
    (
        b'[crawl]\ndelay = inf\n[pages]\nwarcs = """a"""\n[alarm]\nwebhook = "http://x/y"\n'
        b"[change]\nthreshold = 0x1e\n"
    ),
    b"x = 1\n[parse]\nmax_byte = 1\n[[run]]\njobs = 1979-05-27T07:32:00Z\n",
)


def settings_file(data: bytes) -> None:
    """Settings, or all that is wrong with them in one sentence."""
    cut = Cutter(data)
    environment = (
        {"SITELOOM_CRAWL_DELAY": cut.piece().decode("utf-8", "surrogateescape")} if cut.number(2) else {}
    )
    folder = Path(written("siteloom.toml", cut.rest())).parent
    try:
        _, resolved = load_settings(folder, environment, {})
    except SettingsError as error:
        _check_message(error)
        return
    for one in resolved:
        assert "u:p@h" not in one.shown


TARGETS = (
    Target(
        examples_file,
        lambda: [b"\1", b"\2\1\1\1\4\3abc", b"\0" + b"\n".join(json.dumps(e).encode() for e in _EXAMPLES)],
    ),
    Target(
        wrapper_json,
        lambda: [
            bytes([n]) + edits for n in range(4) for edits in (b"", b"\1\3\1\0\7", b"\1\4\1\4\1\0\4\5(a+)+")
        ],
        [b"\\d++", b"(?:", b"[^/?#]+", b"^https?://"],
    ),
    Target(watch_json, lambda: [b"\0", b"\0\1\1\0\7", b"\0\1\6\1\0\1\1\0\3"]),
    Target(
        seed_file,
        lambda: [
            b"\0" + _SEEDS_CSV,
            b"\1a\tb\n1\t2\n",
            b"\2" + json.dumps(_SEED_ROWS[0]).encode(),
            b"\3\1\1\1\0\5",
        ],
    ),
    Target(
        peer_file,
        lambda: [bytes([n]) + edits for n in range(4) for edits in (b"", b"\1\2\1\1\1\2\0\4\5:not(")],
        [b":nth-child(2n+1)", b":contains('", b"[a|=b]", b"::before", b":has(", b"*|*", b"> ", b"~ "],
    ),
    Target(
        settings_file,
        lambda: [b"\0" + text for text in _SETTINGS],
        [b"[crawl]", b"delay = ", b"max_bytes = ", b"inf", b"nan"],
    ),
)
