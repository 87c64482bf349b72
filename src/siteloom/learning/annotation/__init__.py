"""Examples from a person, or from data embedded in pages."""
