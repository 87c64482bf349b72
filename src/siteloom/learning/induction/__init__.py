"""Wrapper induction: from examples to rules."""
