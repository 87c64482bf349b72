"""Who may sign in: pages and API."""
