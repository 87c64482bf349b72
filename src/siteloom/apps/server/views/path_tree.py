"""The essential paths of a template as a tree, written down row by row as it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from siteloom.apps.server.views.sites import PathSupport

# A tree of so many rows is shown as a whole: three screens.
_ROWS_SHOWN_OPEN = 90
# Of a larger one this much is: so deep, and branches of so few rows.
_DEPTH_SHOWN_OPEN = 3
_BRANCH_SHOWN_OPEN = 6
# These tell little of what the page is about.
_SHOWN_CLOSED = frozenset(["head"])


class TreeRow(NamedTuple):
    """A row of the tree, or the end of a branch.

    A branch stands for a chain of elements that have one child each. `rows` is how many rows are below it.
    """

    kind: Literal["branch", "leaf", "text", "end"]
    label: str = ""
    share: float = 0.0
    rows: int = 0
    is_open: bool = False


class _Node:
    def __init__(self, tag: str, share: float) -> None:
        self.tag = tag
        self.share = share
        self.below: list[_Node | PathSupport] = []
        self.rows = 0


def tree_rows(paths: Sequence[PathSupport]) -> list[TreeRow]:
    """The tree of paths in their order: each branch, what stands below it, and its end."""
    root = _tree(paths)
    is_small = len(paths) <= _ROWS_SHOWN_OPEN
    rows: list[TreeRow] = []
    # Pages may be nested deeper than Python lets functions be.
    stack: list[Iterator[_Node | PathSupport]] = [iter(root.below)]
    while stack:
        below = next(stack[-1], None)
        if below is None:
            stack.pop()
            if stack:
                rows.append(TreeRow("end"))
        elif not isinstance(below, _Node):
            rows.append(TreeRow("text", below.text or "", below.share))
        else:
            label, last = _chain(below)
            if not last.below:
                rows.append(TreeRow("leaf", label, last.share))
                continue
            is_open = below.tag not in _SHOWN_CLOSED and (
                is_small or len(stack) <= _DEPTH_SHOWN_OPEN or last.rows <= _BRANCH_SHOWN_OPEN
            )
            rows.append(TreeRow("branch", label, last.share, last.rows, is_open))
            stack.append(iter(last.below))
    return rows


def _tree(paths: Sequence[PathSupport]) -> _Node:
    root = _Node("", 1.0)
    nodes: dict[str, _Node] = {}
    for path in paths:
        above, _, tag = path.path.rpartition("/")
        if path.text is not None:
            nodes.get(path.path, root).below.append(path)
        else:
            nodes[path.path] = _Node(tag, path.share)
            nodes.get(above, root).below.append(nodes[path.path])
    # Each stands before all that is below it.
    for node in reversed(nodes.values()):
        node.rows = sum(1 + (one.rows if isinstance(one, _Node) else 0) for one in node.below)
    return root


def _chain(node: _Node) -> tuple[str, _Node]:
    """A node with those below it as long as each has nothing but the next: their tags, and the last."""
    tags = [node.tag]
    while len(node.below) == 1 and isinstance(only := node.below[0], type(node)) and only.share == node.share:
        node = only
        tags.append(node.tag)
    return " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ".join(tags), node
