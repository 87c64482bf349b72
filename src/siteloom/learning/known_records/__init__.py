"""Wrapping a site from records that are known from elsewhere."""
