"""Wrapping sites from records that are known from elsewhere: sites about the same things agree."""

from siteloom.redundancy.bootstrapping import METHODS, Method, bootstrap
from siteloom.redundancy.outcome import AttributeEvidence, Bootstrapped, SeedMatch

__all__ = ["METHODS", "AttributeEvidence", "Bootstrapped", "Method", "SeedMatch", "bootstrap"]
