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
from siteloom.learning.annotation.visible_values import SeenTexts
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
    """A page less the HTML attributes that say what its values are.

    No element goes, so that all stand where they stood; those that are only there for machines are empty.
    Scripts stay, for nothing is read from them anyway.
    """
    html = in_utf8(page.html, page.charset)
    tags = scan_tags(html)
    parts: list[bytes] = []
    end = 0
    for start, stop, name, is_end in zip(
        tags.start.tolist(), tags.end.tolist(), tags.name, tags.is_end.tolist(), strict=True
    ):
        if is_end:
            continue
        tag = html[start:stop]
        stripped = _without_attributes(tag, is_unseen=name in (_META, _LINK))
        if stripped != tag:
            parts += [html[end:start], stripped]
            end = stop
    if not parts:
        return page
    return replace(page, html=b"".join([*parts, html[end:]]), charset="utf-8")


def _without_attributes(tag: bytes, *, is_unseen: bool) -> bytes:
    name = _TAG_NAME.match(tag)
    attributes = [] if name is None else list(_ATTRIBUTE.finditer(tag, name.end(), len(tag) - 1))
    if name is None or not attributes:
        return tag
    is_marked = any(found[1].lower() in _SAYS_PROPERTY for found in attributes)
    is_for_machines = is_unseen and (is_marked or _FOR_PREVIEWS.search(tag) is not None)

    def is_kept(found: re.Match[bytes]) -> bool:
        match found[1].lower():
            case b"content":
                return not (is_marked or is_for_machines)
            case b"href":
                return not is_for_machines
            case b"rel" | b"rev":  # v:directedBy is RDFa, nofollow is not
                return b":" not in (found[2] or b"")
            case other:
                return other not in _NAMES

    kept = [found for found in attributes if is_kept(found)]
    if len(kept) == len(attributes):
        return tag
    # One that stood right behind another's quotes must not grow together with what is before it now.
    parts = (found[0] if found[0][:1].isspace() else b" " + found[0] for found in kept)
    return b"".join([name[0], *parts, b">"])


MOST_EXAMPLES = 20
"""More hardly make better rules, and learning takes as long as there are many."""

_MOST_READ = 60  # pages, or up to twice as many: RDFa takes 0.2 seconds a page
_LEAST_PAGES = 3
_LEAST_SEEN = 0.6  # of the pages that carry an attribute; below, it is told in other words than it is shown
_LEAST_RIGHT = 0.6  # of the pages that were held back; below, what was seen was there by chance
_TRIAL_EXAMPLES = 10


class MarkedPage(NamedTuple):
    """A page and the record that it carries of what it is about."""

    page: Page
    record: EmbeddedRecord

    @property
    def type(self) -> str:
        """What kind of thing it is."""
        return self.record["_type"][0]

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """What its record says, but for its type and that its page is this one."""
        here = plain_address(self.page.url)
        return {
            name: texts
            for name, texts in self.record.items()
            if name != "_type"
            and not name.startswith("mainEntityOfPage")
            and here not in map(plain_address, texts)
        }


class AttributeFinding(NamedTuple):
    """What came of an attribute of the markup.

    `carried` pages have it in their markup, `seen` of them show it as well. On `checked` of these, which
    were held back, rules that were learned from others were tried, and were right on `right` of them.
    """

    carried: int
    seen: int
    checked: int
    right: int
    why_left_out: str

    @property
    def is_used(self) -> bool:
        """Whether the examples have it."""
        return not self.why_left_out


class SelfAnnotated(NamedTuple):
    """Examples that pages give by themselves: all of one type, with what came of each attribute.

    `pages` is how many carry a record of this type, `other_types` how many carry one of another.
    """

    type: str
    pages: int
    examples: list[Example]
    attributes: dict[str, AttributeFinding]
    other_types: Mapping[str, int] = MappingProxyType({})


class _Shown(NamedTuple):
    """A page without its markup, and what it carried: as it is seen, or None where it is not."""

    page: Page
    values: Mapping[str, list[str] | None]


