"""Learn a wrapper from pages whose records are known, and try it on held-back pages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.core.errors import ExampleError, UnreadablePage
from siteloom.core.model import Example
from siteloom.core.sequences import evenly_spaced
from siteloom.core.settings import ParseSettings
from siteloom.html.page_text_arrays import TEXT
from siteloom.learning.induction.learner import check_example, learn_wrapper
from siteloom.learning.known_records.attribute_slots import kappa, shuffled
from siteloom.learning.known_records.bootstrap_result import AttributeEvidence, Disagreement, SeedMatch
from siteloom.learning.known_records.record_arrays import text_forms
from siteloom.learning.known_records.record_page_alignment import matched_rows
from siteloom.templates.sampling import sample

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from siteloom.core.model import Page
    from siteloom.html.page_text_arrays import PageTexts
    from siteloom.learning.induction.learning_session import Schema
    from siteloom.learning.known_records.aligned_pages import KnownPages
    from siteloom.learning.known_records.attribute_slots import Slot
    from siteloom.learning.known_records.bootstrap_result import Verdict
    from siteloom.learning.known_records.record_page_alignment import Pairs
    from siteloom.wrappers.wrapper import Wrapper

    ShownTexts = Mapping[int, Mapping[str, str]]  # texts with their nodes, by page

_DIVERSE_EXAMPLES = 12
_LEAST_EXAMPLES = 6  # of each position
_SAMPLED = 60  # pages of a position from which diverse ones are sampled
_MORE_EXAMPLES = 6  # per round, of pages that the wrapper got wrong
_ROUNDS = 3
_TRIED = 200  # pages suffice to measure the correct share to a few percent
_HELD_BACK = 0.25  # of the pages that show known records
_LEAST_HELD_BACK = 4
_FAITHFUL_ENOUGH = 0.98  # to stop searching for a better wrapper
_LEAST_FAITHFUL = 0.9
_ENOUGH_PAIRS = 8  # to compare their agreement with that of the position
_LEAST_KEPT_KAPPA = 0.5  # of the position's kappa, on held-back pages
_UNLABELLED = 200
_LEAST_KNOWN = 0.5  # share of known values from which neighbouring texts count as values
_SUGGESTIONS = 5


class TrialResult(NamedTuple):
    """A wrapper with the evidence for each attribute."""

    wrapper: Wrapper | None
    attributes: Mapping[str, AttributeEvidence]
    evidence: tuple[SeedMatch, ...]
    suggestions: tuple[Example, ...]
    urls: tuple[str, ...]
    disagreements: tuple[Disagreement, ...]


class _Trial(NamedTuple):
    """A wrapper and the values that it finds on some pages."""

    wrapper: Wrapper
    values_by_page: Mapping[int, Mapping[str, tuple[str, ...]]]

    def fidelity(self, name: str, shown: ShownTexts) -> float | None:
        """Return the share of pages known to show a value on which the wrapper finds it, if there are any."""
        pages = [page for page in self.values_by_page if page in shown]
        return sum(self.is_correct(name, page, shown) for page in pages) / len(pages) if pages else None

    def is_correct(self, name: str, page: int, shown: ShownTexts) -> bool:
        """Return whether the wrapper finds on a page a text that it is known to show."""
        values = self.values_by_page[page].get(name, ())
        return bool(values) and values[0] in shown[page]


def learn_and_try(
    known_pages: KnownPages, pages: Sequence[Page], schema: Schema, limits: ParseSettings = ParseSettings()
) -> TrialResult:
    """Learn from some pages that show known records, and try the wrapper on others."""
    believed = {name: slots for name, slots in known_pages.slots.items() if slots and slots[0].is_believed}
    shown = {name: _shown_texts(known_pages, name) for name in believed}
    template = _template_pages(known_pages, believed)
    held_back = _held_back(known_pages)
    learned_wrapper = _best_wrapper(
        shown=_exclude_pages(shown, held_back), pages=pages, template=template, schema=schema, limits=limits
    )
    trial = (
        None
        if learned_wrapper is None
        else _run_trial(wrapper=learned_wrapper, pages=pages, tried=sorted(held_back), limits=limits)
    )
    attributes = {
        name: _attribute_evidence(name=name, known_pages=known_pages, trial=trial, shown=shown.get(name, {}))
        for name in known_pages.slots
    }
    for name, original in known_pages.copies.items():
        attributes[name] = AttributeEvidence(
            verdict="refused",
            pairs=0,
            agreement=0.0,
            shuffled=0.0,
            filled=0.0,
            reason=f"the seeds have the same values as for {original}",
        )
    accepted = {name for name, evidence in attributes.items() if evidence.verdict == "accepted"}
    wrapper = None
    if trial is not None and accepted:
        rules = {name: rules for name, rules in trial.wrapper.attributes.items() if name in accepted}
        wrapper = replace(trial.wrapper, attributes=rules)
    return TrialResult(
        wrapper=wrapper,
        attributes=attributes,
        evidence=tuple(_seed_matches(known_pages, pages)),
        suggestions=tuple(_suggestions(known_pages, pages, attributes)),
        urls=tuple(pages[page].url for page in template),
        disagreements=() if trial is None else tuple(_disagreements(known_pages, pages, trial)),
    )


def _shown_texts(known_pages: KnownPages, name: str) -> dict[int, dict[str, str]]:
    """Return the texts at the positions of an attribute, on the pages where these agree with the record."""
    texts = known_pages.texts
    shown: dict[int, dict[str, str]] = {}
    for slot in known_pages.slots[name]:
        agreeing = np.isin(texts.page, slot.agreeing_pages)
        rows = known_pages.positions.rows_at(slot.position)
        for row in _with_sibling_values(known_pages, name, rows[agreeing[rows]].tolist()):
            of_page = shown.setdefault(int(texts.page[row]), {})
            of_page.setdefault(texts.texts[texts.text[row]], texts.path_text(int(texts.path[row])))
    return shown


def _with_sibling_values(known_pages: KnownPages, name: str, rows: Sequence[int]) -> list[int]:
    """Add the neighbouring rows that are values as well, if the attribute may have several.

    Similar texts right before or after a value count as values if most of them are known values. Otherwise
    the known ones may be matches by chance.
    """
    if not known_pages.attribute(name).is_multi:
        return list(rows)
    texts = known_pages.texts
    rows_before = {row: list(_similar_neighbours(texts, row, range(row - 1, -1, -1)))[::-1] for row in rows}
    rows_behind = {
        row: list(_similar_neighbours(texts, row, range(row + 1, len(texts.page)))) for row in rows
    }
    all_neighbours = [
        neighbour for neighbours in (*rows_before.values(), *rows_behind.values()) for neighbour in neighbours
    ]
    if (
        not all_neighbours
        or np.mean(np.isin(texts.text[all_neighbours], known_pages.matches[name].text)) < _LEAST_KNOWN
    ):
        return list(rows)
    return [value_row for row in rows for value_row in (*rows_before[row], row, *rows_behind[row])]


def _similar_neighbours(texts: PageTexts, row: int, candidates: Iterable[int]) -> Iterator[int]:
    """Yield consecutive rows that continue with the styled path of a row, skipping separators."""
    for candidate in candidates:
        if texts.page[candidate] != texts.page[row]:
            return
        if texts.form[candidate] != TEXT or not any(map(str.isalnum, texts.texts[texts.text[candidate]])):
            continue
        if texts.styled_path[candidate] != texts.styled_path[row]:
            return
        yield candidate


def _template_pages(known_pages: KnownPages, believed: Mapping[str, Sequence[Slot]]) -> list[int]:
    """Return the pages that have at least half of the attributes' positions."""
    counts = np.zeros(known_pages.texts.pages, np.int64)
    for slots in believed.values():
        rows = np.concatenate([known_pages.positions.rows_at(slot.position) for slot in slots])
        counts[np.unique(known_pages.texts.page[rows])] += 1
    template_pages: list[int] = np.flatnonzero(2 * counts >= max(1, len(believed))).tolist()
    return template_pages


