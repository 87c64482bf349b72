"""What lies beside an SQLite database of someone else, looked at before SQLite opens the database.

A rollback journal tells SQLite how to undo what a program left half done. It may name a "super-journal", the
file that programs which write several databases at once keep meanwhile. SQLite removes that file when it has
undone the change, whatever file it is. So a journal from someone else could have any file removed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from siteloom.core.confined_folder import ConfinedFolder

if TYPE_CHECKING:
    from pathlib import Path

# What stands at the end of a journal that names a super-journal: https://www.sqlite.org/fileformat2.html
_END = bytes.fromhex("d9d505f920a163d7")


def journal_fault(database: Path) -> str:
    """Why SQLite must not open a database because of its journal: a sentence, or nothing."""
    file = database.resolve()  # as SQLite does: the journal is beside the file, not beside a link to it
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
