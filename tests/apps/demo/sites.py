"""The built-in sites, each generated once for all tests."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from lxml import etree

from siteloom.apps.demo.sites import Layout, directory_site, guide_site
from siteloom.apps.demo.sites.built_in_page import BuiltinPage, Kind
from tests.apps.demo.absolute_path_vote import normalised

if TYPE_CHECKING:
    from lxml.etree import _Element


@cache
def guide(layout: Layout = "original") -> tuple[BuiltinPage, ...]:
    """The guide in one of its layouts."""
    return guide_site(layout)


@cache
def directory() -> tuple[BuiltinPage, ...]:
    """The directory."""
    return directory_site()


def of_kind(site: tuple[BuiltinPage, ...], kind: Kind) -> list[BuiltinPage]:
    """The site's pages of one kind, in order."""
    return [page for page in site if page.kind == kind]


def all_sites() -> dict[str, tuple[BuiltinPage, ...]]:
    """Every site in every layout, by a name for messages."""
    return {
        "original": guide("original"),
        "redesign": guide("redesign"),
        "mild-change": guide("mild-change"),
        "directory": directory(),
    }


def parsed(page: BuiltinPage) -> _Element:
    """The page's root element."""
    return etree.HTML(page.page.html, etree.HTMLParser(encoding="utf-8"))


def texts_and_attributes(element: _Element) -> set[str]:
    """Every text node and attribute value below an element, script and style left out."""
    found = element.xpath(".//text()[not(parent::script or parent::style)] | .//@*")
    return {normalised(str(value)) for value in found}
