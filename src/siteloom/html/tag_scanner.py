"""The tags of a page, found in its bytes as a browser's tokenizer finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.core.compiled import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

# FNV-1a, 64 bits: the offset basis and the prime of its definition.
_FNV_BASIS = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x00000100000001B3)

# What a byte can mean inside a tag; a table is faster than comparisons.
SPACE, SLASH, _CLOSE, _EQUALS, _LETTER = 1, 2, 4, 8, 16
_ENDS_NAME = SPACE | SLASH | _CLOSE
ENDS_ATTRIBUTE = _ENDS_NAME | _EQUALS
ENDS_VALUE = SPACE | _CLOSE
_MEANING = np.zeros(256, np.uint8)
_MEANING[list(b" \t\n\f\r")] = SPACE
_MEANING[ord("/")] = SLASH
_MEANING[ord(">")] = _CLOSE
_MEANING[ord("=")] = _EQUALS
_MEANING[list(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")] = _LETTER


class Tags(NamedTuple):
    """The tags of a page in order: where each stands, its name's hash, and how many attributes it has.

    Names are hashed in lower case; `is_end` tells `</p>` from `<p>`.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    name: NDArray[np.uint64]
    is_end: NDArray[np.bool_]
    attributes: NDArray[np.int64]


def name_hash(name: str) -> np.uint64:
    """The hash under which `Tags` holds a tag name."""
    data = np.frombuffer(name.encode(), np.uint8)
    return np.uint64(hash_of(data, 0, data.size))


def scan_tags(html: bytes) -> Tags:
    """All tags of a page that a browser would see.

    Those inside comments and scripts are left out, and so is one that the end
    of the page cuts off.
    """
    room = html.count(b"<")
    start, end, attributes = np.empty((3, room), np.int64)
    name = np.empty(room, np.uint64)
    is_end = np.empty(room, np.bool_)
    count = _scan(np.frombuffer(html, np.uint8), start, end, name, is_end, attributes)
    return Tags(start[:count], end[:count], name[:count], is_end[:count], attributes[:count])


@njit(cache=True)
def hash_of(data, start, end):  # type: ignore[no-untyped-def]
    """The FNV-1a hash of a name, in lower case."""
    value = _FNV_BASIS
    for i in range(start, end):
        byte = data[i]
        if 65 <= byte <= 90:
            byte += np.uint8(32)
        value = (value ^ np.uint64(byte)) * _FNV_PRIME
    return value


_RAW_TEXT_NAMES = np.array(
    [
        name_hash(name)
        for name in ("script", "iframe", "noembed", "noframes", "style", "textarea", "title", "xmp")
    ]
)
_SCRIPT = name_hash("script")
_PLAINTEXT = name_hash("plaintext")


@njit(cache=True)
def position_after(data, byte, start):  # type: ignore[no-untyped-def]
    """The position behind the next `byte`, or the end of the page."""
    for i in range(np.uint64(start), np.uint64(data.size)):  # unsigned: no check for negative indices
        if data[i] == byte:
            return np.int64(i) + 1
    return data.size


@njit(cache=True)
def _after_comment(data, start):  # type: ignore[no-untyped-def]
    """The position behind a comment whose `<!--` ends at `start`."""
    n = data.size
    if start < n and data[start] == 62:  # <!-->
        return start + 1
    if start + 1 < n and data[start] == 45 and data[start + 1] == 62:  # <!--->
        return start + 2
    for i in range(start, n - 2):
        if data[i] == 45 and data[i + 1] == 45:
            if data[i + 2] == 62:
                return i + 3
            if data[i + 2] == 33 and i + 3 < n and data[i + 3] == 62:
                return i + 4
    return n


@njit(cache=True)
def next_with(data, meanings, start):  # type: ignore[no-untyped-def]
    """The position of the next byte with one of these meanings, or the end of the page."""
    for i in range(np.uint64(start), np.uint64(data.size)):
        if _MEANING[data[i]] & meanings:
            return np.int64(i)
    return data.size


@njit(cache=True)
def next_without(data, meanings, start):  # type: ignore[no-untyped-def]
    """The position of the next byte with none of these meanings, or the end of the page."""
    for i in range(np.uint64(start), np.uint64(data.size)):
        if not _MEANING[data[i]] & meanings:
            return np.int64(i)
    return data.size


