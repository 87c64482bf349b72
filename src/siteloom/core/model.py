"""The values passed between stages: frozen, picklable, free of behaviour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple

ValueType = Literal["text", "number", "price", "date", "url", "image", "rating"]


class Validators(NamedTuple):
    """The values for asking a server whether a page has changed (RFC 9110); empty if it sent none."""

    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """One HTML document as it was fetched.

    `charset` is the one in the HTTP header, if any; that of the document itself is determined when it is
    parsed. `validators` are its `ETag` and `Last-Modified`; they do not count when pages are compared.
    """

    url: str
    html: bytes
    fetched_at: datetime | None = None
    charset: str | None = None
    validators: Validators | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        html: object = self.html  # callers that are not type-checked pass text
        if not isinstance(html, bytes):
            kind = type(html).__name__
            raise TypeError(f"Page.html must be bytes, not {kind}: use Page.from_text for decoded text")

    @classmethod
    def from_text(cls, url: str, text: str, fetched_at: datetime | None = None) -> Page:
        """Create a page from decoded HTML; lone surrogates become question marks."""
        return cls(url, text.encode("utf-8", "replace"), fetched_at, "utf-8")


@dataclass(frozen=True, slots=True)
class DamagedPage(Page):
    """A stored page whose content cannot be read back: it has no HTML, and parsing it fails.

    It stands where the page would, so that one damaged part of a store costs its own pages only. `damage`
    says what is wrong and where.
    """

    damage: str = ""

    @property
    def failure(self) -> Failure:
        """Why the page cannot be read."""
        return Failure(self.url, "damaged in the store", self.damage)


@dataclass(frozen=True, slots=True)
class Resource:
    """A stylesheet or image of a page, kept so that the page can be shown as it looked."""

    url: str
    body: bytes
    media_type: str
    fetched_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A page that could not be processed, and why.

    `url` is the page's address, or its position in the source if no address could be read. `reason` is one of
    a few fixed phrases, so that failures can be counted; `detail` explains this one to a person.
    """

    url: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """An item of a source that is not a page, and is not meant to be one."""

    url: str
    reason: str


@dataclass(frozen=True, slots=True)
class TemplatePath:
    """A path that most pages of a cluster have; with `text`, it leads to a text that they share."""

    tags: str
    text: str | None
    support: int

    def __str__(self) -> str:
        """The tags, followed by the text in quotes."""
        return self.tags if self.text is None else f'{self.tags}/"{self.text}"'


@dataclass(frozen=True, slots=True)
class Template:
    """The paths and texts that the pages of a cluster share, in document order.

    `pages` is the number of examined pages; the support of a path is the number of those that have it.
    """

    essential: tuple[TemplatePath, ...]
    pages: int

    @property
    def paths(self) -> tuple[str, ...]:
        """The essential paths."""
        return tuple(str(path) for path in self.essential)

    @property
    def text(self) -> tuple[str, ...]:
        """The template text: the texts that most pages have at the same path."""
        return tuple(path.text for path in self.essential if path.text is not None)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Pages of one template.

    `members` are indices into the clustered pages, ascending. `mask` is the signature of most of them with
    its wildcards (`**`), `mask_pages` the number of pages behind it, `accepted` all signatures that occur, in
    hexadecimal. `importance` grows with the size of the cluster and the content of its pages.
    """

    id: str
    site: str
    members: tuple[int, ...]
    mask: str
    mask_pages: int
    accepted: tuple[str, ...]
    importance: float
    url_patterns: tuple[str, ...]
    template: Template

    @property
    def size(self) -> int:
        """The number of pages."""
        return len(self.members)


@dataclass(frozen=True, slots=True)
class Clustering:
    """The clusters of some pages, grouped by site, largest first.

    `unclustered` are the indices of pages in no cluster. `plain_coverage` is the share of pages that the
    method as published puts into clusters, `coverage` the share after the remaining pages have joined.
    """

    clusters: tuple[Cluster, ...]
    unclustered: tuple[int, ...]
    plain_coverage: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Footprint:
    """What identifies the pages of a wrapper before they are parsed.

    `sites` are the registered domains of the pages, and `url_patterns` match their addresses. `masks` are the
    masks of their clusters, each with the number of pages behind it; `accepted` are all signatures that
    occurred, in hexadecimal.
    """

    sites: tuple[str, ...] = ()
    url_patterns: tuple[str, ...] = ()
    masks: tuple[tuple[str, int], ...] = ()
    accepted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Attribute:
    """The declared properties of an attribute; None for those to be inferred.

    `multi`: a record may have several values. `mandatory`: every record has one. `constant`: the value stays
    the same when the page is fetched again, like a name and unlike a price.
    """

    multi: bool | None = None
    mandatory: bool | None = None
    constant: bool | None = None
    type: ValueType | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A page with the values a person sees on it.

    `values` gives them by attribute: an empty list says that the page has none, a missing attribute is
    unknown. `records` does the same for some of the records of a list page. `nodes`, where given, ties each
    of `values` to its exact node, such as `/html[1]/body[1]/h1[1]/text()[1]` or
    `/html[1]/body[1]/a[3]/@href`; `record_nodes` does so for each of the `records`.
    """

    page: Page
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    records: Sequence[Mapping[str, Sequence[str]]] = ()
    nodes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    record_nodes: Sequence[Mapping[str, Sequence[str]]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _lists_of_texts(self.values))
        object.__setattr__(self, "records", tuple(map(_lists_of_texts, self.records)))
        object.__setattr__(self, "nodes", _lists_of_texts(self.nodes))
        object.__setattr__(self, "record_nodes", tuple(map(_lists_of_texts, self.record_nodes)))


