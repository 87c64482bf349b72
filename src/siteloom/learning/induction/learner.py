"""From a few examples to a wrapper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from siteloom.core.model import Example, Page
from siteloom.core.settings import ParseSettings
from siteloom.learning.induction.example_labels import label
from siteloom.learning.induction.learning_session import LearningSession, Method, Schema
from siteloom.learning.induction.units import Trees
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from siteloom.learning.induction.wrapper_assembly import Learned

_KEPT_TREES = 10_000_000  # bytes of their pages; in memory a tree is about ten times as large


def learn(
    examples: Sequence[Example],
    unlabelled: Iterable[Page] = (),
    schema: Schema = None,
    method: Method = "united",
) -> Wrapper:
    """Learn a wrapper from pages with known values, helped by pages of the same template without.

    The schema says what is known of the attributes, such as `{"cuisine": {"multi": True}}`; the rest is
    inferred. The method is `united`, or `vertex` for one XPath an attribute as in the paper on Vertex.
    Raises `ExampleNotFound` if a value is not on its page.
    """
    return learn_wrapper(examples, unlabelled, schema, method).wrapper


def learn_wrapper(
    examples: Sequence[Example],
    unlabelled: Iterable[Page] = (),
    schema: Schema = None,
    method: Method = "united",
    *,
    limits: ParseSettings = ParseSettings(),
) -> Learned:
    """Learn a wrapper, and say what it does on the pages."""
    return LearningSession(unlabelled, _KEPT_TREES, limits).learn(examples, schema, method)


def check_example(example: Example, limits: ParseSettings = ParseSettings()) -> None:
    """Raise what is wrong with a single example."""
    label([example], (), Trees(_KEPT_TREES, limits))
