"""Turn embedded data into examples for pages that lack it; remove embedded data from a page to test this."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import ExampleError, UnreadablePage
from siteloom.core.model import Example, Failure
from siteloom.core.sequences import evenly_spaced
from siteloom.core.settings import ParseSettings
from siteloom.html.embedded_data import main_record, may_have_records, plain_address
from siteloom.html.encoding import in_utf8
from siteloom.html.parser import parse
from siteloom.html.tag_scanner import name_hash, scan_tags
from siteloom.learning.annotation.visible_values import ShownTexts
from siteloom.learning.induction.learner import learn_wrapper
from siteloom.learning.value_search.text_equality import fold
from siteloom.templates.sampling import sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from siteloom.core.model import Page
    from siteloom.html.embedded_data import EmbeddedRecord


_NAMES = frozenset(
    b"""
    itemprop itemscope itemtype itemid itemref
    property typeof vocab prefix about resource datatype inlist
    """.split()
)
_ATTRIBUTE = re.compile(
    rb"""[\s/]*+ ([^\s/>] [^\s/>=]*+) (?: \s*+ = \s*+ ( "[^"]*+" | '[^']*+' | [^\s>]*+ ) )?+""", re.VERBOSE
)
_TAG_NAME = re.compile(rb"<[^\s/>]*+")
_SAYS_PROPERTY = frozenset({b"itemprop", b"property"})
_FOR_PREVIEWS = re.compile(rb"""\bname\s*+=\s*+["']?+(?:twitter|og):""", re.IGNORECASE)
_META, _LINK = name_hash("meta"), name_hash("link")


def without_markup(page: Page) -> Page:
    """Return a page without the HTML attributes that annotate its values.

    All elements stay, so that paths do not change; elements only for machines become empty. Scripts stay,
    since nothing is extracted from them.
    """
    html = in_utf8(page.html, page.charset)
    tags = scan_tags(html)
    pieces: list[bytes] = []
    end = 0
    for start, stop, name, is_end in zip(
        tags.start.tolist(), tags.end.tolist(), tags.name, tags.is_end.tolist(), strict=True
    ):
        if is_end:
            continue
        tag = html[start:stop]
        stripped = _without_attributes(tag, is_unseen=name in (_META, _LINK))
        if stripped != tag:
            pieces += [html[end:start], stripped]
            end = stop
    if not pieces:
        return page
    return replace(page, html=b"".join([*pieces, html[end:]]), charset="utf-8")


def _without_attributes(tag: bytes, *, is_unseen: bool) -> bytes:
    name = _TAG_NAME.match(tag)
    attributes = [] if name is None else list(_ATTRIBUTE.finditer(tag, name.end(), len(tag) - 1))
    if name is None or not attributes:
        return tag
    is_marked = any(attribute[1].lower() in _SAYS_PROPERTY for attribute in attributes)
    is_for_machines = is_unseen and (is_marked or _FOR_PREVIEWS.search(tag) is not None)

    def is_kept(attribute: re.Match[bytes]) -> bool:
        match attribute[1].lower():
            case b"content":
                return not (is_marked or is_for_machines)
            case b"href":
                return not is_for_machines
            case b"rel" | b"rev":  # v:directedBy is RDFa, nofollow is not RDFa
                return b":" not in (attribute[2] or b"")
            case name:
                return name not in _NAMES

    kept_attributes = [attribute for attribute in attributes if is_kept(attribute)]
    if len(kept_attributes) == len(attributes):
        return tag
    # An attribute without white space before it must not merge with the attribute that precedes it now.
    pieces = (
        attribute[0] if attribute[0][:1].isspace() else b" " + attribute[0] for attribute in kept_attributes
    )
    return b"".join([name[0], *pieces, b">"])


MOST_EXAMPLES = 20
"""More examples hardly improve the rules, and learning time grows with their number."""

_MOST_READ = 60  # pages, or up to twice as many: RDFa takes 0.2 seconds a page
_LEAST_PAGES = 3
_MIN_SHOWN_SHARE = 0.6  # of the pages that carry an attribute; with less, pages show it in another form
_MIN_CORRECT_SHARE = 0.6  # of the held-back pages; with less, the visible text matched by chance
_TRIAL_EXAMPLES = 10


