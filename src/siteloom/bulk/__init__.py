"""Whole crawls: the stages over lists of files, on any engine, into a folder of Parquet files by site."""

from siteloom.bulk.extracting import extract_in_bulk
from siteloom.bulk.folder import OutputFolder
from siteloom.bulk.run import BulkRun, part_count

__all__ = ["BulkRun", "OutputFolder", "extract_in_bulk", "part_count"]
