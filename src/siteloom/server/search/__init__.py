"""Search in clean text and records."""
