"""The stages over whole crawls, into a folder of Parquet files by site."""
