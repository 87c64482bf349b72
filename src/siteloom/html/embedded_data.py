"""The records that a page carries for machines: JSON-LD, microdata, RDFa and Open Graph.

A record is flat: texts by attribute, called as the vocabulary calls them, without its address.

- A thing inside another gives its properties with a dot: `offers.price`, `aggregateRating.ratingValue`.
- If the thing has a name, that stands for it: `author` is the name of a person, `author.url` their address.
  A postal address stands as one line in `address` besides its parts; an image as its address in `image`.
- What is there several times has several texts. Numbers are texts, too; white space is normalised.
- `_type` has the types: `Product`, `Recipe`.

Open Graph is the last resort. It gives `name` (`og:title`), `description`, `image`, `url` and, for
articles, books and products, what `_OPEN_GRAPH` lists under the names that schema.org has for it.
"""

from __future__ import annotations

import html
import re
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from lxml import etree
from lxml import html as lxml_html

from siteloom.core.errors import MissingExtra
from siteloom.core.model import Failure
from siteloom.core.settings import ParseSettings
from siteloom.html.encoding import in_utf8
from siteloom.html.parser import parse
from siteloom.html.time_limit import within
from siteloom.html.visible_text import normalize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from siteloom.core.model import Page
    from siteloom.html.parser import Element

EmbeddedRecord: TypeAlias = dict[str, tuple[str, ...]]
"""Texts by attribute; `_type` has the names of the types."""

_Node: TypeAlias = "Mapping[str, Any]"  # a thing as JSON-LD writes it

# What tells that a page may carry markup, in lower case; reading it takes tens to hundreds of times as long.
_JSON_LD = b"application/ld+json"
_MICRODATA = b"itemscope"
_RDFA = b"typeof="
_HAS_OPEN_GRAPH = re.compile(rb"""property\s*=\s*["']?og:""")

# Types that tell about a page, a site or who runs it, and parts that are only told of with their whole.
_BESIDE = frozenset(
    """
    AboutPage Action AggregateRating Audience Brand BreadcrumbList CheckoutPage CollectionPage ContactPage
    ContactPoint Corporation DataFeed EntryPoint FAQPage hatom ImageGallery ImageObject ItemList ItemPage
    ListItem MediaGallery NewsMediaOrganization Offer OfferCatalog OnlineStore Organization PostalAddress
    ProfilePage QAPage Rating Review SearchAction SearchResultsPage SiteNavigationElement
    SpeakableSpecification WebPage WebPageElement WebSite website WPAdBlock WPFooter WPHeader WPSideBar
    """.split()
)

_OPEN_GRAPH = {
    "og:title": "name",
    "og:description": "description",
    "og:image": "image",
    "og:url": "url",
    "og:type": "_type",
    "og:street-address": "address.streetAddress",
    "og:locality": "address.addressLocality",
    "og:region": "address.addressRegion",
    "og:postal-code": "address.postalCode",
    "og:phone_number": "telephone",
    "og:isbn": "isbn",
    "article:author": "author",
    "article:published_time": "datePublished",
    "article:modified_time": "dateModified",
    "article:section": "articleSection",
    "article:tag": "keywords",
    "book:author": "author",
    "book:isbn": "isbn",
    "book:release_date": "datePublished",
    "product:brand": "brand",
    "product:price:amount": "offers.price",
    "product:price:currency": "offers.priceCurrency",
    "product:retailer_item_id": "sku",
}

_DEPTH = 4  # of things inside things
_MOST_THINGS = 2_000  # that a record has inside: those that refer to each other would never end
_MOST_THINGS_OF_A_PAGE = 100_000  # that all records have inside: each of many may refer to the same ones
_VOCABULARY = re.compile(r".*[/#:]")
_ADDRESS_START = re.compile(r"https?://(?:www\.)?", re.IGNORECASE)


def may_have_records(page: Page, *, more_than_open_graph: bool = False) -> bool:
    """Whether the bytes of a page have any sign of markup."""
    signs = in_utf8(page.html, page.charset).lower()
    if any(sign in signs for sign in (_JSON_LD, _MICRODATA, _RDFA)):
        return True
    return not more_than_open_graph and _HAS_OPEN_GRAPH.search(signs) is not None


def embedded_records(page: Page) -> list[EmbeddedRecord]:
    """The records that a page carries, what the page is about first; none of a page that cannot be read.

    That is a thing of its own, not the page, the site or a list of links; one that names the page as its
    address; or else the one that is told most about. Markup that is broken is passed over. Needs the
    extra `embedded`, and raises `MissingExtra` without it.
    """
    found = read_embedded(page)
    return [] if isinstance(found, Failure) else found


def read_embedded(page: Page, limits: ParseSettings = ParseSettings()) -> list[EmbeddedRecord] | Failure:
    """The same, or why a page cannot be read."""
    try:
        import extruct  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("Reading embedded data", "embedded") from error
    if not may_have_records(page):
        return []
    return within(limits.max_seconds, page.url, lambda: _read(page, limits))


