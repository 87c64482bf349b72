"""Fixtures of the command-line tests."""

from .changing import changed_place, go, mended_place, reviewed_place, watched_place
from .command import siteloom

__all__ = ["changed_place", "go", "mended_place", "reviewed_place", "siteloom", "watched_place"]
