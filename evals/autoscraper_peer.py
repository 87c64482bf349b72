"""AutoScraper, in a virtual environment of its own: it needs a BeautifulSoup of before 4.13.

With a newer one it silently returns the whole text of a page for every attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evals.learners import Answers, Found
from evals.peers import Peer
from siteloom.html.encoding import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.core.model import Example, Page

NAME = "autoscraper"
PEER = Peer(NAME, ("autoscraper==1.1.14", "beautifulsoup4==4.12.3"), "autoscraper", "autoscraper")


class AutoScraper:
    """AutoScraper's exact results; the peer must be there."""

    def __call__(
        self,
        examples: Sequence[Example],
        unlabelled: Sequence[Page],  # noqa: ARG002 - it has no use for them
        pages: Sequence[Page],
    ) -> Answers:
        """Learn, then extract from `pages`."""
        work = {
            "examples": [{"html": _text(example.page), "values": {**example.values}} for example in examples],
            "pages": [_text(page) for page in pages],
        }
        return Answers([Found(values, {}) for values in PEER.answer(work)])


def _text(page: Page) -> str:
    return decode(page.html, page.charset)
