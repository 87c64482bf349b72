"""From a few examples to a wrapper: find the values on their pages, and search for rules that find them."""

from siteloom.learning.from_examples import (
    METHODS,
    MOST_UNLABELLED,
    Learned,
    Method,
    Schema,
    check_example,
    learn,
    learn_wrapper,
)

__all__ = [
    "METHODS",
    "MOST_UNLABELLED",
    "Learned",
    "Method",
    "Schema",
    "check_example",
    "learn",
    "learn_wrapper",
]
