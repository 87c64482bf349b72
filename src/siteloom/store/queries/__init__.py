"""Queries on the tables of the store, one file per subject."""
