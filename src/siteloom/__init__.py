"""Siteloom turns template-based web sites into structured records."""

__version__ = "0.1.0"
