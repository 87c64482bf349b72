"""The workbench: its page and its API."""