def _held_back(known_pages: KnownPages) -> set[int]:
    """Return pages with known records that are held back from learning, to try wrappers on them."""
    pages = known_pages.pages.tolist()
    return set(evenly_spaced(pages, min(_TRIED, max(_LEAST_HELD_BACK, int(_HELD_BACK * len(pages))))))


def _exclude_pages(shown: Mapping[str, ShownTexts], pages: set[int]) -> dict[str, ShownTexts]:
    remaining = {
        name: {page: texts for page, texts in texts_by_page.items() if page not in pages}
        for name, texts_by_page in shown.items()
    }
    return {name: texts_by_page for name, texts_by_page in remaining.items() if texts_by_page}


def _best_wrapper(
    shown: Mapping[str, ShownTexts],
    pages: Sequence[Page],
    template: Sequence[int],
    schema: Schema,
    limits: ParseSettings,
) -> Wrapper | None:
    """Learn, then learn again with some of the pages with wrong results, as long as that helps.

    Values are tied to their nodes, since the same text elsewhere may mean something else: the page of a book
    may also mention another author. But a page may repeat a value in similar nodes that no rule can
    distinguish. So attributes with poor results are also learned from texts alone.
    """
    usable = {name: schema[name] for name in shown if name in schema} if schema else None
    unlabelled = [pages[page] for page in evenly_spaced(template, _UNLABELLED)]
    trial_pages = evenly_spaced(
        sorted({page for texts_by_page in shown.values() for page in texts_by_page}), _TRIED
    )

    def learned(chosen: Iterable[int], tied: Collection[str]) -> _Trial | None:
        candidates = (
            _example(page=page, shown=shown, pages=pages, tied=tied, limits=limits) for page in chosen
        )
        examples = [example for example in candidates if example is not None]
        if not examples:
            return None
        wrapper = learn_wrapper(examples, unlabelled, usable, limits=limits).wrapper
        return _run_trial(wrapper=wrapper, pages=pages, tried=trial_pages, limits=limits)

    chosen = _first_examples(shown, pages)
    tied = set(shown)
    best: _Trial | None = None
    for _ in range(_ROUNDS):
        trial = learned(chosen, tied)
        shares = _fidelities(trial, shown)
        if poor := {name for name in tied if shares[name] < _LEAST_FAITHFUL}:
            untied = learned(chosen, tied - poor)
            if sum(_fidelities(untied, shown).values()) > sum(shares.values()):
                trial, shares = untied, _fidelities(untied, shown)
                tied -= poor
        if trial is None:
            break
        if best is None or sum(shares.values()) > sum(_fidelities(best, shown).values()):
            best = trial
        wrong = [
            page
            for page in trial.values_by_page
            if page not in chosen
            and any(
                page in texts and not trial.is_correct(name, page, texts) for name, texts in shown.items()
            )
        ]
        if not wrong or min(shares.values()) >= _FAITHFUL_ENOUGH:
            break
        chosen = [*chosen, *evenly_spaced(wrong, _MORE_EXAMPLES)]
    return None if best is None else best.wrapper


