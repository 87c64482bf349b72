"""A deliberately brittle wrapper: for each attribute the absolute paths at which one example has values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lxml import etree

from siteloom.core.model import Failure
from siteloom.html.parser import parse
from siteloom.html.visible_text import normalize, text_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from siteloom.core.model import Example
    from siteloom.html.parser import Element

_MAIL = "mailto:"


class AbsolutePaths:
    """The paths of the first example whose values are all of a text or of an HTML attribute.

    Of several places that hold a value, the first one of the page counts.
    """

    def __init__(self, examples: Sequence[Example]) -> None:
        self.attributes = list(dict.fromkeys(name for example in examples for name in example.values))
        self._paths = {
            attribute: [etree.XPath(f"string({path})") for path in _first_paths(attribute, examples)]
            for attribute in self.attributes
        }

    def values(self, root: Element, attribute: str) -> list[str]:
        """What stands at the paths of an attribute."""
        texts = (_value(str(path(root))) for path in self._paths[attribute])
        return [text for text in texts if text]


def _first_paths(attribute: str, examples: Sequence[Example]) -> list[str]:
    for example in examples:
        wanted = set(map(normalize, example.values.get(attribute, ())))
        root = parse(example.page)
        if not wanted or isinstance(root, Failure):
            continue
        places: dict[str, str] = {}
        for path, text in _texts(root):
            if text in wanted:
                places.setdefault(text, path)
        if len(places) == len(wanted):
            return list(places.values())
    return []


def _texts(root: Element) -> Iterator[tuple[str, str]]:
    """Every text by its path: first those that are seen, then others, such as the title, and attributes."""
    tree = root.getroottree()
    for node in text_nodes(root):
        yield f"{tree.getpath(node.parent)}/text()[{node.number}]", _value(node.text)
    for element in root.iter("*"):
        path = tree.getpath(element)
        if element.text:
            yield f"{path}/text()[1]", _value(element.text)
        for name, value in element.attrib.items():
            yield f"{path}/@{name}", _value(str(value))


def _value(text: str) -> str:
    return normalize(text).removeprefix(_MAIL)
