"""Accuracy on real pages, with floors. `make eval` runs them all."""
