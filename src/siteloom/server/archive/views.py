"""What there is to read on an archived page, as values: pages and API are made of the same."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from siteloom.annotating.picks import Pick
from siteloom.server.sites.overview import NextStep


class ReadVersion(BaseModel):
    """A version of a page in the archive."""

    version: str = Field(description="By what it is asked for.")
    last_seen_at: datetime = Field(description="When this content was last met.")
    bytes: int


class ReadValue(BaseModel):
    """A value, and where it comes from."""

    attribute: str
    text: str
    confidence: float = Field(description="The estimated probability that the value is right.")
    rule: str = Field(description="The name of the rule in its wrapper.")
    words: str = Field(description="What the rule takes, in plain words.")
    xpath: str = Field(description="The rule as XPath.")
    node: str = Field(description="The path of the very node.")
    pick: Pick | None = Field(description="Where it stands in the tree of the page, if it can be shown.")


class WithheldText(BaseModel):
    """A text that stood where a value was looked for, but is none."""

    attribute: str
    text: str
    reason: str
    node: str
    pick: Pick | None


class ReadRecord(BaseModel):
    """A record of the page, with the numbers of the topmost elements it takes up, if it is one of a list."""

    number: int
    values: list[ReadValue]
    withheld: list[WithheldText]
    elements: list[int]


class ConsideredWrapper(BaseModel):
    """How a wrapper did for the page."""

    wrapper: str
    version: int | None
    rank: int
    verdict: str
    url_pattern: str | None
    mask: str | None
    mask_pages: int
    is_accepted: bool = Field(description="Whether a page of the wrapper had the very same signature.")
    agreement: int = Field(description="How many of 8 bytes agree with the nearest signature it knows.")


class NoRecord(BaseModel):
    """Why the page gives no record, and what to do about it."""

    reason: str
    detail: str
    sentence: str
    next_step: NextStep | None


class LitNode(BaseModel):
    """A node that was asked to be lit; without a pick, it is not on this version of the page."""

    node: str
    pick: Pick | None


class PageReading(BaseModel):
    """An archived page with what is known of it."""

    page: int
    url: str
    site: str
    title: str
    version: str = Field(description="The version that is read.")
    versions: list[ReadVersion] = Field(description="The newest first; of a page with very many, some.")
    template: str | None = Field(description="The cluster that the page is in.")
    wrapper: str | None = Field(description="The wrapper that was used.")
    wrapper_version: int | None
    is_asked_for: bool = Field(description="Whether the wrapper was asked for, not found by the page.")
    why: str = Field(description="Why this wrapper, or why none.")
    considered: list[ConsideredWrapper]
    attributes: list[str] = Field(description="Those of the wrapper, in its order.")
    records: list[ReadRecord]
    record: int | None = Field(description="The number of the record that was asked for, if there is one.")
    failure: NoRecord | None
    is_readable: bool = Field(description="Whether the page can be parsed, and so be shown.")
    nodes: list[LitNode]
    words: list[Pick] = Field(description="Where the words stand that were asked for; up to 500 places.")


class LitText(BaseModel):
    """A text, and where it stands."""

    text: str
    pick: Pick


class ChangedAttribute(BaseModel):
    """The values of an attribute on two versions of a page."""

    attribute: str
    before: list[ReadValue]
    after: list[ReadValue]
    is_changed: bool
    unfound: list[LitText] = Field(
        description="Values of before that are not found any more, although they still stand on the page."
    )


class PageChanges(BaseModel):
    """A page before and after: two versions, or one by two wrappers."""

    before: PageReading
    after: PageReading
    attributes: list[ChangedAttribute] = Field(description="Those that differ first.")
