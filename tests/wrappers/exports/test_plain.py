"""What evaluates exported rules makes the trees, and finds the values, that siteloom does."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.core.model import Attribute, Failure, Footprint, Page
from siteloom.html.encoding import decode
from siteloom.html.parser import Element, parse
from siteloom.html.visible_text import BREAKS, HIDDEN, visible_text
from siteloom.wrappers.exports import standalone_extractor
from siteloom.wrappers.exports.xpath_json import to_xpath_json
from siteloom.wrappers.rule_features import (
    SHAPES,
    AttributeRules,
    Feature,
    Kind,
    RecordRule,
    Rule,
    RuleSupport,
    Scorer,
    ValuePart,
)
from siteloom.wrappers.value_contract import CHARACTERS, Contract
from siteloom.wrappers.wrapper import Wrapper
from tests.html.html_bytes import html_like
from tests.html.trees import tree
from tests.wrappers.test_wrapper_xslt import cases, listings

URL = "http://a.example/"


def by_plain(wrapper: Wrapper, root: Element, signature: str = "") -> list[dict[str, tuple[str, ...]]]:
    """The records by what is exported, after a trip through JSON."""
    found = standalone_extractor.records(json.loads(to_xpath_json(wrapper)), root, signature)
    return [{name: tuple(texts) for name, texts in record.items()} for record in found]


def native(wrapper: Wrapper, root: Element, signature: str = "") -> list[dict[str, tuple[str, ...]]]:
    return [dict(one.values) for one in wrapper.records(root, URL, bytes.fromhex(signature) or None)]


def outline(root: Element) -> list[object]:
    return [(e.tag, e.text, e.tail, e.items() if isinstance(e.tag, str) else None) for e in root.iter()]


def test_the_lists_of_tags_are_those_of_siteloom() -> None:
    assert standalone_extractor.HIDDEN == HIDDEN
    assert standalone_extractor.BREAKS == BREAKS
    assert standalone_extractor.SHAPES == SHAPES
    assert tuple(standalone_extractor.CHARACTERS) == CHARACTERS


@given(html_like)
@example(b"<p>a</body><p>b")
@example(b"<p>a</body>\n<!-- c --></html> ")
@example(b"<p>a</body>\n<!-- c </html> ")
@example(b"<script>'</body>'</script><p>a</body><!-- c -->")
@example(b"<script><!-- <script></script></body> --></script><p>a</body>b")
@example(b"<a title='</body>'>x</a></body>y<b")
@example(b"<title></body></title><p></BODY\n>x</html>y<!--></body>-->z")
@example(b"<p>\x0b&#11;&#x1F;&#0012;x&#120;")
@example(b"<plaintext></body>x")
def test_any_text_gives_the_same_tree(html: bytes) -> None:
    text = decode(html, "utf-8")
    expected = parse(Page(URL, html, charset="utf-8"))
    found = standalone_extractor.tree(text)
    if isinstance(expected, Failure):
        assert found is None or expected.reason.startswith("too many")
    else:
        assert outline(found) == outline(expected)


_SCORERS = st.builds(
    Scorer,
    weights=st.lists(
        st.tuples(
            st.sampled_from(
                [f"{name} {number}" for name in ("position", "text-number", "depth") for number in range(4)]
                + ["shape words", "shape digits", "length 1", "length 2", "digits", "letters", "capitals"]
            ),
            st.floats(-4, 4),
        ),
        max_size=4,
        unique_by=lambda one: one[0],
    ).map(tuple),
    intercept=st.floats(-2, 2),
    takes_all=st.booleans(),
)
_PATTERNS = st.sampled_from(["", "", "[0-9]+", "[A-Z]", r"\$[0-9]++", r"B: [0-9]"])


@st.composite
def odd_wrappers(draw: st.DrawFn) -> tuple[Element, Wrapper]:
    """A page, and a wrapper that fits it, with all that XSLT cannot say."""
    root, wrapper = draw(cases() | listings)

    def odd(rule: Rule) -> Rule:
        pattern = draw(_PATTERNS)
        part = ValuePart(pattern=pattern, separator=rule.part.separator) if pattern else rule.part
        return replace(rule, part=part, scorer=draw(st.none() | _SCORERS))

    attributes = {
        name: replace(found, rules=tuple(map(odd, found.rules)), voters=tuple(map(odd, found.voters)))
        for name, found in wrapper.attributes.items()
    }
    records = wrapper.record_rule
    if records is not None:
        records = replace(records, runs_on=draw(st.booleans()))
    return root, replace(wrapper, attributes=attributes, record_rule=records)


@given(cases() | listings)
def test_plain_gives_the_values_of_the_wrapper(case: tuple[Element, Wrapper]) -> None:
    root, wrapper = case
    assert by_plain(wrapper, root) == native(wrapper, root)


@given(odd_wrappers())
def test_plain_knows_patterns_classifiers_and_records_that_run_on(case: tuple[Element, Wrapper]) -> None:
    root, wrapper = case
    assert by_plain(wrapper, root) == native(wrapper, root)


_CONTRACTS = st.none() | st.builds(
    Contract,
    values=st.just(9),
    shortest=st.integers(0, 6),
    longest=st.integers(0, 3),
    always=st.lists(st.sampled_from(CHARACTERS), max_size=1).map(tuple),
    never=st.lists(st.sampled_from(CHARACTERS), max_size=1).map(tuple),
    choices=st.sampled_from([(), (), ("A", "A B")]),
)
_SIGNATURES = st.sampled_from([f"{'00' * number}{'ff' * (8 - number)}" for number in (0, 3, 5, 8)])
_FOOTPRINTS = st.lists(_SIGNATURES, max_size=2, unique=True).map(
    lambda found: Footprint(accepted=tuple(found))
)
_SHARES = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0])


@st.composite
def wrappers_with_layouts(draw: st.DrawFn) -> tuple[Element, Wrapper]:
    """A page, and a wrapper with earlier layouts, whose rules differ in how sure they are."""
    root, first = draw(listings)

    def layout(wrapper: Wrapper) -> Wrapper:
        def other(rule: Rule) -> Rule:
            return replace(rule, evidence=RuleSupport(3, draw(st.integers(0, 1)), draw(_SHARES), 0.0))

        return replace(
            wrapper,
            record_rule=first.record_rule,
            footprint=draw(_FOOTPRINTS),
            attributes={
                name: replace(
                    found,
                    rules=tuple(map(other, found.rules)),
                    voters=tuple(map(other, found.voters)),
                    filled=draw(_SHARES),
                    contract=draw(_CONTRACTS),
                )
                for name, found in wrapper.attributes.items()
            },
        )

    others = draw(st.lists(listings.map(lambda case: case[1]), min_size=1, max_size=2))
    return root, replace(layout(first), earlier=tuple(map(layout, others)))


@given(wrappers_with_layouts(), st.just("") | _SIGNATURES)
def test_plain_chooses_among_layouts_as_siteloom_does(case: tuple[Element, Wrapper], signature: str) -> None:
    root, wrapper = case
    assert by_plain(wrapper, root, signature) == native(wrapper, root, signature)


def test_of_equal_layouts_the_signature_decides() -> None:
    def layout(tag: str, accepted: str) -> Wrapper:
        rules = AttributeRules(Attribute(), (rule("text", ("tag", 0, tag)),), (), 1.0)
        return Wrapper({"name": rules}, footprint=Footprint(accepted=(accepted,)))

    wrapper = replace(layout("b", "00" * 8), earlier=(layout("i", "ff" * 8),))
    root = tree("<b>new</b><i>old</i>")
    for signature, expected in (("", "new"), ("0000ffffffffffff", "old"), ("00000000ffffffff", "new")):
        assert by_plain(wrapper, root, signature) == [{"name": (expected,)}]
        assert native(wrapper, root, signature) == [{"name": (expected,)}]


def rule(target: str, *features: tuple[Kind, int, str], part: ValuePart = ValuePart()) -> Rule:
    return Rule(target, tuple(Feature(*one) for one in features), part, RuleSupport(1, 0, 1.0, 0.0))


def test_records_that_run_on_end_where_the_next_begins() -> None:
    page = "<div>A<h2>One</h2><p>1</p><p>2</p>tail<h2>Two</h2> of two <p>3</p></div>B"
    wrapper = Wrapper(
        {
            "name": AttributeRules(Attribute(), (rule("text", ("tag", 0, "h2")),), (), 1.0),
            "parts": AttributeRules(Attribute(multi=True), (rule("text", ("tag", 0, "p")),), (), 1.0),
            "between": AttributeRules(
                Attribute(multi=True), (rule("text", ("text-number", 0, "1")),), (), 1.0
            ),
        },
        record_rule=RecordRule((Feature("tag", 0, "h2"),), runs_on=True),
    )
    found = by_plain(wrapper, tree(page))
    assert found == native(wrapper, tree(page))
    assert [(record["name"], record["parts"]) for record in found] == [
        (("One",), ("1", "2")),
        (("Two",), ("3",)),
    ]
    assert found[1]["between"] == ("Two", "of two", "3")


def test_an_item_has_all_attributes() -> None:
    attributes = {
        name: AttributeRules(Attribute(multi=multi), (rule("text", ("tag", 0, name)),), (), 1.0)
        for name, multi in (("b", False), ("i", True), ("u", True), ("p", False))
    }
    document = json.loads(to_xpath_json(Wrapper(attributes)))
    (record,) = standalone_extractor.records(document, "<b>1</b><b>2</b><i>3</i><i>4</i>")
    assert standalone_extractor.item(document, record) == {"b": "1", "i": ["3", "4"], "u": [], "p": None}


def test_the_text_of_an_element_is_what_a_person_reads() -> None:
    root = tree("<div>A<br>B<b>C</b><script>no</script><!-- no --> D<p>E</p>F</div>")
    assert standalone_extractor.node_text(root) == visible_text(root) == "A BC D E F"
