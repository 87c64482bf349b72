"""Read the structured data embedded in a page: JSON-LD, microdata, RDFa and Open Graph.

A record is flat: texts by attribute, with the names of the vocabulary without its address.

- Properties of a nested entity have dotted names: `offers.price`, `aggregateRating.ratingValue`.
- If the entity has a name, that is its text: `author` is the name of a person, `author.url` their address.
  A postal address is one line in `address` in addition to its parts; an image its address in `image`.
- Repeated properties have several texts. Numbers are texts, too; white space is normalised.
- `_type` has the types: `Product`, `Recipe`.

Open Graph is the last resort. It gives `name` (`og:title`), `description`, `image`, `url` and, for
articles, books and products, the properties in `_OPEN_GRAPH` under their schema.org names.
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

_Node: TypeAlias = "Mapping[str, Any]"  # an entity in JSON-LD

# Signs of embedded data, in lower case; reading the data takes tens to hundreds of times as long.
_JSON_LD = b"application/ld+json"
_MICRODATA = b"itemscope"
_RDFA = b"typeof="
_HAS_OPEN_GRAPH = re.compile(rb"""property\s*=\s*["']?og:""")

# Types that describe a page, a site or its operator, and parts that are only meaningful with their whole.
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

_DEPTH = 4  # of nested entities
_MOST_ENTITIES = 2_000  # in a record: entities that refer to each other would never end
_MOST_ENTITIES_OF_A_PAGE = 100_000  # in all records: many may refer to the same entities
_VOCABULARY = re.compile(r".*[/#:]")
_ADDRESS_START = re.compile(r"https?://(?:www\.)?", re.IGNORECASE)


def may_have_records(page: Page, *, more_than_open_graph: bool = False) -> bool:
    """Return whether the bytes of a page have any sign of embedded data."""
    signs = in_utf8(page.html, page.charset).lower()
    if any(sign in signs for sign in (_JSON_LD, _MICRODATA, _RDFA)):
        return True
    return not more_than_open_graph and _HAS_OPEN_GRAPH.search(signs) is not None


def embedded_records(page: Page) -> list[EmbeddedRecord]:
    """Return the records embedded in a page, its main subject first; none if the page cannot be read.

    The main subject is not the page, the site or a list of links; it is preferably an entity with the page as
    its address, or else the one with most properties. Broken markup is skipped. Needs the extra `embedded`,
    and raises `MissingExtra` without it.
    """
    records = read_embedded(page)
    return [] if isinstance(records, Failure) else records


def read_embedded(page: Page, limits: ParseSettings = ParseSettings()) -> list[EmbeddedRecord] | Failure:
    """Return the records embedded in a page, its main subject first, or why it cannot be read."""
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
    nodes_by_id = {
        name: node for node in nodes if (name := _name(node)) is not None and not _only_refers(node)
    }
    referenced_ids = _referred_to(nodes)
    ranked: dict[frozenset[Any], tuple[tuple[bool, bool, bool, int], EmbeddedRecord]] = {}
    entities_left = _MOST_ENTITIES_OF_A_PAGE
    for node in _record_nodes(nodes, nodes_by_id):
        flat = _FlatRecord(nodes_by_id, min(entities_left, _MOST_ENTITIES))
        record = flat.record(node)
        entities_left -= flat.entities
        if len(record) > 1 and (content := frozenset(record.items())) not in ranked:
            own = sum("." not in name for name in record)
            rank = (is_beside(record), not _is_about(record, page), _name(node) in referenced_ids, -own)
            ranked[content] = rank, record
    records = [record for _, record in sorted(ranked.values(), key=itemgetter(0))]
    return [*records, *_open_graph(page)]


