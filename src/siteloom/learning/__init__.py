"""From a few examples to a wrapper: find the values on their pages, and search for rules that find them."""

from siteloom.learning.finishing import Learned
from siteloom.learning.from_examples import check_example, learn, learn_wrapper
from siteloom.learning.session import METHODS, LearningSession, Method, Schema
from siteloom.learning.units import MOST_UNLABELLED

__all__ = [
    "METHODS",
    "MOST_UNLABELLED",
    "Learned",
    "LearningSession",
    "Method",
    "Schema",
    "check_example",
    "learn",
    "learn_wrapper",
]
