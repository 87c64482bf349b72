"""From examples to rules: wrappers that are learned."""
