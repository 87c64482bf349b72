"""`siteloom user`: who may sign in to the server."""

from __future__ import annotations

import sys
from getpass import getpass
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import AccountError, UsageError
from siteloom.core.table_files import Column, check_destination

if TYPE_CHECKING:
    from collections.abc import Callable

    from siteloom.store.queries.accounts import Account, Accounts

NAME = "user"


def run(
    shell: Shell,
    action: Annotated[
        str,
        typer.Argument(
            metavar="ACTION", help="add, list, password, role, remove or key.", show_default=False
        ),
    ] = "list",
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the account.", show_default=False)
    ] = "",
    value: Annotated[
        str,
        typer.Argument(
            metavar="ROLE_OR_LABEL",
            help="For role, what it is to be; for key, what it is for.",
            show_default=False,
        ),
    ] = "",
    role: Annotated[
        str | None,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="For add: admin, editor or viewer [the first account is an admin, others are editors].",
            show_default=False,
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Show and change who may sign in to the server.

    add NAME makes an account, password NAME gives it another password, role NAME ROLE another role; both sign
    it out everywhere. remove NAME lets it sign in no more and ends its keys; its name stays with what was
    done under it. key NAME LABEL prints, once, a key with which a program acts as this account, sent as
    Authorization: Bearer KEY.

    A viewer looks, an editor also annotates and starts jobs, an admin also manages accounts. The last admin
    can neither be removed nor made less. A password has 10 characters at least; it is asked for, or read as a
    line of standard input. Needs the extra server.
    """
    if action not in _ACTIONS:
        raise UsageError(f"{action} is nothing to do with accounts: it is one of {', '.join(_ACTIONS)}.")
    wanted = _ACTIONS[action]
    if [bool(name), bool(value)] != [bool(wanted.name), bool(wanted.value)]:
        call = " ".join(filter(None, ("siteloom user", action, wanted.name, wanted.value)))
        raise UsageError(f"It is {call}, with a word for each that is written in capitals.")
    if role is not None and action != "add":
        raise UsageError("--role is for add: an account is given another with siteloom user role NAME ROLE.")
    if output is not None:
        if action != "list":
            raise UsageError("-o is for list.")
        check_destination(output)
    with shell.store() as store:
        wanted.do(_Call(shell, store.accounts, name, value or role or "", output))


class _Call(NamedTuple):
    shell: Shell
    accounts: Accounts
    name: str
    value: str
    output: str | None

    def account(self) -> Account:
        found = self.accounts.find(self.name)
        if found is None:
            known = ", ".join(account.name for account in self.accounts.all()) or "none yet"
            raise AccountError(f"There is no account {self.name}: there are {known}.", "name")
        return found


def _list(call: _Call) -> None:
    columns = (Column("name"), Column("role"), Column("is_enabled", "flag"), Column("created_at", "time"))
    rows = [
        {**account._asdict(), "created_at": account.created_at.replace(microsecond=0)}
        for account in call.accounts.all()
    ]
    if rows or call.output is not None:
        call.shell.write_or_show(call.output, "Accounts", columns, rows)
    else:
        call.shell.say("There is no account yet: make the first one with siteloom user add NAME.")


def _add(call: _Call) -> None:
    from siteloom.store.queries.accounts import role_named

    role = role_named(call.value) if call.value else None
    if call.accounts.find(call.name) is not None:
        raise AccountError(
            f"There is an account {call.name} already: "
            f"siteloom user password {call.name} gives it another password.",
            "name",
        )
    added = call.accounts.add(call.name, role, _new_password())
    call.shell.say(f"{added.name} may sign in now, as {added.role}.")


def _password(call: _Call) -> None:
    account = call.account()
    call.accounts.set_password(account.name, _new_password())
    call.shell.say(f"{account.name} has another password, and is signed out everywhere.")


def _change_role(call: _Call) -> None:
    from siteloom.store.queries.accounts import role_named

    account, role = call.account(), role_named(call.value)
    call.accounts.set_role(account.name, role)
    call.shell.say(f"{account.name} is {role} now.")


def _remove(call: _Call) -> None:
    account = call.account()
    call.accounts.disable(account.name)
    call.shell.say(
        f"{account.name} cannot sign in any more; siteloom user password {account.name} would undo this."
    )


def _key(call: _Call) -> None:
    key = call.accounts.add_key(call.account().name, call.value)
    call.shell.say("The key, which cannot be shown again:")
    typer.echo(key)


def _new_password() -> str:
    """What to keep of a password that is typed, twice if no one can see it."""
    from siteloom.store.queries.accounts import Passwords

    if not sys.stdin.isatty():
        return Passwords().hashed(sys.stdin.readline().rstrip("\r\n"))
    password = getpass("Password: ")
    kept = Passwords().hashed(password)
    if getpass("Once more: ") != password:
        raise AccountError("These are two different passwords: nothing was changed.", "password")
    return kept


class _Action(NamedTuple):
    """What can be done, and which words it takes."""

    do: Callable[[_Call], None]
    name: str = ""
    value: str = ""


_ACTIONS = {
    "add": _Action(_add, "NAME"),
    "list": _Action(_list),
    "password": _Action(_password, "NAME"),
    "role": _Action(_change_role, "NAME", "ROLE"),
    "remove": _Action(_remove, "NAME"),
    "key": _Action(_key, "NAME", "LABEL"),
}
