"""Passwords as they may be kept: what argon2 makes of them, which tells nothing of the password itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from threading import BoundedSemaphore
from typing import TYPE_CHECKING
from unicodedata import normalize

from siteloom.errors import AccountError, MissingExtra

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST_PASSWORD = 10
# Far more than anyone types; without a limit, a request could keep the machine busy.
LONGEST_PASSWORD = 1_000

# Each takes the memory below; so many at once, however many try to sign in.
_AT_ONCE = BoundedSemaphore(2)


@dataclass(frozen=True)
class Passwords:
    """Makes and checks what is kept of passwords.

    What it costs is the second choice of RFC 9106, which is for machines that have other things to do, too.
    """

    rounds: int = 3
    kibibytes: int = 65_536
    lanes: int = 4

    def hashed(self, password: str) -> str:
        """What to keep of a new password, which must be long enough."""
        if len(password) < SHORTEST_PASSWORD:
            raise AccountError(f"A password has at least {SHORTEST_PASSWORD} characters.", "password")
        if len(password) > LONGEST_PASSWORD:
            raise AccountError(f"A password has at most {LONGEST_PASSWORD:,} characters.", "password")
        with _AT_ONCE:
            return self._hasher.hash(_as_bytes(password))

    def is_right(self, password: str, kept: str | None) -> bool:
        """Whether a password is the one of which something is kept.

        If nothing is, it is not, and to find that out takes as long.
        """
        of_nobody = self._of_nobody  # made whether or not it is needed, which no one can tell then
        from argon2.exceptions import VerifyMismatchError  # noqa: PLC0415 - an extra

        with _AT_ONCE:
            try:
                self._hasher.verify(kept or of_nobody, _as_bytes(password[:LONGEST_PASSWORD]))
            except VerifyMismatchError:
                return False
        return kept is not None and len(password) <= LONGEST_PASSWORD

    def is_outdated(self, kept: str) -> bool:
        """Whether what is kept was made at another cost, and is to be made again."""
        return self._hasher.check_needs_rehash(kept)

    @cached_property
    def _hasher(self) -> PasswordHasher:
        try:
            from argon2 import PasswordHasher  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra("Signing in", "server") from error
        return PasswordHasher(self.rounds, self.kibibytes, self.lanes)

    @cached_property
    def _of_nobody(self) -> str:
        return self._hasher.hash(b"nobody's")


def _as_bytes(password: str) -> bytes:
    # The same characters, whichever keyboard they were typed on.
    return normalize("NFKC", password).encode(errors="surrogatepass")
