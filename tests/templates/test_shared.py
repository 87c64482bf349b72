"""The template is what most pages share, and with its delta it gives each page back."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given

from siteloom.templates.essential_paths import describe_template, page_delta, page_paths, shared_paths
from tests.html.trees import tree
from tests.templates.clustering.path_documents import a_document, document, some_documents


def shared(*pages: str) -> dict[int, int]:
    """The shared paths of pages whose paths are letters."""
    found = shared_paths([document(map(ord, page)) for page in pages])
    return dict(zip(found.paths.tolist(), found.support.tolist(), strict=True))


@given(some_documents)
def test_a_path_is_shared_from_half_of_one_more_page_on(pages: list[frozenset[int]]) -> None:
    found = shared_paths([document(page) for page in pages])
    support = Counter(path for page in pages for path in page)
    expected = {path: count for path, count in support.items() if count >= (len(pages) + 1) / 2}
    assert found.paths.tolist() == sorted(expected)
    assert found.support.tolist() == [expected[path] for path in sorted(expected)]


def test_of_few_pages() -> None:
    assert shared() == {}
    assert shared("ab") == {ord("a"): 1, ord("b"): 1}
    assert shared("ab", "ac") == {ord("a"): 2}
    assert shared("ab", "ac", "bd") == {ord("a"): 2, ord("b"): 2}
    assert shared("a", "a", "b", "c") == {}
    assert shared("", "") == {}


@given(a_document, a_document)
def test_a_template_and_a_delta_give_the_page_back(page: frozenset[int], template: frozenset[int]) -> None:
    delta = page_delta(document(page), document(template))
    added, lacking = set(delta.added.tolist()), set(delta.lacking.tolist())
    assert (template - lacking) | added == page
    assert lacking <= template
    assert not added & template
    assert delta.added.dtype == delta.lacking.dtype == np.uint64


@given(some_documents)
def test_no_other_template_is_described_more_shortly(pages: list[frozenset[int]]) -> None:
    """Entries of the template and of all deltas; a path more or less does not save any."""
    documents = [document(page) for page in pages]
    template = set(shared_paths(documents).paths.tolist())

    def entries(paths: set[int]) -> int:
        deltas = [page_delta(page, document(paths)) for page in documents]
        return len(paths) + sum(len(delta.added) + len(delta.lacking) for delta in deltas)

    assert all(entries(template) <= entries(template ^ {path}) for path in range(31))


def test_a_template_is_told_in_words_in_the_order_of_its_pages() -> None:
    roots = [
        tree(f"<body><nav>Home</nav><h1>{name}</h1>{optional}<p>Price:</p></body>")
        for name, optional in [("A", ""), ("B", "<i>New</i>"), ("C", "<i>New</i>")]
    ]
    template = describe_template(shared_paths([page_paths(root).all_paths for root in roots]), 3, roots)
    assert template.pages == 3
    assert template.text == ("Home", "Price:", "New")  # the last stands only on later pages
    assert template.paths[:4] == ("html", "html/body", "html/body/nav", 'html/body/nav/"Home"')
    assert {path.text: path.support for path in template.essential if path.text} == {
        "Home": 3,
        "Price:": 3,
        "New": 2,
    }
    assert {path.support for path in template.essential if path.tags == "html/body/i"} == {2}


def test_pages_are_parsed_only_until_all_words_are_found() -> None:
    root = tree("<p>a</p>")

    def roots() -> object:
        yield root
        raise AssertionError("the first page has all words")

    paths = shared_paths([page_paths(root).all_paths] * 2)
    assert len(describe_template(paths, 2, roots()).essential) == len(paths.paths)  # type: ignore[arg-type]


def test_no_pages_have_an_empty_template() -> None:
    template = describe_template(shared_paths([]), 0, [])
    assert (template.essential, template.paths, template.text, template.pages) == ((), (), (), 0)
