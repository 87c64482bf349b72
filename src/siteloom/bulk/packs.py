"""What travels together: pages of a site, or of a template, are alike, and so they shrink to a tenth."""

from __future__ import annotations

import marshal
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

# The segments of 32 pages of SWDE shrink to a tenth, those of 128 hardly further.
_PAGES_OF_A_PACK = 32
_SIZE_OF_A_PACK = 4_000_000  # so few pages with endless texts are enough
_MOST_WAITING = 64_000_000  # of all packs, for a shard may have pages of very many sites

_LEVEL = 1  # a higher one takes longer, and the packs are no smaller
_MARSHAL_FORMAT = 4  # the one that Python 3.11 and later versions read

Kind = TypeVar("Kind", bound="Hashable")
Content = TypeVar("Content")


def packed(content: Any) -> bytes:
    """Plain lists, texts and the like as few bytes."""
    return zstandard.compress(marshal.dumps(content, _MARSHAL_FORMAT), _LEVEL)


def unpacked(pack: bytes) -> Any:
    """What was packed."""
    return marshal.loads(zstandard.decompress(pack))  # noqa: S302 - written by this very program


class Packs(Generic[Kind, Content]):
    """Gathers what is of a kind, in the order in which it comes, and sends what is enough for a pack."""

    def __init__(self, send: Callable[[Kind, list[Content]], None]) -> None:
        self._send = send
        self._waiting: defaultdict[Kind, list[Content]] = defaultdict(list)
        self._sizes: Counter[Kind] = Counter()
        self._size = 0

    def add(self, kind: Kind, content: Content, size: int) -> None:
        """Add something of about so many characters or bytes."""
        self._waiting[kind].append(content)
        self._sizes[kind] += size
        self._size += size
        if len(self._waiting[kind]) >= _PAGES_OF_A_PACK or self._sizes[kind] >= _SIZE_OF_A_PACK:
            self._send_kind(kind)
        elif self._size >= _MOST_WAITING:
            self.send_rest()

    def send_rest(self) -> None:
        """Send what waits for more of its kind."""
        for kind in list(self._waiting):
            self._send_kind(kind)

    def _send_kind(self, kind: Kind) -> None:
        self._size -= self._sizes.pop(kind)
        self._send(kind, self._waiting.pop(kind))
