"""Wrappers are data: one that was written to do harm is refused or does none, and so do its exports."""

from __future__ import annotations

import ast
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from siteloom.core.errors import UsageError, WrapperError
from siteloom.core.model import Attribute, Failure, Footprint, Page
from siteloom.html.parser import parse
from siteloom.wrappers.exports.scrapy_spider import to_spider
from siteloom.wrappers.exports.web_poet_page import page_object
from siteloom.wrappers.exports.xpath_json import to_xpath_json
from siteloom.wrappers.rule_features import AttributeRules, Feature, RecordRule, Rule, RuleSupport, ValuePart
from siteloom.wrappers.rule_xpath import rule_xpath
from siteloom.wrappers.safe_patterns import pattern_fault, url_pattern_fault
from siteloom.wrappers.value_from_node import part_values
from siteloom.wrappers.wrapper import Wrapper
from tests.property_tests import fewer_examples
from tests.wrappers.strategies import PIECES

# What a wrapper might hold to get out of the text that it is a part of.
ESCAPES = (
    "document('file:///etc/passwd')",
    "') | document('file:///etc/passwd",
    '") or system-property("xsl:vendor',
    "{document('/etc/passwd')}",
    "}} {{ }",
    "--> <xsl:include href='file:///etc/passwd'/> <!--",
    "]]><xsl:import href='http://127.0.0.1/'/>",
    "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>&e;",
    "&e;&#0;&#x1b;",
    '"""\nimport os\nos.system("touch owned")\n"""',
    "'''+__import__('os').system('touch owned')+'''",
    "\\",
    '\\"',
    "\\N{DIGIT ONE}\\x41\\u0041",
    "*/ */ //",
    "\r\n# coding: rot13\r\n",
    "\x00\x0b\x0c\x1c\x85\u2028\u2029\ud800\ufffe",
    "{VISIBLE}",
    "{__import__('os')}",
    "%s %(a)s $a ${a}",
    "/../../../etc/passwd",
)
hostile = st.lists(st.sampled_from(ESCAPES) | st.text(max_size=6), min_size=1, max_size=3).map("".join)

FORBIDDEN = (
    "{http://www.w3.org/1999/XSL/Transform}import",
    "{http://www.w3.org/1999/XSL/Transform}include",
    "{http://www.w3.org/1999/XSL/Transform}message",
)
# Functions of XPath and XSLT that stylesheets need; any other may be one that reads or writes something.
FUNCTIONS = frozenset(
    "ancestor boolean comment concat contains count false floor last match name node normalize-space not "
    "position processing-instruction starts-with string string-length substring substring-after "
    "substring-before text translate".split()
)
QUOTED = re.compile("'[^']*'|\"[^\"]*\"")
PAGE = Page(
    "http://a.example/", b"<html><body><p class='c'>one 12</p><div id='x'><b>two</b></div></body></html>"
)


@st.composite
def hostile_wrappers(draw: st.DrawFn) -> Wrapper:
    """Wrappers that are read, with hostile texts wherever one may stand."""
    some = [draw(hostile) for _ in range(6)]
    features = (
        Feature(draw(st.sampled_from(("tag", "id", "class", "class-word"))), 0, some[0]),
        Feature("attribute", 1, f"data-x={some[1]}"),
        Feature(draw(st.sampled_from(("before", "first-text"))), 0, some[2]),
    )
    plain = (Feature("tag", 0, draw(st.sampled_from(("p", "b", some[3])))),)
    rules = [
        Rule("text", features, ValuePart(left=some[4], separator=some[5]), RuleSupport(1, 0, 1.0, 0.0)),
        Rule("element", plain, ValuePart(right=some[4]), RuleSupport(1, 0, 1.0, 0.0)),
    ]
    attributes = {
        name: AttributeRules(Attribute(multi=draw(st.booleans())), tuple(rules), (), 1.0)
        for name in {some[0], some[1], "price"}
    }
    record_rule = draw(st.none() | st.just(RecordRule((Feature("class", 0, some[2]),), False)))
    footprint = Footprint(sites=(some[3], "a.example"), url_patterns=(r"^https?://a\.example/[^/?#]*$",))
    return Wrapper(attributes, frozenset(some), record_rule, footprint=footprint)


def as_read(wrapper: Wrapper) -> Wrapper:
    """The wrapper as it comes from a file of someone else."""
    return Wrapper.from_json(json.dumps(json.loads(wrapper.to_json())))


