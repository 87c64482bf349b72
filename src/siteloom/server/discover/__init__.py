"""The table of a template with no examples, and its columns as attributes."""
