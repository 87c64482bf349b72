"""Wrappers: their rules in plain words, their versions, and what differs."""
