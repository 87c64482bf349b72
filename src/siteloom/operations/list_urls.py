"""URLs by what they look like: how many of each shape, what differs among them, who extracts them."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from html import unescape
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, Field

from siteloom.core.errors import UsageError
from siteloom.core.urls import count_parts, url_shape
from siteloom.sources.crawling.url_filters import checked_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from siteloom.store.queries.pages import PageUrl

# As many as a person looks at before opening one.
_EXAMPLES = 3
_VALUES_SHOWN = 5
# What differs is seen in these: the rest of a shape is the same in all of its URLs.
_URLS_SPLIT = 200
# Each part of an answer takes 36 µs and 1.4 kB of memory. Ten thousand shapes of two
# parts have as many.
_MOST_PARTS_TOLD = 20_000

_WEB_ADDRESS = re.compile(r"https?://[^\s<>\"'`\\^{|}\x00-\x1f]+", re.IGNORECASE)
# What people write on a line without the scheme: a host, then perhaps more.
_BARE_ADDRESS = re.compile(r"(?:[a-z0-9-]{1,63}\.)+[a-z]{2,63}(?::\d+)?(?:[/?][^\s<>\"']*)?", re.IGNORECASE)
_IN_SITEMAP = re.compile(r"<loc>\s*(?:<!\[CDATA\[)?\s*([^<\]]*)", re.IGNORECASE)
# Blanks stand in one place of a pattern only: in two, long runs of them would be split in every way.
_IN_LINK = re.compile(r"\bhref\s*=\s*(?:[\"']\s*)?(https?://[^\"'\s<>]+)", re.IGNORECASE)
# In a whole document, what stands outside of links is no address that anyone wants to have fetched.
_DOCUMENT = re.compile(r"<(?:html|head|body|urlset|sitemapindex)\b", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
# Behind a URL in a sentence these belong to the sentence.
_ENDS_OF_SENTENCES = ".,;:!?'\"*)]"


class Part(BaseModel):
    """A part of the URLs of a shape."""

    kind: Literal["host", "path", "query"]
    name: str = Field(description="As it stands in the shape: # for numbers, * for any text.")
    values: list[str] = Field(description="Some of the texts that stand there.")
    varies: bool


class Named(BaseModel):
    """How many of the URLs have to do with something of a name."""

    name: str
    count: int


class ShapeRow(BaseModel):
    """The URLs of one shape."""

    shape: str
    count: int
    examples: list[str]
    wrappers: list[Named] = Field(description="The wrappers with a pattern for some of the URLs.")
    unmatched: int = Field(description="How many URLs no wrapper has a pattern for.")
    templates: list[Named] = Field(description="The templates that some of the pages were made from.")
    parts: list[Part] = Field(
        description="The URLs in parts, with what differs from one to the next. "
        "Empty for the last shapes if all shapes together have very many parts."
    )


class ShapesOfUrls(BaseModel):
    """URLs by shape."""

    urls: int
    unmatched: int = Field(description="How many URLs no wrapper has a pattern for.")
    shapes: int
    rows: list[ShapeRow] = Field(description="The shapes of most URLs first.")


class UrlsInText(NamedTuple):
    """The web addresses in a text, each once, and how many of its lines have something else only."""

    urls: list[str]
    lines_without: int


def found_urls(text: str) -> UrlsInText:
    """The web addresses in a text: in its lines and sentences, in links of HTML and in a sitemap."""
    if _DOCUMENT.search(text):
        return UrlsInText(list(dict.fromkeys(_urls_in_markup(text))), 0)
    urls: dict[str, None] = {}
    without = 0
    for line in filter(None, map(str.strip, text.splitlines())):
        found = _urls_of_line(line)
        urls.update(dict.fromkeys(found))
        if not found and _TAG.sub("", line):
            without += 1
    return UrlsInText(list(urls), without)


def _urls_of_line(line: str) -> list[str]:
    if _WEB_ADDRESS.fullmatch(line):
        return _only_pages([line])
    if _BARE_ADDRESS.fullmatch(line):
        return _only_pages([f"https://{line}"])
    in_sentences = (
        address.rstrip(_ENDS_OF_SENTENCES) for address in _WEB_ADDRESS.findall(_TAG.sub(" ", line))
    )
    return _urls_in_markup(line) or _only_pages(in_sentences)


def _urls_in_markup(text: str) -> list[str]:
    found = (
        unescape(address).strip()
        for in_markup in (_IN_SITEMAP, _IN_LINK)
        for address in in_markup.findall(text)
    )
    return _only_pages(url for url in found if _WEB_ADDRESS.fullmatch(url))


def _only_pages(addresses: Iterable[str]) -> list[str]:
    """Those that a page can be fetched from."""
    pages = []
    for address in addresses:
        with suppress(UsageError):
            pages.append(checked_url(address))
    return pages


def shapes_of_urls(
    pages: Iterable[PageUrl], wrappers_for: Callable[[str], Sequence[str]], words: str = "", limit: int = 200
) -> ShapesOfUrls:
    """URLs by shape, of those only that have all words in them.

    `wrappers_for` gives the names of the wrappers that have a pattern for a URL. At most `limit` shapes are
    told of.
    """
    wanted = words.casefold().split()
    shapes: dict[str, _Shape] = {}
    for page in pages:
        if wanted and not all(word in page.url.casefold() for word in wanted):
            continue
        name = url_shape(page.url)
        shape = shapes.get(name)
        if shape is None:
            shape = shapes[name] = _Shape(name)
        shape.add(page, wrappers_for(page.url))
    rows = sorted(shapes.values(), key=lambda shape: (-shape.count, shape.name))
    parts_left = _MOST_PARTS_TOLD
    told = []
    for shape in rows[:limit]:
        parts_left -= count_parts(shape.name)
        told.append(shape.row(with_parts=parts_left >= 0))
    return ShapesOfUrls(
        urls=sum(shape.count for shape in rows),
        unmatched=sum(shape.unmatched for shape in rows),
        shapes=len(rows),
        rows=told,
    )


class _Shape:
    """The URLs of a shape as they are counted; only some of them are kept."""

    __slots__ = ("_some", "_templates", "_wrappers", "count", "name", "unmatched")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.unmatched = 0
        self._wrappers: Counter[str] = Counter()
        self._templates: Counter[str] = Counter()
        self._some: list[str] = []

    def add(self, page: PageUrl, wrappers: Sequence[str]) -> None:
        self.count += 1
        for wrapper in wrappers:
            self._wrappers[wrapper] += 1
        if not wrappers:
            self.unmatched += 1
        if page.cluster is not None:
            self._templates[page.cluster] += 1
        if len(self._some) < _URLS_SPLIT:
            self._some.append(page.url)

    def row(self, *, with_parts: bool) -> ShapeRow:
        return ShapeRow(
            shape=self.name,
            count=self.count,
            examples=self._some[:_EXAMPLES],
            wrappers=_named(self._wrappers),
            unmatched=self.unmatched,
            templates=_named(self._templates),
            parts=_parts(self.name, self._some) if with_parts else [],
        )


def _named(counts: Counter[str]) -> list[Named]:
    return [Named(name=name, count=count) for name, count in counts.most_common()]


def _parts(shape: str, urls: Sequence[str]) -> list[Part]:
    """The host, the steps of the path and the keys of the query, each with what stands there."""
    path, _, query = shape.partition("?")
    split = [_split(url) for url in urls]
    parts = [
        _part("path" if place else "host", name, [steps[place] for steps, _ in split])
        for place, name in enumerate(path.split("/"))
        if name or place == 0
    ]
    keys = query.split("&") if query else []
    return parts + [_part("query", key, [values.get(key, "") for _, values in split]) for key in keys]


def _part(kind: Literal["host", "path", "query"], name: str, texts: Iterable[str]) -> Part:
    different = list(dict.fromkeys(texts))
    return Part(kind=kind, name=name, values=different[:_VALUES_SHOWN], varies=len(different) > 1)


def _split(url: str) -> tuple[list[str], dict[str, str]]:
    """The steps of a URL from its host on, as many as its shape has, and the values of its query by key."""
    address, _, query = url.partition("#")[0].partition("?")
    steps = (address.partition("://")[2] or address).split("/")
    pairs = (item.partition("=") for item in query.split("&")) if query else ()
    return steps, {key: value for key, _, value in pairs}
