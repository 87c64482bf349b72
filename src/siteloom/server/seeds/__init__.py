"""Known records, and the sites that were wrapped from them."""
