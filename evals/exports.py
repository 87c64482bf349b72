"""Do exports give the records that siteloom extracts, on real pages?

From five examples a wrapper is learned for each site. Other pages of the site are then read by siteloom, and
by what it was exported as: XPath in JSON, XSLT in lxml, the spider and the page object, each loaded from its
file. A page counts only if all records are the same. Texts that siteloom withholds because they cannot be
read as their type are counted apart: exports do not know types.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import multiprocessing
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from lxml import etree
from scrapy.http import HtmlResponse
from web_poet import HttpResponse

import siteloom
from evals.learners import learned
from evals.learning_runs import PROCESSES, attributes_of
from evals.swde import swde_sites
from siteloom.core.errors import UsageError
from siteloom.core.model import Example, Failure
from siteloom.extraction.extractor import Extractor
from siteloom.html.encoding import decode
from siteloom.html.parser import parse
from siteloom.wrappers.exports import standalone_extractor
from siteloom.wrappers.exports.scrapy_spider import to_spider
from siteloom.wrappers.exports.web_poet_page import page_object
from siteloom.wrappers.exports.xpath_json import as_texts, to_xpath_json
from siteloom.wrappers.matching import NamedWrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evals.swde import SwdeSite
    from siteloom.core.model import Page, Record
    from siteloom.wrappers.wrapper import Wrapper

    Records = list[dict[str, list[str]]]
    Check = Callable[[Page], bool]

_EXAMPLES = 5
_UNLABELLED = 40
_PAGES = 60
_FORMATS = ("xpath-json", "xslt", "scrapy", "web-poet")


def figures(data: Path) -> dict[str, float]:
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        by_site = list(pool.map(_checked, swde_sites(data)))
    total = sum((count for _, count in by_site), Counter[str]())
    pages = total["pages"]
    print(f"Pages of {len(by_site)} sites whose records are those of siteloom\n")
    for name in _FORMATS:
        refused = total[f"{name} refused"]
        print(f"{name:12} {total[name]:6,} of {pages - refused:,} ({refused:,} of wrappers that it refuses)")
    print(f"\nOn {total['typed']:,} pages siteloom withholds a text that exports give, for its type.")
    for kind in ("pattern", "classifier", "voters", "multi", "typed attribute"):
        print(f"{total[f'has {kind}']:4} of {total['attributes']} attributes: {kind}")
    for site, count in by_site:
        for name in _FORMATS:
            if count[name] + count[f"{name} refused"] < count["pages"]:
                print(f"{site}: {name} differs on {count['pages'] - count[name]} pages")
    return {f"exports_{name.replace('-', '_')}_same": round(total[name] / pages, 4) for name in _FORMATS}


def _checked(site: SwdeSite) -> tuple[str, Counter[str]]:
    numbers = site.evenly_spaced(_EXAMPLES + _UNLABELLED)
    pages = [site.page(number) for number in numbers]
    chosen = siteloom.sample(pages, k=_EXAMPLES)
    names = attributes_of(site)
    examples = [
        Example(pages[place], {name: site.truth[numbers[place]].get(name, ()) for name in names})
        for place in chosen
    ]
    wrapper, _ = learned(examples, pages, "united")
    count = _attribute_counts(wrapper)
    spaced = site.evenly_spaced(_EXAMPLES + _UNLABELLED + _PAGES)
    others = [number for number in spaced if number not in numbers]
    texts = as_texts(wrapper)
    with tempfile.TemporaryDirectory(prefix="exports-") as folder:
        checks: dict[str, Check | None] = {
            "xpath-json": _xpath_json(wrapper, texts),
            "xslt": _xslt(wrapper, texts),
            "scrapy": _scrapy(wrapper, texts, Path(folder)),
            "web-poet": _web_poet(wrapper, texts, Path(folder)),
        }
        for number in others[:_PAGES]:
            page = site.page(number)
            count["pages"] += 1
            count["typed"] += _values(wrapper.extract_all(page)) != _values(texts.extract_all(page))
            for name, check in checks.items():
                count[name if check is None or check(page) else f"{name} differs"] += check is not None
                count[f"{name} refused"] += check is None
    return site.full_name, count


def _attribute_counts(wrapper: Wrapper) -> Counter[str]:
    count: Counter[str] = Counter()
    for found in wrapper.attributes.values():
        rules = (*found.rules, *found.voters)
        count["attributes"] += 1
        count["has pattern"] += any(rule.part.pattern for rule in rules)
        count["has classifier"] += any(rule.scorer for rule in rules)
        count["has voters"] += found.do_voters_step_in
        count["has multi"] += bool(found.attribute.multi)
        count["has typed attribute"] += found.attribute.type not in (None, "text")
    return count


def _values(records: Sequence[Record]) -> Records:
    return [{name: list(texts) for name, texts in record.values.items()} for record in records]


def _xpath_json(wrapper: Wrapper, texts: Wrapper) -> Check:
    document = json.loads(to_xpath_json(wrapper))
    return lambda page: (
        standalone_extractor.records(document, decode(page.html, page.charset))
        == _values(texts.extract_all(page))
    )


def _xslt(wrapper: Wrapper, texts: Wrapper) -> Check | None:
    try:
        stylesheet = etree.XSLT(etree.XML(wrapper.to_xslt()), access_control=etree.XSLTAccessControl.DENY_ALL)
    except UsageError:
        return None

    def is_same(page: Page) -> bool:
        root = parse(page)
        if isinstance(root, Failure):
            return True
        found: Records = []
        for record in stylesheet(root).getroot().iter("record"):
            found.append({})
            for value in record.iter("value"):
                found[-1].setdefault(str(value.get("attribute")), []).append(value.text or "")
        return found == _values(texts.extract_all(page))

    return is_same


def _scrapy(wrapper: Wrapper, texts: Wrapper, folder: Path) -> Check:
    """The items of the spider, and those of `siteloom extract`, which leaves out pages unlike those known."""
    module = _loaded(folder / "spider.py", to_spider(wrapper, "site"))
    spider = module.SiteSpider(urls_file="/dev/null")
    extractor = Extractor([NamedWrapper("site", None, texts)])
    document = json.loads(to_xpath_json(wrapper))

    def is_same(page: Page) -> bool:
        extracted = extractor.extract(page)
        expected = [] if extracted.failure else _values(extracted.records)
        body = decode(page.html, page.charset).encode("utf-8", "replace")
        items = list(spider.parse(HtmlResponse(page.url, body=body, encoding="utf-8")))
        return items == [
            {"url": page.url, **standalone_extractor.item(document, record)} for record in expected
        ]

    return is_same


def _web_poet(wrapper: Wrapper, texts: Wrapper, folder: Path) -> Check:
    made = page_object(wrapper, "site")
    page_class = getattr(_loaded(folder / f"{made.module}.py", made.source), made.page_class)
    document = json.loads(to_xpath_json(wrapper))

    def is_same(page: Page) -> bool:
        body = decode(page.html, page.charset).encode("utf-8", "replace")
        item = asyncio.run(page_class(HttpResponse(page.url, body, encoding="utf-8")).to_item())
        (record,) = _values(texts.extract_all(page))
        return standalone_extractor.item(document, record) == attrs.asdict(item)

    return is_same


def _loaded(file: Path, source: str) -> Any:
    """A module of a file that is written first."""
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
