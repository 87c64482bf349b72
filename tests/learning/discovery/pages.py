"""Made-up pages of one template, of which it is known what stands where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from siteloom.core.model import Failure, Page
from siteloom.html.page_text_arrays import TextCollector
from siteloom.html.parser import parse
from siteloom.learning.discovery.table_discovery import discover
from tests.apps.demo.sites import all_sites, of_kind

if TYPE_CHECKING:
    from siteloom.apps.demo.sites.built_in_page import BuiltinPage, Kind
    from siteloom.html.page_text_arrays import PageTexts
    from siteloom.html.parser import Element
    from siteloom.learning.discovery.table_discovery import DiscoveredTable

Field = tuple[str, str]
"""A label and what stands behind it."""


def page(body: str, number: int = 0, *, head: str = "", site: str = "made-up.example") -> Page:
    """A page whose frame is the same on all pages."""
    html = (
        f"<html><head><title>Made up</title>{head}</head><body><ul class=menu><li>Home<li>Shop<li>Help</ul>"
        f"<div id=main>{body}</div><p class=foot>All rights reserved</p></body></html>"
    )
    return Page(url=f"https://{site}/p/{number}", html=html.encode(), charset="utf-8")


def pages(bodies: Iterable[str]) -> list[Page]:
    return [page(body, number) for number, body in enumerate(bodies)]


def dl(fields: Sequence[Field]) -> str:
    """A list of terms."""
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(text)}</dd>' for name, text in fields)}</dl>"


def cells(fields: Sequence[Field]) -> str:
    """A table with a label in the first cell of each row."""
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in fields)
    return f"<table>{rows}</table>"


def heads(fields: Sequence[Field]) -> str:
    """A table whose labels are heads of rows."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in fields)
    return f"<table>{rows}</table>"


def bold(fields: Sequence[Field]) -> str:
    """Lines that begin with a label in bold."""
    return "".join(f"<p><b>{escape(name)}:</b> {escape(text)}</p>" for name, text in fields)


LAYOUTS: dict[str, Callable[[Sequence[Field]], str]] = {
    "dl": dl,
    "cells": cells,
    "heads": heads,
    "bold": bold,
}


def texts_of(made: Sequence[Page]) -> PageTexts:
    """The texts of pages, each as a whole."""
    collector = TextCollector()
    for one in made:
        collector.add(root_of(one))
    return collector.collected()


def root_of(made: Page) -> Element:
    root = parse(made)
    assert not isinstance(root, Failure)
    return root


def values_of(table: DiscoveredTable, label: str) -> list[tuple[str, ...]]:
    """A column from top to bottom."""
    return [row[label] for row in table.rows]


def holders(
    table: DiscoveredTable, truths: Sequence[Mapping[str, tuple[str, ...]]], attribute: str
) -> dict[str, float]:
    """For each column the share of rows with the attribute on which it holds it, with or without more."""
    asked = [
        (row, truth[attribute]) for row, truth in zip(table.rows, truths, strict=True) if truth[attribute]
    ]
    return {
        column.label: sum(set(texts) <= set(row[column.label]) for row, texts in asked) / len(asked)
        for column in table.columns
    }


@cache
def built_in(site: str, kind: Kind) -> tuple[list[BuiltinPage], DiscoveredTable]:
    """The pages of one kind of a built-in site, and the table of them."""
    made = of_kind(all_sites()[site], kind)
    return made, discover(one.page for one in made)
