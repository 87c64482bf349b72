"""The interface by which work reports progress to a terminal, a job of the web application, or nobody."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """What an operation reports to.

    Progress is cancelled by raising `KeyboardInterrupt`, as Ctrl-C does.
    """

    def start(self, message: str, total: int | None = None, unit: str = "page", done: int = 0) -> None:
        """Begin a stage. Its total may be unknown; `done` were finished by an earlier run."""
        ...

    def advance(self, count: int = 1) -> None:
        """Count what is finished in the current stage."""
        ...

    def message(self, text: str) -> None:
        """Tell the user something beside the progress itself."""
        ...


class _Silent:
    def start(self, message: str, total: int | None = None, unit: str = "page", done: int = 0) -> None:
        pass

    def advance(self, count: int = 1) -> None:
        pass

    def message(self, text: str) -> None:
        pass


SILENT: Progress = _Silent()
"""Shows nothing."""