def main_record(page: Page, limits: ParseSettings = ParseSettings()) -> EmbeddedRecord | None:
    """Return the record of a page's main subject; None if there is none, or the page lists several."""
    records = read_embedded(page, limits)
    if isinstance(records, Failure) or not records or is_beside(records[0]):
        return None
    main, *further_records = records
    similar = [
        record
        for record in further_records
        if record.keys() == main.keys() and record["_type"] == main["_type"]
    ]
    return main if len(similar) < 2 or _is_about(main, page) else None


def is_beside(record: EmbeddedRecord) -> bool:
    """Return whether a record only describes the page or the site."""
    types = record.get("_type", ())
    return not types or all(name in _BESIDE for name in types)


def _nodes(page: Page, root: Element) -> Iterator[_Node]:
    """Yield all top-level entities of a page, each in the form of JSON-LD."""
    signs = in_utf8(page.html, page.charset).lower()
    if _JSON_LD in signs:
        yield from _json_ld(root)
    if _MICRODATA in signs:
        yield from _microdata(page)
    if _RDFA in signs:
        yield from _rdfa(page)


def _json_ld(root: Element) -> Iterator[_Node]:
    from extruct.jsonld import JsonLdExtractor  # noqa: PLC0415 - an extra

    for script in root.iter("script"):  # one by one, so that a broken one does not affect the others
        try:
            items = JsonLdExtractor().extract_items(script)
        except (ValueError, RecursionError):
            continue
        for item in items:
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
        items = MicrodataExtractor().extract_items(root, page.url)
    except (etree.LxmlError, ValueError, RecursionError):
        return
    yield from (node for node in map(_as_json_ld, items) if isinstance(node, dict))


def _as_json_ld(item: object) -> Any:
    """Convert an item of microdata to the form of JSON-LD."""
    if isinstance(item, list):
        return [_as_json_ld(element) for element in item]
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
        nodes = RDFaExtractor().extract(in_utf8(page.html, page.charset), page.url)
    except Exception:  # noqa: BLE001 - broken markup makes the library fail in many ways
        return
    # Nodes without a type come from Open Graph and the like.
    yield from (node for node in nodes if isinstance(node, dict) and node.get("@type"))


def _open_graph(page: Page) -> list[EmbeddedRecord]:
    from extruct.opengraph import OpenGraphExtractor  # noqa: PLC0415 - an extra

    page_text = in_utf8(page.html, page.charset)
    if not _HAS_OPEN_GRAPH.search(page_text.lower()):
        return []
    try:
        items = list(OpenGraphExtractor().extract(page_text))
    except (etree.LxmlError, ValueError, IndexError):
        return []
    values: dict[str, dict[str, None]] = {}  # texts once, in their order
    for name, content in (pair for item in items for pair in item["properties"]):
        attribute = _OPEN_GRAPH.get(name.strip().lower())
        text = normalize(html.unescape(content))
        if attribute is not None and text:
            values.setdefault(attribute, {})[text] = None
    return [{name: tuple(texts) for name, texts in values.items()}] if values else []


def _record_nodes(nodes: list[_Node], nodes_by_id: Mapping[str, _Node]) -> Iterator[_Node]:
    """Yield the entities to make records of: top-level ones, and the main entities of pages among them."""
    for node in nodes:
        yield node
        for inside in _listed(_property(node, "mainEntity")):
            entity = _resolved(inside, nodes_by_id)
            if isinstance(entity, dict) and entity.get("@type"):
                yield entity


def _referred_to(nodes: list[_Node]) -> set[str]:
    """Return the ids of entities that others refer to, as an article refers to its author."""
    return {
        name
        for node in nodes
        if not all(item in _BESIDE for item in _types(node))
        for value in node.values()
        for item in _listed(value)
        if isinstance(item, dict) and (name := _name(item)) is not None
    }