@given(hostile_wrappers())
def test_a_hostile_wrapper_gives_records_or_nothing(wrapper: Wrapper) -> None:
    for record in as_read(wrapper).extract_all(PAGE):
        assert all(text in "one 12 two" for texts in record.values.values() for text in texts)


@given(hostile_wrappers())
def test_the_stylesheet_of_a_hostile_wrapper_reads_and_writes_nothing(wrapper: Wrapper) -> None:
    text = as_read(wrapper).to_xslt()
    assert "<!DOCTYPE" not in QUOTED.sub("", re.sub("<!--.*?-->", "", text, flags=re.DOTALL))
    strict = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    root = etree.fromstring(text.encode("utf-8"), strict)
    assert root.getroottree().docinfo.internalDTD is None
    for element in root.iter("*"):
        assert element.tag not in FORBIDDEN
        assert str(element.tag).startswith("{http://www.w3.org/1999/XSL/Transform}") or element.tag in (
            "records",
            "record",
            "value",
        )
        for expression in expressions_of(element):
            called = set(re.findall(r"([\w:.-]+)\s*\(", QUOTED.sub("''", expression)))
            assert {name.rpartition(":")[2] for name in called} - {"and", "or", "div"} <= FUNCTIONS, (
                expression
            )
    run = etree.XSLT(root, access_control=etree.XSLTAccessControl.DENY_ALL)
    tree = parse(PAGE)
    assert not isinstance(tree, Failure)
    names = set(run(tree).getroot().xpath("//@attribute"))
    assert len(names) <= len(wrapper.attributes)


def expressions_of(element: etree._Element) -> Iterator[str]:
    """What of an element is evaluated."""
    is_instruction = str(element.tag).startswith("{")
    for name, value in element.attrib.items():
        if is_instruction and name in ("select", "test", "match"):
            yield str(value)
        else:
            whole = str(value).replace("{{", "").replace("}}", "")
            yield from re.findall(r"\{([^}]*)\}", whole)


@fewer_examples(8)  # a spider is long, and so takes a tenth of a second to read
@given(hostile_wrappers(), hostile)
def test_python_of_a_hostile_wrapper_is_the_same_program_with_other_texts(
    wrapper: Wrapper, name: str
) -> None:
    wrapper = as_read(wrapper)
    spider = to_spider(wrapper, name)
    is_same = program_of(spider) == program_of(to_spider(HARMLESS, "shop"))  # too long to be shown
    assert is_same
    made = page_object(wrapper, name)
    assert made.module.isidentifier()
    harmless = page_object(replace(HARMLESS, record_rule=wrapper.record_rule), name)
    assert calls_of(made.source) == calls_of(harmless.source)
    for source in (spider, made.source):
        for node in ast.parse(source).body:
            for part in ast.walk(node) if isinstance(node, ast.Assign) else ():
                # Parts of XPath that rules share stand in others by their names.
                assert not isinstance(part, ast.FormattedValue) or isinstance(part.value, ast.Name)


def calls_of(source: str) -> set[str]:
    """All that a module calls, reads attributes of, or imports."""
    kinds = (ast.Import, ast.ImportFrom)
    called = {ast.unparse(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)}
    return called | {ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)}


PRICE = AttributeRules(
    Attribute(), (Rule("text", (Feature("tag", 0, "p"),), ValuePart(), RuleSupport(1, 0, 1.0, 0.0)),), (), 1.0
)
HARMLESS = Wrapper({"price": PRICE}, footprint=Footprint(("a.example",), (r"^https?://a\.example/[^/?#]*$",)))


def program_of(source: str) -> list[str]:
    """What a module does, without the data it does it with: constants, and the name of the class."""
    data = ("PAGES", "WRAPPER")
    kept = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            node.name = "Spider"
            node.body = [one for one in node.body if not isinstance(one, ast.Assign)]
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_data = isinstance(node, ast.Assign) and (
            ast.unparse(node.targets[0]) in data or is_only_text(node.value)
        )
        if not is_text and not is_data:
            kept.append(ast.dump(node))
    return kept


def is_only_text(value: ast.expr) -> bool:
    parts = (ast.Constant, ast.JoinedStr, ast.FormattedValue, ast.Name, ast.Load)
    return all(isinstance(node, parts) for node in ast.walk(value))