def _fidelities(trial: _Trial | None, shown: Mapping[str, ShownTexts]) -> dict[str, float]:
    """Return the fidelity of a wrapper for each attribute; 0 without a wrapper."""
    return {
        name: 0.0 if trial is None else trial.fidelity(name, texts) or 0.0 for name, texts in shown.items()
    }


def _first_examples(shown: Mapping[str, ShownTexts], pages: Sequence[Page]) -> list[int]:
    """Choose diverse pages, with some for each attribute."""
    sampled_pages = sorted(
        {page for texts in shown.values() for page in evenly_spaced(sorted(texts), _SAMPLED)}
    )
    chosen = [
        sampled_pages[number] for number in sample([pages[page] for page in sampled_pages], _DIVERSE_EXAMPLES)
    ]
    for texts in shown.values():
        candidates = [page for page in sorted(texts) if page not in chosen]
        lacking = _LEAST_EXAMPLES - sum(page in texts for page in chosen)
        if lacking > 0:
            chosen += evenly_spaced(candidates, lacking)
    return chosen


def _example(
    page: int,
    shown: Mapping[str, ShownTexts],
    pages: Sequence[Page],
    tied: Collection[str],
    limits: ParseSettings,
) -> Example | None:
    """Return the example of a page if the learner finds its values, in their nodes if tied."""
    texts_by_name = {name: texts[page] for name, texts in shown.items() if page in texts}
    example = Example(
        pages[page],
        values={name: list(texts) for name, texts in texts_by_name.items()},
        nodes={name: list(texts.values()) for name, texts in texts_by_name.items() if name in tied},
    )
    try:
        check_example(example, limits)
    except ExampleError:
        return None
    return example


