"""Records that a page repeats: lists, tables and nested items."""
