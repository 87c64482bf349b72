"""The operations, such as ingest, learn and extract: the only place that knows the order of the stages."""
