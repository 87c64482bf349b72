"""Annotating pages in a browser: what is shown, what was pointed at, and what to ask next."""
