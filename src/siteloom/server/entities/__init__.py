"""The same thing on several sites, values side by side."""
