"""Pages into clusters with every method: what is found on the built-in sites, and on odd pages."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from functools import cache

import pytest

from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.errors import UsageError
from siteloom.core.model import Cluster, Clustering, Page
from siteloom.core.urls import site_of
from siteloom.templates.clustering.methods import METHODS, Method, cluster, cluster_features, page_features
from siteloom.templates.signature import Mask, signature
from siteloom.templates.url_patterns import matches
from tests.apps.demo.sites import directory, guide

BY_KIND: tuple[Method, ...] = ("vertex", "paths", "rtdm")
TEXT: tuple[Method, ...] = ("text-mdl", "text-hash", "text-max")
FAST = {"vertex", "paths"}

every_method = pytest.mark.parametrize("method", METHODS)


def sites(method: Method) -> list[BuiltinPage]:
    """The pages of two sites; for the slow methods every fourth."""
    return [*guide(), *directory()][:: 1 if method in FAST else 4]


@cache
def clustered(method: Method) -> Clustering:
    return cluster([built.page for built in sites(method)], method)


def kind_of(built: BuiltinPage) -> tuple[str, str]:
    return site_of(built.page.url), built.kind


def kinds(found: Cluster, pages: list[BuiltinPage]) -> Counter[tuple[str, str]]:
    return Counter(kind_of(pages[page]) for page in found.members)


def made(template: str, number: int = 0, site: str = "shop") -> Page:
    return Page.from_text(f"http://{site}.example/{number}.html", template.format(number))


def shop(count: int, site: str = "shop") -> list[Page]:
    template = "<html><body><nav>Home</nav><h1>Item {0}</h1><p>Price: <b>{0}</b></p></body></html>"
    return [made(template, number, site) for number in range(count)]


def only_like_itself(name: str, elements: int, number: int = 0) -> Page:
    """A page of a template that shares nothing with others but the root."""
    body = "".join(f"<{name}{n % 50}>{name}{n % 70}</{name}{n % 50}>" for n in range(elements))
    return made("<html><body><h1>{0}</h1>" + body + "</body></html>", number)


def check(found: Clustering, count: int) -> None:
    """What is true of every clustering of so many pages."""
    pages = [page for c in found.clusters for page in c.members]
    assert sorted([*pages, *found.unclustered]) == list(range(count))
    assert list(found.unclustered) == sorted(found.unclustered)
    assert found.coverage == pytest.approx(len(pages) / max(1, count))
    assert 0 <= found.plain_coverage <= found.coverage <= 1
    order = [(c.site, -c.size) for c in found.clusters]
    assert order == sorted(order)
    numbers: Counter[str] = Counter()
    for c in found.clusters:
        numbers[c.site] += 1
        assert c.id == f"{c.site}/{numbers[c.site]}"
        assert list(c.members) == sorted(c.members)
        assert c.size == len(c.members) > 0
        assert 1 <= c.mask_pages <= c.size
        assert c.importance >= 0
        assert c.template.pages <= min(100, c.size)
        assert all(1 <= path.support <= c.template.pages for path in c.template.essential)


@every_method
def test_every_page_is_in_one_cluster_or_unclustered(method: Method) -> None:
    check(clustered(method), len(sites(method)))


@pytest.mark.parametrize("method", BY_KIND)
def test_kinds_of_pages_are_found_and_not_mixed(method: Method) -> None:
    pages = sites(method)
    found = clustered(method)
    mixed = [kinds(c, pages) for c in found.clusters]
    right = sum(counts.most_common(1)[0][1] for counts in mixed)
    assert right / sum(map(sum, (counts.values() for counts in mixed))) >= 0.98
    assert found.coverage >= 0.98
    for kind, count in Counter(map(kind_of, pages)).items():
        assert max(counts[kind] for counts in mixed) >= 0.6 * count  # a template may be in fragments


@pytest.mark.parametrize("method", TEXT)
def test_sites_are_told_apart_by_their_paths(method: Method) -> None:
    """What the kinds of one site share, its navigation above all, is shorter to describe once."""
    pages = sites(method)
    found = clustered(method)
    assert all(len({site for site, _ in kinds(c, pages)}) == 1 for c in found.clusters)
    assert {c.site for c in found.clusters} == {site for site, _ in map(kind_of, pages)}
    assert found.coverage == found.plain_coverage == 1


@every_method
def test_patterns_match_the_addresses_of_a_cluster(method: Method) -> None:
    pages = sites(method)
    for c in clustered(method).clusters:
        assert 1 <= len(c.url_patterns) <= 3
        for page in c.members:
            assert any(matches(pattern, pages[page].page.url) for pattern in c.url_patterns)


@every_method
def test_a_mask_and_the_accepted_signatures_are_those_of_the_members(method: Method) -> None:
    pages = sites(method)
    for c in clustered(method).clusters:
        signatures = [signature(pages[page].page.html) for page in c.members]
        assert c.accepted == tuple(sorted({kept.hex() for kept in signatures if kept is not None}))
        assert any(Mask.from_text(c.mask).covers(kept) for kept in signatures if kept is not None)


@every_method
def test_a_template_has_what_pages_share_and_no_record(method: Method) -> None:
    pages = sites(method)
    for c in clustered(method).clusters:
        if c.size < 20:
            continue
        navigation = "The Larkmoor Guide" if "larkmoor" in c.site else "TableAtlas"
        assert navigation in c.template.text
        assert "html/body" in c.template.paths
        assert set(c.template.text) <= {path.text for path in c.template.essential}
        records = [pages[page].truth for page in c.members]
        values = {value for truth in records for key in ("phone", "address") for value in truth.get(key, ())}
        assert not set(c.template.text) & values
        assert all(path.text is None for path in c.template.essential if path.tags.endswith("/h1"))


def test_labels_of_restaurants_are_template_text() -> None:
    largest = clustered("paths").clusters[0]
    assert {"Address:", "Cuisine:", "Phone:", "Opening hours:", "Home"} <= set(largest.template.text)
    support = {path.text: path.support for path in largest.template.essential}
    assert support["Home"] == largest.template.pages
    assert largest.template.pages / 2 < support["Phone:"] <= largest.template.pages


def test_pages_with_more_to_tell_are_more_important() -> None:
    by_site = {
        site: [c.importance / c.size for c in clustered("rtdm").clusters if c.site == site]
        for site in {c.site for c in clustered("rtdm").clusters}
    }
    assert all(0 < share < 1 for shares in by_site.values() for share in shares)
    same, different = cluster([made("<p>a</p>")] * 10), cluster(shop(10))
    assert same.clusters[0].importance == 0 < different.clusters[0].importance <= 10


@pytest.mark.parametrize("method", ["vertex", "paths", "text-mdl", "rtdm"])
def test_the_order_of_the_pages_does_not_matter(method: Method) -> None:
    pages = [built.page for built in guide()[::8]]
    shuffled = random.Random(1).sample(pages, len(pages))

    def groups(found: Clustering, of: list[Page]) -> set[frozenset[str]]:
        return {frozenset(of[page].url for page in c.members) for c in found.clusters}

    assert groups(cluster(pages, method), pages) == groups(cluster(shuffled, method), shuffled)
    assert cluster(pages, method) == cluster(pages, method)


@pytest.mark.parametrize("pages", [[], shop(2)], ids=["no pages", "two pages"])
def test_an_unknown_method_is_a_mistake(pages: list[Page]) -> None:
    with pytest.raises(UsageError, match="There is no method 'magic': use one of vertex, paths, text-mdl, "):
        cluster(pages, "magic")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'magic'"):
        page_features(shop(1)[0], "magic")  # type: ignore[arg-type]


@every_method
def test_no_pages(method: Method) -> None:
    assert cluster([], method) == Clustering((), (), 0.0, 0.0)


@every_method
def test_one_page(method: Method) -> None:
    found = cluster(shop(1), method)
    check(found, 1)
    # Vertex asks for two pages; the others make a cluster of one.
    assert len(found.clusters) == (0 if method in ("vertex", "paths") else 1)


@every_method
@pytest.mark.parametrize("count", [2, 7])
def test_pages_of_one_template(method: Method, count: int) -> None:
    found = cluster(shop(count), method)
    check(found, count)
    (only,) = found.clusters
    assert only.size == count
    assert set(only.template.text) == {"Home", "Price:"}
    assert only.id == "shop.example/1"
    assert only.url_patterns


@every_method
def test_identical_pages(method: Method) -> None:
    found = cluster([made("<html><body><p>The same</p></body></html>")] * 5, method)
    (only,) = found.clusters
    assert only.members == (0, 1, 2, 3, 4)
    assert only.template.text == ("The same",)
    assert only.importance == 0


@every_method
@pytest.mark.parametrize(
    "html", [b"", b"no tags at all", b"\xff\x00", b"<!-- c -->", b"<script>x</script>"], ids=repr
)
def test_pages_without_tags_stay_unclustered(method: Method, html: bytes) -> None:
    empty = Page("http://shop.example/empty", html)
    assert cluster([empty], method) == Clustering((), (0,), 0.0, 0.0)
    assert cluster([empty] * 3, method).unclustered == (0, 1, 2)
    found = cluster([*shop(4), empty], method)
    check(found, 5)
    assert ([c.members for c in found.clusters], found.unclustered) == ([(0, 1, 2, 3)], (4,))


@every_method
def test_templates_of_one_page_each(method: Method) -> None:
    found = cluster([only_like_itself(name, 60, number) for number, name in enumerate("abcdefg")], method)
    check(found, 7)
    if method not in TEXT:  # to TEXT the few paths that repeat are essential, and all pages have those
        assert all(c.size == 1 for c in found.clusters)


@every_method
def test_very_large_pages(method: Method) -> None:
    found = cluster([only_like_itself(name, 9_000, number) for name in "ab" for number in range(2)], method)
    check(found, 4)
    assert [c.members for c in found.clusters] == [(0, 1), (2, 3)]


@every_method
def test_pages_that_do_not_parse_do_no_harm(method: Method) -> None:
    """A signature needs no tree, so Vertex can tell that they are of one template, but not of which."""
    deep = [made("<div>" * 3_000 + "{0}", number, "deep") for number in range(2)]
    found = cluster([*shop(3), *deep], method)
    check(found, 5)
    assert [c.members for c in found.clusters if c.site == "shop.example"] == [(0, 1, 2)]
    if method == "vertex":
        assert found.clusters[0].members == (3, 4)
        assert (found.clusters[0].template.pages, found.clusters[0].importance) == (0, 0)
    else:
        assert found.unclustered == (3, 4)


@pytest.mark.parametrize("method", ["vertex", "paths"])
def test_each_site_is_clustered_by_itself(method: Method) -> None:
    found = cluster([page for pair in zip(shop(4, "b"), shop(4, "a"), strict=True) for page in pair], method)
    assert [(c.id, c.members) for c in found.clusters] == [
        ("a.example/1", (1, 3, 5, 7)),
        ("b.example/1", (0, 2, 4, 6)),
    ]


@pytest.mark.parametrize("method", ["text-mdl", "text-hash", "text-max", "rtdm"])
def test_other_methods_find_a_template_on_several_sites(method: Method) -> None:
    (only,) = cluster([*shop(5, "b"), *shop(3, "a")], method).clusters
    assert (only.id, only.size) == ("b.example/1", 8)


def test_a_site_can_be_given_a_name() -> None:
    assert page_features(shop(1)[0], "vertex").site == "shop.example"
    assert page_features(shop(1)[0], "vertex", "mine").site == "mine"


def test_coverage_is_told_before_and_after_leftovers_have_joined() -> None:
    found = clustered("vertex")
    assert 0.8 < found.plain_coverage < found.coverage < 1


def test_a_template_is_learned_from_pages_all_over_a_large_cluster() -> None:
    pages = shop(150)
    loaded: set[int] = set()

    def load(wanted: Sequence[int]) -> list[Page]:
        loaded.update(wanted)
        return [pages[page] for page in wanted]

    found = cluster_features([page_features(page, "vertex") for page in pages], "vertex", load)
    assert found.clusters[0].template.pages == len(loaded) <= 100
    assert max(loaded) >= 145
