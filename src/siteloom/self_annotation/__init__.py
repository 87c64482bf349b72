"""Pages that annotate themselves: what they carry for machines, as examples of what they show to people."""

from siteloom.self_annotation.clusters import SelfAnnotatedTemplate, self_annotated_templates
from siteloom.self_annotation.examples import (
    AttributeFinding,
    SelfAnnotated,
    examples_of,
    marked_pages,
    self_annotated,
)
from siteloom.self_annotation.stripping import without_markup

__all__ = [
    "AttributeFinding",
    "SelfAnnotated",
    "SelfAnnotatedTemplate",
    "examples_of",
    "marked_pages",
    "self_annotated",
    "self_annotated_templates",
    "without_markup",
]
