"""Pages without their template: as text, as marked blocks, or as HTML for other tools."""

from siteloom.cleaning.articles import are_repeated, check_extractor, main_text, main_text_of
from siteloom.cleaning.html import html_of, remove_template, without_template
from siteloom.cleaning.text import clean_text, text_of

__all__ = [
    "are_repeated",
    "check_extractor",
    "clean_text",
    "html_of",
    "main_text",
    "main_text_of",
    "remove_template",
    "text_of",
    "without_template",
]
