"""Where texts name what is to be forgotten: a site, what is called after it, or a URL."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from siteloom.urls import site_of, url_shape

if TYPE_CHECKING:
    from collections.abc import Iterator

FORGOTTEN = "(forgotten)"
"""What stands in the place of a name that is forgotten."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>\\]+")
_BEHIND_A_URL = ".,;:!?)]}"  # what a sentence may have behind it
# No part of a longer name: data.example and a.example.org do not name a.example, but www.a.example may.
_BEFORE_A_SITE = r"(?<![\w.-])((?:[\w-]+\\?\.)*)"
_BEHIND_A_SITE = r"(?![\w-]|\\?\.\w)"


@dataclass(frozen=True)
class Mentions:
    """By what it is known in texts: names of sites, of their wrappers and clusters, and URLs.

    URLs of the sites need not be listed, as far as they tell their site themselves. `others` are names of
    what stays, whatever stands in them.
    """

    sites: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    urls: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    def is_about(self, url: str) -> bool:
        """Whether a URL is one of those that are forgotten."""
        return url in self.urls or (bool(self.sites) and site_of(url) in self.sites)

    def are_in(self, text: str) -> bool:
        """Whether a text names anything that is forgotten."""
        if text in self.names or text in self.urls or text in self._shapes:
            return True
        if text in self.others:
            return False
        if self._site is not None and any(map(self._is_site, self._site.finditer(text))):
            return True
        return any(map(self.is_about, _urls_in(text)))

    @cached_property
    def _shapes(self) -> frozenset[str]:
        """What the URLs look like, by which pages without a wrapper are counted: little may be left out."""
        return frozenset(map(url_shape, self.urls))

    @cached_property
    def _site(self) -> re.Pattern[str] | None:
        """A site by its name, as it is and as it stands in patterns of URLs, with what is before it."""
        if not self.sites:
            return None
        forms = {form for site in self.sites for form in (site, site.replace(".", r"\."))}
        return re.compile(f"{_BEFORE_A_SITE}(?:{'|'.join(map(re.escape, sorted(forms)))}){_BEHIND_A_SITE}")

    def _is_site(self, found: re.Match[str]) -> bool:
        """Whether it is a site by itself or with a subdomain; below some, such as github.io, are others."""
        return not found[1] or site_of("http://" + found[0].replace("\\", "")) in self.sites

    def without(self, value: Any) -> Any:
        """A value as JSON has it, without what names it; the keys of an outermost object are our own words.

        A row, which is a list or an object within a list, goes as a whole. A text is replaced by a mark
        rather than removed: nothing at all may mean everything.
        """
        if isinstance(value, dict):
            return {key: self._within(one) for key, one in value.items()}
        return self._within(value)

    def _within(self, value: Any) -> Any:
        if isinstance(value, str):
            return FORGOTTEN if self.are_in(value) else value
        if isinstance(value, list):
            return [self._within(one) for one in value if not self._is_row(one)]
        if isinstance(value, dict):
            return {key: self._within(one) for key, one in value.items() if not self.are_in(key)}
        return value

    def _is_row(self, value: Any) -> bool:
        """Whether a value within a list is a row that names it."""
        cells = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return any(isinstance(cell, str) and self.are_in(cell) for cell in cells)


def _urls_in(text: str) -> Iterator[str]:
    """The URLs within a text, each also without the marks behind it that a sentence may have."""
    for found in _URL.findall(text):
        yield found
        shorter = found.rstrip(_BEHIND_A_URL)
        if shorter != found:
            yield shorter


def json_lines_without(mentions: Mentions, content: bytes) -> bytes:
    """JSON Lines without what names it; a line goes if what it tells of is a row that does."""
    kept = []
    for line in content.split(b"\n"):
        try:
            told = json.loads(line)
            left = mentions.without(told)
            is_whole = len(left) == len(told)
        except (ValueError, TypeError):
            continue  # torn: what it told of is found out again
        if is_whole:
            kept.append(json.dumps(left, ensure_ascii=False).encode("utf-8", "replace"))
    return b"".join(b"\n" + line + b"\n" for line in kept)
