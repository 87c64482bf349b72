"""mlscraper, in a virtual environment of its own.

How it is used, in its favour wherever there is a choice: each attribute is learned by itself, so that one
that cannot be learned does not spoil the others; an example counts where mlscraper finds the value on its
page; a value is a list where an example has several, and a text otherwise. It tries combinations until one
fits, so there is a limit to the CPU seconds that it may take for an attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evals.learners import Answers, Found
from evals.peers import Peer
from siteloom.html.encoding import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.core.model import Example, Page

NAME = "mlscraper"
PEER = Peer(NAME, ("mlscraper==1.0.0rc3",), "mlscraper.training", "mlscraper")

LEARNING_SECONDS = 10
"""CPU seconds for one attribute of one site. Where it learns something at all, it mostly takes fewer."""


class MLScraper:
    """What mlscraper learns and extracts; the peer must be there."""

    def __call__(
        self,
        examples: Sequence[Example],
        unlabelled: Sequence[Page],  # noqa: ARG002 - it has no use for them
        pages: Sequence[Page],
    ) -> Answers:
        """Learn, then extract from `pages`."""
        work = {
            "seconds": LEARNING_SECONDS,
            "examples": [
                {"html": decode(example.page.html, example.page.charset), "values": {**example.values}}
                for example in examples
            ],
            "pages": [decode(page.html, page.charset) for page in pages],
        }
        answer = PEER.answer(work)
        return Answers([Found(values, {}) for values in answer["found"]], failed=tuple(answer["failed"]))
