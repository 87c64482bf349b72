"""`siteloom doctor`: check the installation and the workspace."""

from __future__ import annotations

from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import SiteloomError
from siteloom.core.table_files import Column

NAME = "doctor"

_COLUMNS = (Column("check"), Column("ok", "flag"), Column("finding"))


def run(shell: Shell, output: OutputOption = None) -> None:
    """Check the installation and every page of the workspace.

    Each page is read back and compared with what was stored. Missing extras are listed, too.
    """
    from siteloom.operations.status import DoctorRequest, doctor

    untrusted = tuple(setting for setting in shell.resolved if setting.needs_trust)
    result = doctor(shell.settings, DoctorRequest(untrusted_settings=untrusted))
    rows = [{"check": check.name, "ok": check.is_ok, "finding": check.finding} for check in result.checks]
    shell.write_or_show(output, "Siteloom's health", _COLUMNS, rows)
    if result.failed:
        damaged = " What is damaged must come back from a backup." if result.is_damaged else ""
        raise SiteloomError(f"Not in order: {', '.join(result.failed)}.{damaged}")
