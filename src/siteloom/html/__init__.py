"""From the bytes of a page to its tree, text and paths."""
