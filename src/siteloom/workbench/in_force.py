"""The wrapper that is in force for the pages of a cluster, before anyone teaches another."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from siteloom.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.store import Store
    from siteloom.wrapper.language import AttributeRules


def wrapper_in_force(store: Store, cluster: str, urls: Sequence[str]) -> Wrapper | None:
    """The wrapper of a cluster: that of its name, or the one that most of some pages are extracted by."""
    stored = {wrapper.name: wrapper for wrapper in store.wrappers()}
    if cluster not in stored:
        count = Counter(name for name in store.wrappers_of(urls).values() if name in stored)
        if not count:
            return None
        cluster = count.most_common(1)[0][0]
    return Wrapper.from_json(stored[cluster].text)


def rules_to_keep(
    store: Store, cluster: str, urls: Sequence[str], *, is_list: bool
) -> dict[str, AttributeRules]:
    """How attributes are found that people left as they were: those of the wrapper in force that they see.

    A wrapper of lists and one of single records have no rules in common.
    """
    wrapper = wrapper_in_force(store, cluster, urls)
    if wrapper is None or (wrapper.record_rule is not None) != is_list:
        return {}
    schema = store.cluster_schema(cluster)
    return {
        name: rules
        for name, rules in wrapper.attributes.items()
        if schema.revision == 0 or name in schema.attributes
    }
