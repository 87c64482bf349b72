"""The few array functions that are compiled, because Python is too slow for every byte of a crawl.

Each has a plain twin in the tests. Importing this package loads numba, which
takes a third of a second: what is on the way to `siteloom --help` must not.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import numba


def _cache_folder() -> str:
    """Where compiled code is kept between runs: the user's cache folder, or else a temporary one."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(base) / "siteloom" / "kernels"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return str(folder)
    except (OSError, RuntimeError):  # RuntimeError: a user without a home, as in containers
        pass
    temporary = tempfile.mkdtemp(prefix="siteloom-kernels-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


# Must stand before the kernels are defined: numba looks at it when it decorates them.
if not numba.config.CACHE_DIR:  # type: ignore[attr-defined]  # numba makes its settings at run time
    numba.config.CACHE_DIR = _cache_folder()  # type: ignore[attr-defined]
