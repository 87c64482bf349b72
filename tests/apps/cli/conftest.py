"""Fixtures of the command-line tests."""

from tests.apps.cli.changing import changed_place, go, mended_place, reviewed_place, watched_place
from tests.apps.cli.command import siteloom

__all__ = ["changed_place", "go", "mended_place", "reviewed_place", "siteloom", "watched_place"]
