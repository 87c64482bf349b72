"""Where shards of work are done: here, in processes of this machine."""

from siteloom.engine.local import Lost, Work, run_shards

__all__ = ["Lost", "Work", "run_shards"]
