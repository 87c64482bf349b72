"""Sites and pages removed for good."""
