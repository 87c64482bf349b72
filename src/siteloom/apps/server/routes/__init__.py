"""What can be requested: pages and endpoints by subject."""
