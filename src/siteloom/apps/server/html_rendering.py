"""Pages out of templates."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from siteloom.apps.server.operation_jobs import job_result
from siteloom.apps.server.shared_state import services_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import Request

    from siteloom.apps.server.security import Visitor

# Does not break a line, and is thinner than a space.
_THIN_SPACE = "\u202f"


def render(
    request: Request, template: str, visitor: Visitor | None, /, *, status: int = 200, **context: object
) -> HTMLResponse:
    """A page made of a template, for a visitor; without one, the page is for anybody.

    How many `decisions` wait is looked up unless it is told.
    """
    page = _environment().get_template(template)
    if "decisions" not in context:
        context["decisions"] = 0 if visitor is None else services_of(request).store.reviewing.count()
    text = page.render(request=request, visitor=visitor, status=status, **context)
    return HTMLResponse(text, status)


def link_maker(request: Request) -> Callable[..., str]:
    """Makes links to the page that is asked for, with some of its query changed; None takes a part away."""
    query = request.query_params.multi_items()

    def link(**changed: object) -> str:
        rest = [(name, text) for name, text in query if name not in changed]
        added = [(name, str(value)) for name, value in changed.items() if value is not None]
        return f"?{urlencode([*rest, *added])}"

    return link


def number(value: float, decimals: int = 0) -> str:
    """A number with its thousands apart."""
    return f"{value:,.{decimals}f}".replace(",", _THIN_SPACE)


def share(value: float) -> str:
    """A share as percent; what is not all or nothing is never told as such."""
    if 0 < value < 0.01:
        return f"<{_THIN_SPACE}1{_THIN_SPACE}%"
    if 0.99 < value < 1:
        return f">{_THIN_SPACE}99{_THIN_SPACE}%"
    return f"{value * 100:.0f}{_THIN_SPACE}%"


def ago(time: datetime, now: datetime | None = None) -> str:
    """How long ago a time was, in words."""
    seconds = ((now or datetime.now(UTC)) - time) / timedelta(seconds=1)
    if seconds < 60:
        return "just now"
    for unit, length, until in (("minute", 60, 3600), ("hour", 3600, 86_400), ("day", 86_400, 30 * 86_400)):
        if seconds < until:
            count = int(seconds // length)
            return f"{count} {unit}{'s' * (count != 1)} ago"
    return f"{time:%d %b %Y}".lstrip("0")


def moment(time: datetime) -> Markup:
    """A time as an element: how long ago in words, the exact time beside it."""
    exact = time.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        exact.isoformat(timespec="seconds"), f"{exact:%Y-%m-%d %H:%M:%S} UTC", ago(time)
    )


def short_url(url: str, longest: int = 72) -> str:
    """A URL without its scheme, cut in the middle if it is long: its end tells most."""
    parts = urlsplit(url)
    text = url[len(parts.scheme) + 3 :] if parts.scheme and parts.netloc else url
    if len(text) <= longest:
        return text
    head = longest // 3
    return f"{text[:head]}…{text[len(text) - (longest - head - 1) :]}"


def readable_pattern(pattern: str) -> str:
    """A pattern of URLs as people read it: no escapes, and a star where anything may stand."""
    text = pattern.removeprefix("^").removesuffix("$").removeprefix("https?://")
    return re.sub(r"\\(.)", r"\1", re.sub(r"\[\^[^\]]*\][+*]", "*", text))


def in_code(words: str) -> Markup:
    """Words in which what stands between backticks is shown as code."""
    parts = words.split("`")
    if len(parts) % 2 == 0:  # one of them has no partner
        return escape(words)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("siteloom.apps.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = {
        "ago": ago,
        "in_code": in_code,
        "moment": moment,
        "number": number,
        "readable_pattern": readable_pattern,
        "share": share,
        "short_url": short_url,
    }
    environment.filters.update(filters)
    environment.globals["job_result"] = job_result
    return environment
