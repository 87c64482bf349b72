"""From a few examples to a wrapper: find the values on their pages, and search for rules that find them."""

from siteloom.learning.learn import METHODS, Learned, Method, learn, learn_wrapper

__all__ = ["METHODS", "Learned", "Method", "learn", "learn_wrapper"]
