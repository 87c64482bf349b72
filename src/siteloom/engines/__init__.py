"""Where work runs in parallel: processes of this machine, or Apache Spark."""
