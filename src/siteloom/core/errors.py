"""Every exception Siteloom raises, in one tree.

    SiteloomError                 anything a caller may want to catch
    ├── UsageError                the call itself is wrong (exit status 2)
    │   ├── SettingsError         siteloom.toml, the environment or a flag holds a bad value
    │   ├── NoWorkspace           a verb needs a workspace and there is none
    │   └── NotFound              nothing has the requested name or number
    ├── ExampleError              no wrapper can be learned from the examples
    │   ├── ExampleNotFound       a value is not on its page
    │   └── ContradictoryExamples two examples contradict each other
    ├── Overtaken                 someone else has changed the same thing meanwhile
    ├── UnreadablePage            a page has no tree to extract from
    ├── TooMuchFound              rules find more on a page than the limits allow
    ├── WrapperError              a wrapper file cannot be read
    ├── WatchError                a file of bellwethers cannot be read
    ├── SourceError               pages cannot be read from a source
    │   └── NoPageImported        an import has ended without a single page
    ├── OutputError               results cannot be written
    ├── EngineError               the worker processes keep dying
    ├── ServerError               the server cannot listen at its address
    ├── MissingExtra              an optional dependency is not installed
    └── StoreError                the workspace's store cannot be used
        ├── StoreBusy             another process is writing to it
        ├── StoreTooNew           it was made by a newer version of Siteloom
        ├── NotStored             it has nothing with the requested name (a NotFound, too)
        ├── PackError             a pack file cannot be used
        │   └── DamagedBlock      a part of it is damaged
        └── AccountError          an account cannot be created, changed or used
            └── TooManyFailures   too many wrong passwords were tried recently

A message is one sentence that says what is wrong and what to do about it; the command line prints it
unchanged. A bad *page* is never an exception: it is a `Failure` (see `siteloom.core.model`), counted and
listed, and the work continues.
"""

from __future__ import annotations

from typing import Any, Literal

from siteloom.core.wording import bounded


class SiteloomError(Exception):
    """The root of all errors that Siteloom raises on purpose.

    `siteloom.core.errors` draws the whole tree.
    """

    exit_status = 1

    def __str__(self) -> str:
        # It may quote what others have written, which may have any length.
        return bounded(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, unpickling would call the class with the message alone.
        return _restore_error, (type(self), self.args, vars(self))


def _restore_error(
    kind: type[SiteloomError], args: tuple[object, ...], state: dict[str, Any]
) -> SiteloomError:
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


class UsageError(SiteloomError):
    """The call itself is wrong: a missing argument, an unknown name."""

    exit_status = 2


class SettingsError(UsageError):
    """A settings file, an environment variable or a flag holds a bad value."""


class NoWorkspace(UsageError):
    """A verb was given no source and there is no workspace to work on."""


class NotFound(UsageError):
    """Nothing has the requested name or number."""


class Overtaken(SiteloomError):
    """Someone else has changed the same thing meanwhile."""


class ExampleError(SiteloomError):
    """Examples are missing, cannot be read, or no wrapper can be learned from them."""


class ExampleNotFound(ExampleError):
    """An example's value is not on its page, or not at the given node.

    `url`, `attribute` and `value` identify it, `nearest` is the most similar text of the page.
    """

    def __init__(
        self, url: str, attribute: str, value: str, nearest: str | None, node: str | None = None
    ) -> None:
        hint = f"the nearest text is {nearest!r}" if nearest else "nothing there is like it"
        if node is not None:
            hint = f"the node {node} is not there or does not show it"
        super().__init__(f"The page {url} has no {attribute} {value!r}: {hint}.")
        self.url = url
        self.attribute = attribute
        self.value = value
        self.nearest = nearest


class ContradictoryExamples(ExampleError):
    """Two examples give different values for the same attribute of the same page."""


class UnreadablePage(SiteloomError):
    """A page cannot be parsed, so nothing can be extracted from it."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"Nothing can be extracted from {url}: {reason}.")
        self.url = url
        self.reason = reason


class TooMuchFound(SiteloomError):
    """Rules find more on a page than the limits allow: too many records, or too much text."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"There is more on a page than may come of it: {reason}, {detail}.")
        self.reason = reason
        self.detail = detail


class WrapperError(SiteloomError):
    """A text is not a wrapper, is damaged, or comes from a newer version of Siteloom."""


class WatchError(SiteloomError):
    """A text is not a watch, is damaged, or comes from another version of Siteloom."""


class SourceError(SiteloomError):
    """A source of pages does not exist, cannot be opened, or is of an unknown kind."""


class NoPageImported(SourceError):
    """An import has ended without a single page; `result` says what was read instead."""

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class OutputError(SiteloomError):
    """Results cannot be written to the requested destination."""


class EngineError(SiteloomError):
    """The worker processes die, whatever they work on."""


class ServerError(SiteloomError):
    """The server cannot listen at its address."""


class MissingExtra(SiteloomError):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the extra {extra!r}: install it with pip install 'siteloom[{extra}]'."
        )
        self.extra = extra


class StoreError(SiteloomError):
    """The store of a workspace cannot be opened, read or written."""


class StoreBusy(StoreError):
    """Another process is writing to this workspace."""


class StoreTooNew(StoreError):
    """The store was made by a newer version of Siteloom than this one."""


class NotStored(StoreError, NotFound):
    """The store has nothing with the requested name or number."""

    exit_status = StoreError.exit_status


class PackError(StoreError):
    """A pack file does not contain what the store expects."""


class DamagedBlock(PackError):
    """A block of a pack file cannot be read; others of the file may be whole."""


class AccountError(StoreError):
    """An account cannot be created, changed or used; `field` names the invalid input."""

    def __init__(self, message: str, field: Literal["name", "role", "password", "label"]) -> None:
        super().__init__(message)
        self.field = field


class TooManyFailures(AccountError):
    """There were too many wrong passwords recently; another try is allowed after `seconds`."""

    def __init__(self, seconds: int) -> None:
        minutes = max(1, round(seconds / 60))
        super().__init__(
            f"Too many wrong passwords: try again in {minutes} minute{'s' * (minutes > 1)}.", "password"
        )
        self.seconds = seconds
