"""Files of other scraping tools."""
