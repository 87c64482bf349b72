"""How well template text is told from content; writes docs/evaluation/text.md and its plot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evals import text_page, text_plots
from evals.swde import swde_sites
from evals.text_storage import STREAM, compared, endless, sites_in_turn
from evals.text_values import swallowed
from evals.text_words import ALONE, COMBINED, DEFAULT, words_kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evals.text_storage import Storage
    from evals.text_values import Swallowed
    from evals.text_words import WordResults

DOCS = Path(__file__).parents[1] / "docs" / "evaluation"

_SITES_FOR_STREAMS = slice(0, None, 16)
_PAGES_IN_TURN = 300  # of each site


def figures(data: Path) -> dict[str, float]:
    words = words_kept(data)
    sites = list(swde_sites(data))
    values = [result for site in sites for result in swallowed(site, ("share", "paper"))]
    storage = [
        *(
            compared(f"{site.full_name}, with new texts each time around", endless(site))
            for site in sites[_SITES_FOR_STREAMS]
        ),
        compared("all sites, a page of each in turn", sites_in_turn(sites, _PAGES_IN_TURN)),
    ]
    DOCS.mkdir(parents=True, exist_ok=True)
    flat = {ALONE: words.total(ALONE).f1} if ALONE in words.by_site else {}
    text_plots.plot_words(words.by_pages, flat, DOCS / "text.svg")
    document = text_page.document(words, values, storage)
    (DOCS / "text.md").write_text(document, encoding="utf-8")
    print(document)
    return _figures(words, values, storage)


def _figures(words: WordResults, values: Sequence[Swallowed], storage: Sequence[Storage]) -> dict[str, float]:
    """What has floors: the words kept, that no value is swallowed, and how small the table stays."""
    default = [result for result in values if result.rule == "share"]
    found = {
        "text_table_f1": words.total(DEFAULT).f1,
        "text_table_recall": words.total(DEFAULT).recall,
        "text_values_kept": 1.0 - sum(result.again.template > 0 for result in default) / len(default),
        "text_values_kept_arriving": 1
        - sum(result.arriving.left_out for result in default) / sum(result.values for result in default),
        "text_storage_saved": 1 - max(result.share for result in storage if result.pages >= STREAM),
        "text_judged_alike": 1 - max(result.misjudged for result in storage),
    }
    if COMBINED in words.by_site:
        found["text_main_f1"] = words.total(COMBINED).f1
        found["text_main_f1_over_trafilatura"] = words.total(COMBINED).f1 - words.total(ALONE).f1
    return {name: round(value, 4) for name, value in found.items()}
