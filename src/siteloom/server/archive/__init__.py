"""Archived pages: shown harmlessly, with what is found on them."""
