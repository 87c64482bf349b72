"""Pack files, which hold the bytes of pages."""
