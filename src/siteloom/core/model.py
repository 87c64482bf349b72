"""The values that cross from one stage to the next: frozen, picklable, free of behaviour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple

ValueType = Literal["text", "number", "price", "date", "url", "image", "rating"]


class Validators(NamedTuple):
    """What a server said by which to ask it whether a page has changed (RFC 9110); empty if it did not."""

    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """One HTML document as it was fetched.

    `charset` is what the HTTP header said, if it said anything; what the
    document itself says is found out when it is parsed. `validators` are its
    `ETag` and `Last-Modified`, and not a part of what the page is: two that
    differ in nothing else are equal.
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
        """A page whose HTML is already decoded; lone surrogates become question marks."""
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
    """A page that gave nothing, and why.

    `url` is the page's address, or the place in the source where no address
    could be read. `reason` is one of a few fixed phrases, so that failures can
    be counted; `detail` is for the person who looks at this one.
    """

    url: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a source that is no page and was not meant to be one."""

    url: str
    reason: str


@dataclass(frozen=True, slots=True)
class TemplatePath:
    """A path that most pages of a cluster have; with `text`, it goes on to a text that they share."""

    tags: str
    text: str | None
    support: int

    def __str__(self) -> str:
        """The tags, and behind them the text in quotes."""
        return self.tags if self.text is None else f'{self.tags}/"{self.text}"'


@dataclass(frozen=True, slots=True)
class Template:
    """What the pages of a cluster share, in the order in which it stands on them.

    `pages` is how many pages were looked at; the support of a path is how many of them have it.
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
    """Pages that were made from one template.

    `members` are indices into the pages that were clustered, ascending. `mask`
    is the signature of most of them with its wildcards (`**`), `mask_pages` how
    many pages chose it, `accepted` all signatures that occur, in hexadecimal.
    `importance` grows with the size and with how much the pages tell.
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
    """The clusters of some pages, those of a site together, the largest first.

    `unclustered` are the indices of pages in none of them. `plain_coverage` is the
    share of pages that the method as published puts into clusters, `coverage` the
    share after leftovers have joined.
    """

    clusters: tuple[Cluster, ...]
    unclustered: tuple[int, ...]
    plain_coverage: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Footprint:
    """What tells the pages that a wrapper is for from others, before they are parsed.

    `sites` are the registered domains of the pages, and `url_patterns` match their
    addresses. `masks` are the masks of their clusters, each with the number of pages that
    chose it; `accepted` are all signatures that occurred, in hexadecimal.
    """

    sites: tuple[str, ...] = ()
    url_patterns: tuple[str, ...] = ()
    masks: tuple[tuple[str, int], ...] = ()
    accepted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Attribute:
    """What is known of an attribute; None where it is left to be inferred.

    `multi`: a record may have several values. `mandatory`: every record has one.
    `constant`: the value stays as it is when the same page is fetched again, as
    a name does and a price does not.
    """

    multi: bool | None = None
    mandatory: bool | None = None
    constant: bool | None = None
    type: ValueType | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A page with the values a person sees on it.

    `values` gives them by attribute: an empty list says that the page has none,
    an attribute that is not named is unknown there. `records` does the same for
    some of the records of a list page. `nodes`, where given, ties each of
    `values` to the exact node it was taken from, such as
    `/html[1]/body[1]/h1[1]/text()[1]` or `/html[1]/body[1]/a[3]/@href`;
    `record_nodes` does so for each of the `records`.
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

    `source` names where it is known from, such as a file or a site; `url` is the
    page it was extracted from, if any; `confidence` is how likely its values are right.
    """

    values: Mapping[str, tuple[str, ...]]
    source: str = ""
    url: str = ""
    confidence: float = 1.0


LONGEST_SOURCE = 300
"""Bytes of the longest name of a source of seeds: databases refuse to index far longer ones."""


def _lists_of_texts(values: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Values by attribute, where a text that stands alone becomes a list of one."""
    lists: dict[str, list[str]] = {}
    for name, given in values.items():
        texts: object = [given] if isinstance(given, str) else given
        # Callers that are not type-checked pass numbers.
        if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
            raise TypeError(f"The values of {name} must be texts as seen on the page, not {given!r}")
        lists[name] = list(texts)
    return lists


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a value came from.

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
    """A text that stood where a value was looked for, but is none by what was learned of the attribute."""

    text: str
    reason: str
    node: str


@dataclass(frozen=True, slots=True)
class Record:
    """The values extracted from one page, or from one part of a list page.

    `values` are texts as seen, white space normalised; absent attributes are
    left out. `typed` has the same values as numbers, dates and the like where
    the schema has a type; it is aligned with `values`, and so is `provenance`.
    `withheld` has the texts that were found but not passed on, as they are not
    what the values of their attribute are like.
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
    """What a test saw on one page: the values of an attribute before and now, and what came of the old ones.

    Without an attribute it is about the page as a whole.
    """

    url: str
    attribute: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    finding: str


@dataclass(frozen=True, slots=True)
class Change:
    """A break that was detected: of which wrapper, by which test, and in which attributes.

    The test is `shingle` if pages are no longer covered by the wrapper, `null` if
    values are not found any more, and `value` if others are found that are wrong. `share` is that
    of the pages it was seen on among those that could show it; `evidence` is of some of them.
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
"""By how much a text tells of what it stands in; what is common there tells least."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that something is searched by; of an attribute, if it is a value of a record."""

    text: str
    field: Field
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class IndexDocument:
    """What can be found: a page or a record, with its texts in the order in which they stand there."""

    kind: Literal["page", "record"]
    site: str
    url: str
    passages: tuple[Passage, ...]


def in_utc(time: datetime) -> datetime:
    """A point in time as UTC, which is what a time without a zone is taken for."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


class FoundDocument(NamedTuple):
    """A document that was looked for, with the cluster of its page, if it is in one."""

    document: IndexDocument
    cluster: str | None
    score: float
