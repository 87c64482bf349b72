"""From examples to a wrapper, and everything that supplies examples."""
