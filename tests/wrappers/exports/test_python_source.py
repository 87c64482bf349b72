"""Exported Python is Python, whatever names and texts a wrapper has, and a person can read it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from types import ModuleType
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse
from web_poet import HttpResponse

from siteloom.core.model import Attribute, Footprint
from siteloom.wrappers.exports.python_source import (
    WIDTH,
    class_name,
    docstring,
    field_names,
    literal,
    module_name,
)
from siteloom.wrappers.exports.scrapy_spider import to_spider
from siteloom.wrappers.exports.web_poet_page import page_object
from siteloom.wrappers.exports.xpath_json import to_xpath_json
from siteloom.wrappers.rule_features import AttributeRules, Feature, RecordRule, Rule, RuleSupport, ValuePart
from siteloom.wrappers.wrapper import Wrapper
from tests.coroutines import awaited

ODD = 'it\'s """odd""" \\ \u2028 {x} {{1/0}} {VISIBLE} }\n\x0c# \x1e \\N{DIGIT ONE} \u00e9\\'
PLAIN = (
    ast.Constant,
    ast.Dict,
    ast.FormattedValue,
    ast.JoinedStr,
    ast.List,
    ast.Load,
    ast.Name,
    ast.UnaryOp,
    ast.USub,
)
RULE = Rule(
    "text",
    (Feature("text-before", 0, ODD), Feature("class", 1, "a" * 150)),
    ValuePart(left=ODD),
    RuleSupport(1, 0, 1.0, 0.0),
)
SITES = Footprint(("shop.example", ODD), (r"^https?://shop\.example/p/[^/?#]+$", f"^{ODD}$"))
WRAPPER = Wrapper(
    {
        "class": AttributeRules(Attribute(multi=True), (RULE,), (), 1.0),
        "url": AttributeRules(Attribute(type="url"), (RULE, RULE), (), 1.0),
        "words": AttributeRules(Attribute(), (RULE,), (), 1.0),
        "field": AttributeRules(Attribute(), (RULE,), (), 1.0),
        ODD: AttributeRules(Attribute(), (), (), 1.0),
    },
    frozenset({ODD, "Phone:"}),
    footprint=SITES,
)
LISTS = Wrapper(WRAPPER.attributes, record_rule=RecordRule((Feature("class", 0, ODD),), False))


def of_constant(source: str, name: str) -> Any:
    """The value of a constant of a module, which may hold texts, numbers, and texts with other constants."""
    known: dict[str, Any] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            for part in ast.walk(node.value):
                assert not isinstance(part, ast.FormattedValue) or isinstance(part.value, ast.Name)
                assert isinstance(part, PLAIN), ast.unparse(part)
            target = ast.unparse(node.targets[0])
            known[target] = eval(ast.unparse(node.value), {"__builtins__": {}}, known)
            if target == name:
                return known[name]
    raise AssertionError(name)


def in_python(value: Any) -> Any:
    """Rules as they are in Python, where words are comments, and targets are seen in XPath."""
    if isinstance(value, dict):
        said = [key for key in ("words", "target") if isinstance(value.get(key), str)]
        return {key: in_python(item) for key, item in value.items() if key not in said}
    return [in_python(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("wrapper", [WRAPPER, LISTS])
@pytest.mark.parametrize("name", ["shop.example/1", "class", "1", ODD, "Ω", ""])
def test_the_rules_in_python_are_those_in_json(wrapper: Wrapper, name: str) -> None:
    layouts = in_python(json.loads(to_xpath_json(wrapper))["layouts"])
    spider, made = to_spider(wrapper, name), page_object(wrapper, name)
    assert made.module.isidentifier()
    assert list(of_constant(spider, "PAGES")["url_patterns"]) == list(wrapper.footprint.url_patterns)
    for source in (spider, made.source):
        assert of_constant(source, "WRAPPER") == {"layouts": layouts}
        assert "siteloom." not in source.replace("siteloom.,", "")
        assert "import siteloom" not in source


NAMES = (
    "class self cls url records to_item item item_cls fields field str list dict property attrs re etree Any "
    "None WRAPPER __init__ __class__ _found mro response a-b a_b a.b 1 \u00e9"
).split()


@pytest.mark.parametrize("record_rule", [None, RecordRule((Feature("tag", 0, "p"),), False, least=1)])
def test_attributes_may_have_any_names(record_rule: RecordRule | None) -> None:
    first = Rule("text", (Feature("tag", 0, "p"),), ValuePart(), RuleSupport(1, 0, 1.0, 0.0))
    rules = AttributeRules(Attribute(), (first,), (), 1.0)
    wrapper = Wrapper(dict.fromkeys([*NAMES, ODD], rules), record_rule=record_rule)
    made = page_object(wrapper, "odd")
    module = ModuleType("odd_page")
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "odd_page", module)  # where attrs looks for it
        exec(made.source, vars(module))
        page = getattr(module, made.page_class)(
            HttpResponse("http://a.example/", b"<p>x</p>", encoding="utf-8")
        )
        found = attrs.asdict(awaited(page.to_item()))
    (record,) = found["records"] if record_rule else [found]
    assert list(record.values()) == ["x"] * (len(NAMES) + 1)
    spider: dict[str, Any] = {"__name__": "odd_spider"}
    exec(to_spider(wrapper, "odd"), spider)
    response = HtmlResponse("http://a.example/", body=b"<p>x</p>", encoding="utf-8")
    (item,) = spider["OddSpider"]().parse(response)
    assert item == {"url": "http://a.example/", **dict.fromkeys(NAMES, "x"), ODD: "x"}


def test_the_files_pass_the_default_rules_of_ruff() -> None:
    for source in (to_spider(WRAPPER, ODD), page_object(WRAPPER, ODD).source, page_object(LISTS, "x").source):
        checked = subprocess.run(
            # Spiders have lists as attributes of their class wherever Scrapy's documentation shows one.
            [sys.executable, "-m", "ruff", "check", "--isolated", "--ignore", "RUF012", "-"],
            input=source,
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout


def test_lines_are_short_and_rules_are_said_in_words() -> None:
    source = to_spider(WRAPPER, "shop")
    long = [line for line in source.splitlines() if len(line) > WIDTH and "a" * 150 not in line]
    assert not long
    comments = [line.strip() for line in source.splitlines() if line.strip().startswith("# ")]
    assert any("in each text right after" in line for line in comments)


_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.text() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text().filter(lambda key: key != "words"), inner),
    max_leaves=8,
)


@given(_VALUES)
def test_any_value_is_written_as_it_is(value: Any) -> None:
    assert ast.literal_eval(literal(value)) == value
    assert ast.literal_eval(literal({"long": [value] * 9})) == {"long": [value] * 9}


@given(st.text())
def test_any_text_may_stand_in_a_docstring(text: str) -> None:
    (node,) = ast.parse(docstring(text, "")).body
    assert isinstance(node, ast.Expr)


@given(st.lists(st.text(), unique=True))
def test_any_attributes_get_fields_of_their_own(names: list[str]) -> None:
    fields = field_names(names, {"url"})
    assert list(fields) == names
    assert len(set(fields.values())) == len(names)
    for field in fields.values():
        ast.parse(f"{field} = 1")
        assert field.isidentifier()
        assert field != "url"


@pytest.mark.parametrize(
    ("name", "module", "page"),
    [
        ("larkmoor-guide.example/1", "larkmoor_guide_example_1", "LarkmoorGuideExample1"),
        ("guide", "guide", "Guide"),
        ("1", "wrapper_1", "Wrapper1"),
        ("", "wrapper", "Wrapper"),
        ("import", "import_", "Import"),
    ],
)
def test_names_are_what_a_person_would_choose(name: str, module: str, page: str) -> None:
    assert (module_name(name), class_name(name)) == (module, page)


@pytest.mark.parametrize(
    ("footprint", "starts"),
    [
        (
            Footprint(("shop.example",), (r"^https?://www\.shop\.example/p/[^/?#]+$",)),
            ["https://www.shop.example/"],
        ),
        (
            Footprint(("shop.example",), (r"^https?://(?:a\.shop\.example|b\.shop\.example)/p/[^/?#]+$",)),
            ["https://a.shop.example/", "https://b.shop.example/"],
        ),
        (Footprint(("127.0.0.1",), (r"^https?://127\.0\.0\.1:8812/p/[^/?#]+$",)), ["http://127.0.0.1:8812/"]),
        (Footprint(("shop.example",), (r"^[^/?#]*(?://[^/?#]*)?/p/[^/?#]+$",)), ["https://shop.example/"]),
    ],
)
def test_a_spider_begins_where_the_pages_are(footprint: Footprint, starts: list[str]) -> None:
    tree = ast.parse(to_spider(Wrapper({}, footprint=footprint), "shop"))
    (told,) = [
        ast.literal_eval(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "start_urls"
    ]
    assert told == starts
