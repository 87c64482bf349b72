"""The stylesheet of a wrapper gives the values that the wrapper itself extracts."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from siteloom.dom import Element
from siteloom.errors import UsageError
from siteloom.model import Attribute
from siteloom.wrapper.language import (
    SHAPES,
    AttributeRules,
    Feature,
    Kind,
    Part,
    RecordRule,
    Rule,
    Scorer,
    Shape,
)
from siteloom.wrapper.wrapper import Wrapper
from siteloom.wrapper.xslt import to_xslt, tree_xml
from tests.dom.trees import tree
from tests.wrapper.pages import EVIDENCE, pages, rules
from tests.wrapper.reference import Scope

Values = list[dict[str, tuple[str, ...]]]

needs_xsltproc = pytest.mark.skipif(shutil.which("xsltproc") is None, reason="xsltproc is not installed")

_PARTS = st.builds(
    Part,
    left=st.sampled_from(["", "", "B:", "A", "'", '"']),
    right=st.sampled_from(["", "", ",", "B", " "]),
    separator=st.sampled_from(["", "", ",", " ", ",,", "A", "'\""]),
)


def rule(target: str, *features: tuple[Kind, int, str], part: Part = Part()) -> Rule:
    return Rule(target, tuple(Feature(*feature) for feature in features), part, EVIDENCE)


_SHAPES = st.just(SHAPES) | st.lists(st.sampled_from(SHAPES), min_size=1, unique=True).map(tuple)


def attribute(*rules: Rule, multi: bool = False, shapes: tuple[Shape, ...] = SHAPES) -> AttributeRules:
    return AttributeRules(Attribute(multi=multi), rules, (), 1.0, shapes)


def values(document: Element) -> Values:
    """The records of the stylesheet's result."""
    records: Values = []
    for record in document.iter("record"):
        found: dict[str, tuple[str, ...]] = {}
        for value in record.iter("value"):
            name = value.get("attribute", "")
            found[name] = (*found.get(name, ()), value.text or "")
        records.append(found)
    return records


def native(wrapper: Wrapper, root: Element) -> Values:
    return [dict(record.values) for record in wrapper.records(root, "http://a.example/")]


def by_lxml(wrapper: Wrapper, root: Element) -> Values:
    return values(etree.XSLT(etree.XML(to_xslt(wrapper)))(root).getroot())


def by_xsltproc(wrapper: Wrapper, root: Element, folder: Path) -> Values:
    stylesheet, page = folder / "wrapper.xslt", folder / "page.xml"
    stylesheet.write_text(to_xslt(wrapper), encoding="utf-8")
    page.write_bytes(tree_xml(root))
    done = subprocess.run(
        ["xsltproc", "--huge", stylesheet, page], check=True, capture_output=True, timeout=60
    )
    assert not done.stderr, done.stderr.decode()
    return values(etree.fromstring(done.stdout))


@st.composite
def wrappers(draw: st.DrawFn, root: Element) -> Wrapper:
    """A wrapper of rules that fit a page."""
    page = Scope(root, is_record=False)
    record_rule = None
    if draw(st.booleans()):
        features = draw(rules(page, targets=("element",))).features
        kept = (feature for feature in features if feature.kind not in ("shape", "first-text"))
        record_rule = RecordRule(tuple(kept), runs_on=False)
    attributes = {}
    for name in draw(st.sampled_from([["name"], ["name", "it's {1}"]])):
        found = [replace(draw(rules(page)), part=draw(_PARTS)) for _ in range(draw(st.integers(0, 3)))]
        attributes[name] = attribute(*found, multi=draw(st.booleans()), shapes=draw(_SHAPES))
    labels = draw(st.frozensets(st.sampled_from(["A", "B:", 'it\'s "x"', "A B"])))
    return Wrapper(attributes, labels, record_rule)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_lxml_gives_the_values_of_the_wrapper(data: st.DataObject) -> None:
    root = data.draw(pages())
    wrapper = data.draw(wrappers(root))
    assert by_lxml(wrapper, root) == native(wrapper, root)


@needs_xsltproc
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_xsltproc_gives_the_values_of_the_wrapper(data: st.DataObject, tmp_path: Path) -> None:
    root = data.draw(pages())
    wrapper = data.draw(wrappers(root))
    assert by_xsltproc(wrapper, root, tmp_path) == native(wrapper, root)


LIST = """
    <title>List</title>
    <div class=item><h2>Blue<br>Fern</h2><p>Phone: <b>555-1</b> or <b>555-2</b><a href=" /1 ">more</a></div>
    <div class=item><h2>Old <i>Mill</i></h2><p>Price: $5 (new)<p>Thai / Vegan / Thai</div>
    <div class=item></div>
"""
NAME = attribute(rule("element", ("tag", 0, "h2")))
PHONE = attribute(rule("text", ("tag", 0, "b")), multi=True)
PRICE = attribute(
    rule("text", ("id", 0, "price")), rule("text", ("prefix", 0, "Price:"), part=Part("Price: ", " ("))
)
KITCHEN = attribute(
    rule("text", ("tag", 0, "p"), ("position", 0, "2"), part=Part(separator=" / ")), multi=True
)
LINK = attribute(rule("@href", ("first-text", 1, "Phone:")))
WRAPPER = Wrapper({"name": NAME, "phone": PHONE, "price": PRICE, "kitchen": KITCHEN, "link": LINK})
RECORDS = RecordRule((Feature("class", 0, "item"),), runs_on=False)


