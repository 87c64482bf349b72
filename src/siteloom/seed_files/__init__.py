"""Seeds as people have them: CSV, JSON Lines, Parquet and SQL tables, read row by row, and mappings."""

from siteloom.seed_files.opening import is_table
from siteloom.seed_files.seeds import (
    CONFIDENCE_KEY,
    SOURCE_KEY,
    URL_KEY,
    read_seeds,
    reshaped,
    seed_of,
)

__all__ = [
    "CONFIDENCE_KEY",
    "SOURCE_KEY",
    "URL_KEY",
    "is_table",
    "read_seeds",
    "reshaped",
    "seed_of",
]
