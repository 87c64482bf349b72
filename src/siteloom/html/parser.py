"""Parse bytes to an lxml tree, within limits: any byte string gives a tree or a Failure.

Learning, extraction and annotation all use this parser, so that they see the same nodes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from lxml import etree

from siteloom.core.model import DamagedPage, Failure
from siteloom.core.settings import ParseSettings
from siteloom.html.encoding import has_plain_markup, in_utf8
from siteloom.html.page_scan import scan_page
from siteloom.html.tag_scanner import name_hash, scan_tags

if TYPE_CHECKING:
    from siteloom.core.model import Page
    from siteloom.html.page_scan import PageScan
    from siteloom.html.tag_scanner import Tags

Element: TypeAlias = etree._Element  # noqa: SLF001 - the only name that lxml has for it

PARSER = "lxml {}.{}.{} / libxml2 {}.{}.{}".format(*etree.LXML_VERSION[:3], *etree.LIBXML_VERSION)
"""The parser that builds the trees; a rule belongs to the parser it was learned with."""

# libxml2 appends each attribute to a linked list that it walks from the start: n attributes cost n².
_MAX_ATTRIBUTES = 1_024

# A browser adds what follows </body> and </html> to the body; libxml2 2.14 drops it.
_DOCUMENT_END = re.compile(rb"</(?:body|html)(?=[\s/>])", re.IGNORECASE)
_NOTHING_MORE = re.compile(
    rb"(?: \s | </(?:body|html)\s*+> | <!-- [^-]*+ (?: -(?!->) [^-]*+ )*+ --> )*+ \Z",
    re.IGNORECASE | re.VERBOSE,
)

# White space in Python that XML and XPath cannot hold, but that libxml2 2.14 keeps.
_ODD_BLANKS = bytes([0x0B, 0x0C, 0x1C, 0x1D, 0x1E, 0x1F])
_BLANKED = bytes.maketrans(_ODD_BLANKS, b" " * len(_ODD_BLANKS))
_ODD_REFERENCE = re.compile(
    rb"""
    &\# (?: 0*+ (?: 1[12] | 2[89] | 3[01] ) (?![0-9])
         | [xX] 0*+ (?: [bBcC] | 1[c-fC-F] ) (?![0-9a-fA-F]) ) ;?
    """,
    re.VERBOSE,
)
_AMPERSAND, _NUMBER_SIGN = b"&#"
_MANY_SIGNS = 1_000

_BODY = name_hash("body")
_HTML = name_hash("html")
_NO_SEEDS = np.empty(0, np.uint64)  # shingles are not needed


def parse(
    page: Page,
    limits: ParseSettings = ParseSettings(),
    *,
    scan: PageScan | None = None,
    collect_ids: bool = True,
) -> Element | Failure:
    """Return the root element of a page's tree, or why there is none.

    `scan` is the result of an earlier scan of the page's bytes, if there is one. Without `collect_ids`, which
    takes a tenth of the time, `siteloom.html.node_paths.elements_with_ids` finds nothing.
    """
    if isinstance(page, DamagedPage):
        return page.failure
    if len(page.html) > limits.max_bytes:
        detail = f"{len(page.html):,} bytes; at most {limits.max_bytes:,} are read"
        return Failure(page.url, "page too large", detail)
    text = in_utf8(page.html, page.charset)
    html = _with_plain_blanks(text)
    # Counting is slow, and most pages are too short to have that many tags.
    if len(html) > limits.max_tags and html.count(b"<") > limits.max_tags:
        return Failure(page.url, "too many tags", f"at most {limits.max_tags:,} are read")
    if scan is None or html is not text or not has_plain_markup(page.html):
        scan = scan_page(html, _NO_SEEDS)
    if scan.most_attributes > _MAX_ATTRIBUTES:
        return Failure(page.url, "too many attributes in one tag", f"at most {_MAX_ATTRIBUTES:,} are read")
    if scan.may_end_early and _ends_early(html):
        html = _without_document_ends(html, scan_tags(html))

    # huge_tree raises libxml2's depth limit from 256 to 2,048 and removes those on the length of a text or
    # name; max_bytes replaces them.
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, collect_ids=collect_ids)
    try:
        root: Element | None = etree.fromstring(html, parser)
    except etree.LxmlError as error:
        return Failure(page.url, "not parsed", str(error))
    last_error = parser.error_log.last_error  # the parser stops at a limit
    if last_error is not None and last_error.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT:
        return Failure(page.url, "nested too deeply", "at most 2,048 levels are read")
    if root is None:
        return Failure(page.url, "empty page")
    return root


def _with_plain_blanks(html: bytes) -> bytes:
    """Replace white space that XML cannot hold, and references to it, by plain blanks.

    References in scripts, where they mean nothing, are replaced as well.
    """
    if max(map(html.find, _ODD_BLANKS)) >= 0:
        html = html.translate(_BLANKED)
    return _ODD_REFERENCE.sub(b" ", html) if _may_have_odd_references(html) else html


def _may_have_odd_references(html: bytes) -> bool:
    """Return whether there are such references, or too many number signs to check each.

    Finding a single byte takes a fraction of the time of a regular expression, and most pages have few.
    """
    find = html.find
    sign = find(_NUMBER_SIGN)
    for _ in range(_MANY_SIGNS):
        if sign < 0:
            return False
        if html[sign - 1] == _AMPERSAND and _ODD_REFERENCE.match(html, sign - 1):
            return True
        sign = find(_NUMBER_SIGN, sign + 1)
    return True


def _ends_early(html: bytes) -> bool:
    """Return whether anything but comments follows the first `</body>` or `</html>`."""
    end = _DOCUMENT_END.search(html)
    return end is not None and _NOTHING_MORE.match(html, end.start()) is None


def _without_document_ends(html: bytes, tags: Tags) -> bytes:
    """Remove the `</body>` and `</html>` tags; the parser closes both at the end of the page.

    They are replaced by `</>`, which means nothing: otherwise the text around them could join to markup, as
    in `<</body>script>` or `&</body>lt;`.
    """
    is_document_end = tags.is_end & ((tags.name == _BODY) | (tags.name == _HTML))
    starts = [0, *tags.end[is_document_end]]
    ends = [*tags.start[is_document_end], len(html)]
    return b"</>".join(html[start:end] for start, end in zip(starts, ends, strict=True))
