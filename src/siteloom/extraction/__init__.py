"""Applying wrappers: from pages to records, clean text and search documents."""
