"""The annotation session of a cluster: what its annotators see, and what they said."""