@given(hostile_wrappers())
def test_xpath_of_a_hostile_wrapper_holds_its_texts_as_texts(wrapper: Wrapper) -> None:
    wrapper = as_read(wrapper)
    for rules in wrapper.attributes.values():
        for rule in rules.rules:
            etree.XPath(rule_xpath(rule))
    document = json.loads(to_xpath_json(wrapper))
    assert list(document["layouts"][0]["attributes"]) == list(wrapper.attributes)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[[" * 5_000 + "]]" * 5_000])
def test_a_wrapper_nested_without_end_is_no_wrapper(text: str) -> None:
    with pytest.raises(WrapperError, match="This is no wrapper"):
        Wrapper.from_json(text)


def test_a_wrapper_without_end_is_no_wrapper() -> None:
    with pytest.raises(WrapperError, match="more than 20,000,000 characters"):
        Wrapper.from_json(" " * 20_000_001)


@pytest.mark.parametrize("kind", ["rules", "voters"])
def test_an_attribute_with_rules_without_end_is_not_read(kind: str) -> None:
    """In a stylesheet, each rule names all that are tried before it."""
    content = json.loads(HARMLESS.to_json())
    attribute = content["attributes"]["price"]
    attribute[kind] = attribute["rules"] * 100
    assert len(Wrapper.from_json(json.dumps(content)).to_xslt()) < 10**6
    attribute[kind] = attribute["rules"] * 101
    with pytest.raises(WrapperError, match=f"attribute 'price', {kind} are more than 100"):
        Wrapper.from_json(json.dumps(content))


HUGE = 10**4_000


def test_numbers_without_end_do_no_harm() -> None:
    wrapper = Wrapper({"price": PRICE}, record_rule=RecordRule((Feature("tag", 0, "p"),), False))
    content = json.loads(wrapper.to_json())
    content["record_rule"]["least"] = HUGE
    attribute = content["attributes"]["price"]
    attribute["rules"][0]["evidence"].update(examples=HUGE, wrong=HUGE)
    attribute["contract"] = {"values": HUGE, "shortest": HUGE, "longest": HUGE, "commonest": 1}
    read = Wrapper.from_json(json.dumps(content))
    assert list(read.extract_all(PAGE)) == []
    content["record_rule"]["least"] = 1
    read = Wrapper.from_json(json.dumps(content))
    assert [record.values["price"] for record in read.extract_all(PAGE)] == [("one 12",)]
    to_spider(read, "shop")
    to_xpath_json(read)


# ---- patterns

# Every atom and quantifier of the grammar, and some that it must refuse.
ATOMS = (
    r"\d",
    r"\w",
    r"\s",
    r"\D",
    r"\W",
    r"\S",
    ".",
    "a",
    "1",
    " ",
    r"\.",
    "[a1 ]",
    "[^x]",
    r"[^\W\d_]",
    "x",
)
ASTRAL = "[" + "".join(chr(0x10400 + 2 * number) for number in range(30)) + "a1 ]"
QUANTIFIERS = (
    "",
    "+",
    "*",
    "?",
    "++",
    "*+",
    "?+",
    "{3}",
    "{2,}",
    "{2,}+",
    "{0,9999}+",
    "{1,9}",
    "{,50}+",
    "{999}",
)
pieces = st.tuples(st.sampled_from((*ATOMS, ASTRAL)), st.sampled_from(QUANTIFIERS)).map("".join)
any_patterns = st.lists(pieces | st.sampled_from(PIECES), min_size=1, max_size=8).map("".join)
HOSTILE_TEXTS = ("1" * 5_000, "a" * 5_000, " " * 5_000, "a1 " * 1_666, "aa1" * 1_666, "1." * 2_500)

# Of a text only the first 5,000 characters are searched, which takes at most half a second on a slow machine;
# a pattern that can be matched in many ways would take days.
SECONDS_FOR_A_TEXT = 5


@fewer_examples(2)
@given(any_patterns.filter(lambda pattern: not pattern_fault(pattern)))
def test_no_pattern_that_is_read_takes_long_on_hostile_texts(pattern: str) -> None:
    for text in HOSTILE_TEXTS:
        started = time.thread_time()
        part_values(ValuePart(pattern=pattern), text)
        assert time.thread_time() - started < SECONDS_FOR_A_TEXT


def test_some_of_these_patterns_are_read_and_some_refused() -> None:
    assert not pattern_fault(r"\d++\w*+[^x]{2,}+")
    assert pattern_fault(r"\d+\w")
    assert not pattern_fault(ASTRAL + "++b")
    assert "class of more than 40 characters" in pattern_fault(f"[{'a' * 60}]")


