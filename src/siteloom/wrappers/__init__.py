"""Rules and wrappers: evaluation, matching, file format and exports."""
