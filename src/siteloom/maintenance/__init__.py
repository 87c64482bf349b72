"""Wrapper maintenance: watched pages, change tests, reuse and repair, alarms."""
