"""The one way from bytes to a tree, and from a tree to paths and visible text."""

from siteloom.dom.encoding import declared_encoding, decode
from siteloom.dom.ids import elements_with_ids
from siteloom.dom.paths import NodePaths, find, is_xpath_name, node_path, tag_path
from siteloom.dom.text import TextNode, attribute_words, normalize, text_nodes, visible_text
from siteloom.dom.tree import PARSER, Element, parse

__all__ = [
    "PARSER",
    "Element",
    "NodePaths",
    "TextNode",
    "attribute_words",
    "declared_encoding",
    "decode",
    "elements_with_ids",
    "find",
    "is_xpath_name",
    "node_path",
    "normalize",
    "parse",
    "tag_path",
    "text_nodes",
    "visible_text",
]
