"""Paths as a tree, row by row."""

from __future__ import annotations

from siteloom.apps.server.views.path_tree import TreeRow, tree_rows
from siteloom.apps.server.views.sites import PathSupport


def support(path: str, text: str | None = None, share: float = 1.0) -> PathSupport:
    return PathSupport(path=path, text=text, support=round(10 * share), share=share)


def told(*paths: PathSupport) -> list[tuple[str, str]]:
    return [(row.kind, row.label) for row in tree_rows(paths)]


def test_branches_leaves_and_texts() -> None:
    paths = [
        support("html"),
        support("html/body"),
        support("html/body/p"),
        support("html/body/p", "Price:", 0.5),
        support("html/body/img"),
    ]
    assert tree_rows(paths) == [
        TreeRow("branch", "html \u203a body", 1, 3, True),
        TreeRow("branch", "p", 1, 1, True),
        TreeRow("text", "Price:", 0.5),
        TreeRow("end"),
        TreeRow("leaf", "img", 1),
        TreeRow("end"),
    ]


def test_a_chain_ends_where_the_support_does() -> None:
    paths = [support("a"), support("a/b"), support("a/b/c", share=0.5)]
    assert told(*paths) == [("branch", "a \u203a b"), ("leaf", "c"), ("end", "")]


def test_every_branch_has_an_end_however_deep() -> None:
    paths = [support("/".join(["div"] * depth), share=1 / depth) for depth in range(1, 1_500)]
    kinds = [row.kind for row in tree_rows(paths)]
    assert kinds.count("branch") == kinds.count("end") == 1_498


def test_a_large_tree_is_closed_where_it_is_deep() -> None:
    paths = [support(path) for path in ("html", "html/head", "html/head/meta", "html/head/link", "html/body")]
    for name in "abcdef":
        paths.append(support(f"html/body/{name}"))
        for number in range(20):
            paths += [support(f"html/body/{name}/{number}"), support(f"html/body/{name}/{number}", "x")]
    opened = {row.label: row.is_open for row in tree_rows(paths) if row.kind == "branch"}
    assert (opened["html"], opened["head"], opened["body"], opened["a"]) == (True, False, True, True)
    deeper = [support(path.path.replace("html/body/", "html/body/main/deep/"), path.text) for path in paths]
    deeper[5:5] = [support("html/body/main"), support("html/body/main/deep"), support("html/body/x")]
    opened = {row.label: row.is_open for row in tree_rows(deeper) if row.kind == "branch"}
    assert (opened["main \u203a deep"], opened["a"], opened["b"]) == (True, False, False)


def test_nothing_at_all() -> None:
    assert tree_rows([]) == []
