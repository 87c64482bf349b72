"""Whole crawls: the stages over lists of files, on any engine, into a folder of Parquet files by site."""
