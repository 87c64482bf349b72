"""Which wrappers may be right for a new cluster, in the order in which to try them."""

from __future__ import annotations

from siteloom import Wrapper
from siteloom.core.model import Cluster, Footprint, Template
from siteloom.maintenance.old_wrapper_fit import reuse_candidates
from siteloom.templates.clustering.methods import cluster
from siteloom.wrappers.matching import NamedWrapper
from tests.maintenance.guide import pages, wrapper

A, B, C = ("0101010101010101", "0101010101010102", "0202020202020202")
MASK = "01010101010101**"
CLUSTER = Cluster("c", "a.example", (0, 1), MASK, 2, (A, B), 1.0, (), Template((), 2))


def named(name: str, *masks: tuple[str, int], accepted: tuple[str, ...] = ()) -> NamedWrapper:
    return NamedWrapper(name, 1, Wrapper({}, footprint=Footprint(masks=masks, accepted=accepted)))


def names(*wrappers: NamedWrapper) -> list[str]:
    return [found.name for found in reuse_candidates(CLUSTER, wrappers)]


def test_the_very_mask_comes_before_one_that_covers_all_pages() -> None:
    assert names(named("loose", ("010101010101****", 900)), named("strict", (MASK, 1))) == ["strict", "loose"]


def test_among_equals_the_one_whose_mask_has_most_pages_comes_first() -> None:
    few, many = named("few", (MASK, 3)), named("many", (MASK, 30), (A, 1))
    assert names(few, many) == names(many, few) == ["many", "few"]
    loose, looser = named("loose", ("010101010101****", 3)), named("looser", ("0101010101****02", 5), (A, 1))
    assert names(loose, looser) == ["looser", "loose"]


def test_wrappers_that_are_all_the_same_keep_their_order() -> None:
    assert names(*(named(name, (MASK, 3)) for name in "bca")) == ["b", "c", "a"]


def test_accepted_signatures_cover_pages_too() -> None:
    assert names(named("all", accepted=(B, A)), named("both", (A, 1), accepted=(B,))) == ["both", "all"]


def test_a_wrapper_that_covers_only_some_pages_is_no_candidate() -> None:
    assert (
        names(named("some", (A, 100)), named("other", (C, 100)), named("none"), named("one", accepted=(A,)))
        == []
    )
    assert reuse_candidates(CLUSTER, []) == []


def test_the_wrapper_of_the_guide_is_one_for_its_own_pages_and_not_for_others() -> None:
    guide = NamedWrapper("guide", 1, wrapper())
    (own, *_) = sorted(cluster(pages(), method="vertex").clusters, key=lambda one: -len(one.members))
    assert reuse_candidates(own, [guide]) == [guide]
    for other in cluster(pages("redesign"), method="vertex").clusters:
        assert reuse_candidates(other, [guide]) == []
