"""A value as a person sees it is found wherever it stands, and nowhere else."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from siteloom.core.errors import UsageError
from siteloom.core.model import Failure, Page
from siteloom.html.node_paths import find, node_path
from siteloom.html.parser import Element, parse
from siteloom.html.visible_text import normalize, text_nodes, visible_text
from siteloom.learning.value_search.text_equality import fold
from siteloom.learning.value_search.value_locations import ValueIndex, ValueLocation
from tests.html.html_bytes import html_bytes
from tests.html.trees import tree


def found(html: str, value: str) -> list[tuple[str, str, int, int]]:
    """Each place as its node below the body, the whole, start and end."""
    places = ValueIndex(tree(html)).find(value)
    return [(short(place.node), place.text, place.start, place.end) for place in places]


def short(node: str) -> str:
    return node.removeprefix("/html[1]/").removeprefix("body[1]/").replace("[1]", "")


# ---- texts


def test_a_whole_text() -> None:
    assert found("<p>a</p><p> Blue\n Fern </p>", "Blue Fern") == [("p[2]/text()", "Blue Fern", 0, 9)]


def test_the_fields_of_a_place() -> None:
    root = tree("<p><b>Price:</b> $5 <i>now</i> only $5</p>")
    first, second = ValueIndex(root).find("$5")
    paragraph = root.find("body/p")
    assert paragraph is not None
    assert first == ValueLocation(paragraph, "text", 1, "$5", 0, 2)
    assert second == ValueLocation(paragraph, "text", 2, "only $5", 5, 7)
    assert (first.is_whole, second.is_whole) == (True, False)
    assert second.node == "/html[1]/body[1]/p[1]/text()[2]"


def test_a_part_of_a_text() -> None:
    assert found("<p>Our price: $12.99!</p>", "$12.99") == [("p/text()", "Our price: $12.99!", 11, 17)]


@pytest.mark.parametrize("text", ["2012", "x12", "12x", "312 120", "12\u0301", "é12", "½12"])
def test_a_part_of_a_word_is_no_place(text: str) -> None:
    assert found(f"<p>{text}</p><a href='/{text}'>a</a>", "12") == []


@pytest.mark.parametrize("text", ["12", "(12)", "a-12/b", "12.99", "$12", "_12_", "a 12", "12★"])
def test_a_value_stands_between_edges_of_words(text: str) -> None:
    places = ValueIndex(tree(f"<p>{text}</p>")).find("12")
    assert [place.text[place.start : place.end] for place in places] == ["12"]


def test_a_word_that_is_part_of_the_page_but_shown_by_two_texts() -> None:
    """Each text is a node of its own, and a rule can name it."""
    assert found("<p><b>20</b>12</p>", "12") == [("p/text()", "12", 0, 2)]


def test_the_same_value_many_times() -> None:
    html = "<p>Thai</p><ul>" + "<li>Thai</li>" * 3 + "</ul><p>Thai, Thai</p>"
    assert [(node, start) for node, _, start, _ in found(html, "Thai")] == [
        ("p/text()", 0),
        ("ul/li/text()", 0),
        ("ul/li[2]/text()", 0),
        ("ul/li[3]/text()", 0),
        ("p[2]/text()", 0),
        ("p[2]/text()", 6),
    ]


def test_places_of_a_value_that_overlaps_itself() -> None:
    assert [start for _, _, start, _ in found("<p>x x x</p>", "x x")] == [0, 2]


def test_what_is_not_shown_is_no_place() -> None:
    html = "<script>x</script><style>x</style><noscript><p title=x>x</p></noscript><template>x</template>"
    assert found(html + "<!--x--><iframe><p>x</p></iframe>", "x") == []


def test_the_address_of_a_frame_is_a_place() -> None:
    assert [node for node, *_ in found("<iframe src=/film>/film</iframe>", "/film")] == ["iframe/@src"]


def test_case_counts() -> None:
    assert found("<p>thai</p>", "Thai") == []


# ---- what looks the same


@pytest.mark.parametrize(
    ("html", "value"),
    [
        ("A &amp; B", "A & B"),
        ("A &amp; B", "A &amp; B"),
        ("caf&eacute;", "café"),
        ("12&nbsp;000", "12 000"),
        ("12 000", "12\u00a0000"),
        ("  a \n\t b ", "a b"),
        ("a b", " a\nb "),
        ("Joe\u2019s \u201cBar\u201d", 'Joe\'s "Bar"'),
        ("Joe's", "Joe\u2019s"),
        ("6\u2032 2\u2033", "6' 2\""),
        ("2010\u20132012", "2010-2012"),
        ("\u22125", "-5"),
        ("ex&shy;tra\u200bor\u2060dinary", "extraordinary"),
        ("\ufeffa", "a"),
        ("\u200e 555 \u200f", "555"),
        ("a \u200b b", "a b"),
        ("cafe\u0301", "café"),
        ("café", "cafe\u0301"),
    ],
)
def test_what_looks_the_same_is_the_same(html: str, value: str) -> None:
    root = tree(f"<p>{html}</p>")
    (place,) = ValueIndex(root).find(value)
    assert (place.target, place.is_whole) == ("text", True)
    assert place.text == visible_text(root)


def test_entities_are_read_only_where_the_value_is_not_found_as_it_is() -> None:
    html = "<p>&amp;amp;</p><p>&amp;</p>"
    assert found(html, "&amp;") == [("p/text()", "&amp;", 0, 5)]
    assert found("<p>&amp;</p>", "&amp;") == [("p/text()", "&", 0, 1)]


@pytest.mark.parametrize(
    ("text", "value", "piece"),
    [
        ("\u200b\u200bPrice: 12\u200b99 \u200b EUR", "1299", "12\u200b99"),
        ("\u200bcafe\u0301s, re\u0301sume\u0301\u200b; x", "résumé", "re\u0301sume\u0301"),
        ("a \u200b b, c", "a b", "a \u200b b"),
        ("“a” \u2013 b", '"a"', "“a”"),
        ("\u0958 12", "12", "12"),  # composed forms of it are one character longer
    ],
)
def test_offsets_are_those_of_the_text_as_it_stands(text: str, value: str, piece: str) -> None:
    (place,) = ValueIndex(tree(f"<p>{text}</p>")).find(value)
    assert place.text == text
    assert place.text[place.start : place.end] == piece


def test_the_folded_form() -> None:
    assert fold(" \u2018a\u2019\u00a0\u2014 e\u0301\u00ad\u200b ") == "'a' - é"


@given(st.text())
def test_a_folded_text_stays_as_it_is(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert unicodedata.is_normalized("NFC", fold(text))
    assert fold(text) == normalize(fold(text))


@given(st.text(alphabet="ab \u200be\u0301\u0327\u1100\u1161\u11a8\u0958\u00e9\u2019"))
def test_a_folded_text_has_all_accents_composed(text: str) -> None:
    seen = text.replace("\u200b", "").replace("\u2019", "'")
    assert fold(text) == normalize(unicodedata.normalize("NFC", seen))


# ---- runs over several texts


def test_a_run_over_inline_tags() -> None:
    assert found("<div>x<p><b>12</b>.99</p></div>", "12.99") == [("div/p", "12.99", 0, 5)]


def test_the_smallest_element_has_the_run() -> None:
    assert found("<div><div><p>a<br>b</p></div></div>", "a b") == [("div/div/p", "a b", 0, 3)]


def test_part_of_a_run_over_br() -> None:
    html = "<div><b>Address:</b> 12 Main St<br>Springfield <b>Phone:</b> 555</div>"
    assert found(html, "12 Main St Springfield") == [
        ("div", "Address: 12 Main St Springfield Phone: 555", 9, 31)
    ]


def test_a_run_over_blocks() -> None:
    assert found("<ul><li>a</li><li>b</li><li>c</li></ul>", "b c") == [("ul", "a b c", 2, 5)]


def test_a_run_ends_at_edges_of_words() -> None:
    assert found("<p>x<b>12</b>.99</p>", "12.99") == []


def test_the_edge_of_an_element_is_an_edge_of_a_word() -> None:
    assert found("<p>USD<b>12<sup>99</sup></b></p>", "1299") == [("p/b", "1299", 0, 4)]
    assert found("<p>USD<b>12<sup>99</sup> net</b></p>", "1299") == [("p/b", "1299 net", 0, 4)]


def test_no_run_where_one_text_inside_has_the_value() -> None:
    html = "<div>a<br>b <p>a b</p></div><div>a<br>b</div>"
    assert found(html, "a b") == [("div/p/text()", "a b", 0, 3), ("div[2]", "a b", 0, 3)]


def test_offsets_in_a_run_with_unseen_characters() -> None:
    html = "<p><i>\u200b</i>x: <b>1\u200b2</b>.99<i>\u200b</i>; y</p>"
    (place,) = ValueIndex(tree(html)).find("12.99")
    assert place.text[place.start : place.end] == "1\u200b2.99"
    assert short(place.node) == "p"


def test_a_run_with_nothing_else_around_it_is_whole() -> None:
    (place,) = ValueIndex(tree("<p><i>\u200b</i> <b>12</b>.99<i>\u200b</i></p>")).find("12.99")
    assert place.is_whole
    assert short(place.node) == "p"


def test_an_accent_in_a_text_of_its_own() -> None:
    assert found("<p>cafe<b>\u0301</b>s</p>", "cafés") == [("p", "cafe\u0301s", 0, 6)]


def test_the_title_of_the_page() -> None:
    html = "<title>Blue Fern - Menus</title><p>x"
    assert found(html, "Blue Fern - Menus") == [("head/title", "Blue Fern - Menus", 0, 17)]
    assert found(html, "Blue Fern") == [("head/title", "Blue Fern - Menus", 0, 9)]


def test_the_title_of_a_drawing_is_a_text() -> None:
    assert found("<svg><title>Fern</title></svg>", "Fern") == [("svg/title/text()", "Fern", 0, 4)]


# ---- attributes


@pytest.mark.parametrize(
    "name",
    "href src content alt title datetime value placeholder aria-label class style width data-price".split(),
)
def test_whole_and_part_of_an_attribute(name: str) -> None:
    html = f"<a {name}=' 5 '></a><a {name}='was 5;'></a><a {name}=55></a>"
    assert found(html, "5") == [(f"a/@{name}", "5", 0, 1), (f"a[2]/@{name}", "was 5;", 4, 5)]


@pytest.mark.parametrize("name", ["id", "onclick", "name", "rel"])
def test_other_attributes_hold_no_values(name: str) -> None:
    assert found(f"<a {name}=x></a>", "x") == []


def test_the_address_of_a_mail_link() -> None:
    html = "<a href='mailto:info@fern.example?subject=a'>Mail</a>"
    assert found(html, "info@fern.example") == [("a/@href", "mailto:info@fern.example?subject=a", 7, 24)]


def test_ratings() -> None:
    html = "<p class='star-rating Three'></p><i style='width:80%'></i>"
    assert found(html, "Three") == [("p/@class", "star-rating Three", 12, 17)]
    assert found(html, "80%") == [("i/@style", "width:80%", 6, 9)]
    assert found(html, "80") == [("i/@style", "width:80%", 6, 8)]


def test_meta_and_link_in_the_head() -> None:
    html = "<head><meta content=x><link href=x><script src=x></script></head>"
    assert [node for node, _, _, _ in found(html, "x")] == ["head/meta/@content", "head/link/@href"]


def test_an_attribute_with_the_name_of_broken_markup() -> None:
    index = ValueIndex(tree("<p data-a\"b='5'>x"))
    (place,) = index.find("5")
    assert index.at(place.node, "5") == place


# ---- order


def test_the_order_of_places() -> None:
    html = (
        "<title>x y</title><body title='x y'><p alt='an x y'>x<br>y</p><p>an x y</p><p>x y</p>"
        "<p>an x<br>y</p><p title='x y' alt='of x y'></p><div>x<i> y</i></div>"
    )
    nodes = [node for node, _, _, _ in found(html, "x y")]
    assert nodes == [
        "p[3]/text()",
        "head/title",
        "p",
        "div",
        "p[2]/text()",
        "@title",
        "p[5]/@title",
        "p[4]",
        "p/@alt",
        "p[5]/@alt",
    ]


# ---- wrong use


@pytest.mark.parametrize("value", ["", "  ", "\u00a0", "\u200b", "\n"])
def test_a_blank_value_is_a_mistake(value: str) -> None:
    index = ValueIndex(tree("<p>x"))
    with pytest.raises(UsageError, match="blank"):
        index.find(value)
    with pytest.raises(UsageError, match="blank"):
        index.at("/html[1]/body[1]/p[1]/text()[1]", value)
    assert index.nearest(value) is None


def test_a_value_that_html_reads_as_blank_is_not_found() -> None:
    assert found("<p>x", "&nbsp;") == []


def test_a_list_of_places_is_the_callers_own() -> None:
    index = ValueIndex(tree("<p>x"))
    index.find("x").clear()
    assert len(index.find("x")) == 1


# ---- exact nodes

NODES = ValueIndex(
    tree(
        "<title>The Fern</title><p>one <b>two</b> three, one three</p>"
        "<p><a id=n9 href='/a/b'>1200yen</a></p><script>s()</script><p></p>"
    )
)
BODY = "/html[1]/body[1]"


@pytest.mark.parametrize(
    ("node", "value", "expected"),
    [
        (f"{BODY}/p[1]/text()[1]", "one", ("text", 1, "one", 0, 3)),
        (f"{BODY}/p[1]/text()[2]", "one", ("text", 2, "three, one three", 7, 10)),
        (f"{BODY}/p[1]/text()[2]", "three", ("text", 2, "three, one three", 0, 5)),
        (f"{BODY}/p[1]", "two three", ("element", 0, "one two three, one three", 4, 13)),
        (f"{BODY}/p[1]/b[1]", "two", ("element", 0, "two", 0, 3)),
        (f"{BODY}/p[2]/a[1]/@href", "b", ("@href", 0, "/a/b", 3, 4)),
        (f"{BODY}/p[2]/a[1]/@id", "n9", ("@id", 0, "n9", 0, 2)),
        (f"{BODY}/p[2]/a[1]/text()[1]", "1200", ("text", 1, "1200yen", 0, 4)),  # the node is certain
        (f"{BODY}/p[1]/text()[1]", "&#111;ne", ("text", 1, "one", 0, 3)),
        ("/html/body/p[1]/b/text()", "two", ("text", 1, "two", 0, 3)),
        ("/html[1]/head[1]/title[1]", "The Fern", ("element", 0, "The Fern", 0, 8)),
        ("/html[1]/head[1]/title[1]/text()[1]", "Fern", ("element", 0, "The Fern", 4, 8)),
    ],
)
def test_the_place_in_a_node(node: str, value: str, expected: tuple[str, int, str, int, int]) -> None:
    place = NODES.at(node, value)
    assert place is not None
    assert (place.target, place.number, place.text, place.start, place.end) == expected
    assert find(place.element, node_path(place.element)) is place.element


@pytest.mark.parametrize(
    ("node", "value"),
    [
        (f"{BODY}/p[1]/text()[1]", "two"),
        (f"{BODY}/p[1]/text()[3]", "one"),
        (f"{BODY}/p[9]/text()[1]", "one"),
        (f"{BODY}/p[3]", "one"),
        (f"{BODY}/p[2]/a[1]/@title", "b"),
        (f"{BODY}/script[1]", "s()"),
        (f"{BODY}/script[1]/text()[1]", "s()"),
        ("", "one"),
        ("/", "one"),
        ("no path [", "one"),
        ("count(//p)", "one"),
        ("//p/text()", "one"),
        ("/html[1]/o:p[1]", "one"),
    ],
)
def test_no_place_in_a_node(node: str, value: str) -> None:
    assert NODES.at(node, value) is None


def test_no_letter_is_cut_from_its_accent() -> None:
    index = ValueIndex(tree("<p>xq\u0301</p>"))
    assert index.at(f"{BODY}/p[1]", "q") is None
    assert index.at(f"{BODY}/p[1]", "x") is not None


# ---- the nearest text

MENU = ValueIndex(
    tree(
        "<title>Blue Fern Restaurant</title><h1>The Blue Fern</h1><p>Open daily. Call 555-0199, or write.</p>"
        "<p>12 Main Street<br>Springfield</p><p>$12.99</p><p>Only 3500yen</p>"
    )
)


@pytest.mark.parametrize(
    ("value", "nearest"),
    [
        ("the blue fern", "The Blue Fern"),
        ("Teh Blue Fern", "The Blue Fern"),
        ("Blue Fern Resturant", "Blue Fern Restaurant"),
        ("$12.98", "$12.99"),
        ("12 Main St Springfield", "12 Main Street Springfield"),
        ("Call 555-0198", "Call 555-0199,"),
        ("3500", "Only 3500yen"),
        ("zebra", None),
        ("12345678", None),
    ],
)
def test_the_nearest_text(value: str, nearest: str | None) -> None:
    assert MENU.nearest(value) == nearest


def test_nothing_is_near_on_an_empty_page() -> None:
    assert ValueIndex(tree("<p>")).nearest("x") is None


# ---- any page

PIECES = [
    "a",
    "12",
    "a b",
    " ",
    ".",
    "-",
    "a\u200b",
    "\u200b",
    "e\u0301",
    "\u2019s",
    "\u00a0",
    "$1",
    "\u0958",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
TEXTS_WITH_ACCENTS_ALONE = st.lists(st.sampled_from([*PIECES, "\u0301"]), max_size=4).map("".join)
TAGS = st.sampled_from("p b div br i td script head title textarea".split())


@st.composite
def small_trees(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> Element:
    root = etree.Element("html")
    elements: list[Element] = [root]
    for _ in range(draw(st.integers(0, 8))):
        child = etree.SubElement(draw(st.sampled_from(elements)), draw(TAGS))
        child.text = draw(texts)
        child.tail = draw(texts)
        if draw(st.booleans()):
            child.set(draw(st.sampled_from(["href", "title", "data-x"])), draw(texts))
        elements.append(child)
    return root


def check(root: Element, values: set[str]) -> None:
    """What must hold for any values on any page."""
    index = ValueIndex(root)
    for parent, number, text in text_nodes(root):
        if fold(text):
            place = ValueLocation(parent, "text", number, normalize(text), 0, len(normalize(text)))
            assert place in index.find(text)
            values.add(text)
    for value in values:
        places = index.find(value)
        assert len(set(places)) == len(places)
        met = set()
        for place in places:
            assert fold(place.text[place.start : place.end]) == fold(value)
            if place.target == "element":
                assert place.text == visible_text(place.element)
                assert place.number == 0
            node = place.node
            back = index.at(node, value)
            assert back is not None
            if node not in met:  # of several places in one node, it is the first
                assert back == place
                met.add(node)


@given(small_trees(TEXTS_WITH_ACCENTS_ALONE), st.sets(TEXTS_WITH_ACCENTS_ALONE.filter(fold), max_size=5))
def test_places_on_any_small_tree(root: Element, values: set[str]) -> None:
    check(root, values)


@given(small_trees(TEXTS))
def test_the_text_of_every_element_is_found_inside_it(root: Element) -> None:
    index = ValueIndex(root)
    for element in root.iter(etree.Element):
        if element.xpath("boolean(ancestor-or-self::script or ancestor-or-self::head)"):
            continue
        value = visible_text(element)
        if fold(value):
            inside = set(element.iter())
            assert any(place.is_whole and place.element in inside for place in index.find(value))


@given(html_bytes)
def test_places_on_any_page(html: bytes) -> None:
    root = parse(Page("u", html))
    if not isinstance(root, Failure):
        check(root, {"x", "two", "a", "two words x"})
        ValueIndex(root).nearest("two wrods")
