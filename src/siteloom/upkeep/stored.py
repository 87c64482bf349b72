"""The wrappers of a workspace and their pages, as upkeep needs them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from siteloom.clustering import matches
from siteloom.errors import StoreError
from siteloom.extraction import WrapperText
from siteloom.matching import Matcher
from siteloom.spacing import evenly_spaced
from siteloom.store import PageAddress
from siteloom.wrapper.url_grammar import tells_pages_apart

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from siteloom.matching import NamedWrapper
    from siteloom.model import Page
    from siteloom.store import Store, StoredWrapper

# Of a large site so many shards of some hundred pages are looked at.
_MOST_SHARDS = 20


def stored_wrappers(store: Store, names: Collection[str] = ()) -> list[StoredWrapper]:
    """The newest versions of wrappers, of all unless some are named."""
    found = store.wrappers()
    if not found:
        raise StoreError("There are no wrappers yet: run siteloom learn first.")
    if unknown := sorted(set(names) - {one.name for one in found}):
        known = ", ".join(one.name for one in found[:5])
        raise StoreError(f"There is no wrapper {unknown[0]}: there are {known}.")
    return [one for one in found if not names or one.name in names]


def loaded(stored: StoredWrapper) -> NamedWrapper:
    """A stored wrapper, ready for use."""
    return WrapperText(stored.name, stored.version, stored.text).loaded()


class PagesByWrapper(NamedTuple):
    """Pages by the wrapper that each is for; of those that none is for, how many have the URL of each."""

    pages: Mapping[str, list[Page]]
    strays: Mapping[str, int]


def pages_by_wrapper(store: Store, site: str) -> PagesByWrapper:
    """Some pages of a site as they are now, by wrapper."""
    matcher = Matcher(loaded(one) for one in store.wrappers() if one.site == site)
    found: dict[str, list[Page]] = defaultdict(list)
    strays: Counter[str] = Counter()
    for shard in evenly_spaced(store.page_shards(site), _MOST_SHARDS):
        for page in shard.read():
            chosen = matcher.match(page).chosen
            for named in chosen:
                found[named.name].append(page)
            if not chosen:
                strays.update(one.name for one in matcher.by_url(page.url) if _is_meant(one, page.url))
    return PagesByWrapper(found, strays)


def _is_meant(named: NamedWrapper, url: str) -> bool:
    """Whether a URL tells that a page was made for a wrapper: a pattern for all of a site's does not."""
    patterns = named.wrapper.footprint.url_patterns
    return any(tells_pages_apart(pattern) and matches(pattern, url) for pattern in patterns)


def newest_pages(store: Store, site: str, urls: Iterable[str]) -> Iterator[Page]:
    """The newest versions of pages, as far as they are stored."""
    return store.pages_at([PageAddress(site, url) for url in urls], skips_missing=True)
