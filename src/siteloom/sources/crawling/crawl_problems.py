"""Why a page could not be fetched: the errors of Scrapy as reasons. Importing this needs the extra crawl."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    IgnoreRequest,
)
from scrapy.spidermiddlewares.httperror import HttpError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BAD_CERTIFICATE = "bad certificate"
_NO_HTTPS = "no https"
# What OpenSSL says of an answer in plain text.
_PLAIN_ANSWERS = ("wrong version number", "packet length too long")


class Problem(NamedTuple):
    """Why there is no page; `is_expected` where a link leads to what no one wants or may have."""

    reason: str
    detail: str = ""
    is_expected: bool = False


class Refused(IgnoreRequest):
    """A request that is not made."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.reason)
        self.problem = problem


@contextmanager
def ignored_as(problem: Exception) -> Iterator[None]:
    """Say for which problem Scrapy drops a request: it does so only in words, which may change."""
    try:
        yield
    except IgnoreRequest as error:
        raise problem from error


def host_problem(error: BaseException, problem: Problem) -> Problem | None:
    """The problem, if it is one that any other page of the same host has, too."""
    is_of_host = isinstance(error, Refused | CannotResolveHostError | DownloadConnectionRefusedError)
    return problem if is_of_host or problem.reason in (_BAD_CERTIFICATE, _NO_HTTPS) else None


def problem_of(error: BaseException | None, limit: int) -> Problem:
    """What an error means; `limit` is how many bytes are taken at most."""
    match error:
        case Refused():
            return error.problem
        case HttpError():
            return Problem(f"status {error.response.status}")
        case DownloadCancelledError():
            return Problem("page too large", f"at most {limit:,} bytes are taken")
        case DownloadTimeoutError():
            return Problem("too slow", str(error))
        case CannotResolveHostError():
            return Problem("unknown host", str(error))
        case DownloadConnectionRefusedError():
            return Problem("connection refused")
        case _ if "certificate verify failed" in str(error):
            return Problem(_BAD_CERTIFICATE, "the host cannot prove that it is who it says")
        case _ if any(words in str(error) for words in _PLAIN_ANSWERS):
            return Problem(_NO_HTTPS, "the server does not speak https: try an address with http://")
        case _:
            return Problem("connection failed", f"{type(error).__name__}: {error}")
