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
# OpenSSL's messages for an answer in plain text.
_PLAIN_ANSWERS = ("wrong version number", "packet length too long")


class CrawlProblem(NamedTuple):
    """Why there is no page; `is_expected` if a link leads to something excluded or forbidden."""

    reason: str
    detail: str = ""
    is_expected: bool = False


class RequestRefused(IgnoreRequest):
    """Raised to drop a request before it is sent."""

    def __init__(self, problem: CrawlProblem) -> None:
        super().__init__(problem.reason)
        self.problem = problem


@contextmanager
def ignored_as(problem: Exception) -> Iterator[None]:
    """Raise `problem` if Scrapy drops a request: Scrapy's own reason is only a text, which may change."""
    try:
        yield
    except IgnoreRequest as error:
        raise problem from error


def host_problem(error: BaseException, problem: CrawlProblem) -> CrawlProblem | None:
    """Return the problem if it affects every page of the host."""
    is_of_host = isinstance(error, RequestRefused | CannotResolveHostError | DownloadConnectionRefusedError)
    return problem if is_of_host or problem.reason in (_BAD_CERTIFICATE, _NO_HTTPS) else None


def problem_from_error(error: BaseException | None, limit: int) -> CrawlProblem:
    """Translate an error of a request; `limit` is the maximum number of bytes."""
    match error:
        case RequestRefused():
            return error.problem
        case HttpError():
            return CrawlProblem(f"status {error.response.status}")
        case DownloadCancelledError():
            return CrawlProblem("page too large", f"at most {limit:,} bytes are taken")
        case DownloadTimeoutError():
            return CrawlProblem("too slow", str(error))
        case CannotResolveHostError():
            return CrawlProblem("unknown host", str(error))
        case DownloadConnectionRefusedError():
            return CrawlProblem("connection refused")
        case _ if "certificate verify failed" in str(error):
            return CrawlProblem(_BAD_CERTIFICATE, "the host cannot prove that it is who it says")
        case _ if any(words in str(error) for words in _PLAIN_ANSWERS):
            return CrawlProblem(_NO_HTTPS, "the server does not speak https: try an address with http://")
        case _:
            return CrawlProblem("connection failed", f"{type(error).__name__}: {error}")
