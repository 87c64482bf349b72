"""Check the rollback journal of an untrusted SQLite database before SQLite opens it.

A rollback journal tells SQLite how to undo an unfinished change. It may name a "super-journal", a file that
programs keep while they write several databases at once. SQLite removes that file after it has undone the
change, whatever file it is. So an untrusted journal could have any file removed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from siteloom.core.confined_folder import ConfinedFolder

if TYPE_CHECKING:
    from pathlib import Path

# The end of a journal that names a super-journal: https://www.sqlite.org/fileformat2.html
_END = bytes.fromhex("d9d505f920a163d7")


def journal_fault(database: Path) -> str:
    """Return a sentence on why SQLite must not open a database because of its journal, or an empty text."""
    file = database.resolve()  # as in SQLite: the journal is beside the file, not beside a link to it
    journal = file.with_name(f"{file.name}-journal")
    try:
        with ConfinedFolder(journal.parent).open(journal.name, "rb") as opened:
            opened.seek(0, os.SEEK_END)
            opened.seek(max(0, opened.tell() - len(_END)))
            names_another = opened.read() == _END
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{journal} cannot be read: {error.strerror}."
    if not names_another:
        return ""
    return (
        f"{journal} names another file, which SQLite would remove: remove the journal, unless a program of "
        "yours was changing several databases at once."
    )
