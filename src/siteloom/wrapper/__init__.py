"""Rules and wrappers: their language, how they are evaluated, explained, saved and rendered as XSLT."""

from siteloom.wrapper.wrapper import Wrapper

__all__ = ["Wrapper"]