def marked_pages(
    pages: Iterable[Page],
    on_page: Callable[[Page], object] = lambda _: None,
    limits: ParseSettings = ParseSettings(),
) -> list[MarkedPage]:
    """Pages with their records; of many, some from all over. Open Graph counts only if there is no more."""
    rich, poor = _Thinned(), _Thinned()
    for page in pages:
        on_page(page)
        if may_have_records(page, more_than_open_graph=True):
            rich.add(page)
        elif may_have_records(page):
            poor.add(page)
    for some in (rich, poor):
        marked = [
            MarkedPage(page, record)
            for page in some.pages
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
    """Examples from the markup of pages, of the type that most of them carry."""
    marked = marked_pages(pages, on_page, limits)
    found = examples_of(most_frequent(marked), limits)
    count = Counter(one.type for one in marked if one.type != found.type)
    return found._replace(other_types=dict(count.most_common()))


def most_frequent(marked: Sequence[MarkedPage]) -> list[MarkedPage]:
    """The pages of the type that most have."""
    count = Counter(one.type for one in marked)
    return [one for one in marked if one.type == count.most_common(1)[0][0]]


def examples_of(marked: Sequence[MarkedPage], limits: ParseSettings = ParseSettings()) -> SelfAnnotated:
    """Examples from pages that carry records of one type.

    An attribute counts if its values differ and are seen on most pages that carry them, and if rules that are
    learned from some of the pages find it on others. The pages of the examples are without their markup,
    so that no rule can lean on it. What a record does not have its page is taken not to have.
    """
    if len(marked) < _LEAST_PAGES:
        who = f"{len(marked) or 'No'} {'page carries' if len(marked) < 2 else 'pages carry'}"
        raise ExampleError(
            f"{who} a record as JSON-LD, microdata, RDFa or Open Graph, and {_LEAST_PAGES} are needed: "
            "give --examples FILE instead."
        )
    carried = Counter(name for one in marked for name in one.values)
    shown = [found for one in marked if (found := _shown(one, carried, limits)) is not None]
    seen = Counter(name for one in shown for name, texts in one.values.items() if texts)
    reasons = {name: _why_not_taught(name, carried[name], seen[name], shown) for name in carried}
    names = [name for name in carried if not reasons[name]]
    tried = _trial(shown, names, limits)
    for name, (checked, right) in tried.items():
        if right < _LEAST_RIGHT * checked or not checked:
            reasons[name] = "what rules find is something else"
    findings = {
        name: AttributeFinding(carried[name], seen[name], *tried.get(name, (0, 0)), reasons[name])
        for name in carried
    }
    names = [name for name in carried if not reasons[name]]
    usable = [one for one in shown if any(one.values.get(name) for name in names)]
    if not usable:
        told = "; ".join(f"{name}: {why}" for name, why in list(reasons.items())[:5])
        raise ExampleError(f"Nothing of what pages carry as {marked[0].type} can be learned ({told}).")
    examples = [_example(one, names) for one in _sampled(usable, MOST_EXAMPLES)]
    return SelfAnnotated(marked[0].type, len(marked), examples, findings)


class _Thinned:
    """Some of many pages, from all over, while they come one by one."""

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self._step = 1
        self._count = 0

    def add(self, page: Page) -> None:
        """Keep a page, or not."""
        if self._count % self._step == 0:
            self.pages.append(page)
        self._count += 1
        if len(self.pages) > 2 * _MOST_READ:
            self.pages = self.pages[::2]
            self._step *= 2


def _shown(marked: MarkedPage, names: Iterable[str], limits: ParseSettings) -> _Shown | None:
    page = without_markup(marked.page)
    root = parse(page, limits.learned)
    if isinstance(root, Failure):
        return None
    texts = SeenTexts(root)
    told = marked.values
    values: dict[str, list[str] | None] = {}
    for name in names:
        found = [texts.as_seen(value) for value in told.get(name, ())]
        values[name] = None if None in found else [text for text in found if text is not None]
    return _Shown(page, values)


def _why_not_taught(name: str, carried: int, seen: int, shown: Sequence[_Shown]) -> str:
    if carried < _LEAST_PAGES:
        return f"only {carried} of {len(shown)} pages carry it"
    if seen < _LEAST_PAGES or seen < _LEAST_SEEN * carried:
        return f"only {seen} of {carried} pages that carry it show it"
    if len({tuple(texts) for one in shown if (texts := one.values[name])}) == 1:
        return "it is the same on all pages"
    return ""


def _trial(
    shown: Sequence[_Shown], names: Sequence[str], limits: ParseSettings
) -> dict[str, tuple[int, int]]:
    """On how many of the pages that are held back each attribute is known, and on how many it is found."""
    usable = [one for one in shown if any(one.values[name] for name in names)]
    teaching, held_back = usable[::2], usable[1::2]
    if not teaching:
        return dict.fromkeys(names, (0, 0))
    examples = [_example(one, names) for one in _sampled(teaching, _TRIAL_EXAMPLES)]
    wrapper = learn_wrapper(examples, [one.page for one in held_back], limits=limits).wrapper
    checked, right = Counter[str](), Counter[str]()
    for one in held_back:
        try:
            found = wrapper.extract(one.page, limits=limits).values
        except UnreadablePage:
            found = {}
        for name in names:
            known = one.values[name]
            if known:
                checked[name] += 1
                right[name] += set(map(fold, known)) == set(map(fold, found.get(name, ())))
    return {name: (checked[name], right[name]) for name in names}


def _sampled(shown: Sequence[_Shown], most: int) -> list[_Shown]:
    """The pages that together show most of what differs."""
    some = evenly_spaced(shown, _MOST_READ)
    return [some[number] for number in sorted(sample([one.page for one in some], most))]


def _example(shown: _Shown, names: Sequence[str]) -> Example:
    return Example(shown.page, {name: texts for name in names if (texts := shown.values[name]) is not None})
