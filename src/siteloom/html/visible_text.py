"""The text a person sees, and its normal form."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from lxml import etree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from siteloom.html.parser import Element

NOT_CONTENT = frozenset({"noscript", "script", "style", "template"})
"""Elements that contain code, or content that is only shown if scripts are disabled."""

FRAMES = frozenset({"iframe", "noembed", "noframes"})
"""Elements whose content is for old browsers; but their address may be a value, such as a video."""

HIDDEN = NOT_CONTENT | FRAMES | {"head"}
"""Elements whose content is never shown."""

BREAKS = frozenset(
    "address article aside blockquote body br button caption center dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend "
    "li listing main menu nav ol optgroup option p plaintext pre search section select summary table "
    "tbody td textarea tfoot th thead title tr ul xmp".split()
)
"""Elements at whose edges a line ends, by the rendering section of the HTML standard; table cells and
options are separated from their neighbours in the same way."""


_Text: TypeAlias = "tuple[Element | None, int, str]"
_LINE_END: _Text = (None, 0, " ")

_ATTRIBUTE_BLANKS = re.compile("[ \t\r\n]+")


class TextNode(NamedTuple):
    """A text of the tree: the `number`-th text child (from 1) of `parent`, as XPath counts."""

    parent: Element
    number: int
    text: str


def normalize(text: str) -> str:
    """Replace runs of white space, including no-break spaces, by one blank, and strip the ends."""
    return " ".join(text.split())


def attribute_words(text: str) -> list[str]:
    """Split an HTML attribute such as a class; unlike in a text, a no-break space does not separate words."""
    return text.split() if text.isascii() else [word for word in _ATTRIBUTE_BLANKS.split(text) if word]


def text_nodes(element: Element) -> Iterator[TextNode]:
    """Yield the visible texts inside an element in document order, without blank ones."""
    return _nodes(_texts(element))


def visible_text(element: Element) -> str:
    """Return the visible text of an element in normal form; line ends count as blanks."""
    return _sight(_texts(element))


def nodes_and_visible_text(element: Element) -> tuple[list[TextNode], str]:
    """Return the results of `text_nodes` and `visible_text` from a single walk."""
    texts = list(_texts(element))
    return list(_nodes(texts)), _sight(texts)


def _nodes(texts: Iterable[_Text]) -> Iterator[TextNode]:
    return (
        TextNode(parent, number, text)
        for parent, number, text in texts
        if parent is not None and not text.isspace()
    )


def _sight(texts: Iterable[_Text]) -> str:
    return normalize("".join([text for _, _, text in texts]))


def _texts(element: Element) -> Iterator[_Text]:
    """Yield every visible text with its position, and a blank without position wherever a line ends."""
    parents: list[Element] = []
    numbers: list[int] = []  # of the last text child, for each of them
    walk = etree.iterwalk(element, events=("start", "end", "comment", "pi"))
    for event, node in walk:
        if event == "start":
            tag = node.tag
            if tag in BREAKS:
                yield _LINE_END
            text = node.text
            if tag in HIDDEN and parents:
                walk.skip_subtree()
                text = None
            parents.append(node)
            numbers.append(bool(text))
            if text:
                yield node, 1, text
        else:
            if event == "end":
                parents.pop()
                numbers.pop()
                if node.tag in BREAKS:
                    yield _LINE_END
            if parents and (text := node.tail):
                numbers[-1] += 1
                yield parents[-1], numbers[-1], text
