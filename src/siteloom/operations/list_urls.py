"""urls: URLs grouped by shape, with what differs among them and the wrappers that extract them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from html import unescape
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field

from siteloom.core.errors import NotFound, UsageError
from siteloom.core.urls import count_parts, oversized_url, url_shape
from siteloom.operations.context import Context
from siteloom.operations.stored_wrappers import readable
from siteloom.sources.crawling.url_filters import checked_url
from siteloom.store.queries.pages import PageUrl
from siteloom.wrappers.matching import Matcher

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.store.store import Store

WrappersFor: TypeAlias = Callable[[str], Sequence[str]]
"""Gives the names of the wrappers that have a pattern for a URL."""

MOST_GROUPS = 10_000
"""More groups are not listed at once."""

# As many as a person looks at before opening one.
_EXAMPLES = 3
_VALUES_SHOWN = 5
# What differs is seen in these: the rest of a shape is the same in all of its URLs.
_URLS_SPLIT = 200
# Each part of an answer takes 36 µs and 1.4 kB of memory. Ten thousand shapes of two
# parts have as many.
_MOST_PARTS = 20_000

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


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlPart:
    """A part of the URLs of a group."""

    kind: Literal["host", "path", "query"]
    name: Annotated[str, Field(description="As in the shape: # for numbers, * for any text.")]
    values: Annotated[tuple[str, ...], Field(description="Some of the texts in this place.")]
    varies: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCount:
    """How many of the URLs belong to a wrapper or template."""

    name: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlGroup:
    """The URLs of one shape."""

    shape: str
    count: int
    examples: tuple[str, ...]
    wrappers: Annotated[
        tuple[NamedCount, ...], Field(description="The wrappers with a pattern for some of the URLs.")
    ]
    unmatched: Annotated[int, Field(description="How many URLs no wrapper has a pattern for.")]
    templates: Annotated[
        tuple[NamedCount, ...], Field(description="The templates that some of the pages were made from.")
    ]
    parts: Annotated[
        tuple[UrlPart, ...],
        Field(
            description="The URLs in parts, with what differs from one to the next. "
            "Empty for the last shapes if all shapes together have very many parts."
        ),
    ]
    urls: Annotated[
        tuple[str, ...], Field(description="All URLs of the shape, if they were sent with the request.")
    ] = ()
    archived: Annotated[
        int, Field(description="How many of the URLs that were sent have a page in the archive.")
    ] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlList:
    """URLs grouped by shape."""

    urls: int
    unmatched: Annotated[int, Field(description="How many URLs no wrapper has a pattern for.")]
    shapes: int
    rows: Annotated[tuple[UrlGroup, ...], Field(description="The shapes with the most URLs first.")]
    archived: Annotated[
        int, Field(description="How many of the URLs that were sent have a page in the archive.")
    ] = 0
    lines_without: Annotated[
        int, Field(description="How many lines of the text that was sent have no URL of a page.")
    ] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListUrlsRequest:
    """Which URLs to group: those of the pages of a site, or those in a text and a list.

    Of a site, only URLs with all of the `words` are listed, and at most `limit` groups.
    """

    site: str | None = None
    words: str = ""
    limit: int = 200
    text: str = ""
    urls: tuple[str, ...] = ()


def list_urls(context: Context, request: ListUrlsRequest) -> UrlList:
    """Group URLs by shape, each group with the wrappers that would extract it."""
    store = context.store
    matcher = Matcher(readable(store.wrappers()))

    def wrappers_for(url: str) -> list[str]:
        return [wrapper.name for wrapper in matcher.by_url(url)]

    if request.site is None:
        return _list_given(store, request, wrappers_for)
    if request.site not in store.page_urls.sites():
        raise NotFound(f"There is no site {request.site}: the list of sites has all there are.")
    return group_urls(store.page_urls.of_site(request.site), wrappers_for, request.words, request.limit)


def _list_given(store: Store, request: ListUrlsRequest, wrappers_for: WrappersFor) -> UrlList:
    """Group the URLs of a request; nothing of them is kept."""
    for url in request.urls:
        if failure := oversized_url(url):
            raise UsageError(f"The URL {failure.url} is too large: {failure.detail}.")
    in_text = urls_in_text(request.text)
    urls = list(dict.fromkeys([*request.urls, *in_text.urls]))
    if not urls:
        raise UsageError("There is no URL in this: give one on each line, such as https://shop.example/p/1.")
    archived = store.page_urls.stored(urls)
    grouped = group_urls((PageUrl(url, None) for url in urls), wrappers_for, limit=MOST_GROUPS)
    if grouped.shapes > MOST_GROUPS:
        raise UsageError(
            f"These URLs have {grouped.shapes:,} shapes, and at most {MOST_GROUPS:,} are told at once: "
            "send fewer URLs at a time."
        )
    by_shape: dict[str, list[str]] = defaultdict(list)
    for url in urls:
        by_shape[url_shape(url)].append(url)
    rows = tuple(
        replace(
            group,
            urls=tuple(by_shape[group.shape]),
            archived=len(archived.intersection(by_shape[group.shape])),
        )
        for group in grouped.rows
    )
    return replace(grouped, rows=rows, archived=len(archived), lines_without=in_text.lines_without)


class UrlsInText(NamedTuple):
    """The web addresses in a text, each once, and how many of its lines have something else only."""

    urls: list[str]
    lines_without: int


def urls_in_text(text: str) -> UrlsInText:
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


def group_urls(
    pages: Iterable[PageUrl], wrappers_for: WrappersFor, words: str = "", limit: int = 200
) -> UrlList:
    """Group URLs by shape, of those only that contain all words.

    `wrappers_for` gives the names of the wrappers that have a pattern for a URL. At most `limit` groups are
    listed.
    """
    required = words.casefold().split()
    shapes: dict[str, _Shape] = {}
    for page in pages:
        if required and not all(word in page.url.casefold() for word in required):
            continue
        name = url_shape(page.url)
        shape = shapes.get(name)
        if shape is None:
            shape = shapes[name] = _Shape(name)
        shape.add(page, wrappers_for(page.url))
    largest = sorted(shapes.values(), key=lambda shape: (-shape.count, shape.name))
    parts_left = _MOST_PARTS
    rows = []
    for shape in largest[:limit]:
        parts_left -= count_parts(shape.name)
        rows.append(shape.group(with_parts=parts_left >= 0))
    return UrlList(
        urls=sum(shape.count for shape in largest),
        unmatched=sum(shape.unmatched for shape in largest),
        shapes=len(largest),
        rows=tuple(rows),
    )


class _Shape:
    """Counts the URLs of a shape, and keeps only some of them."""

    __slots__ = ("_some", "_templates", "_wrappers", "count", "name", "unmatched")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.unmatched = 0
        self._wrappers: Counter[str] = Counter()
        self._templates: Counter[str] = Counter()
        self._some: list[str] = []

    def add(self, page: PageUrl, wrappers: Sequence[str]) -> None:
        """Count a URL, with the wrappers that have a pattern for it."""
        self.count += 1
        for wrapper in wrappers:
            self._wrappers[wrapper] += 1
        if not wrappers:
            self.unmatched += 1
        if page.cluster is not None:
            self._templates[page.cluster] += 1
        if len(self._some) < _URLS_SPLIT:
            self._some.append(page.url)

    def group(self, *, with_parts: bool) -> UrlGroup:
        """What was counted."""
        return UrlGroup(
            shape=self.name,
            count=self.count,
            examples=tuple(self._some[:_EXAMPLES]),
            wrappers=_named(self._wrappers),
            unmatched=self.unmatched,
            templates=_named(self._templates),
            parts=_parts(self.name, self._some) if with_parts else (),
        )


def _named(counts: Counter[str]) -> tuple[NamedCount, ...]:
    return tuple(NamedCount(name=name, count=count) for name, count in counts.most_common())


def _parts(shape: str, urls: Sequence[str]) -> tuple[UrlPart, ...]:
    """The host, the steps of the path and the keys of the query, each with the texts in its place."""
    path, _, query = shape.partition("?")
    split = [_split(url) for url in urls]
    parts = [
        _part("path" if place else "host", name, [steps[place] for steps, _ in split])
        for place, name in enumerate(path.split("/"))
        if name or place == 0
    ]
    keys = query.split("&") if query else []
    return (*parts, *(_part("query", key, [values.get(key, "") for _, values in split]) for key in keys))


def _part(kind: Literal["host", "path", "query"], name: str, texts: Iterable[str]) -> UrlPart:
    different = tuple(dict.fromkeys(texts))
    return UrlPart(kind=kind, name=name, values=different[:_VALUES_SHOWN], varies=len(different) > 1)


def _split(url: str) -> tuple[list[str], dict[str, str]]:
    """The steps of a URL from its host on, as many as its shape has, and the values of its query by key."""
    address, _, query = url.partition("#")[0].partition("?")
    steps = (address.partition("://")[2] or address).split("/")
    pairs = (item.partition("=") for item in query.split("&")) if query else ()
    return steps, {key: value for key, _, value in pairs}
