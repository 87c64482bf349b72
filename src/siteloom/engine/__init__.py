"""Where shards of work are done: in processes of this machine, or on a cluster of Apache Spark."""

from siteloom.engine.local import LocalEngine, run_shards
from siteloom.engine.work import LOST, Engine, Lost, PartWork, RowFiles, Work, cut_by

__all__ = ["LOST", "Engine", "LocalEngine", "Lost", "PartWork", "RowFiles", "Work", "cut_by", "run_shards"]
