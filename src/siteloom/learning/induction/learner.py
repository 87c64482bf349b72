"""Learn a wrapper from a few examples."""

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
    from siteloom.learning.induction.wrapper_assembly import InductionResult

_MAX_TREE_BYTES = 10_000_000  # of HTML; in memory a tree is about ten times as large as its page


def learn(
    examples: Sequence[Example],
    unlabelled: Iterable[Page] = (),
    schema: Schema = None,
    method: Method = "united",
) -> Wrapper:
    """Learn a wrapper from pages with known values, helped by unlabelled pages of the same template.

    The schema declares properties of attributes, such as `{"cuisine": {"multi": True}}`; Siteloom infers all
    others. The method is `united`, or `vertex` for one XPath per attribute as in the Vertex paper.
    Raises `ExampleNotFound` if a value is not on its page.
    """
    return learn_wrapper(examples=examples, unlabelled=unlabelled, schema=schema, method=method).wrapper


def learn_wrapper(
    examples: Sequence[Example],
    unlabelled: Iterable[Page] = (),
    schema: Schema = None,
    method: Method = "united",
    *,
    limits: ParseSettings = ParseSettings(),
) -> InductionResult:
    """Learn a wrapper, and report what it does on the pages."""
    return LearningSession(unlabelled, _MAX_TREE_BYTES, limits).learn(examples, schema, method)


def check_example(example: Example, limits: ParseSettings = ParseSettings()) -> None:
    """Raise an error if an example is invalid by itself."""
    label([example], (), Trees(_MAX_TREE_BYTES, limits))
