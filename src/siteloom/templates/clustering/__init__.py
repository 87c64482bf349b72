"""Clustering pages by template."""