@dataclass(frozen=True, slots=True)
class Seed:
    """A known record, used to find values on new sites.

    `source` names its origin, such as a file or a site; `url` is the page it was extracted from, if any;
    `confidence` is the probability that its values are right.
    """

    values: Mapping[str, tuple[str, ...]]
    source: str = ""
    url: str = ""
    confidence: float = 1.0


LONGEST_SOURCE = 300
"""The longest name of a source of seeds in bytes: databases refuse to index far longer ones."""


def _lists_of_texts(values: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return lists of texts by attribute; a single text becomes a list of one."""
    lists: dict[str, list[str]] = {}
    for name, value in values.items():
        texts: object = [value] if isinstance(value, str) else value
        # Callers that are not type-checked pass numbers.
        if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
            raise TypeError(f"The values of {name} must be texts as seen on the page, not {value!r}")
        lists[name] = list(texts)
    return lists


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of a value.

    `rule` names the rule in its wrapper (`phone#1`), `xpath` is that rule,
    `node` the path of the very node; `confidence` is the estimated probability
    that the value is right. `layout` is the number of the layout that the rule
    belongs to: 1 is the newest, and the name of a rule of another one ends in
    the number (`phone#1@2`).
    """

    rule: str
    xpath: str
    node: str
    confidence: float
    layout: int = 1


@dataclass(frozen=True, slots=True)
class Withheld:
    """A text at the position of a value that does not look like a value of its attribute."""

    text: str
    reason: str
    node: str


@dataclass(frozen=True, slots=True)
class Record:
    """The values extracted from one page, or from one part of a list page.

    `values` are texts as shown, white space normalised; absent attributes are left out. `typed` has the same
    values as numbers, dates and the like if the schema has a type; it is aligned with `values`, and so is
    `provenance`. `withheld` has texts that were left out because they do not look like values of their
    attribute.
    """

    url: str
    values: Mapping[str, tuple[str, ...]]
    typed: Mapping[str, tuple[object, ...]]
    provenance: Mapping[str, tuple[Provenance, ...]]
    withheld: Mapping[str, tuple[Withheld, ...]] = field(default_factory=dict)

    @property
    def confidence(self) -> dict[str, tuple[float, ...]]:
        """The confidence of each value."""
        return {
            attribute: tuple(origin.confidence for origin in origins)
            for attribute, origins in self.provenance.items()
        }


ChangeTest = Literal["shingle", "null", "value"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The finding of a test on one page, with the values of an attribute before and after.

    Without an attribute it concerns the page as a whole.
    """

    url: str
    attribute: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    finding: str


@dataclass(frozen=True, slots=True)
class Change:
    """A detected break of a wrapper, with the test that detected it and the affected attributes.

    The test is `shingle` if the wrapper no longer covers the pages, `null` if values are missing, and `value`
    if wrong values are found. `share` is the share of affected pages among those that could be; `evidence` is
    from some of them.
    """

    wrapper: str
    test: ChangeTest
    attributes: tuple[str, ...]
    share: float
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class SampledPage:
    """A page worth a person's time: its index, the weight it adds, and the share of weight covered so far."""

    page: int
    gain: float
    covered: float


Field = Literal["title", "heading", "text", "common"]
"""How significant a text is for its page or record; common texts are the least significant."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that is indexed for search, with its attribute if it is a value of a record."""

    text: str
    field: Field
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class IndexDocument:
    """A searchable page or record, with its texts in document order."""

    kind: Literal["page", "record"]
    site: str
    url: str
    passages: tuple[Passage, ...]


def in_utc(time: datetime) -> datetime:
    """Convert a time to UTC; a time without a zone is already UTC."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


class FoundDocument(NamedTuple):
    """A search hit, with the cluster of its page, if it is in one."""

    document: IndexDocument
    cluster: str | None
    score: float
