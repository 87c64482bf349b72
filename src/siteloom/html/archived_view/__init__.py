"""An archived page as harmless markup for the browser."""
