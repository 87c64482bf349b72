"""What pages and answers contain: columns, rows and numbers by subject."""
