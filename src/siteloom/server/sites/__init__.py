"""Sites and their templates."""
