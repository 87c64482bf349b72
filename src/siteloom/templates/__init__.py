"""What the pages of a template share: signatures, clusters, essential paths, template text."""