class MarkedPage(NamedTuple):
    """A page and the record of its main entity in its markup."""

    page: Page
    record: EmbeddedRecord

    @property
    def type(self) -> str:
        """The type of the main entity."""
        return self.record["_type"][0]

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """The values of the record, without its type and references to its own page."""
        own_url = plain_address(self.page.url)
        return {
            name: texts
            for name, texts in self.record.items()
            if name != "_type"
            and not name.startswith("mainEntityOfPage")
            and own_url not in map(plain_address, texts)
        }


class AttributeFinding(NamedTuple):
    """The result for an attribute of the markup.

    `carried` pages have it in their markup, and `shown` of them show it as well. Rules learned from other
    pages were tried on `checked` held-back pages, and were correct on `correct` of them.
    """

    carried: int
    shown: int
    checked: int
    correct: int
    why_left_out: str

    @property
    def is_used(self) -> bool:
        """Whether the examples have the attribute."""
        return not self.why_left_out


class SelfAnnotated(NamedTuple):
    """Examples from the markup of pages, all of one type, with the result for each attribute.

    `pages` is the number of pages with a record of this type, `other_types` the numbers with other types.
    """

    type: str
    pages: int
    examples: list[Example]
    attributes: dict[str, AttributeFinding]
    other_types: Mapping[str, int] = MappingProxyType({})


class _ShownPage(NamedTuple):
    """A page without its markup, and the visible texts of its values, or None for invisible values."""

    page: Page
    values: Mapping[str, list[str] | None]


def marked_pages(
    pages: Iterable[Page],
    on_page: Callable[[Page], object] = lambda _: None,
    limits: ParseSettings = ParseSettings(),
) -> list[MarkedPage]:
    """Return a sample of pages with records; Open Graph counts only if no page has richer markup."""
    rich, poor = _ThinnedPages(), _ThinnedPages()
    for page in pages:
        on_page(page)
        if may_have_records(page, more_than_open_graph=True):
            rich.add(page)
        elif may_have_records(page):
            poor.add(page)
    for sample_of_pages in (rich, poor):
        marked = [
            MarkedPage(page, record)
            for page in sample_of_pages.pages
            if (record := main_record(page, limits.learned)) is not None
        ]
        if marked:
            return marked
    return []


def self_annotated(
    pages: Iterable[Page],
    on_page: Callable[[Page], object] = lambda _: None,
    limits: ParseSettings = ParseSettings(),
) -> SelfAnnotated:
    """Return examples from the markup of pages, of the most frequent type."""
    marked = marked_pages(pages, on_page, limits)
    annotated = examples_of(most_frequent(marked), limits)
    count = Counter(marked_page.type for marked_page in marked if marked_page.type != annotated.type)
    return annotated._replace(other_types=dict(count.most_common()))


def most_frequent(marked: Sequence[MarkedPage]) -> list[MarkedPage]:
    """Return the pages of the most frequent type."""
    count = Counter(marked_page.type for marked_page in marked)
    return [marked_page for marked_page in marked if marked_page.type == count.most_common(1)[0][0]]


def examples_of(marked: Sequence[MarkedPage], limits: ParseSettings = ParseSettings()) -> SelfAnnotated:
    """Return examples from pages that carry records of one type.

    An attribute is used if its values differ, are visible on most pages that carry them, and if rules learned
    from some of the pages find it on others. The example pages have no markup, so that no rule can depend on
    it. Attributes missing in a record count as absent on its page.
    """
    if len(marked) < _LEAST_PAGES:
        subject = f"{len(marked) or 'No'} {'page carries' if len(marked) < 2 else 'pages carry'}"
        raise ExampleError(
            f"{subject} a record as JSON-LD, microdata, RDFa or Open Graph, and {_LEAST_PAGES} are needed: "
            "give --examples FILE instead."
        )
    carried = Counter(name for marked_page in marked for name in marked_page.values)
    shown = [
        shown_page
        for marked_page in marked
        if (shown_page := _show_values(marked_page, carried, limits)) is not None
    ]
    shown_counts = Counter(name for shown_page in shown for name, texts in shown_page.values.items() if texts)
    reasons = {
        name: _why_not_taught(
            name=name, carried_count=carried[name], shown_count=shown_counts[name], shown_pages=shown
        )
        for name in carried
    }
    names = [name for name in carried if not reasons[name]]
    trial_results = _trial(shown, names, limits)
    for name, (checked, correct) in trial_results.items():
        if correct < _MIN_CORRECT_SHARE * checked or not checked:
            reasons[name] = "rules find other values"
    findings = {
        name: AttributeFinding(
            carried[name], shown_counts[name], *trial_results.get(name, (0, 0)), reasons[name]
        )
        for name in carried
    }
    names = [name for name in carried if not reasons[name]]
    usable = [shown_page for shown_page in shown if any(shown_page.values.get(name) for name in names)]
    if not usable:
        reason_texts = "; ".join(f"{name}: {why}" for name, why in list(reasons.items())[:5])
        raise ExampleError(f"No attribute of {marked[0].type} in the markup can be learned ({reason_texts}).")
    examples = [_example(shown_page, names) for shown_page in _sample_diverse(usable, MOST_EXAMPLES)]
    return SelfAnnotated(type=marked[0].type, pages=len(marked), examples=examples, attributes=findings)


