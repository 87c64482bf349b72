"""The wrappers of a workspace and their pages, as upkeep needs them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from siteloom.errors import StoreError
from siteloom.extraction import WrapperText
from siteloom.matching import Matcher
from siteloom.spacing import evenly_spaced
from siteloom.store import PageAddress

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

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


def pages_by_wrapper(store: Store, site: str) -> dict[str, list[Page]]:
    """Some pages of a site as they are now, by the wrapper that each is for."""
    matcher = Matcher(loaded(one) for one in store.wrappers() if one.site == site)
    found: dict[str, list[Page]] = defaultdict(list)
    for shard in evenly_spaced(store.page_shards(site), _MOST_SHARDS):
        for page in shard.read():
            for named in matcher.match(page).chosen:
                found[named.name].append(page)
    return found


def newest_pages(store: Store, site: str, urls: Iterable[str]) -> Iterator[Page]:
    """The newest versions of pages, as far as they are stored."""
    return store.pages_at([PageAddress(site, url) for url in urls], skips_missing=True)
