"""Fixtures of the command-line tests."""

from .command import siteloom

__all__ = ["siteloom"]
