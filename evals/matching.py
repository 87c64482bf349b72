"""Do pages find their own wrapper among those of all sites, and never another's?

From five examples a wrapper is learned for each site, with and without further
pages, and all are loaded together. Then every other page of every site looks
for its wrapper: under its own URL, and under URLs that say nothing, so that
signatures alone must tell.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import siteloom
from evals.learners import learned
from evals.learning_runs import PROCESSES, attributes_of
from evals.swde import swde_sites
from siteloom.apps.demo.sites import directory_site, guide_site
from siteloom.core.model import Example, Page
from siteloom.core.urls import site_of
from siteloom.templates.url_patterns import url_patterns
from siteloom.wrappers.matching import Matcher, NamedWrapper

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from evals.swde import SwdeSite
    from siteloom.apps.demo.sites.built_in_page import BuiltinPage
    from siteloom.wrappers.wrapper import Wrapper

_EXAMPLES = 5
_UNLABELLED = 100

# Addresses that say nothing of the site. To the matcher, the first looks as if it told templates apart,
# so that it asks for less of the signature.
_SAME_FOLDER = "http://pages.example/page/{}"
_SAME_HOST = "http://pages.example/{}"


class _SiteWrappers(NamedTuple):
    """The wrappers of a site, with the numbers of the pages that each was learned from."""

    site: str
    wrapper: Wrapper
    seen: frozenset[str]
    from_examples: Wrapper
    examples: frozenset[str]


class _Trial:
    """One way to load all wrappers, and what became of the pages of all sites."""

    def __init__(
        self,
        name: str,
        wrappers: dict[str, Wrapper],
        seen: dict[str, frozenset[str]],
        address: str | None = None,
    ) -> None:
        self.name = name
        self._seen = seen
        self._address = address
        self._matcher = Matcher(
            NamedWrapper(site, None, wrapper if address is None else _moved(wrapper, address))
            for site, wrapper in wrappers.items()
        )
        self.outcomes: Counter[str] = Counter()
        self.passed_url = self.passed_signature = 0
        self.missed: Counter[str] = Counter()

    def match(self, site: str, number: str, page: Page) -> None:
        """Let a page look for its wrapper, unless the wrapper was learned from it."""
        if number in self._seen[site]:
            return
        if self._address is not None:
            page = replace(page, url=self._address.format(number))
        found = self._matcher.match(page)
        names = {named.name for named in found.chosen}
        self.outcomes["own" if names == {site} else "other" if names else "none"] += 1
        self.passed_url += found.passed_url
        self.passed_signature += found.passed_signature
        if found.failure is not None:
            self.missed[f"{site}, {found.failure.reason}"] += 1

    @property
    def pages(self) -> int:
        """How many pages looked for a wrapper."""
        return self.outcomes.total()

    def figures(self) -> dict[str, float]:
        """The share that found their own wrapper, and the share that did not find another's."""
        return {
            f"matching_{self.name}_own": round(self.outcomes["own"] / self.pages, 4),
            f"matching_{self.name}_not_others": round(1 - self.outcomes["other"] / self.pages, 6),
        }


def figures(data: Path) -> dict[str, float]:
    sites = list(swde_sites(data))
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(_learn, sites))
    wrappers = {one.site: one.wrapper for one in found}
    seen = {one.site: one.seen for one in found}
    from_examples = {one.site: one.from_examples for one in found}
    examples = {one.site: one.examples for one in found}
    trials = [
        _Trial("k5", wrappers, seen),
        _Trial("k5_same_folder", wrappers, seen, _SAME_FOLDER),
        _Trial("k5_same_host", wrappers, seen, _SAME_HOST),
        _Trial("k5_alone", from_examples, examples),
        _Trial("k5_alone_same_folder", from_examples, examples, _SAME_FOLDER),
        _Trial("k5_alone_same_host", from_examples, examples, _SAME_HOST),
    ]
    for site in sites:
        for number in site.truth:
            page = site.page(number)
            for trial in trials:
                trial.match(site.full_name, number, page)
    _show(trials)
    return {name: share for trial in trials for name, share in trial.figures().items()} | builtin_figures()


