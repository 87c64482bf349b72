"""Records as a table, filtered, sorted and downloaded."""
