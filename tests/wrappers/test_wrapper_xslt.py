"""The stylesheet of a wrapper gives the values that the wrapper itself extracts."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from siteloom.core.errors import UsageError
from siteloom.core.model import Attribute
from siteloom.html.parser import Element
from siteloom.wrappers.rule_features import (
    SHAPES,
    AttributeRules,
    Feature,
    Kind,
    RecordRule,
    Rule,
    Scorer,
    Shape,
    ValuePart,
)
from siteloom.wrappers.wrapper import Wrapper
from siteloom.wrappers.wrapper_xslt import to_xslt, tree_xml
from tests.html.trees import tree
from tests.patience import SECONDS
from tests.wrappers.pages import EVIDENCE, GONE, pages, record_rules, rules
from tests.wrappers.reference import Scope, record_elements

Values = list[dict[str, tuple[str, ...]]]

needs_xsltproc = pytest.mark.skipif(shutil.which("xsltproc") is None, reason="xsltproc is not installed")

_PARTS = st.just(ValuePart()) | st.builds(
    ValuePart,
    left=st.sampled_from(["", "", "B:", "A", "'", '"']),
    right=st.sampled_from(["", "", ",", "B", " "]),
    separator=st.sampled_from(["", "", ",", " ", ",,", "A", "'\""]),
)


def rule(target: str, *features: tuple[Kind, int, str], part: ValuePart = ValuePart()) -> Rule:
    return Rule(target, tuple(Feature(*feature) for feature in features), part, EVIDENCE)


_SHAPES = st.just(SHAPES) | st.lists(st.sampled_from(SHAPES), min_size=1, unique=True).map(tuple)


def attribute(
    *rules: Rule, voters: tuple[Rule, ...] = (), multi: bool = False, shapes: tuple[Shape, ...] = SHAPES
) -> AttributeRules:
    return AttributeRules(Attribute(multi=multi), rules, voters, 1.0, shapes)


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
    return values(
        etree.XSLT(etree.XML(to_xslt(wrapper)), access_control=etree.XSLTAccessControl.DENY_ALL)(
            root
        ).getroot()
    )


def by_xsltproc(wrapper: Wrapper, root: Element, folder: Path) -> Values:
    stylesheet, page = folder / "wrapper.xslt", folder / "page.xml"
    stylesheet.write_text(to_xslt(wrapper), encoding="utf-8")
    page.write_bytes(tree_xml(root))
    done = subprocess.run(
        ["xsltproc", "--huge", stylesheet, page], check=True, capture_output=True, timeout=SECONDS
    )
    assert not done.stderr, done.stderr.decode()
    return values(etree.fromstring(done.stdout))


@st.composite
def wrappers(draw: st.DrawFn, root: Element) -> Wrapper:
    """A wrapper of rules that fit a page."""
    record_rule = draw(st.none() | record_rules(root))
    starts = record_elements(record_rule, root) if record_rule else []
    records = [Scope(start, is_record=True) for start in starts]
    scope = draw(st.sampled_from(records or [Scope(root, is_record=False)]))
    fitting = st.builds(lambda rule, part: replace(rule, part=part), rules(scope), _PARTS)
    attributes = {}
    for name in draw(st.sampled_from([["name"], ["name", "it's {1}"], ["name", "it's {1}", "third"]])):
        found = draw(st.lists(fitting, max_size=3))
        if draw(st.booleans()):
            found = [replace(rule, features=(*rule.features, GONE)) for rule in found]
        voter = draw(fitting)
        voters = draw(st.lists(st.just(voter) | fitting, max_size=4).map(tuple))
        attributes[name] = attribute(*found, voters=voters, multi=draw(st.booleans()), shapes=draw(_SHAPES))
    labels = draw(st.frozensets(st.sampled_from(["A", "B:", 'it\'s "x"', "A B"]), max_size=1))
    return Wrapper(attributes, labels, record_rule)


_OF_FIELDS = (
    *(rule("text", ("tag", 0, tag)) for tag in ("b", "i", "u")),
    *(rule("element", ("tag", 0, tag), part=ValuePart(separator=", ")) for tag in ("b", "i", "u")),
    rule("text", ("text-before", 0, "A")),
    rule("@title", ("tag", 0, "a")),
    rule("@title", ("id", 0, "gone")),
)


def listing(seed: int) -> tuple[Element, Wrapper]:
    """A list of records with a few fields, whose names may have changed, and rules for some of them.

    Hypothesis prefers what is small and alike, where voters hardly ever agree.
    """
    dice = Random(seed)
    name = dice.choice(["hit", "renamed"])
    page = "<ul>"
    for _ in range(dice.randint(1, 4)):
        fields = [(tag, dice.choice(["A", "A", "B 1", "A, B 1", " "])) for tag in "biua"]
        page += f"<li class={name}>" + "".join(f"<{tag} title='{v}'>{v}</{tag}>" for tag, v in fields)
    attributes = {
        f"attribute {number}": attribute(
            *dice.choices(_OF_FIELDS, k=dice.randint(0, 1)),
            voters=tuple(dice.choices(_OF_FIELDS, k=dice.randint(0, 3))),
            multi=dice.random() < 0.2,
            shapes=dice.choice([SHAPES, SHAPES, ("words",)]),
        )
        for number in range(dice.randint(1, 4))
    }
    fallback = dice.choice([(), (Feature("tag", 0, "li"),)])
    records = RecordRule((Feature("class", 0, "hit"),), False, fallback, least=dice.randint(1, 3))
    return tree(page), Wrapper(attributes, frozenset(), dice.choice([None, records, records]))


listings = st.builds(listing, st.integers(0, 2**32))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Element, Wrapper]:
    """A page, and a wrapper that fits it."""
    root = draw(pages())
    return root, draw(wrappers(root))


@given(cases())
def test_lxml_gives_the_values_of_the_wrapper(case: tuple[Element, Wrapper]) -> None:
    root, wrapper = case
    assert by_lxml(wrapper, root) == native(wrapper, root)


@given(listings)
def test_lxml_gives_the_records_of_a_listing(case: tuple[Element, Wrapper]) -> None:
    root, wrapper = case
    assert by_lxml(wrapper, root) == native(wrapper, root)


@needs_xsltproc
@given(case=cases() | listings)
def test_xsltproc_gives_the_values_of_the_wrapper(case: tuple[Element, Wrapper], tmp_path: Path) -> None:
    root, wrapper = case
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
    rule("text", ("id", 0, "price")), rule("text", ("prefix", 0, "Price:"), part=ValuePart("Price: ", " ("))
)
KITCHEN = attribute(
    rule("text", ("tag", 0, "p"), ("position", 0, "2"), part=ValuePart(separator=" / ")), multi=True
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


ADVERT = "<li class=item><h2>Eat here</h2><p>now</p>"
CARDS = """
    <ol><li class=item><h2>Blue Fern</h2><b>555-1</b><i>555-1</i><u>555-1</u>
    <li class=item><h2>Old Mill</h2><b>555-2</b><i>555-3</i><u>555-2</u>
    <li class=item><h2>Tern</h2><b>555-4</b><i>555-4</i></ol>
