"""Every exception Siteloom raises, in one tree.

    SiteloomError                 anything a caller may want to catch
    ├── UsageError                the call itself is wrong (exit status 2)
    │   ├── SettingsError         siteloom.toml, the environment or a flag holds a bad value
    │   ├── NoWorkspace           a verb needs a workspace and there is none
    │   └── NotFound              there is nothing of the name or number that was asked for
    ├── ExampleError              no wrapper can be learned from the examples
    │   ├── ExampleNotFound       a value is not on its page
    │   └── ContradictoryExamples two examples say different things of the same page
    ├── Overtaken                 what was to be changed has been changed by another meanwhile
    ├── UnreadablePage            a page has no tree to extract from
    ├── TooMuchFound              rules find more on a page than may come of one
    ├── WrapperError              a wrapper file cannot be read
    ├── WatchError                a file of bellwethers cannot be read
    ├── SourceError               pages cannot be read from a source
    │   └── NoPageImported        an import has ended without a single page
    ├── OutputError               results cannot be written
    ├── EngineError               the processes that do the work keep dying
    ├── ServerError               the server cannot listen where it is told to
    ├── MissingExtra              an optional dependency is not installed
    └── StoreError                the workspace's store cannot be used
        ├── StoreBusy             another process is writing to it
        ├── StoreTooNew           it was made by a newer version of Siteloom
        ├── NotStored             it has nothing of the name (a NotFound, too)
        ├── PackError             a pack file is damaged
        └── AccountError          an account cannot be made, changed or used so
            └── TooManyFailures   too many wrong passwords were tried of late

A message is one sentence that says what is wrong and what to do about it; the
command line prints it as it stands. A bad *page* is never an exception: it is
a `Failure` (see `siteloom.core.model`), counted and listed, and the work goes on.
"""

from __future__ import annotations

from typing import Any, Literal


class SiteloomError(Exception):
    """The root of all errors that Siteloom raises on purpose.

    `siteloom.core.errors` draws the whole tree.
    """

    exit_status = 1

    def __reduce__(self) -> tuple[Any, ...]:
        # As exceptions are pickled, they are made again out of their message alone.
        return _made_again, (type(self), self.args, vars(self))


def _made_again(kind: type[SiteloomError], args: tuple[object, ...], state: dict[str, Any]) -> SiteloomError:
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
    """There is nothing of the name or number that was asked for."""


class Overtaken(SiteloomError):
    """What was to be changed has been changed by another meanwhile."""


class ExampleError(SiteloomError):
    """Examples are missing, cannot be read, or no wrapper can be learned from them."""


class ExampleNotFound(ExampleError):
    """An example's value does not stand on its page, or not at the node that was named.

    `url`, `attribute` and `value` say which, `nearest` is the most similar text of the page.
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
    """Two examples say different things of the same attribute of the same page."""


class UnreadablePage(SiteloomError):
    """A page was to be extracted from that cannot be parsed."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"Nothing can be extracted from {url}: {reason}.")
        self.url = url
        self.reason = reason


class TooMuchFound(SiteloomError):
    """Rules find more on a page than may come of one: too many records, or more text than any page has."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"There is more on a page than may come of it: {reason}, {detail}.")
        self.reason = reason
        self.detail = detail


class WrapperError(SiteloomError):
    """The text of a wrapper is none, is damaged, or is of a newer version of Siteloom."""


class WatchError(SiteloomError):
    """The text of a watch is none, is damaged, or is of another version of Siteloom."""


class SourceError(SiteloomError):
    """A source of pages does not exist, cannot be opened, or is of no known kind."""


class NoPageImported(SourceError):
    """An import has ended without a single page; `result` says what was read instead."""

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class OutputError(SiteloomError):
    """Results cannot be written to the place that was asked for."""


class EngineError(SiteloomError):
    """The processes that do the work die, whatever they work on."""


class ServerError(SiteloomError):
    """The server cannot listen where it is told to."""


class MissingExtra(SiteloomError):
    """A feature was used whose optional dependency is not installed."""

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
    """The store has nothing of the name or number that was asked for."""

    exit_status = StoreError.exit_status


class PackError(StoreError):
    """A pack file does not hold what the store says it holds."""


class AccountError(StoreError):
    """An account cannot be made, changed or used so; `field` says which of what was given is at fault."""

    def __init__(self, message: str, field: Literal["name", "role", "password", "label"]) -> None:
        super().__init__(message)
        self.field = field


class TooManyFailures(AccountError):
    """There were too many wrong passwords of late; after so many seconds one may try again."""

    def __init__(self, seconds: int) -> None:
        minutes = max(1, round(seconds / 60))
        super().__init__(
            f"Too many wrong passwords: try again in {minutes} minute{'s' * (minutes > 1)}.", "password"
        )
        self.seconds = seconds
