r"""Export a wrapper as a web-poet page object with fixtures and URL patterns.

`^https?://www\.shop\.example/product/[^/?#]+\.html$` becomes `www.shop.example/product/*.html|`. That is
wider where url-matcher cannot say as much: its `*` matches slashes, too, and it knows neither hosts that end
alike nor parts that may be missing.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.core.confined_folder import ConfinedFolder
from siteloom.core.errors import MissingExtra, OutputError
from siteloom.html.encoding import decode
from siteloom.wrappers.exports import standalone_extractor, standalone_matcher
from siteloom.wrappers.exports.python_source import (
    class_name,
    comment,
    docstring,
    evaluator,
    field_names,
    in_docstring,
    literal,
    module_name,
    quoted,
    rules_of,
    shared_by_name,
)
from siteloom.wrappers.exports.xpath_json import as_texts, wrapper_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from siteloom.core.model import Footprint, Page
    from siteloom.wrappers.wrapper import Wrapper


_WILDCARD = re.compile(r"\[\^[^\]]*\][*+]")
# A pattern without its wildcards and its scheme: a host or some, and what stands behind them.
_HOST = r"(?: [^/?()*\\|] | \\[^?] )+"
_PARTS = re.compile(
    rf"""(?P<hosts> {_HOST} | \(\?: {_HOST} (?: \| {_HOST} )* \) )
    (?P<path> (?: / (?: [^?(\\] | \\[^?] )* )? )
    (?P<query> (?: \\\? (?: [^(\\] | \\. )* )? )
    (?P<optional> .* )""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(.)")


def url_matcher_patterns(footprint: Footprint) -> list[str]:
    """Return patterns that match all addresses of a footprint; none if it names no site."""
    patterns: dict[str, None] = {}
    for pattern in footprint.url_patterns:
        for translated in _translated(pattern) or footprint.sites:
            patterns.setdefault(translated)
    return list(patterns) or list(footprint.sites)


def _translated(pattern: str) -> list[str]:
    """Translate a pattern into one for each of its hosts; none if it names no hosts."""
    text = _WILDCARD.sub("*", pattern)[1:-1].removeprefix("https?://")
    match = _PARTS.fullmatch(text)
    if match is None or "//" in text:
        return []
    hosts = match["hosts"].removeprefix("(?:").removesuffix(")").split("|")
    # What ends without the sign may go on.
    end = "" if match["optional"] and not match["query"] else "|"
    behind = _plain(match["path"]) + end + _query(match["query"]) if match["path"] else ""
    return [_plain(host) + behind for host in hosts]


def _query(query: str) -> str:
    """Return the parameters that have fixed names and are always present."""
    fields = [_plain(field) for field in query.removeprefix(r"\?").split("&") if field]
    named = [field for field in fields if "=" in field and "*" not in field.partition("=")[0]]
    return f"?{'&'.join(named)}" if named else ""


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


# Names that every WebPage of web-poet already has, that are called while its class is created, or that attrs
# uses for the item.
_RESERVED = frozenset(
    "base_url cached_method css field html item_cls jmespath response selector self to_item url urljoin "
    "validate_input xpath".split()
)

_MADE_BY = "# Made by siteloom export: what is here may be replaced by the next export."
_PYTEST = f"""\
{_MADE_BY}
[pytest]
pythonpath = .
testpaths = fixtures
"""

_MODULE = '''\
"""A page object for {about}.

{how}
Made by siteloom export. The rules are in WRAPPER; all below the page object evaluates them.
"""

from __future__ import annotations

{imports}

import attrs
from lxml import etree
from web_poet import {web_poet}

{shared}
WRAPPER = {rules}


{classes}


# What follows is the same in every page object.

{evaluator}
'''

_HOW_ONE = """\
An item has all attributes: a text or None, or a list if there may be several values.
"""
_HOW_MANY = """\
A page has several records. Each has all attributes: a text or None, or a list if there may be several values.
"""

_ITEM = '''
@attrs.define
class {name}:
    """{about}"""

{fields}
'''

_PAGE = '''
{handle_urls}class {name}Page(WebPage[{name}Item]):
    """Finds the values of a page."""
'''

_FOUND = """
    @cached_method
    def _found(self) -> dict[str, Any]:
        found = records(WRAPPER, {page})
        return item(WRAPPER, next(iter(found), {{}}))
"""

_FIELD = """
    @field
    def {field}(self) -> {type}:
{words}
        return self._found()[{attribute}]
"""

_LIST_FIELD = """
    @field
    def records(self) -> list[{name}Record]:
{words}
        found = records(WRAPPER, {page})
        items = [item(WRAPPER, record) for record in found]
        return [{name}Record(**{{FIELDS[name]: one[name] for name in one}}) for one in items]
"""


class PageObject(NamedTuple):
    """The source of a page object, and its module and class names."""

    module: str
    page_class: str
    source: str


def page_object(wrapper: Wrapper, name: str) -> PageObject:
    """Build the page object of a wrapper."""
    document = wrapper_document(wrapper)
    imports, source = (
        evaluator(standalone_extractor, standalone_matcher)
        if wrapper.earlier
        else evaluator(standalone_extractor)
    )
    rules = literal(rules_of(document), reserved=len("WRAPPER = "))
    is_list = "records" in document["layouts"][0]
    page_name = class_name(name)
    sites = document["sites"]
    content = _MODULE.format(
        about=in_docstring(f"{name} on {', '.join(sites)}" if sites else name),
        how=_HOW_MANY if is_list else _HOW_ONE,
        imports=imports,
        web_poet=", ".join(_imported(wrapper, is_list=is_list)),
        shared=shared_by_name(rules),
        rules=rules,
        classes="\n".join(_classes(wrapper, document, page_name, is_list=is_list)).strip("\n"),
        evaluator=source,
    )
    # With this suffix, the module does not hide one of Python or of a library.
    return PageObject(f"{module_name(name)}_page", f"{page_name}Page", content)


def _classes(wrapper: Wrapper, document: dict[str, Any], page_name: str, *, is_list: bool) -> Iterator[str]:
    is_multi_by_name = standalone_extractor.fields(document)
    fields = field_names(is_multi_by_name, _RESERVED)
    types = {name: "list[str]" if is_multi else "str | None" for name, is_multi in is_multi_by_name.items()}
    lines = "\n".join(f"    {fields[name]}: {types[name]}" for name in is_multi_by_name)
    evaluated = "self.response.text" + (", signature(bytes(self.response.body))" if wrapper.earlier else "")
    page = _PAGE.format(name=page_name, handle_urls=_handle_urls(wrapper))
    if is_list:
        yield f"FIELDS = {literal(fields, reserved=len('FIELDS = '))}\n"
        yield _ITEM.format(name=f"{page_name}Record", about="A record of a page.", fields=lines)
        records = f"    records: list[{page_name}Record]"
        yield _ITEM.format(name=f"{page_name}Item", about="All records of a page.", fields=records)
        words = docstring(document["layouts"][0]["records"]["words"], " " * 8)
        yield page + _LIST_FIELD.format(name=page_name, words=words, page=evaluated)
        return
    yield _ITEM.format(name=f"{page_name}Item", about="What is on a page.", fields=lines)
    yield (
        page
        + _FOUND.format(page=evaluated)
        + "".join(
            _FIELD.format(
                field=fields[name], type=types[name], words=_words(document, name), attribute=quoted(name)
            )
            for name in is_multi_by_name
        )
    )


def _imported(wrapper: Wrapper, *, is_list: bool) -> Iterator[str]:
    """Yield the names that a page object imports from web-poet, in order."""
    yield "WebPage"
    if not is_list:
        yield "cached_method"
    yield "field"
    if url_matcher_patterns(wrapper.footprint):
        yield "handle_urls"


def _handle_urls(wrapper: Wrapper) -> str:
    patterns = url_matcher_patterns(wrapper.footprint)
    if not patterns:
        return comment("The wrapper does not tell which pages it is for: put @handle_urls(...) here.")
    include = patterns[0] if len(patterns) == 1 else patterns
    return f"@handle_urls({literal(include, reserved=len('@handle_urls()'))})\n"


def _words(document: dict[str, Any], name: str) -> str:
    """Describe how the first rule of an attribute finds it, as a docstring."""
    for layout in document["layouts"]:
        rules = layout["attributes"].get(name, {}).get("rules")
        if rules:
            words = rules[0]["words"]
            return docstring(f"{words[:1].upper()}{words[1:]}.", " " * 8)
    return docstring("Found by no rule.", " " * 8)


def write_page_object(wrapper: Wrapper, name: str, pages: Sequence[Page], folder: Path) -> PageObject:
    """Write the page object of a wrapper to a folder, with a fixture for each page.

    Raises OutputError if the folder contains anything else.
    """
    try:
        from web_poet import HttpResponse  # noqa: PLC0415 - an extra
        from web_poet.testing import Fixture  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("Exporting to web-poet", "web-poet") from error
    page_source = page_object(wrapper, name)
    items = [expected_item(wrapper, page) for page in pages]
    check_folder(folder)
    fixtures = f"fixtures/{page_source.module}.{page_source.page_class}"
    # An export that is written anew may have come from someone else, with links to anywhere.
    export = ConfinedFolder(folder, is_shared=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        export.write("pytest.ini", _PYTEST.encode())
        export.write(f"{page_source.module}.py", page_source.source.encode())
        export.make_folder("fixtures")
        export.remove_tree(fixtures)
        export.make_folder(fixtures)
        with TemporaryDirectory(prefix="siteloom-") as temporary:
            for page, item in zip(pages, items, strict=True):
                body = decode(page.html, page.charset).encode("utf-8", "replace")
                response = HttpResponse(page.url, body, status=200, encoding="utf-8")
                Fixture.save(temporary, inputs=[response], item=item)
            _copy(Path(temporary), export, fixtures)
    except OSError as error:
        place = error.filename or folder
        raise OutputError(f"{place} cannot be written: {error.strerror or error}.") from error
    return page_source


def _copy(made: Path, export: ConfinedFolder, target: str) -> None:
    """Copy all below a folder to a folder of an export."""
    for path in sorted(made.rglob("*")):
        name = f"{target}/{path.relative_to(made).as_posix()}"
        if path.is_dir():
            export.make_folder(name)
        else:
            with export.open(name, "xb") as file:
                file.write(path.read_bytes())


def expected_item(wrapper: Wrapper, page: Page) -> dict[str, Any]:
    """Return the item that the page object should extract from a page, computed by siteloom itself."""
    document = wrapper_document(wrapper)
    fields = field_names(standalone_extractor.fields(document), _RESERVED)

    def item(values: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        found = standalone_extractor.item(document, {name: list(texts) for name, texts in values.items()})
        return {fields[name]: value for name, value in found.items()}

    items = [item(record.values) for record in as_texts(wrapper).extract_all(page)]
    return {"records": items} if wrapper.record_rule is not None else next(iter(items), item({}))


def check_folder(folder: Path) -> None:
    """Raise OutputError if a page object cannot be written to a folder."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file: a page object is written as a folder.")
    export = ConfinedFolder(folder)
    try:
        is_free = not folder.is_dir() or not any(folder.iterdir())
        is_export = export.is_file("pytest.ini") and _is_made_by_siteloom(export)
    except OSError as error:
        raise OutputError(f"{folder} cannot be read: {error.strerror or error}.") from error
    if not is_free and not is_export:
        raise OutputError(f"The folder {folder} has something else in it: give one that is empty or new.")


def _is_made_by_siteloom(export: ConfinedFolder) -> bool:
    with export.open("pytest.ini", "rb") as marker:
        return marker.read(len(_MADE_BY)) == _MADE_BY.encode()
