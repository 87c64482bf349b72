"""Learned wrappers give the same records natively, as stylesheets, and after they were kept as text."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lxml import etree

from siteloom.core.model import Example, Failure
from siteloom.html.parser import parse
from siteloom.learning.induction.learner import learn
from siteloom.templates.sampling import sample
from siteloom.wrappers.wrapper import Wrapper
from siteloom.wrappers.wrapper_xslt import to_xslt
from tests.apps.demo.sites import all_sites, of_kind
from tests.wrappers.test_wrapper_xslt import by_xsltproc, native, needs_xsltproc, values

if TYPE_CHECKING:
    from siteloom.apps.demo.sites.built_in_page import BuiltinPage, Kind
    from siteloom.html.parser import Element

KINDS: list[tuple[str, Kind]] = [
    ("original", "restaurant"),
    ("original", "event"),
    ("original", "list"),
    ("redesign", "restaurant"),
    ("redesign", "list"),
    ("directory", "restaurant"),
    ("directory", "list"),
]
each_kind = pytest.mark.parametrize(("site", "kind"), KINDS)


@cache
def learned(site: str, kind: Kind) -> Wrapper:
    """A wrapper of all attributes: from three records of a list page, or from five pages."""
    found = of_kind(all_sites()[site], kind)
    pages = [each.page for each in found]
    if kind == "list":
        examples = [Example(pages[0], records=found[0].records[:3])]
    else:
        examples = [Example(pages[number], found[number].truth) for number in sample(pages, 5)]
    return learn(examples, pages[::4])


def root_of(page: BuiltinPage) -> Element:
    root = parse(page.page)
    assert not isinstance(root, Failure)
    return root


def renamed(page: BuiltinPage, wrapper: Wrapper) -> Element:
    """A page on which the names have changed that records are known by, and the classes of some values."""
    assert wrapper.record_rule is not None
    names = {f.value for f in wrapper.record_rule.features if f.kind in ("id", "class-word")}
    names |= {
        f.value
        for rules in list(wrapper.attributes.values())[::2]
        for rule in rules.rules
        for f in rule.features
        if f.kind in ("class", "class-word")
    }
    root = root_of(page)
    for element in root.iter():
        for attribute in ("id", "class"):
            if names.intersection(element.get(attribute, "").split()):
                element.set(attribute, "renamed")
    return root


@each_kind
def test_a_stylesheet_gives_the_records_of_the_wrapper(site: str, kind: Kind) -> None:
    wrapper = learned(site, kind)
    stylesheet = etree.XSLT(etree.XML(to_xslt(wrapper)), access_control=etree.XSLTAccessControl.DENY_ALL)
    found = 0
    for page in of_kind(all_sites()[site], kind)[:: 1 if kind == "list" else 5]:
        root = root_of(page)
        expected = native(wrapper, root)
        assert values(stylesheet(root).getroot()) == expected, page.page.url
        found += len(expected)
    assert found >= 20


@needs_xsltproc
@each_kind
def test_xsltproc_gives_the_records_of_the_wrapper(site: str, kind: Kind, tmp_path: Path) -> None:
    wrapper = learned(site, kind)
    pages = of_kind(all_sites()[site], kind)
    for page in pages[:: len(pages) // 3]:
        root = root_of(page)
        assert by_xsltproc(wrapper, root, tmp_path) == native(wrapper, root), page.page.url


@each_kind
def test_a_wrapper_that_was_kept_as_text_gives_the_same_records(site: str, kind: Kind) -> None:
    wrapper = learned(site, kind)
    kept = Wrapper.from_json(wrapper.to_json())
    assert kept == wrapper
    for page in of_kind(all_sites()[site], kind)[::10]:
        assert kept.extract_all(page.page) == wrapper.extract_all(page.page)


@needs_xsltproc
def test_where_names_have_changed_the_stylesheet_falls_back_as_the_wrapper_does(tmp_path: Path) -> None:
    wrapper = learned("redesign", "list")
    for page in of_kind(all_sites()["redesign"], "list")[::15]:
        root = renamed(page, wrapper)
        expected = native(wrapper, root)
        assert expected
        assert (
            values(
                etree.XSLT(etree.XML(to_xslt(wrapper)), access_control=etree.XSLTAccessControl.DENY_ALL)(
                    root
                ).getroot()
            )
            == expected
        )
        assert by_xsltproc(wrapper, root, tmp_path) == expected
