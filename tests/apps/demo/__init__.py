"""Tests of the built-in sites."""
