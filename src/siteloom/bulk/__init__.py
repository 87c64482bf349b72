"""Whole crawls: the stages over lists of files, on any engine, into a folder of Parquet files by site."""

from siteloom.bulk.bootstrapping import bootstrap_in_bulk
from siteloom.bulk.cleaning import clean_in_bulk
from siteloom.bulk.clustering import cluster_in_bulk
from siteloom.bulk.extracting import extract_in_bulk
from siteloom.bulk.folder import OutputFolder
from siteloom.bulk.run import BulkRun, part_count

__all__ = [
    "BulkRun",
    "OutputFolder",
    "bootstrap_in_bulk",
    "clean_in_bulk",
    "cluster_in_bulk",
    "extract_in_bulk",
    "part_count",
]
