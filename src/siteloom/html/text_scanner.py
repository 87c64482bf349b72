"""The texts of a page, found in its tree as the serializer of lxml writes it: where each stands, the hashes
of its words and of its path of tags, and the block that it belongs to.

The serializer writes XML, in which every `<` and `>` is a tag's, a comment's or an instruction's.
All arithmetic is on 64-bit whole numbers, so the hashes are the same in every process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.core.compiled import njit
from siteloom.html.page_scan import mix
from siteloom.html.tag_scanner import hash_of, position_after

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FNV_BASIS = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x00000100000001B3)

# What an element can mean for the texts in and around it.
BREAKS_LINE, IS_LAYOUT, IS_HIDDEN = 1, 2, 4

NO_ELEMENT = -1


class TagMeanings(NamedTuple):
    """What elements mean, by the hashes of their names, ascending."""

    names: NDArray[np.uint64]
    meanings: NDArray[np.uint8]


class TextScan(NamedTuple):
    """The elements and the shown texts of a page, in document order.

    Of an element: its parent (-1: none), and where its name stands. Of a text: where it stands, its hash
    together with its path's, the hash of its path, its characters in normal form, the number of the block it
    belongs to, and whether a blank parts it from the text before. Blocks are numbered from 0 in the order in
    which their texts begin; of each: its layout element, and the hash of the path of that.
    """

    parents: NDArray[np.int32]
    names: NDArray[np.int32]
    name_ends: NDArray[np.int32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    keys: NDArray[np.uint64]
    paths: NDArray[np.uint64]
    lengths: NDArray[np.int32]
    blocks: NDArray[np.int32]
    are_apart: NDArray[np.bool_]
    layouts: NDArray[np.int32]
    layout_paths: NDArray[np.uint64]


def scan_texts(xml: bytes, meanings: TagMeanings) -> TextScan:
    """The elements and the shown texts of a page."""
    room = xml.count(b"<") + 1
    numbers = np.empty((8, room), np.int32)
    hashes = np.empty((4, room), np.uint64)
    are_apart = np.empty(room, np.bool_)
    elements, texts, blocks = _scan_texts(np.frombuffer(xml, np.uint8), *meanings, numbers, hashes, are_apart)
    parents, names, name_ends, starts, ends, lengths, block_of, layouts = numbers
    _, keys, paths, layout_paths = hashes
    return TextScan(
        parents[:elements],
        names[:elements],
        name_ends[:elements],
        starts[:texts],
        ends[:texts],
        keys[:texts],
        paths[:texts],
        lengths[:texts],
        block_of[:texts],
        are_apart[:texts],
        layouts[:blocks],
        layout_paths[:blocks],
    )


@njit(cache=True)
def _blank_width(data, i, end):  # type: ignore[no-untyped-def]
    """The bytes of white space beyond ASCII at a position, as `str.split` knows it; 0 if there is none."""
    byte = data[i]
    if byte == 38:  # &#13;, which the serializer writes for a carriage return
        is_return = i + 4 < end and data[i + 1] == 35 and data[i + 2] == 49 and data[i + 3] == 51
        return 5 if is_return and data[i + 4] == 59 else 0
    if byte == 0xC2:
        return 2 if data[i + 1] == 0xA0 or data[i + 1] == 0x85 else 0
    if byte < 0xE1 or byte > 0xE3:
        return 0
    second, third = data[i + 1], data[i + 2]
    if byte == 0xE1:
        is_blank = second == 0x9A and third == 0x80  # U+1680
    elif byte == 0xE3:
        is_blank = second == 0x80 and third == 0x80  # U+3000
    elif second == 0x80:
        # U+2000 to U+200A, U+2028, U+2029 and U+202F
        is_blank = third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF
    else:
        is_blank = second == 0x81 and third == 0x9F  # U+205F
    return 3 if is_blank else 0


@njit(cache=True)
def _meaning(name, names, meanings):  # type: ignore[no-untyped-def]
    place = np.searchsorted(names, name)
    return meanings[place] if place < names.size and names[place] == name else np.uint8(0)


@njit(cache=True)
def _words(data, start, end):  # type: ignore[no-untyped-def]
    """The hash of a text in normal form, its characters, and whether it begins and ends with a blank."""
    value = _FNV_BASIS
    length = 0
    is_blank = begins_blank = False
    i = np.uint64(start)  # unsigned: no check for negative indices
    one, last = np.uint64(1), np.uint64(end)
    while i < last:
        byte = data[i]
        if byte <= 32:
            is_blank = True
            i += one
            continue
        if byte == 38 or byte >= 0xC2:
            width = _blank_width(data, np.int64(i), end)
            if width:
                is_blank = True
                i += np.uint64(width)
                continue
        if is_blank:
            if length:
                value = (value ^ np.uint64(32)) * _FNV_PRIME
                length += 1
            else:
                begins_blank = True
            is_blank = False
        length += byte & 0xC0 != 0x80  # the first byte of a character
        value = (value ^ np.uint64(byte)) * _FNV_PRIME
        i += one
        if byte == 38:  # &amp; &lt; &gt; are one character each
            while i < last and data[i - one] != 59:
                value = (value ^ np.uint64(data[i])) * _FNV_PRIME
                i += one
    return mix(value), length, begins_blank, is_blank


@njit(cache=True)
def _scan_texts(data, tag_names, meanings, numbers, hashes, are_apart):  # type: ignore[no-untyped-def]
    parents, names, name_ends, starts, ends, lengths, block_of, layouts = numbers
    paths, keys, text_paths, layout_paths = hashes
    size = data.size
    layout_of = np.empty(parents.size, np.int32)
    block_in = np.full(parents.size, -1, np.int32)  # of a layout element with text
    meaning_of = np.empty(parents.size, np.uint8)
    elements = texts = blocks = 0
    element = NO_ELEMENT
    hidden_in = NO_ELEMENT
    is_apart = True
    i = 0
    while i < size:
        start = i
        i = position_after(data, 60, start)
        end = i - 1 if i < size or data[size - 1] == 60 else size
        if start < end and element != NO_ELEMENT and hidden_in == NO_ELEMENT:
            words, length, begins_blank, ends_blank = _words(data, start, end)
            if length == 0:
                is_apart = True
            else:
                starts[texts] = start
                ends[texts] = end
                lengths[texts] = length
                keys[texts] = mix(paths[element] * _FNV_PRIME ^ words)
                text_paths[texts] = paths[element]
                layout = layout_of[element]
                if block_in[layout] < 0:
                    block_in[layout] = blocks
                    layouts[blocks] = layout
                    layout_paths[blocks] = paths[layout]
                    blocks += 1
                block_of[texts] = block_in[layout]
                are_apart[texts] = is_apart or begins_blank
                is_apart = ends_blank
                texts += 1
        if end == size:
            break
        byte = data[i]
        if byte == 47:  # </
            i = position_after(data, 62, i)
            if hidden_in == element:
                hidden_in = NO_ELEMENT
            if meaning_of[element] & BREAKS_LINE and hidden_in == NO_ELEMENT:
                is_apart = True
            element = parents[element]
        elif byte == 33 and data[i + 1] == 45:  # <!--
            i += 3
            while i < size and not (data[i] == 62 and data[i - 1] == 45 and data[i - 2] == 45):
                i += 1
            i += 1
        elif byte == 33 and data[i + 1] == 91:  # <![CDATA[, which it writes in scripts of XHTML
            i += 2
            while i < size and not (data[i] == 62 and data[i - 1] == 93 and data[i - 2] == 93):
                i += 1
            i += 1
        elif byte == 33 or byte == 63:
            i = position_after(data, 62, i)
        else:
            name_end = i
            while data[name_end] != 62 and data[name_end] != 32 and data[name_end] != 47:
                name_end += 1
            name = hash_of(data, i, name_end)
            names[elements] = i
            name_ends[elements] = name_end
            parents[elements] = element
            above = np.uint64(0) if element == NO_ELEMENT else paths[element]
            paths[elements] = mix(above * _FNV_PRIME ^ name)
            meaning = _meaning(name, tag_names, meanings)
            meaning_of[elements] = meaning
            is_layout = meaning & IS_LAYOUT or element == NO_ELEMENT
            layout_of[elements] = elements if is_layout else layout_of[element]
            if meaning & BREAKS_LINE and hidden_in == NO_ELEMENT:
                is_apart = True
            i = position_after(data, 62, name_end)
            if data[i - 2] != 47:  # not <br/>
                element = elements
                if meaning & IS_HIDDEN and hidden_in == NO_ELEMENT:
                    hidden_in = element
            elements += 1
    return elements, texts, blocks