def _learn(site: SwdeSite) -> _SiteWrappers:
    numbers = site.evenly_spaced(_EXAMPLES + _UNLABELLED)
    pages = [site.page(number) for number in numbers]
    chosen = siteloom.sample(pages, k=_EXAMPLES)
    examples = [
        Example(
            pages[place], {name: site.truth[numbers[place]].get(name, ()) for name in attributes_of(site)}
        )
        for place in chosen
    ]
    wrapper, _ = learned(examples, pages, "united")
    from_examples, _ = learned(examples, (), "united")
    return _SiteWrappers(
        site.full_name,
        wrapper,
        frozenset(numbers),
        from_examples,
        frozenset(numbers[place] for place in chosen),
    )


def _moved(wrapper: Wrapper, address: str) -> Wrapper:
    """A wrapper as if its pages had come from other addresses."""
    urls = [address.format(name) for name in ("a", "b")]
    moved = replace(wrapper.footprint, sites=(site_of(urls[0]),), url_patterns=url_patterns(urls))
    return replace(wrapper, footprint=moved)


def _show(trials: Iterable[_Trial]) -> None:
    print("Pages that looked for their wrapper among those of all sites\n")
    print(f"{'':20} {'pages':>8} {'own':>8} {'none':>6} {'other':>6} {'passed URL':>11} {'signature':>10}")
    for trial in trials:
        own, none, other = (trial.outcomes[outcome] for outcome in ("own", "none", "other"))
        print(
            f"{trial.name:20} {trial.pages:8,} {own / trial.pages:8.4f} {none:6,} {other:6,} "
            f"{trial.passed_url / trial.pages:11.3f} {trial.passed_signature / trial.pages:10.3f}"
        )
    for trial in trials:
        print(f"\n{trial.name}, most missed:")
        for where, pages in trial.missed.most_common(5):
            print(f"{pages:8,} {where}")


def builtin_figures() -> dict[str, float]:
    """The built-in sites with wrappers for their details only: lists, odd and changed pages get none."""
    guide, directory = guide_site(), directory_site()
    details = [
        [page for page in guide if page.kind == "restaurant"],
        [page for page in guide if page.kind == "event"],
        [page for page in directory if page.kind == "restaurant"],
    ]
    wrappers = [
        NamedWrapper(str(number), None, _learn_builtin(pages)) for number, pages in enumerate(details)
    ]
    matcher = Matcher(wrappers)
    own = [
        matcher.match(page.page).chosen == (named,)
        for named, pages in zip(wrappers, details, strict=True)
        for page in pages
    ]
    others = [page.page for page in (*guide, *directory) if page.kind == "list"]
    others += [page.page for page in guide_site("redesign")]
    others += [
        Page(page.page.url, html)
        for pages in details
        for page in pages
        for html in (
            b"",
            b"Not found",
            b"<html><body><h1>404</h1><p>There is no such page.</p></body></html>",
        )
    ]
    unmatched = [not matcher.match(page).chosen for page in others]
    print(f"\nBuilt-in sites: {sum(own):,} of {len(own):,} details get their wrapper,")
    print(f"{len(others) - sum(unmatched):,} of {len(others):,} lists, errors and redesigned pages get one.")
    return {
        "matching_builtin_own": sum(own) / len(own),
        "matching_builtin_unmatched": sum(unmatched) / len(others),
    }


def _learn_builtin(pages: Sequence[BuiltinPage]) -> Wrapper:
    unlabelled = [page.page for page in pages]
    chosen = siteloom.sample(unlabelled, k=_EXAMPLES)
    return siteloom.learn([Example(pages[place].page, pages[place].truth) for place in chosen], unlabelled)
