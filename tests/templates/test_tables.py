"""A cluster's paths and tags as tables."""

from __future__ import annotations

from siteloom.templates.essential_paths import path_rows, tag_rows
from tests.html.trees import tree

ROOTS = [
    tree(f"<body><nav>Home</nav><h1>{name}</h1>{rest}</body>") for name, rest in [("A", "<p>"), ("B", "")]
]


def test_paths_with_their_support_and_what_they_tell() -> None:
    assert [tuple(row) for row in path_rows(ROOTS)] == [
        ("html", None, 2, True, None),
        ("html/body", None, 2, True, None),
        ("html/body/nav", None, 2, True, 0.0),
        ("html/body/nav", "Home", 2, True, None),
        ("html/body/h1", None, 2, True, 0.5),
        ("html/body/p", None, 1, False, None),
    ]


def test_tags_of_all_pages_then_of_each() -> None:
    rows = [tuple(row) for row in tag_rows([tree("<p>a<p>b"), tree("<b>c</b>")])]
    assert rows == [
        (None, "b", 1, 1, False),
        (None, "body", 2, 2, True),
        (None, "html", 2, 2, True),
        (None, "p", 2, 1, False),
        (0, "body", 1, 2, True),
        (0, "html", 1, 2, True),
        (0, "p", 2, 1, False),
        (1, "b", 1, 1, False),
        (1, "body", 1, 2, True),
        (1, "html", 1, 2, True),
    ]


def test_no_pages_have_empty_tables() -> None:
    assert path_rows([]) == []
    assert tag_rows([]) == []
