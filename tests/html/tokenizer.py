"""The tokenizer of the HTML standard (section 13.2.5), state by state: the twin of the tag scanner.

It knows nothing but tags. Which elements hold text instead of markup is the tree
builder's business in the standard; here the last start tag decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

State: TypeAlias = Callable[[bytes], Any]  # takes a byte, gives the next state

END = b""  # the end of the file
SPACE = {b"\t", b"\n", b"\x0c", b"\r", b" "}
LETTERS = {bytes([code]) for code in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"}
TEXT_ELEMENTS = {b"iframe", b"noembed", b"noframes", b"style", b"textarea", b"title", b"xmp"}


class Tag(NamedTuple):
    start: int
    end: int
    name: bytes
    is_end: bool
    attributes: int


def tokenize(data: bytes) -> list[Tag]:
    return _Tokenizer(data).run()


class _Tokenizer:
    def __init__(self, data: bytes) -> None:
        self.input = data
        self.at = 0
        self.reconsume = False
        self.tags: list[Tag] = []
        self.start = 0  # of the tag being read
        self.name = b""
        self.is_end = False
        self.attributes = 0
        self.last_start_tag = b""
        self.text_state: State = self.data  # where an inappropriate end tag leads back to
        self.buffer = b""

    def run(self) -> list[Tag]:
        state: State = self.data
        for at in range(len(self.input) + 1):
            self.at = at
            byte = self.input[at : at + 1]
            self.reconsume = True
            while self.reconsume:
                self.reconsume = False
                state = state(byte)
        return self.tags

    def again(self, state: State) -> State:
        """The next state, to be given the same byte."""
        self.reconsume = True
        return state

    def open_tag(self, *, is_end: bool) -> None:
        self.name, self.is_end, self.attributes = b"", is_end, 0

    def emit(self) -> State:
        self.tags.append(Tag(self.start, self.at + 1, self.name, self.is_end, self.attributes))
        if self.is_end:
            return self.data
        self.last_start_tag = self.name
        if self.name == b"plaintext":
            return self.plaintext
        if self.name == b"script":
            return self.script_data
        return self.raw_text if self.name in TEXT_ELEMENTS else self.data

    def data(self, c: bytes) -> State:
        if c == b"<":
            self.start = self.at
            return self.tag_open
        return self.data

    def plaintext(self, _: bytes) -> State:
        return self.plaintext

    # Tags

    def tag_open(self, c: bytes) -> State:
        if c == b"!":
            return self.markup_declaration_open
        if c == b"/":
            return self.end_tag_open
        if c in LETTERS:
            self.open_tag(is_end=False)
            return self.again(self.tag_name)
        if c == b"?":
            return self.again(self.bogus_comment)
        return self.again(self.data)

    def end_tag_open(self, c: bytes) -> State:
        if c in LETTERS:
            self.open_tag(is_end=True)
            return self.again(self.tag_name)
        if c == b">":
            return self.data
        return self.again(self.data if c == END else self.bogus_comment)

    def tag_name(self, c: bytes) -> State:
        if c in SPACE:
            return self.before_attribute_name
        if c == b"/":
            return self.self_closing_start_tag
        if c == b">":
            return self.emit()
        self.name += c.lower()
        return self.tag_name

    def self_closing_start_tag(self, c: bytes) -> State:
        if c == b">":
            return self.emit()
        return self.data if c == END else self.again(self.before_attribute_name)

    def before_attribute_name(self, c: bytes) -> State:
        if c in SPACE:
            return self.before_attribute_name
        if c in {b"/", b">", END}:
            return self.again(self.after_attribute_name)
        self.attributes += 1
        return self.attribute_name if c == b"=" else self.again(self.attribute_name)

    def attribute_name(self, c: bytes) -> State:
        if c in SPACE or c in {b"/", b">", END}:
            return self.again(self.after_attribute_name)
        return self.before_attribute_value if c == b"=" else self.attribute_name

    def after_attribute_name(self, c: bytes) -> State:
        if c in SPACE:
            return self.after_attribute_name
        if c == b"/":
            return self.self_closing_start_tag
        if c == b"=":
            return self.before_attribute_value
        if c == b">":
            return self.emit()
        if c == END:
            return self.data
        self.attributes += 1
        return self.again(self.attribute_name)

    def before_attribute_value(self, c: bytes) -> State:
        if c in SPACE:
            return self.before_attribute_value
        if c == b'"':
            return self.attribute_value_double_quoted
        if c == b"'":
            return self.attribute_value_single_quoted
        return self.emit() if c == b">" else self.again(self.attribute_value_unquoted)

    def attribute_value_double_quoted(self, c: bytes) -> State:
        return self.after_attribute_value_quoted if c == b'"' else self.attribute_value_double_quoted

    def attribute_value_single_quoted(self, c: bytes) -> State:
        return self.after_attribute_value_quoted if c == b"'" else self.attribute_value_single_quoted

    def attribute_value_unquoted(self, c: bytes) -> State:
        if c in SPACE:
            return self.before_attribute_name
        return self.emit() if c == b">" else self.attribute_value_unquoted

    def after_attribute_value_quoted(self, c: bytes) -> State:
        if c in SPACE:
            return self.before_attribute_name
        if c == b"/":
            return self.self_closing_start_tag
        if c == b">":
            return self.emit()
        return self.data if c == END else self.again(self.before_attribute_name)

    # Comments; a doctype ends at its first > in every state, as a bogus comment does

    def markup_declaration_open(self, _: bytes) -> State:
        if self.input.startswith(b"--", self.at):
            return self.second_dash
        return self.again(self.bogus_comment)

    def second_dash(self, _: bytes) -> State:
        return self.comment_start

    def bogus_comment(self, c: bytes) -> State:
        return self.data if c == b">" else self.bogus_comment

    def comment_start(self, c: bytes) -> State:
        if c == b"-":
            return self.comment_start_dash
        return self.data if c == b">" else self.again(self.comment)

    def comment_start_dash(self, c: bytes) -> State:
        if c == b"-":
            return self.comment_end
        return self.data if c == b">" else self.again(self.comment)

    def comment(self, c: bytes) -> State:
        if c == b"<":
            return self.comment_less_than
        return self.comment_end_dash if c == b"-" else self.comment

    def comment_less_than(self, c: bytes) -> State:
        if c == b"!":
            return self.comment_less_than_bang
        return self.comment_less_than if c == b"<" else self.again(self.comment)

    def comment_less_than_bang(self, c: bytes) -> State:
        return self.comment_less_than_bang_dash if c == b"-" else self.again(self.comment)

    def comment_less_than_bang_dash(self, c: bytes) -> State:
        if c == b"-":
            return self.comment_less_than_bang_dash_dash
        return self.again(self.comment_end_dash)

    def comment_less_than_bang_dash_dash(self, _: bytes) -> State:
        return self.again(self.comment_end)

    def comment_end_dash(self, c: bytes) -> State:
        return self.comment_end if c == b"-" else self.again(self.comment)

    def comment_end(self, c: bytes) -> State:
        if c == b">":
            return self.data
        if c == b"!":
            return self.comment_end_bang
        return self.comment_end if c == b"-" else self.again(self.comment)

    def comment_end_bang(self, c: bytes) -> State:
        if c == b"-":
            return self.comment_end_dash
        return self.data if c == b">" else self.again(self.comment)

    # RCDATA and RAWTEXT, which differ only in their entities

    def raw_text(self, c: bytes) -> State:
        return self.raw_less_than(self.raw_text) if c == b"<" else self.raw_text

    def raw_less_than(self, text_state: State) -> State:
        self.start = self.at
        self.text_state = text_state
        return self.raw_less_than_sign

    def raw_less_than_sign(self, c: bytes) -> State:
        return self.raw_end_tag_open if c == b"/" else self.again(self.text_state)

    def raw_end_tag_open(self, c: bytes) -> State:
        if c in LETTERS:
            self.open_tag(is_end=True)
            return self.again(self.raw_end_tag_name)
        return self.again(self.text_state)

    def raw_end_tag_name(self, c: bytes) -> State:
        if c in LETTERS:
            self.name += c.lower()
            return self.raw_end_tag_name
        if self.name == self.last_start_tag:
            if c in SPACE:
                return self.before_attribute_name
            if c == b"/":
                return self.self_closing_start_tag
            if c == b">":
                return self.emit()
        return self.again(self.text_state)

    # Scripts

    def script_data(self, c: bytes) -> State:
        if c == b"<":
            self.start = self.at
            self.text_state = self.script_data
            return self.script_data_less_than
        return self.script_data

    def script_data_less_than(self, c: bytes) -> State:
        if c == b"/":
            return self.raw_end_tag_open
        return self.script_data_escape_start if c == b"!" else self.again(self.script_data)

    def script_data_escape_start(self, c: bytes) -> State:
        return self.script_data_escape_start_dash if c == b"-" else self.again(self.script_data)

    def script_data_escape_start_dash(self, c: bytes) -> State:
        return self.script_data_escaped_dash_dash if c == b"-" else self.again(self.script_data)

    def script_data_escaped(self, c: bytes) -> State:
        if c == b"-":
            return self.script_data_escaped_dash
        return self.escaped_less_than() if c == b"<" else self.script_data_escaped

    def script_data_escaped_dash(self, c: bytes) -> State:
        if c == b"-":
            return self.script_data_escaped_dash_dash
        return self.escaped_less_than() if c == b"<" else self.script_data_escaped

    def script_data_escaped_dash_dash(self, c: bytes) -> State:
        if c == b"-":
            return self.script_data_escaped_dash_dash
        if c == b"<":
            return self.escaped_less_than()
        return self.script_data if c == b">" else self.script_data_escaped

    def escaped_less_than(self) -> State:
        self.start = self.at
        self.text_state = self.script_data_escaped
        return self.script_data_escaped_less_than

    def script_data_escaped_less_than(self, c: bytes) -> State:
        if c == b"/":
            return self.raw_end_tag_open
        if c in LETTERS:
            self.buffer = b""
            return self.again(self.script_data_double_escape_start)
        return self.again(self.script_data_escaped)

    def script_data_double_escape_start(self, c: bytes) -> State:
        if c in SPACE or c in {b"/", b">"}:
            return self.double_escaped if self.buffer == b"script" else self.script_data_escaped
        if c in LETTERS:
            self.buffer += c.lower()
            return self.script_data_double_escape_start
        return self.again(self.script_data_escaped)

    def double_escaped(self, c: bytes) -> State:
        if c == b"-":
            return self.double_escaped_dash
        return self.double_escaped_less_than if c == b"<" else self.double_escaped

    def double_escaped_dash(self, c: bytes) -> State:
        if c == b"-":
            return self.double_escaped_dash_dash
        return self.double_escaped_less_than if c == b"<" else self.double_escaped

    def double_escaped_dash_dash(self, c: bytes) -> State:
        if c == b"-":
            return self.double_escaped_dash_dash
        if c == b"<":
            return self.double_escaped_less_than
        return self.script_data if c == b">" else self.double_escaped

    def double_escaped_less_than(self, c: bytes) -> State:
        if c == b"/":
            self.buffer = b""
            return self.double_escape_end
        return self.again(self.double_escaped)

    def double_escape_end(self, c: bytes) -> State:
        if c in SPACE or c in {b"/", b">"}:
            return self.script_data_escaped if self.buffer == b"script" else self.double_escaped
        if c in LETTERS:
            self.buffer += c.lower()
            return self.double_escape_end
        return self.again(self.double_escaped)