"""
BY_TAG = tuple(rule("text", ("tag", 0, tag)) for tag in ("b", "i", "u"))
NO_RULE = rule("text", ("id", 0, "gone"))


def everywhere(wrapper: Wrapper, html: str, folder: Path) -> Values:
    """What all ways of extraction give for a page."""
    root = tree(html)
    found = native(wrapper, root)
    assert by_lxml(wrapper, root) == found
    assert by_xsltproc(wrapper, root, folder) == found
    return found


@needs_xsltproc
def test_voters_that_agree_give_the_value_that_no_rule_finds(tmp_path: Path) -> None:
    def phones(found: AttributeRules) -> list[tuple[str, ...]]:
        wrapper = Wrapper({"name": NAME, "phone": found}, record_rule=RECORDS)
        return [record.get("phone", ()) for record in everywhere(wrapper, CARDS, tmp_path)]

    assert phones(attribute(NO_RULE, voters=BY_TAG)) == [("555-1",), (), ()]
    assert phones(attribute(NO_RULE, NO_RULE, voters=BY_TAG[:2])) == [("555-1",), (), ("555-4",)]
    assert phones(attribute(voters=BY_TAG[:2])) == [("555-1",), (), ("555-4",)]
    assert phones(attribute(NO_RULE, BY_TAG[2], voters=BY_TAG[:2])) == [("555-1",), ("555-2",), ("555-4",)]
    assert phones(attribute(NO_RULE, voters=BY_TAG[:1])) == [(), (), ()]
    assert phones(attribute(NO_RULE, voters=BY_TAG[:2], multi=True)) == [(), (), ()]
    assert phones(attribute(NO_RULE, voters=BY_TAG, shapes=("price",))) == [(), (), ()]


@needs_xsltproc
def test_only_where_nothing_has_the_features_the_fallback_counts(tmp_path: Path) -> None:
    fallback = (Feature("tag", 0, "li"),)
    wrapper = Wrapper({"name": NAME}, record_rule=replace(RECORDS, fallback=fallback))
    all_names = [{"name": (name,)} for name in ("Blue Fern", "Old Mill", "Tern")]
    assert everywhere(wrapper, CARDS, tmp_path) == all_names
    assert everywhere(wrapper, CARDS.replace("item", "card"), tmp_path) == all_names
    assert everywhere(wrapper, CARDS.replace("item", "card", 1), tmp_path) == all_names[1:]
    without = replace(wrapper, record_rule=RECORDS)
    assert everywhere(without, CARDS.replace("item", "card"), tmp_path) == []


@needs_xsltproc
def test_what_has_too_few_attributes_is_no_record(tmp_path: Path) -> None:
    attributes = {"name": NAME, "phone": attribute(*BY_TAG, multi=True), "link": LINK}
    wrapper = Wrapper(attributes, record_rule=replace(RECORDS, least=2))
    found = everywhere(wrapper, CARDS.replace("</ol>", ADVERT), tmp_path)
    assert [record["name"] for record in found] == [("Blue Fern",), ("Old Mill",), ("Tern",)]
    # Two values of one attribute are not two attributes.
    assert not everywhere(replace(wrapper, record_rule=replace(RECORDS, least=3)), CARDS, tmp_path)
    assert not everywhere(replace(wrapper, attributes={}), CARDS, tmp_path)


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
    split = rule("text", ("tag", 0, "p"), part=ValuePart(separator=", "))
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


@given(listings, st.sampled_from(["[0-9]+", r"[A-Z]\s?[0-9]*+", "B", r"\w++", "[<&\"']"]))
def test_lxml_finds_regular_expressions(case: tuple[Element, Wrapper], pattern: str) -> None:
    root, wrapper = case

    def matching(rule: Rule) -> Rule:
        return replace(rule, part=ValuePart(pattern=pattern, separator=rule.part.separator))

    attributes = {
        name: replace(
            found, rules=tuple(map(matching, found.rules)), voters=tuple(map(matching, found.voters))
        )
        for name, found in wrapper.attributes.items()
    }
    wrapper = replace(wrapper, attributes=attributes)
    assert by_lxml(wrapper, root) == native(wrapper, root)


def test_a_pattern_is_searched_for_as_far_as_siteloom_does() -> None:
    zips = attribute(rule("text", ("tag", 0, "p"), part=ValuePart(pattern="[0-9]{5}")), multi=True)
    root = tree(f"<p>Bath 12345, 54321<p>{'x' * 4_995}67890<p>{'x' * 4_996}67890<p>none")
    assert by_lxml(Wrapper({"zip": zips}), root) == [{"zip": ("12345", "67890")}]
    assert native(Wrapper({"zip": zips}), root) == [{"zip": ("12345", "67890")}]


def test_only_a_stylesheet_with_a_pattern_needs_an_extension() -> None:
    assert "regexp" not in to_xslt(WRAPPER)
    assert "regexp:match" in to_xslt(Wrapper({"zip": attribute(rule("text", part=ValuePart(pattern="1")))}))


@pytest.mark.parametrize(
    ("wrapper", "message"),
    [
        (Wrapper({"zip": attribute(replace(rule("text"), scorer=Scorer((), 0.0)))}), "'zip'.*classifier"),
        (
            Wrapper({"zip": attribute(voters=(NO_RULE, replace(rule("text"), scorer=Scorer((), 0.0))))}),
            "'zip'.*classifier",
        ),
        (replace(WRAPPER, record_rule=replace(RECORDS, runs_on=True)), "run on"),
    ],
)
def test_what_xslt_cannot_do_is_refused(wrapper: Wrapper, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        to_xslt(wrapper)


@pytest.mark.parametrize("multi", [False, True])
def test_voters_that_never_step_in_are_not_refused(multi: bool) -> None:
    voters = (replace(rule("text"), scorer=Scorer((), 0.0)),) * (2 if multi else 1)
    to_xslt(Wrapper({"zip": attribute(rule("text"), voters=voters, multi=multi)}))


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
