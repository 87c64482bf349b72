"""How an archived page is made, as values: its tags, and its paths beside those of its template."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from siteloom.apps.server.views.archived_pages import archived_page
from siteloom.apps.server.views.sites import PathSupport, stored_template
from siteloom.core.errors import UnreadablePage
from siteloom.core.model import Failure
from siteloom.html.parser import parse
from siteloom.templates.essential_paths import page_paths, path_texts, tag_rows

if TYPE_CHECKING:
    from siteloom.core.settings import ParseSettings
    from siteloom.html.parser import Element
    from siteloom.store.store import Store

# Texts of a page's own beyond this many are left out: nobody reads them in a tree, and browsers would stall.
_MOST_TEXTS = 2_000
_LONGEST_TEXT = 200


class PageTag(BaseModel):
    """How often a tag stands on a page."""

    tag: str
    count: int


class PagePaths(BaseModel):
    """The paths of a page, each once, in the order in which they stand there."""

    template: str | None = Field(description="The cluster that the page is in.")
    pages_seen: int = Field(description="How many pages of the template the support is counted on.")
    paths: list[PathSupport] = Field(
        description="Those that are essential in the template have its support, all others none."
    )
    missing: list[PathSupport] = Field(description="Essential paths of the template that the page lacks.")
    left_out: int = Field(description="How many texts of the page's own are not told.")


def tags_of_page(store: Store, limits: ParseSettings, page_id: int, version: str | None) -> list[PageTag]:
    """The tags of a page, the most frequent first."""
    counts = [
        PageTag(tag=row.tag, count=row.occurrences)
        for row in tag_rows([_root(store, limits, page_id, version)])
        if row.page is None
    ]
    return sorted(counts, key=lambda one: (-one.count, one.tag))


def paths_of_page(store: Store, limits: ParseSettings, page_id: int, version: str | None) -> PagePaths:
    """The paths of a page beside those of its template."""
    root = _root(store, limits, page_id, version)
    cluster = store.page_index.cluster(page_id)
    template = None if cluster is None else stored_template(store, cluster)
    support = {} if template is None else {(one.tags, one.text): one.support for one in template.essential}
    seen = 0 if template is None else template.pages
    paths: list[PathSupport] = []
    own_texts = 0
    found = {
        (words.tags, words.text): words
        for words in path_texts(root, set(page_paths(root).all_paths.tolist())).values()
    }
    for words in found.values():
        count = support.get((words.tags, words.text), 0)
        if words.text is not None and not count:
            own_texts += 1
            if own_texts > _MOST_TEXTS:
                continue
        paths.append(_path(words.tags, words.text, count, seen))
    return PagePaths(
        template=cluster,
        pages_seen=seen,
        paths=paths,
        missing=[_path(*key, count, seen) for key, count in support.items() if key not in found],
        left_out=max(0, own_texts - _MOST_TEXTS),
    )


def _path(tags: str, text: str | None, support: int, pages: int) -> PathSupport:
    shown = text if text is None or len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
    return PathSupport(path=tags, text=shown, support=support, share=support / max(1, pages))


def _root(store: Store, limits: ParseSettings, page_id: int, version: str | None) -> Element:
    _, page = archived_page(store, page_id, version)
    root = parse(page, limits)
    if isinstance(root, Failure):
        raise UnreadablePage(root.url, root.reason)
    return root
