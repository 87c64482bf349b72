"""Wrapping sites from records that are known from elsewhere: sites about the same things agree."""

from siteloom.redundancy.outcome import AttributeEvidence, Bootstrapped, SeedMatch

__all__ = ["AttributeEvidence", "Bootstrapped", "SeedMatch"]
