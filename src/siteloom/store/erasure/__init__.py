"""Erasing sites and pages, and everything derived from them."""