class _ThinnedPages:
    """An evenly spaced sample of a stream of pages."""

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self._step = 1
        self._count = 0

    def add(self, page: Page) -> None:
        """Add a page, which may or may not become part of the sample."""
        if self._count % self._step == 0:
            self.pages.append(page)
        self._count += 1
        if len(self.pages) > 2 * _MOST_READ:
            self.pages = self.pages[::2]
            self._step *= 2


def _show_values(marked: MarkedPage, names: Iterable[str], limits: ParseSettings) -> _ShownPage | None:
    page = without_markup(marked.page)
    root = parse(page, limits.learned)
    if isinstance(root, Failure):
        return None
    texts = ShownTexts(root)
    record_values = marked.values
    values: dict[str, list[str] | None] = {}
    for name in names:
        visible_texts = [texts.as_shown(value) for value in record_values.get(name, ())]
        values[name] = None if None in visible_texts else [text for text in visible_texts if text is not None]
    return _ShownPage(page, values)


def _why_not_taught(
    name: str, carried_count: int, shown_count: int, shown_pages: Sequence[_ShownPage]
) -> str:
    if carried_count < _LEAST_PAGES:
        return f"only {carried_count} of {len(shown_pages)} pages carry it"
    if shown_count < _LEAST_PAGES or shown_count < _MIN_SHOWN_SHARE * carried_count:
        return f"only {shown_count} of {carried_count} pages that carry it show it"
    if len({tuple(texts) for shown_page in shown_pages if (texts := shown_page.values[name])}) == 1:
        return "it is the same on all pages"
    return ""


def _trial(
    shown_pages: Sequence[_ShownPage], names: Sequence[str], limits: ParseSettings
) -> dict[str, tuple[int, int]]:
    """Return for each attribute the number of held-back pages that have it, and on which rules find it."""
    usable = [shown_page for shown_page in shown_pages if any(shown_page.values[name] for name in names)]
    teaching, held_back = usable[::2], usable[1::2]
    if not teaching:
        return dict.fromkeys(names, (0, 0))
    examples = [_example(shown_page, names) for shown_page in _sample_diverse(teaching, _TRIAL_EXAMPLES)]
    wrapper = learn_wrapper(examples, [shown_page.page for shown_page in held_back], limits=limits).wrapper
    checked, correct = Counter[str](), Counter[str]()
    for shown_page in held_back:
        try:
            extracted = wrapper.extract(shown_page.page, limits=limits).values
        except UnreadablePage:
            extracted = {}
        for name in names:
            expected = shown_page.values[name]
            if expected:
                checked[name] += 1
                correct[name] += set(map(fold, expected)) == set(map(fold, extracted.get(name, ())))
    return {name: (checked[name], correct[name]) for name in names}


def _sample_diverse(shown_pages: Sequence[_ShownPage], max_pages: int) -> list[_ShownPage]:
    """Return the pages that together cover most of the variation."""
    candidates = evenly_spaced(shown_pages, _MOST_READ)
    return [
        candidates[number]
        for number in sorted(sample([shown_page.page for shown_page in candidates], max_pages))
    ]


def _example(shown: _ShownPage, names: Sequence[str]) -> Example:
    return Example(shown.page, {name: texts for name in names if (texts := shown.values[name]) is not None})
