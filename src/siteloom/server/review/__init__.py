"""What waits for a person, one decision at a time."""
