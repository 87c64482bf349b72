"""Alarms: what changed is posted to a web address or handed to a command.

An alarm that fails must not undo the work that it tells of: it is never an
exception, but a sentence for whoever did the work to show.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from base64 import b64encode
from http.client import HTTPException
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from siteloom.core.child_processes import environment_of_programs
from siteloom.core.settings import host_only, without_passwords

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from http.client import HTTPMessage

    from siteloom.core.settings import AlarmSettings

_SECONDS_TO_POST = 10
_SECONDS_TO_RUN = 60


def raise_alarm(lines: Sequence[Mapping[str, object]], settings: AlarmSettings) -> list[str]:
    """Tell of changes wherever the settings say; returns a sentence for each place that could not be told.

    Nothing happens if there are no changes.
    """
    if not lines:
        return []
    changes = [dict(line) for line in lines]
    problems = []
    if settings.webhook:
        problems.append(_post(settings.webhook, json.dumps({"changes": changes})))
    if settings.command:
        problems.append(_run(settings.command, "".join(json.dumps(change) + "\n" for change in changes)))
    return [problem for problem in problems if problem is not None]


class _NoRedirects(HTTPRedirectHandler):
    """Makes a redirect an error: following it would ask for another page and lose what was to be posted."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Where to go instead: nowhere."""


def _cause(error: Exception) -> object:
    """What a system says went wrong, without its number."""
    cause = error.reason if isinstance(error, URLError) else error
    return getattr(cause, "strerror", None) or cause


def _post(address: str, document: str) -> str | None:
    problem = f"The alarm could not be posted to {host_only(address)}: "
    try:
        with build_opener(_NoRedirects).open(_request(address, document), timeout=_SECONDS_TO_POST):
            return None
    except HTTPError as error:
        error.close()
        return f"{problem}it answered {error.code} {error.reason}."
    except OSError as error:
        return f"{problem}{_cause(error)}."
    except (HTTPException, ValueError):
        # What they say is not shown: it may be a part of the address, and that a part of a password.
        return f"{problem}the address or the answer cannot be read."


def _request(address: str, document: str) -> Request:
    """What is to be posted; a name and password in the address become the header that servers expect."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https"):
        raise URLError("only addresses of http and https are accepted")
    headers = {"Content-Type": "application/json"}
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return Request(url, document.encode(), headers)  # noqa: S310 - the scheme was looked at


def _run(command: str, document: str) -> str | None:
    try:
        program, *arguments = shlex.split(command)
    except ValueError:  # a quotation that does not end, or no word at all
        return "The alarm command could not be read: mend the setting alarm.command."
    try:
        # A file, for a program that the command leaves running would hold a pipe open.
        with TemporaryFile() as complaints:
            done = subprocess.run(  # noqa: S603 - whoever writes the settings may run any program
                [program, *arguments],
                input=document.encode(),
                stdout=subprocess.DEVNULL,  # standard output is for records
                stderr=complaints,
                timeout=_SECONDS_TO_RUN,
                check=False,
                env=environment_of_programs(),
            )
            return _failure_of(program, done.returncode, complaints)
    except subprocess.TimeoutExpired:
        return f"The alarm command {program} was ended: it took longer than {_SECONDS_TO_RUN} seconds."
    except (OSError, ValueError) as error:
        return f"The alarm command {program} could not be run: {_cause(error)}."


def _failure_of(program: str, status: int, complaints: IO[bytes]) -> str | None:
    """A sentence if the program ended badly, with the last thing that it said."""
    if status == 0:
        return None
    complaints.seek(0)
    said = complaints.read().decode(errors="replace").strip().rpartition("\n")[2]
    why = f" ({without_passwords(said)})" if said else ""
    return f"The alarm command {program} ended with status {status}{why}."