def _read(page: Page, limits: ParseSettings) -> list[EmbeddedRecord] | Failure:
    root = parse(page, limits)
    if isinstance(root, Failure):
        return root
    nodes = list(_nodes(page, root))
    known = {name: node for node in nodes if (name := _name(node)) is not None and not _only_refers(node)}
    parts = _referred_to(nodes)
    ranked: dict[frozenset[Any], tuple[tuple[bool, bool, bool, int], EmbeddedRecord]] = {}
    left = _MOST_THINGS_OF_A_PAGE
    for node in _told_of(nodes, known):
        flat = _Flat(known, min(left, _MOST_THINGS))
        record = flat.record(node)
        left -= flat.things
        if len(record) > 1 and (content := frozenset(record.items())) not in ranked:
            own = sum("." not in name for name in record)
            rank = (is_beside(record), not _is_about(record, page), _name(node) in parts, -own)
            ranked[content] = rank, record
    records = [record for _, record in sorted(ranked.values(), key=itemgetter(0))]
    return [*records, *_open_graph(page)]


def main_record(page: Page, limits: ParseSettings = ParseSettings()) -> EmbeddedRecord | None:
    """The record of what a page is about; None if it carries none, or is a list of many such things."""
    records = read_embedded(page, limits)
    if isinstance(records, Failure) or not records or is_beside(records[0]):
        return None
    first, *others = records
    alike = [other for other in others if other.keys() == first.keys() and other["_type"] == first["_type"]]
    return first if len(alike) < 2 or _is_about(first, page) else None


def is_beside(record: EmbeddedRecord) -> bool:
    """Whether a record tells about the page or the site only."""
    types = record.get("_type", ())
    return not types or all(name in _BESIDE for name in types)


def _nodes(page: Page, root: Element) -> Iterator[_Node]:
    """All things that a page tells of on the first level, each in the form of JSON-LD."""
    signs = in_utf8(page.html, page.charset).lower()
    if _JSON_LD in signs:
        yield from _json_ld(root)
    if _MICRODATA in signs:
        yield from _microdata(page)
    if _RDFA in signs:
        yield from _rdfa(page)


def _json_ld(root: Element) -> Iterator[_Node]:
    from extruct.jsonld import JsonLdExtractor  # noqa: PLC0415 - an extra

    for script in root.iter("script"):  # one by one: a broken one must not spoil the others
        try:
            found = JsonLdExtractor().extract_items(script)
        except (ValueError, RecursionError):
            continue
        for item in found:
            if not isinstance(item, dict):
                continue
            graph = item.get("@graph")
            if graph is None:
                yield item
            else:
                yield from (node for node in _listed(graph) if isinstance(node, dict))


def _microdata(page: Page) -> Iterator[_Node]:
    from extruct.w3cmicrodata import MicrodataExtractor  # noqa: PLC0415 - an extra

    try:
        parser = lxml_html.HTMLParser(encoding="utf-8", huge_tree=True)
        root = lxml_html.document_fromstring(in_utf8(page.html, page.charset), parser=parser)
        found = MicrodataExtractor().extract_items(root, page.url)
    except (etree.LxmlError, ValueError, RecursionError):
        return
    yield from (node for node in map(_as_json_ld, found) if isinstance(node, dict))


def _as_json_ld(item: object) -> Any:
    """An item of microdata in the form of JSON-LD."""
    if isinstance(item, list):
        return [_as_json_ld(one) for one in item]
    if not isinstance(item, dict):
        return item
    node = {name: _as_json_ld(value) for name, value in item.get("properties", {}).items()}
    if "type" in item:
        node["@type"] = item["type"]
    if "id" in item:
        node["@id"] = item["id"]
    if not node and "value" in item:
        return item["value"]
    return node


def _rdfa(page: Page) -> Iterator[_Node]:
    from extruct.rdfa import RDFaExtractor  # noqa: PLC0415 - an extra

    try:
        found = RDFaExtractor().extract(in_utf8(page.html, page.charset), page.url)
    except Exception:  # noqa: BLE001 - what fails here is the markup of one page, in any of many ways
        return
    # What has no type is what Open Graph and others say of the page.
    yield from (node for node in found if isinstance(node, dict) and node.get("@type"))


def _open_graph(page: Page) -> list[EmbeddedRecord]:
    from extruct.opengraph import OpenGraphExtractor  # noqa: PLC0415 - an extra

    text = in_utf8(page.html, page.charset)
    if not _HAS_OPEN_GRAPH.search(text.lower()):
        return []
    try:
        found = list(OpenGraphExtractor().extract(text))
    except (etree.LxmlError, ValueError, IndexError):
        return []
    values: dict[str, dict[str, None]] = {}  # texts once, in their order
    for name, content in (pair for item in found for pair in item["properties"]):
        attribute = _OPEN_GRAPH.get(name.strip().lower())
        told = normalize(html.unescape(content))
        if attribute is not None and told:
            values.setdefault(attribute, {})[told] = None
    return [{name: tuple(texts) for name, texts in values.items()}] if values else []