def test_a_page() -> None:
    assert by_lxml(WRAPPER, tree(LIST)) == [
        {
            "name": ("Blue Fern",),
            "phone": ("555-1", "555-2"),
            "price": ("$5",),
            "kitchen": ("Thai", "Vegan"),
            "link": ("/1",),
        }
    ]


def test_a_list_page_leaves_out_records_without_values() -> None:
    wrapper = replace(WRAPPER, record_rule=RECORDS)
    assert by_lxml(wrapper, tree(LIST)) == [
        {"name": ("Blue Fern",), "phone": ("555-1", "555-2"), "link": ("/1",)},
        {"name": ("Old Mill",), "price": ("$5",), "kitchen": ("Thai", "Vegan")},
    ]


def test_labels_are_no_values() -> None:
    assert by_lxml(Wrapper({"phone": PHONE}, frozenset({"555-1"})), tree(LIST)) == [{"phone": ("555-2",)}]


MADE_OF = "<p>$5, 12, a1, A B, \u20ac 7, \u0663, 9 %<p>C, 3<p>words"


@needs_xsltproc
@pytest.mark.parametrize(
    ("shapes", "several", "first"),
    [
        (("price",), ("$5", "\u20ac 7"), ("$5",)),
        (("digits",), ("12", "9 %", "3"), ("12",)),
        (("mixed",), ("a1",), ("a1",)),
        (("words",), ("A B", "\u0663", "C", "words"), ("words",)),
        (("mixed", "digits"), ("12", "a1", "9 %", "3"), ("12",)),
        ((), None, None),
    ],
)
def test_values_of_other_shapes_do_not_count(
    shapes: tuple[Shape, ...], several: tuple[str, ...] | None, first: tuple[str, ...] | None, tmp_path: Path
) -> None:
    split = rule("text", ("tag", 0, "p"), part=Part(separator=", "))
    last = rule("text", ("tag", 0, "p"), ("position", 0, "3"))
    wrapper = Wrapper(
        {
            "several": attribute(split, multi=True, shapes=shapes),
            "first": attribute(last, split, shapes=shapes),
        }
    )
    found = {"several": several, "first": first}
    expected = [{name: texts for name, texts in found.items() if texts}]
    root = tree(MADE_OF)
    assert native(wrapper, root) == expected
    assert by_lxml(wrapper, root) == expected
    assert by_xsltproc(wrapper, root, tmp_path) == expected


@needs_xsltproc
def test_many_values_are_no_deep_recursion(tmp_path: Path) -> None:
    root = tree("".join(f"<p>{number % 5_000} words<p>" for number in range(6_000)))
    wrapper = Wrapper({"number": attribute(rule("text", ("tag", 0, "p")), multi=True)})
    expected = [{"number": tuple(f"{number} words" for number in range(5_000))}]
    assert by_lxml(wrapper, root) == expected
    assert by_xsltproc(wrapper, root, tmp_path) == expected


@pytest.mark.parametrize(
    ("wrapper", "message"),
    [
        (Wrapper({"zip": attribute(rule("text", part=Part(pattern="[0-9]+")))}), "'zip'.*regular expression"),
        (Wrapper({"zip": attribute(replace(rule("text"), scorer=Scorer((), 0.0)))}), "'zip'.*classifier"),
        (replace(WRAPPER, record_rule=replace(RECORDS, runs_on=True)), "run on"),
    ],
)
def test_what_xslt_cannot_do_is_refused(wrapper: Wrapper, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        to_xslt(wrapper)


def test_each_rule_is_explained_in_a_comment() -> None:
    stylesheet = to_xslt(Wrapper({"a--b": attribute(rule("text", ("text-before", 0, "--->")))}))
    assert "<!-- a- -b: the first value -->" in stylesheet
    etree.XML(stylesheet)


def outline(node: Element) -> object:
    """All of a tree that rules can mean."""
    if not isinstance(node.tag, str):
        return ("comment", node.tail)
    tag = node.xpath("name()")
    attributes = {name: value for name, value in node.attrib.items() if name.isalnum()}
    return (tag, attributes, node.text or "", node.tail or "", [outline(child) for child in node])


@settings(max_examples=100, deadline=None)
@given(pages())
def test_the_xml_of_a_tree_reads_back_as_the_same_tree(root: Element) -> None:
    assert outline(etree.fromstring(tree_xml(root))) == outline(root)


def test_odd_names_and_characters_in_xml() -> None:
    page = (
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:o="urn:office"><o:p og:x=1 xml:lang=de @click=2>'
        'A&#12;B&#1;C\r\n</o:p><a"b 1=2 title="&#10;x">&amp;lt;</a"b><?php echo "-->'
        "<!-- a -- b ---><script>if (a < b && c) d;</script></html>"
    )
    root = tree(page)
    copy = etree.fromstring(tree_xml(root))
    assert copy.xpath("string(//*[name() = 'o:p'])") == "A B\ufffdC\n"
    assert copy.xpath("string(//*[name() = 'o:p']/@*[name() = 'og:x'])") == "1"
    assert copy.xpath("string(//*[name() = 'a_x22_b'])") == "&lt;"
    assert copy.xpath("string(//@title)") == "\nx"
    assert copy.xpath("string(//script)") == "if (a < b && c) d;"
    assert not copy.nsmap.keys() - {"o", "og"}


def test_trees_made_by_others_may_hold_what_xml_forbids() -> None:
    root = etree.HTML("<p title='A&#12;B'>A&#x1c;B&#1;C</p>")
    copy = etree.fromstring(tree_xml(root))
    assert copy.xpath("string(//p)") == "A B\ufffdC"
    assert copy.xpath("string(//@title)") == "A B"
