"""Pages in: uploads, URLs by shape, what to fetch."""