@njit(cache=True)
def _names_tag(data, start, name, length):  # type: ignore[no-untyped-def]
    """Whether a tag name of this hash and length, and its end, stand at `start`.

    Looking no further than the length keeps `<a<a<a...` from costing n².
    """
    end = start + length
    return end < data.size and _MEANING[data[end]] & _ENDS_NAME != 0 and hash_of(data, start, end) == name


@njit(cache=True)
def _after_raw_text(data, start, name, length):  # type: ignore[no-untyped-def]
    """The position of the end tag that closes a raw-text element, or the end of the page.

    In a script, `<!--` opens a part in which `<script>` hides one `</script>`
    (the standard's script data double escaped state).
    """
    n = data.size
    is_script = name == _SCRIPT
    escaped = False
    double_escaped = False
    for i in range(start, n):
        byte = data[i]
        if byte == 60 and i + 1 < n:
            if data[i + 1] == 47:
                if _names_tag(data, i + 2, name, length):
                    if not double_escaped:
                        return i
                    double_escaped = False
            elif is_script and not escaped:
                if i + 3 < n and data[i + 1] == 33 and data[i + 2] == 45 and data[i + 3] == 45:
                    escaped = True
            elif is_script and _names_tag(data, i + 1, name, length):
                double_escaped = True
        elif escaped and byte == 62 and data[i - 1] == 45 and data[i - 2] == 45:
            escaped = False
            double_escaped = False
    return n


@njit(cache=True)
def _attributes(data, start):  # type: ignore[no-untyped-def]
    """The number of attributes of a tag whose name ends at `start`, and the position behind the tag.

    The position is -1 if the tag does not end.
    """
    n = data.size
    count = 0
    i = start
    while True:
        i = next_without(data, SPACE | SLASH, i)
        if i >= n:
            return count, -1
        if data[i] == 62:
            return count, i + 1
        count += 1
        i = next_with(data, ENDS_ATTRIBUTE, i + 1)  # a first `=` belongs to the name
        i = next_without(data, SPACE, i)
        if i < n and data[i] == 61:
            i = next_without(data, SPACE, i + 1)
            if i < n and (data[i] == 34 or data[i] == 39):
                i = position_after(data, data[i], i + 1)
            else:
                i = next_with(data, ENDS_VALUE, i)


@njit(cache=True)
def next_tag(data, position):  # type: ignore[no-untyped-def]
    """The next tag from a position on: start, end, name, whether an end tag, attributes, where to go on.

    The start is -1 where there is none any more.
    """
    n = data.size
    i = position
    while True:
        i = position_after(data, 60, i)
        if i >= n:
            return -1, n, _FNV_BASIS, False, 0, n
        start = i - 1
        byte = data[i]
        if byte == 33 and i + 2 < n and data[i + 1] == 45 and data[i + 2] == 45:
            i = _after_comment(data, i + 3)
            continue
        is_end = byte == 47
        first = i + 1 if is_end else i
        if first < n and _MEANING[data[first]] == _LETTER:
            end_of_name = next_with(data, _ENDS_NAME, first)
            name = hash_of(data, first, end_of_name)
            attributes, end = _attributes(data, end_of_name)
            if end < 0:
                return -1, n, _FNV_BASIS, False, 0, n
            resume = end
            if not is_end:
                if name == _PLAINTEXT:
                    resume = n
                for raw in _RAW_TEXT_NAMES:
                    if name == raw:
                        resume = _after_raw_text(data, end, name, end_of_name - first)
            return start, end, name, is_end, attributes, resume
        if is_end or byte == 33 or byte == 63:  # </ followed by no letter, <!doctype, <?xml
            i = position_after(data, 62, i)


@njit(cache=True)
def _scan(data, starts, ends, names, are_ends, attributes):  # type: ignore[no-untyped-def]
    count = 0
    position = 0
    while True:
        start, end, name, is_end, number, position = next_tag(data, position)
        if start < 0:
            return count
        starts[count] = start
        ends[count] = end
        names[count] = name
        are_ends[count] = is_end
        attributes[count] = number
        count += 1