def _told_of(nodes: list[_Node], known: Mapping[str, _Node]) -> Iterator[_Node]:
    """The things to make records of: those on the first level, and what pages among them are about."""
    for node in nodes:
        yield node
        for inside in _listed(_property(node, "mainEntity")):
            thing = _resolved(inside, known)
            if isinstance(thing, dict) and thing.get("@type"):
                yield thing


def _referred_to(nodes: list[_Node]) -> set[str]:
    """The names of things that others tell about as theirs, as an article does about its author."""
    return {
        name
        for node in nodes
        if not all(one in _BESIDE for one in _types(node))
        for value in node.values()
        for one in _listed(value)
        if isinstance(one, dict) and (name := _name(one)) is not None
    }


class _Flat:
    """A thing with all that is inside it as one flat record."""

    def __init__(self, known: Mapping[str, _Node], most_things: int) -> None:
        self.things = 0
        self._known = known
        self._values: dict[str, dict[str, None]] = {}  # texts once, in their order
        self._most_things = most_things

    def record(self, node: _Node) -> EmbeddedRecord:
        """The record of a thing."""
        self._add_thing("", node, (node,))
        return {"_type": _types(node), **{name: tuple(texts) for name, texts in self._values.items()}}

    def _add_thing(self, prefix: str, node: _Node, above: tuple[_Node, ...]) -> None:
        for name, value in node.items():
            local = _local(name)
            if name.startswith("@") or not local or (prefix and local == "name"):
                continue
            for one in _listed(value):
                self._add(prefix + local, one, above)

    def _add(self, attribute: str, value: object, above: tuple[_Node, ...]) -> None:
        if self.things >= self._most_things and isinstance(value, dict):
            return
        thing = _resolved(value, self._known)
        if not isinstance(thing, dict):
            self._add_text(attribute, thing)
            return
        if "@list" in thing or "@set" in thing:
            for one in _listed(thing.get("@list", thing.get("@set"))):
                self._add(attribute, one, above)
            return
        self.things += 1
        if len(above) > _DEPTH or any(thing is one for one in above):
            return
        self._add_text(attribute, _standing_for(thing))
        self._add_thing(f"{attribute}.", thing, (*above, thing))

    def _add_text(self, attribute: str, value: object) -> None:
        text = _text(value)
        if text:
            self._values.setdefault(attribute, {})[text] = None


def _standing_for(thing: _Node) -> str:
    """The text that a thing inside another is called by; none for most."""
    name = next(filter(None, map(_text, _listed(_property(thing, "name")))), "")
    if name:
        return name
    types = _types(thing)
    if "ImageObject" in types:
        addresses = (_property(thing, "url"), _property(thing, "contentUrl"), thing.get("@id"))
        return next((text for one in addresses for text in map(_text, _listed(one)) if text), "")
    if "PostalAddress" in types:
        street, city, region, code = (
            " ".join(filter(None, map(_text, _listed(_property(thing, part)))))
            for part in ("streetAddress", "addressLocality", "addressRegion", "postalCode")
        )
        return ", ".join(filter(None, (street, city, f"{region} {code}".strip())))
    return ""


def _resolved(value: object, known: Mapping[str, _Node]) -> object:
    """What a value of JSON-LD is: what it refers to, or the text that it wraps."""
    if not isinstance(value, dict):
        return value
    if "@value" in value:
        return value["@value"]
    name = _name(value)
    if name is not None and _only_refers(value):
        return known.get(name, name if _ADDRESS_START.match(name) else None)
    return value


def _name(node: _Node) -> str | None:
    """What others call a thing by; pages write anything there."""
    name = node.get("@id")
    return name if isinstance(name, str) else None


def _only_refers(node: _Node) -> bool:
    return all(name in {"@id", "@type"} for name in node)


def _types(node: _Node) -> tuple[str, ...]:
    return tuple(_local(name) for name in _listed(node.get("@type")) if isinstance(name, str))


def _property(node: _Node, name: str) -> object:
    """A property by its local name."""
    return next((value for key, value in node.items() if key[:1] != "@" and _local(key) == name), None)


def _listed(value: object) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _text(value: object) -> str:
    if isinstance(value, dict):
        value = value.get("@value")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return normalize(html.unescape(value)) if isinstance(value, str) else ""


def _local(name: str) -> str:
    """The name of a type or a property, without that of its vocabulary."""
    return _VOCABULARY.sub("", name.rstrip("/#"))


def _is_about(record: EmbeddedRecord, page: Page) -> bool:
    """Whether a record says that its page is this one."""
    here = plain_address(page.url)
    names = ("url", "mainEntityOfPage", "mainEntityOfPage.url")
    return any(plain_address(one) == here for name in names for one in record.get(name, ()))


def plain_address(url: str) -> str:
    """An address less what may differ when the same page is meant: scheme, `www.`, fragment, last slash."""
    return _ADDRESS_START.sub("", url.partition("#")[0]).rstrip("/")