LITERALS = ("a", "aa", "a" * 40, "-", "1", r"\.", "é", "%20")
segments = st.tuples(
    st.sampled_from(("", *LITERALS)),
    st.sampled_from(("", "[^/?#]*", "[^/?#]+", "[^?#]*")),
    st.sampled_from(("", *LITERALS)),
).map("".join)
values = st.tuples(
    st.sampled_from(("", "a=", "id=")),
    st.sampled_from(("", "[^&#]*", "[^&#]+", "[^#]*")),
    st.sampled_from(("", "a")),
).map("".join)


@st.composite
def url_patterns(draw: st.DrawFn) -> str:
    host = draw(
        st.sampled_from(
            (r"https?://a\.example", "[^/?#]*(?://[^/?#]*)?", "https?://(?:a|aa|aaa)", "https?://[^/?#]*")
        )
    )
    path = "".join(f"/{segment}" for segment in draw(st.lists(segments, max_size=40)))
    query = draw(st.lists(values, max_size=12))
    return f"^{host}{path}" + (rf"\?{'&'.join(query)}" if query else "") + "$"


HOSTILE_URLS = (
    *("https://a.example/" + "a" * 20_000, "https://a.example" + "/a" * 10_000, "https://aaa" + "/" * 20_000),
    *(
        "a" * 20_000,
        "https://a.example/?" + "a=" * 10_000,
        "https://a.example/a?" + "a&" * 10_000,
        "/aa-1" * 4_000,
    ),
)


@given(url_patterns().filter(lambda pattern: not url_pattern_fault(pattern)))
def test_no_url_pattern_that_is_read_takes_long_on_hostile_addresses(pattern: str) -> None:
    for url in HOSTILE_URLS:
        started = time.thread_time()
        re.fullmatch(pattern, url)
        assert time.thread_time() - started < 1


def test_some_of_these_url_patterns_are_read() -> None:
    read = "^[^/?#]*(?://[^/?#]*)?" + "/a[^/?#]*aa" * 40 + r"\?a=[^&#]*&id=[^&#]+$"
    assert not url_pattern_fault(read)
    assert url_pattern_fault("^https?://a/[^?#]*/[^/?#]+$")


# ---- stylesheets of others

STYLESHEET = """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:exsl="http://exslt.org/common" extension-element-prefixes="exsl">
  <xsl:template match="/"><found>{}</found></xsl:template>
</xsl:stylesheet>"""


@pytest.mark.parametrize(
    "attempt",
    [
        "<xsl:copy-of select=\"document('{secret}')\"/>",
        '<exsl:document href="{written}"><owned/></exsl:document>',
        "<xsl:copy-of select=\"document('http://127.0.0.1:9/')\"/>",
    ],
)
def test_a_stylesheet_of_someone_else_is_denied_everything(tmp_path: Any, attempt: str) -> None:
    secret, written = tmp_path / "secret.xml", tmp_path / "written.xml"
    secret.write_text("<secret>42</secret>", encoding="utf-8")
    attempt = attempt.format(secret=secret.as_uri(), written=written)
    strict = etree.XMLParser(resolve_entities=False, no_network=True)
    run = etree.XSLT(
        etree.fromstring(STYLESHEET.format(attempt), strict),
        access_control=etree.XSLTAccessControl.DENY_ALL,
    )
    try:
        found = str(run(etree.fromstring("<page/>")))
    except etree.XSLTApplyError:
        found = ""
    assert "42" not in found
    assert not written.exists()


class Nothing(etree.Resolver):
    """Refuses whatever a stylesheet would read while it is loaded, to which access control does not apply."""

    def resolve(self, url: str | None, *_: object) -> None:
        raise OSError(f"{url} is not read")


def test_an_include_of_someone_else_is_refused(tmp_path: Any) -> None:
    other = tmp_path / "other.xsl"
    other.write_text(STYLESHEET.format("<other/>"), encoding="utf-8")
    text = STYLESHEET.format("").replace(
        "<xsl:template", f'<xsl:include href="{other.as_uri()}"/><xsl:template', 1
    )
    strict = etree.XMLParser(resolve_entities=False, no_network=True)
    strict.resolvers.add(Nothing())
    with pytest.raises(OSError, match="is not read"):
        etree.XSLT(etree.fromstring(text, strict), access_control=etree.XSLTAccessControl.DENY_ALL)


def test_what_xslt_cannot_say_is_refused_and_not_left_out() -> None:
    with pytest.raises(UsageError):
        Wrapper({"price": replace(PRICE)}, record_rule=RecordRule((), True)).to_xslt()