def _run_trial(
    wrapper: Wrapper, pages: Sequence[Page], tried: Sequence[int], limits: ParseSettings
) -> _Trial:
    def values(page: Page) -> Mapping[str, tuple[str, ...]]:
        try:
            return wrapper.extract(page, limits=limits).values
        except UnreadablePage:  # extraction takes too long or returns too much
            return {}

    return _Trial(wrapper, {page: values(pages[page]) for page in tried})


def _attribute_evidence(
    name: str, known_pages: KnownPages, trial: _Trial | None, shown: ShownTexts
) -> AttributeEvidence:
    """Return the evidence for an attribute, and the verdict on it."""
    slots = known_pages.slots[name]
    if not slots:
        return AttributeEvidence(
            verdict="refused",
            pairs=0,
            agreement=0.0,
            shuffled=0.0,
            filled=0.0,
            reason="at no position more often than by chance",
        )
    slot = slots[0]
    if trial is None or name not in trial.wrapper.attributes or not shown:
        return AttributeEvidence(
            verdict="suggested",
            pairs=slot.pages,
            agreement=slot.agreeing / slot.pages,
            shuffled=slot.by_chance / slot.pages,
            filled=0.0,
            reason=f"its best position agrees with the seeds on {slot.agreeing:,} of {slot.pages:,} pages, "
            f"and on {slot.by_chance:,.0f} by chance",
        )
    pairs = _pairs_on(known_pages.pairs, trial, name)
    count = len(np.unique(pairs.page))
    agreement = _share(_agreement_by_page(name=name, known_pages=known_pages, trial=trial, pairs=pairs))
    by_chance = _share(
        _agreement_by_page(
            name=name, known_pages=known_pages, trial=trial, pairs=shuffled(pairs, np.random.default_rng(0))
        )
    )
    filled = sum(bool(values.get(name)) for values in trial.values_by_page.values()) / len(
        trial.values_by_page
    )
    fidelity = trial.fidelity(name, shown)
    min_kappa = _LEAST_KEPT_KAPPA * slot.kappa if count >= _ENOUGH_PAIRS else 0.0
    reason = ""
    if fidelity is None:
        reason = "no held-back page shows it, so its rules could not be tried"
    elif fidelity < _LEAST_FAITHFUL:
        reason = f"its rules find the text at its position on only {fidelity:.0%} of other pages"
    elif kappa(agreement, by_chance, 1.0) <= min_kappa:
        reason = (
            f"its rules agree with the seeds on {agreement:.0%} of other pages, {by_chance:.0%} by chance"
        )
    verdict: Verdict = "suggested" if reason else "accepted"
    return AttributeEvidence(
        verdict=verdict, pairs=count, agreement=agreement, shuffled=by_chance, filled=filled, reason=reason
    )


def _pairs_on(pairs: Pairs, trial: _Trial, name: str) -> Pairs:
    has_value = np.array(
        [bool(trial.values_by_page.get(page, {}).get(name)) for page in pairs.page.tolist()], np.bool_
    )
    return type(pairs)(pairs.page[has_value], pairs.record[has_value])


def _share(agrees: Mapping[int, bool]) -> float:
    return sum(agrees.values()) / len(agrees) if agrees else 0.0