class _FlatRecord:
    """An entity with all nested entities as one flat record."""

    def __init__(self, nodes_by_id: Mapping[str, _Node], most_entities: int) -> None:
        self.entities = 0
        self._nodes_by_id = nodes_by_id
        self._values: dict[str, dict[str, None]] = {}  # texts once, in their order
        self._most_entities = most_entities

    def record(self, node: _Node) -> EmbeddedRecord:
        """Build the record of an entity."""
        self._add_entity("", node, (node,))
        return {"_type": _types(node), **{name: tuple(texts) for name, texts in self._values.items()}}

    def _add_entity(self, prefix: str, node: _Node, ancestors: tuple[_Node, ...]) -> None:
        for name, value in node.items():
            local = _local(name)
            if name.startswith("@") or not local or (prefix and local == "name"):
                continue
            for item in _listed(value):
                self._add(prefix + local, item, ancestors)

    def _add(self, attribute: str, value: object, ancestors: tuple[_Node, ...]) -> None:
        if self.entities >= self._most_entities and isinstance(value, dict):
            return
        entity = _resolved(value, self._nodes_by_id)
        if not isinstance(entity, dict):
            self._add_text(attribute, entity)
            return
        if "@list" in entity or "@set" in entity:
            for item in _listed(entity.get("@list", entity.get("@set"))):
                self._add(attribute, item, ancestors)
            return
        self.entities += 1
        if len(ancestors) > _DEPTH or any(entity is item for item in ancestors):
            return
        self._add_text(attribute, _display_text(entity))
        self._add_entity(f"{attribute}.", entity, (*ancestors, entity))

    def _add_text(self, attribute: str, value: object) -> None:
        text = _text(value)
        if text:
            self._values.setdefault(attribute, {})[text] = None


def _display_text(entity: _Node) -> str:
    """Return the text that represents a nested entity; empty for most."""
    name = next(filter(None, map(_text, _listed(_property(entity, "name")))), "")
    if name:
        return name
    types = _types(entity)
    if "ImageObject" in types:
        addresses = (_property(entity, "url"), _property(entity, "contentUrl"), entity.get("@id"))
        return next((text for address in addresses for text in map(_text, _listed(address)) if text), "")
    if "PostalAddress" in types:
        street, city, region, code = (
            " ".join(filter(None, map(_text, _listed(_property(entity, field)))))
            for field in ("streetAddress", "addressLocality", "addressRegion", "postalCode")
        )
        return ", ".join(filter(None, (street, city, f"{region} {code}".strip())))
    return ""


def _resolved(value: object, nodes_by_id: Mapping[str, _Node]) -> object:
    """Resolve a value of JSON-LD: the entity that it refers to, or the text that it wraps."""
    if not isinstance(value, dict):
        return value
    if "@value" in value:
        return value["@value"]
    name = _name(value)
    if name is not None and _only_refers(value):
        return nodes_by_id.get(name, name if _ADDRESS_START.match(name) else None)
    return value


def _name(node: _Node) -> str | None:
    """Return the id of an entity; pages may write anything there."""
    name = node.get("@id")
    return name if isinstance(name, str) else None


def _only_refers(node: _Node) -> bool:
    return all(name in {"@id", "@type"} for name in node)


def _types(node: _Node) -> tuple[str, ...]:
    return tuple(_local(name) for name in _listed(node.get("@type")) if isinstance(name, str))


def _property(node: _Node, name: str) -> object:
    """Return a property by its local name."""
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
    """Return the name of a type or a property without its vocabulary."""
    return _VOCABULARY.sub("", name.rstrip("/#"))


def _is_about(record: EmbeddedRecord, page: Page) -> bool:
    """Return whether a record names this page as its own."""
    page_address = plain_address(page.url)
    names = ("url", "mainEntityOfPage", "mainEntityOfPage.url")
    return any(plain_address(address) == page_address for name in names for address in record.get(name, ()))


def plain_address(url: str) -> str:
    """Return an address without the parts that may vary for a page: scheme, `www.`, fragment, last slash."""
    return _ADDRESS_START.sub("", url.partition("#")[0]).rstrip("/")
