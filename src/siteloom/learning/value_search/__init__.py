"""Finding given values on pages."""
