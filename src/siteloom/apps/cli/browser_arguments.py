"""The option of the verbs that open pages in Chromium to do so without its sandbox."""

from __future__ import annotations

from typing import Annotated

import typer

from siteloom.core.errors import UsageError

NoSandboxOption = Annotated[
    bool,
    typer.Option(
        "--no-sandbox",
        help="Open pages in Chromium without its sandbox, this time, such as for root: only sites you trust.",
    ),
]


def check_sandbox_option(no_sandbox: bool, *, renders: bool) -> None:
    """Refuse the option where no page is opened in Chromium."""
    if no_sandbox and not renders:
        raise UsageError("--no-sandbox is for pages that are opened in Chromium: give --render, too.")
