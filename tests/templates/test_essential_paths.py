"""A page is the set of its paths, whose hashes are the same everywhere and lead back to words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Failure, Page
from siteloom.html.parser import parse
from siteloom.templates.essential_paths import class_path_hashes, page_paths, path_texts
from tests.html.html_bytes import html_like
from tests.html.trees import tree
from tests.templates.test_signature import other_process

PAGE = "<body><h1>One  two</h1><ul class='b a'><li>x<li>x<li>y <b>z</b> tail</ul></body>"


def wordings(html: str) -> set[str]:
    root = tree(html)
    return {str(words) for words in path_texts(root, set(page_paths(root).all_paths.tolist())).values()}


def same_paths(a: str, b: str) -> bool:
    return np.array_equal(page_paths(tree(a)).all_paths, page_paths(tree(b)).all_paths)


def same_class_paths(a: str, b: str) -> bool:
    return np.array_equal(class_path_hashes(tree(a)), class_path_hashes(tree(b)))


def test_a_page_is_its_elements_and_its_texts_each_once() -> None:
    assert wordings(PAGE) == {
        "html",
        "html/body",
        "html/body/h1",
        'html/body/h1/"One two"',
        "html/body/ul",
        "html/body/ul/li",
        'html/body/ul/li/"x"',
        'html/body/ul/li/"y"',
        "html/body/ul/li/b",
        'html/body/ul/li/b/"z"',
        'html/body/ul/li/"tail"',
    }
    paths = page_paths(tree(PAGE))
    assert (len(paths.elements), len(paths.texts), len(paths.parents), len(paths.all_paths)) == (6, 5, 5, 11)


@given(html_like)
def test_every_path_has_words_of_its_own(html: bytes) -> None:
    root = parse(Page("http://a.example/", html))
    if isinstance(root, Failure):
        return
    paths = page_paths(root)
    for column in (paths.elements, paths.texts, paths.all_paths):
        assert column.dtype == np.uint64
        assert np.array_equal(column, np.unique(column))
    words = path_texts(root, set(paths.all_paths.tolist()))
    assert set(words) == set(paths.all_paths.tolist())
    assert len(set(words.values())) == len(words)
    assert all(words[path].text is None for path in paths.elements.tolist())
    for text, parent in zip(paths.texts.tolist(), paths.parents.tolist(), strict=True):
        assert words[text].text
        assert words[text].tags == words[parent].tags


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("<p>a b</p>", "<p id=x class=y> a\n\xa0b </p>"),
        ("<p>a</p><p>a</p>", "<p>a</p>"),
        ("<p>a</p><b>c</b>", "<b>c</b><p>a</p>"),
        ("<p>a</p><!-- c -->", "<p>a</p>"),
        ("<p>a<b>b</b></p>", "<p><!-- c -->a<b>b</b><!-- d --></p>"),
        ("<p>a</p><script>f()</script>", "<p>a</p><script>g()</script>"),
    ],
)
def test_what_a_path_does_not_tell(a: str, b: str) -> None:
    assert same_paths(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("<p>a</p>", "<p>b</p>"),
        ("<p>a</p>", "<div>a</div>"),
        ("<div><p>a</p></div>", "<p><a>a</a></p>"),
        ("<b><i>x</i></b>", "<i><b>x</b></i>"),
        ("<p>b</p>", "<p><b></b></p>"),  # a text is no tag
    ],
)
def test_what_a_path_does_tell(a: str, b: str) -> None:
    assert not same_paths(a, b)


@pytest.mark.parametrize("tag", ["script", "style", "noscript", "template", "iframe", "noframes"])
def test_code_is_no_text_however_deep_it_stands(tag: str) -> None:
    found = wordings(f"<body>a<{tag}>b<p>c<i>d</i>e</p>f</{tag}>g</body>")
    assert {text.split('"')[1] for text in found if '"' in text} == {"a", "g"}


def test_words_come_in_the_order_of_the_page_and_only_if_wanted() -> None:
    root = tree("<body><p>one</p><p>two</p><p>three</p></body>")
    every = path_texts(root, set(page_paths(root).texts.tolist()))
    assert [words.text for words in every.values()] == ["one", "two", "three"]
    wanted = list(every)[1:2]
    assert [words.text for words in path_texts(root, wanted).values()] == ["two"]
    assert path_texts(root, {1, 2, 3}) == {}


def test_class_names_are_a_set() -> None:
    assert same_class_paths("<p class='a b'>", "<p class=' b  a b\n'>")
    assert same_class_paths("<p class=' '>", "<p>")
    assert not same_class_paths("<p class='a b'>", "<p class='a'>")
    assert not same_class_paths("<p class='a b'>", "<p class='a.b'>")
    assert not same_class_paths("<p class=a>", "<p>")


def test_texts_are_no_part_of_class_paths() -> None:
    assert same_class_paths("<p class=a>one</p>", "<p class=a>two</p><p class=a></p>")
    assert len(class_path_hashes(tree("<p class=a>one</p><p>"))) == 4


def test_hashes_are_frozen() -> None:
    assert [f"{path:016x}" for path in page_paths(tree("<p>é</p>")).all_paths.tolist()] == [
        "049496b8fc1ac113",
        "c46a5ac6b31d85a5",
        "cd0756f93607ba64",
        "e5085cb9da956671",
    ]
    assert [f"{path:016x}" for path in class_path_hashes(tree("<p class='b a'>")).tolist()] == [
        "049496b8fc1ac113",
        "e5085cb9da956671",
        "f58bdb8c463522e6",
    ]


def test_another_process_finds_the_same_hashes() -> None:
    code = (
        "from siteloom.html.parser import parse\nfrom siteloom.core.model import Page\n"
        "from siteloom.templates.essential_paths import class_path_hashes, page_paths\n"
        f"root = parse(Page('http://a.example/', {PAGE.encode()!r}, charset='utf-8'))\n"
        "print(page_paths(root).all_paths.tolist(), class_path_hashes(root).tolist())"
    )
    root = tree(PAGE)
    expected = f"{page_paths(root).all_paths.tolist()} {class_path_hashes(root).tolist()}"
    assert other_process(code, "99").strip() == expected


def test_a_deep_page_and_a_wide_page() -> None:
    assert len(page_paths(tree("<div>" * 2_000 + "x")).elements) > 2_000
    wide = page_paths(tree("<p>x</p>" * 20_000))
    assert (len(wide.elements), len(wide.texts)) == (3, 1)


@given(st.lists(st.sampled_from(["a", "b", "i", "u"]), min_size=1, max_size=6, unique=True))
def test_nested_tags_are_told_by_their_order(tags: list[str]) -> None:
    html = "".join(f"<{tag}>" for tag in tags)
    assert ["html/body/" + "/".join(tags[:n]) for n in range(1, len(tags) + 1)] == sorted(
        words for words in wordings(html) if words.startswith("html/body/")
    )
