"""The table of documents, by what they are for: each module has the entries of some."""

from tests.docs.entries import bring_in, keep, lead, look_up, start, use, wrap

__all__ = ["bring_in", "keep", "lead", "look_up", "start", "use", "wrap"]
