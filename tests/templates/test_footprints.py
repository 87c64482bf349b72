"""A footprint knows all the pages that it was made of, and does not depend on their order."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from siteloom.apps.demo.sites import guide_site
from siteloom.core.model import Cluster, Footprint, Template
from siteloom.templates.clustering.methods import cluster, cluster_footprints
from siteloom.templates.footprint import cluster_footprint, footprint, merge_footprints
from siteloom.templates.signature import Mask
from siteloom.templates.url_patterns import matches

few_bytes = st.lists(st.sampled_from([0, 1, 2]), min_size=8, max_size=8).map(bytes)
urls = st.builds(
    "http://{}.example/{}/{}".format, st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 9)
)
pages = st.lists(st.tuples(urls, st.none() | few_bytes), max_size=30)


@given(pages, st.randoms())
def test_a_footprint_knows_its_pages_in_any_order(
    known: list[tuple[str, bytes | None]], shuffling: random.Random
) -> None:
    found = footprint(known)
    for url, signature in known:
        assert any(matches(pattern, url) for pattern in found.url_patterns)
        assert signature is None or signature.hex() in found.accepted
    assert len(found.accepted) == len({signature for _, signature in known if signature is not None})
    assert set(found.sites) == {url.split("/")[2] for url, _ in known}
    assert bool(found.masks) == bool(found.accepted)
    assert [count for _, count in found.masks] == sorted((count for _, count in found.masks), reverse=True)
    assert footprint(shuffling.sample(known, len(known))) == found


def test_no_pages_have_no_footprint() -> None:
    assert footprint([]) == Footprint()


def test_the_masks_are_those_of_the_clusters() -> None:
    alike = [bytes([1, 2, 3, 4, 5, 6, 7, number % 3]) for number in range(6)]
    found = footprint([(f"http://a.example/{n}", signature) for n, signature in enumerate(alike)])
    assert found.masks == (("01020304050607**", 6),)
    assert len(found.accepted) == 3


def test_signatures_that_are_all_different_have_the_most_frequent_for_a_mask() -> None:
    different = [bytes([number] * 8) for number in (3, 1, 2)]
    found = footprint([(f"http://a.example/{n}", signature) for n, signature in enumerate(different)])
    assert found.masks == ((str(Mask(bytes([1] * 8))), 1),)
    assert found.accepted == ("01" * 8, "02" * 8, "03" * 8)


def test_leftovers_are_accepted() -> None:
    signatures = [bytes([1] * 8)] * 5 + [bytes([9] * 8)]
    found = footprint([(f"http://a.example/{n}", signature) for n, signature in enumerate(signatures)])
    assert found.masks == (("01" * 8, 5),)
    assert "09" * 8 in found.accepted


def test_the_footprint_of_a_cluster_is_what_is_known_of_it() -> None:
    template = Template((), 0)
    cluster = Cluster("mine/1", "mine", (0, 2), "01" * 8, 2, ("01" * 8,), 1.0, ("^x$",), template)
    assert cluster_footprint(cluster, ["http://www.b.example/1", "http://a.example/2"]) == Footprint(
        ("a.example", "b.example"), ("^x$",), (("01" * 8, 2),), ("01" * 8,)
    )


def test_the_footprints_of_clusters_are_those_of_clustering() -> None:
    pages = [page.page for page in guide_site()]
    found = cluster_footprints(pages)
    expected = [
        cluster_footprint(one, [pages[n].url for n in one.members]) for one in cluster(pages).clusters
    ]
    assert len(found) > 1
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_united_footprints_know_the_pages_of_all() -> None:
    one = Footprint(("b.example",), ("^y$", "^x$"), (("01" * 8, 2), ("02" * 8, 1)), ("01" * 8, "02" * 8))
    other = Footprint(("a.example",), ("^x$",), (("02" * 8, 3),), ("02" * 8, "00" * 8))
    assert merge_footprints([one, other]) == merge_footprints([other, one])
    assert merge_footprints([one, other]) == Footprint(
        ("a.example", "b.example"),
        ("^x$", "^y$"),
        (("02" * 8, 4), ("01" * 8, 2)),
        ("00" * 8, "01" * 8, "02" * 8),
    )
    assert merge_footprints([]) == Footprint()
