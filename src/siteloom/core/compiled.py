"""The few array functions that are compiled, because Python is too slow for every byte of a crawl.

Each has a plain twin in the tests. Importing this package loads numba, which
takes a third of a second: what is on the way to `siteloom --help` must not.

numba is imported here and nowhere else. It keeps compiled code as pickles, so whoever chooses their folder
can run code: that must be no one but the user. By itself, numba lets a file in the current folder choose it.
"""

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["njit"]

_CONFIG_FILE = ".numba_config.yaml"


@contextmanager
def _config_file_hidden() -> Iterator[None]:
    """Let numba find no settings in the current folder, which may be someone else's."""
    exists = os.path.exists
    os.path.exists = lambda path: path != _CONFIG_FILE and exists(path)
    try:
        yield
    finally:
        os.path.exists = exists


with _config_file_hidden():
    import numba
    from numba import njit
    from numba.core import config as _config

_config._config_fname = ""  # noqa: SLF001 - or numba would look for the file again when it compiles


def _cache_folder() -> str:
    """Where compiled code is kept between runs: the user's cache folder, or else a temporary one.

    The former only if nobody else can write to it or read it.
    """
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME", ""))
        if not base.is_absolute():  # such do not count, as the standard says
            base = Path.home() / ".cache"
        if base.is_absolute():
            folder = base / "siteloom" / "compiled"
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            if _is_private(folder) and os.access(folder, os.W_OK):
                return str(folder)
    except (OSError, RuntimeError):  # RuntimeError: a user without a home, as in containers
        pass
    temporary = tempfile.mkdtemp(prefix="siteloom-compiled-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


def _is_private(folder: Path) -> bool:
    """Whether it is a folder of this user, to which no one else has any right."""
    found = folder.lstat()
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return is_own and not stat.S_IMODE(found.st_mode) & 0o077


# Must stand before the functions are defined: numba looks at it when it decorates them.
if not numba.config.CACHE_DIR:  # type: ignore[attr-defined]  # numba makes its settings at run time
    numba.config.CACHE_DIR = _cache_folder()  # type: ignore[attr-defined]