def _agreement_by_page(name: str, known_pages: KnownPages, trial: _Trial, pairs: Pairs) -> dict[int, bool]:
    """Return for each page whether one of its values agrees with one of its records with the attribute."""
    attribute = known_pages.attribute(name)
    texts = sorted(
        {text for values_of_page in trial.values_by_page.values() for text in values_of_page.get(name, ())}
    )
    numbers = {text: number for number, text in enumerate(texts)}
    matches = attribute.matches([text_forms(text) for text in texts])
    matching_pairs = set(zip(matches.text.tolist(), matches.value.tolist(), strict=True))
    agrees: dict[int, bool] = {}
    for page, record in zip(pairs.page.tolist(), pairs.record.tolist(), strict=True):
        values = attribute.values_of.of(record).tolist()
        if values:
            is_match = any(
                (numbers[text], value) in matching_pairs
                for text in trial.values_by_page[page][name]
                for value in values
            )
            agrees[page] = agrees.get(page, False) or is_match
    return agrees


def _disagreements(known_pages: KnownPages, pages: Sequence[Page], trial: _Trial) -> Iterator[Disagreement]:
    """Yield values of the wrapper that differ from the records of the page, one of each page."""
    for name in (name for name in known_pages.slots if name in trial.wrapper.attributes):
        attribute = known_pages.attribute(name)
        pairs = _pairs_on(known_pages.pairs, trial, name)
        remaining_pages = {
            page
            for page, agrees in _agreement_by_page(
                name=name, known_pages=known_pages, trial=trial, pairs=pairs
            ).items()
            if not agrees
        }
        for page, record in zip(pairs.page.tolist(), pairs.record.tolist(), strict=True):
            values = attribute.values_of.of(record).tolist()
            if page in remaining_pages and values:
                remaining_pages.remove(page)
                yield Disagreement(
                    seed=known_pages.seeds[record],
                    url=pages[page].url,
                    attribute=name,
                    value=attribute.values[values[0]].text,
                    text=trial.values_by_page[page][name][0],
                )


def _seed_matches(known_pages: KnownPages, pages: Sequence[Page]) -> Iterator[SeedMatch]:
    """Yield the known values that were found at the positions of their attribute."""
    texts, positions = known_pages.texts, known_pages.positions
    for attribute in known_pages.table.attributes:
        text_matches = known_pages.matches[attribute.name]
        matched = matched_rows(
            attribute=attribute, matches=text_matches, pairs=known_pages.pairs, rows=known_pages.rows
        )
        values = {
            (text, value): similarity
            for text, value, similarity in zip(
                text_matches.text.tolist(),
                text_matches.value.tolist(),
                text_matches.similarity.tolist(),
                strict=True,
            )
        }
        for slot in known_pages.slots[attribute.name]:
            is_at_slot = positions.of_row[slot.position.scheme][matched.row] == slot.position.number
            pairs_and_rows = set(
                zip(matched.pair[is_at_slot].tolist(), matched.row[is_at_slot].tolist(), strict=True)
            )
            for pair, row in sorted(pairs_and_rows):
                record, text = int(known_pages.pairs.record[pair]), int(texts.text[row])
                similar = [
                    (values[text, value], value)
                    for value in attribute.values_of.of(record).tolist()
                    if (text, value) in values
                ]
                similarity, value = max(similar)
                yield SeedMatch(
                    seed=known_pages.seeds[record],
                    url=pages[texts.page[row]].url,
                    attribute=attribute.name,
                    position=texts.path_text(int(texts.path[row])),
                    value=attribute.values[value].text,
                    text=texts.texts[text],
                    similarity=similarity,
                )


def _suggestions(
    known_pages: KnownPages, pages: Sequence[Page], attributes: Mapping[str, AttributeEvidence]
) -> Iterator[Example]:
    """Yield pages for a person to check, with their probably right values."""
    if all(evidence.verdict == "accepted" for evidence in attributes.values()):
        return
    shown = {name: _shown_texts(known_pages, name) for name in known_pages.slots}
    by_count = sorted(
        known_pages.pages.tolist(), key=lambda page: -sum(page in texts for texts in shown.values())
    )
    for page in by_count[:_SUGGESTIONS]:
        values = {name: list(texts[page]) for name, texts in shown.items() if page in texts}
        if values:
            yield Example(pages[page], values)
