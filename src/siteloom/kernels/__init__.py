"""The few array functions that are compiled, because Python is too slow for every byte of a crawl.

Each has a plain twin in the tests. Importing this package loads numba, so
modules import it inside the functions that need it.
"""

import os
import tempfile
from pathlib import Path

import numba


def _cache_folder() -> str:
    """Where compiled code is kept between runs: the user's cache folder, or else a temporary one."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "siteloom" / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return tempfile.mkdtemp(prefix="siteloom-kernels-")
    return str(folder) if os.access(folder, os.W_OK) else tempfile.mkdtemp(prefix="siteloom-kernels-")


# Must stand before the kernels are defined: numba looks at it when it decorates them.
if not numba.config.CACHE_DIR:  # type: ignore[attr-defined]  # numba makes its settings at run time
    numba.config.CACHE_DIR = _cache_folder()  # type: ignore[attr-defined]
