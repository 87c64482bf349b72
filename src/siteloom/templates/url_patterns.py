r"""Generalise the URLs of a cluster to regular expressions.

`^https?://www\.shop\.example/product/[^/?#]+\.html$` matches the products of a shop, including unknown ones.
Patterns are a cheap first test before a page is parsed: a pattern that is too wide costs a little time, one
that is too narrow loses pages. So http and https are equal, and so are URLs that differ only after a `#`,
which no server ever receives.

A pattern takes linear time on any text: there are only literals between a wildcard and the next separator,
which the wildcard does not match. So the end of each wildcard is determined, and there is no backtracking.
"""

from __future__ import annotations

import re
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

# After Gulhane et al. (ICDE 2011), as far as published: a cluster has few patterns, and affixes that are so
# short that they may be common by chance are dropped.
_MAX_PATTERNS = 3
_LEAST_AFFIX = 3

# In fewer URLs, a common number counts as chance: five cars of one year are quickly found. For words that
# would usually be wrong, since scripts and folders have such names.
_FEW_ADDRESSES = 10

# Merging takes cubic time in the number of groups: a quarter of a second for 32.
_MAX_GROUPS = 32

# Limits against hostile URLs, far above real ones: the rest of a longer path or query is one field, and the
# rest of a longer field is a wildcard.
_MAX_FIELDS = 16
_MAX_LITERAL = 128
_MAX_ORIGIN = 300  # a host name has at most 253 characters, plus scheme and port

# Up to so many hosts are listed one by one; more are generalised to their common end.
_MAX_HOSTS = 8

_HTTP = "https?://"
_ANY_ORIGIN = "[^/?#]*(?://[^/?#]*)?"

_URL = re.compile(
    r"(?P<opening>(?:[A-Za-z][A-Za-z0-9+.-]*:)?//|)(?P<authority>[^/?]*)"
    r"(?:/(?P<path>[^?]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
_DIGITS = "0123456789"
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+://[^/?#]*+")
_TOKEN = re.compile(r"[0-9]+|[^\W\d_]+|.", re.DOTALL)
# The beginning of patterns of one host, if the host is a plain literal.
_HOST = re.compile(r"\^https\?://[^/?\[(]+(?=/)")
_META = re.compile(r"[\\.^$*+?{}\[\]|()]")


def url_patterns(urls: Iterable[str]) -> tuple[str, ...]:
    """Return at most three narrow patterns that together match all the URLs.

    They do not depend on the order or the frequency of the URLs.
    """
    addresses = [_parse_address(url) for url in sorted({_plain(url) for url in urls})]
    shapes = [_shape(group) for group in _groups(addresses)]
    while len(shapes) > _MAX_PATTERNS:
        first_shape, second_shape = min(combinations(shapes, 2), key=lambda pair: _loss(*pair))
        shapes.remove(second_shape)
        shapes[shapes.index(first_shape)] = _merge(first_shape, second_shape)
    return tuple(sorted({_pattern(shape).regex for shape in shapes}))


def matches(pattern: str, url: str) -> bool:
    """Return whether a URL matches a pattern."""
    return re.fullmatch(pattern, _plain(url)) is not None


class PatternSet:
    """Patterns combined into one expression, which is faster than many separate ones."""

    def __init__(self, patterns: Iterable[str]) -> None:
        by_host: dict[str, list[tuple[int, str]]] = {}
        for number, pattern in enumerate(patterns):
            host = host_match[0] if (host_match := _HOST.match(pattern)) else "^"
            by_host.setdefault(host, []).append((number, pattern[len(host) : -1]))
        self._numbers = [number for tails in by_host.values() for number, _ in tails]
        self._combined = re.compile(
            "".join(
                rf"(?=(?:{host}{''.join(_lookahead_group(tail) for _, tail in tails)})?)"
                for host, tails in by_host.items()
            )
        )

    def matching(self, url: str) -> set[int]:
        """Return the numbers of the patterns that a URL matches."""
        match = self._combined.match(_plain(url))
        assert match is not None, "looking ahead for what may be missing succeeds"
        matched = zip(self._numbers, match.groups(), strict=True)
        return {number for number, group in matched if group is not None}


def _lookahead_group(tail: str) -> str:
    r"""Return a lookahead for the rest of a pattern that sets an empty group if it matches to the end.

    It uses `\Z` because `$` would allow a trailing line break.
    """
    return rf"(?=(?:{tail}\Z())?)"


def _plain(url: str) -> str:
    """Return a URL without its fragment, with scheme and host in lower case."""
    origin = _ORIGIN.match(url)
    return (url if origin is None else origin[0].lower() + url[origin.end() :]).partition("#")[0]


class _Syntax(NamedTuple):
    """The syntax of a path or a query: its opening, the separator of its fields, and their characters."""

    opening: str
    separator: str
    field: str
    open_field: str
    unless_empty: str  # the quantifier if no field was empty


_PATH = _Syntax(opening="/", separator="/", field="[^/?#]", open_field="[^?#]", unless_empty="+")
# Forms send empty fields too, so any value may be empty.
_QUERY = _Syntax(opening=r"\?", separator="&", field="[^&#]", open_field="[^#]", unless_empty="*")


class _Field(NamedTuple):
    """The common parts of the texts in one field, in tokens: words, numbers and other characters.

    Prefix and suffix may overlap; `shortest` is the number of tokens of the shortest text.
    """

    prefix: tuple[str, ...]
    suffix: tuple[str, ...]
    shortest: int
    is_constant: bool


class _Component(NamedTuple):
    """The fields of a path or of a query; if open, the last may contain separators."""

    fields: tuple[_Field, ...]
    is_open: bool
    is_optional: bool


class _Origin(NamedTuple):
    """The relevant parts of a URL before its path."""

    opening_regex: str
    authority: str


class _Address(NamedTuple):
    """A parsed URL; missing components are None, and so is an origin that is too long to be real."""

    origin: _Origin | None
    path: _Component | None
    query: _Component | None
    query_keys: tuple[str, ...] | None


class _Shape(NamedTuple):
    """The common form of some URLs, and the number of these."""

    origins: frozenset[_Origin | None]
    path: _Component | None
    query: _Component | None
    size: int


class _Regex(NamedTuple):
    """A piece of a pattern, and its number of literal characters, not counting separators."""

    regex: str
    literals: int


def _parse_address(url: str) -> _Address:
    match = _URL.fullmatch(url)
    assert match is not None, "the expression matches any text"
    opening, authority, path, query = match.group("opening", "authority", "path", "query")
    opening_regex = _HTTP if opening in ("http://", "https://") else _escaped(opening)
    return _Address(
        origin=_Origin(opening_regex, authority) if len(opening + authority) <= _MAX_ORIGIN else None,
        path=_parse_component(path, _PATH),
        query=_parse_component(query, _QUERY),
        query_keys=_query_keys(query),
    )


def _parse_component(text: str | None, syntax: _Syntax) -> _Component | None:
    if text is None:
        return None
    texts = text.split(syntax.separator, _MAX_FIELDS - 1)
    is_open = syntax.separator in texts[-1]
    return _Component(tuple(map(_parse_field, texts)), is_open, is_optional=False)


def _query_keys(query: str | None) -> tuple[str, ...] | None:
    if query is None:
        return None
    items = query.split(_QUERY.separator, _MAX_FIELDS - 1)
    return tuple(item.partition("=")[0] if "=" in item else "" for item in items)


def _parse_field(text: str) -> _Field:
    tokens = tuple(_TOKEN.findall(text[:_MAX_LITERAL]))
    is_complete = len(text) <= _MAX_LITERAL
    return _Field(
        prefix=tokens, suffix=tokens if is_complete else (), shortest=len(tokens), is_constant=is_complete
    )


def _groups(addresses: Sequence[_Address]) -> list[list[_Address]]:
    """Group URLs of the same form, by the finest of these criteria that does not make too many groups."""
    notions: tuple[Callable[[_Address], Hashable], ...] = (
        lambda address: (address.origin, _length(address.path), address.query_keys),
        lambda address: (_length(address.path), address.query_keys),
    )
    for notion in notions:
        groups = _group_by(addresses, notion)
        if len(groups) <= _MAX_GROUPS:
            return groups
    return _group_by(addresses, lambda address: _length(address.path))


def _length(component: _Component | None) -> int:
    """Return the number of fields; it is limited, so grouping by length never makes too many groups."""
    return -1 if component is None else len(component.fields)


def _group_by(addresses: Sequence[_Address], notion: Callable[[_Address], Hashable]) -> list[list[_Address]]:
    groups: dict[Hashable, list[_Address]] = {}
    for address in addresses:
        groups.setdefault(notion(address), []).append(address)
    return list(groups.values())


def _shape(addresses: Sequence[_Address]) -> _Shape:
    return _Shape(
        origins=frozenset(address.origin for address in addresses),
        path=reduce(_common_path, (address.path for address in addresses)),
        query=reduce(_common_query, (address.query for address in addresses)),
        size=len(addresses),
    )


def _merge(shape: _Shape, other_shape: _Shape) -> _Shape:
    return _Shape(
        origins=shape.origins | other_shape.origins,
        path=_common_path(shape.path, other_shape.path),
        query=_common_query(shape.query, other_shape.query),
        size=shape.size + other_shape.size,
    )


def _loss(shape: _Shape, other_shape: _Shape) -> int:
    """Return the total number of literals that the URLs of two shapes lose by a merge."""
    merged_literals = _pattern(_merge(shape, other_shape)).literals
    return shape.size * (_pattern(shape).literals - merged_literals) + other_shape.size * (
        _pattern(other_shape).literals - merged_literals
    )


def _common_path(path: _Component | None, other_path: _Component | None) -> _Component | None:
    return _common_component(path, other_path, _PATH.separator)


def _common_query(query: _Component | None, other_query: _Component | None) -> _Component | None:
    return _common_component(query, other_query, _QUERY.separator)


def _common_component(
    component: _Component | None, other_component: _Component | None, separator: str
) -> _Component | None:
    if component is None or other_component is None:
        present = component or other_component
        return present and present._replace(is_optional=True)
    length = min(len(component.fields), len(other_component.fields))
    pairs = zip(
        _fold_fields(component.fields, length, separator),
        _fold_fields(other_component.fields, length, separator),
        strict=True,
    )
    return _Component(
        tuple(_common_field(field, other_field) for field, other_field in pairs),
        is_open=component.is_open
        or other_component.is_open
        or len(component.fields) != len(other_component.fields),
        is_optional=component.is_optional or other_component.is_optional,
    )


def _fold_fields(fields: tuple[_Field, ...], length: int, separator: str) -> tuple[_Field, ...]:
    """Reduce fields to a number of them, joining all further ones into the last."""
    last_field = reduce(
        lambda field, next_field: _concatenate(field, separator, next_field), fields[length - 1 :]
    )
    return (*fields[: length - 1], last_field)


def _concatenate(field: _Field, separator: str, next_field: _Field) -> _Field:
    return _Field(
        prefix=(*field.prefix, separator, *next_field.prefix) if field.is_constant else field.prefix,
        suffix=(*field.suffix, separator, *next_field.suffix)
        if next_field.is_constant
        else next_field.suffix,
        shortest=field.shortest + 1 + next_field.shortest,
        is_constant=field.is_constant and next_field.is_constant,
    )


def _common_field(field: _Field, other_field: _Field) -> _Field:
    return _Field(
        prefix=_common_prefix(field.prefix, other_field.prefix),
        suffix=_common_prefix(field.suffix[::-1], other_field.suffix[::-1])[::-1],
        shortest=min(field.shortest, other_field.shortest),
        is_constant=field.is_constant and other_field.is_constant and field.prefix == other_field.prefix,
    )


def _common_prefix(tokens: tuple[str, ...], other_tokens: tuple[str, ...]) -> tuple[str, ...]:
    length = 0
    for token, other_token in zip(tokens, other_tokens, strict=False):
        if token != other_token:
            break
        length += 1
    return tokens[:length]


def _pattern(shape: _Shape) -> _Regex:
    """Return the pattern of a shape; short affixes are kept if it has nothing else besides the host."""
    if shape.size == 1:
        shape = shape._replace(path=_loosened_path(shape.path), query=_loosened_query(shape.query))
    elif shape.size < _FEW_ADDRESSES:
        shape = shape._replace(path=_without_numbers(shape.path), query=_without_numbers(shape.query))
    origin = _origin_regex(shape.origins)
    path_and_query = _path_and_query_regex(shape, _LEAST_AFFIX)
    if not path_and_query.literals:
        path_and_query = _path_and_query_regex(shape, 1)
    return _Regex(f"^{origin.regex}{path_and_query.regex}$", origin.literals + path_and_query.literals)


def _path_and_query_regex(shape: _Shape, least_affix: int) -> _Regex:
    path = _component_regex(shape.path, _PATH, least_affix)
    query = _component_regex(shape.query, _QUERY, least_affix)
    return _Regex(path.regex + query.regex, path.literals + query.literals)


def _loosened_path(path: _Component | None) -> _Component | None:
    """Generalise the path of a single URL: drop numbers and the last segment."""
    if path is None:
        return None
    fields = [_loosened_numbers(field) for field in path.fields]
    named = [i for i, field in enumerate(fields) if field.shortest]  # except an empty one after a final slash
    if named:
        fields[named[-1]] = _Field((), (), fields[named[-1]].shortest, is_constant=False)
    return path._replace(fields=tuple(fields))


def _without_numbers(component: _Component | None) -> _Component | None:
    return component and component._replace(fields=tuple(map(_loosened_numbers, component.fields)))


def _loosened_numbers(field: _Field) -> _Field:
    """Return a field without the literals from its first number to its last."""
    numbers_in_prefix = [index for index, token in enumerate(field.prefix) if token[0] in _DIGITS]
    numbers_in_suffix = [index for index, token in enumerate(field.suffix) if token[0] in _DIGITS]
    return _Field(
        prefix=field.prefix[: numbers_in_prefix[0]] if numbers_in_prefix else field.prefix,
        suffix=field.suffix[numbers_in_suffix[-1] + 1 :] if numbers_in_suffix else field.suffix,
        shortest=field.shortest,
        is_constant=field.is_constant and not numbers_in_prefix,
    )


def _loosened_query(query: _Component | None) -> _Component | None:
    """Generalise the query of a single URL: keep only the names of its values."""
    if query is None:
        return None
    return query._replace(fields=tuple(map(_loosened_value, query.fields)))


def _loosened_value(item: _Field) -> _Field:
    key_end = item.prefix.index("=") + 1 if "=" in item.prefix else 0
    return _Field(item.prefix[:key_end], (), item.shortest, is_constant=False)


def _origin_regex(origins: frozenset[_Origin | None]) -> _Regex:
    known_origins = sorted(origin for origin in origins if origin is not None)
    openings = sorted({origin.opening_regex for origin in known_origins})
    hosts = [origin.authority for origin in known_origins]
    is_listed = len(known_origins) <= _MAX_HOSTS
    if len(known_origins) < len(origins) or (len(openings) > 1 and not is_listed):
        return _Regex(_ANY_ORIGIN, 0)
    if not is_listed:
        end = _common_host_end(hosts)
        return _Regex(openings[0] + (rf"(?:[^/?#]*\.)?{_escaped(end)}" if end else "[^/?#]*"), len(end))
    if len(openings) == 1:
        regex = openings[0] + _one_of([_escaped(host) for host in hosts])
    else:
        regex = _one_of([origin.opening_regex + _escaped(origin.authority) for origin in known_origins])
    return _Regex(regex, min(map(len, hosts)))


def _common_host_end(hosts: Iterable[str]) -> str:
    """Return the common last labels of some hosts: `shop.example` of `a.shop.example`."""
    return ".".join(reduce(_common_prefix, (tuple(host.split(".")[::-1]) for host in hosts))[::-1])


def _one_of(choices: Sequence[str]) -> str:
    return choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})"


def _component_regex(component: _Component | None, syntax: _Syntax, least_affix: int) -> _Regex:
    if component is None:
        return _Regex("", 0)
    wildcards = [syntax.field] * (len(component.fields) - 1) + [
        syntax.open_field if component.is_open else syntax.field
    ]
    fields = [
        _field_regex(
            field=field, wildcard=wildcard, unless_empty=syntax.unless_empty, least_affix=least_affix
        )
        for field, wildcard in zip(component.fields, wildcards, strict=True)
    ]
    regex = syntax.opening + syntax.separator.join(field.regex for field in fields)
    if component.is_optional:
        return _Regex(f"(?:{regex})?", 0)  # an optional component requires no literals
    return _Regex(regex, sum(field.literals for field in fields))


def _field_regex(field: _Field, wildcard: str, unless_empty: str, least_affix: int) -> _Regex:
    if field.is_constant:
        text = "".join(field.prefix)
        return _Regex(_escaped(text), len(text))
    room = field.shortest - len(field.prefix)
    suffix = field.suffix[max(0, len(field.suffix) - room) :]
    literal_prefix, literal_suffix = "".join(field.prefix), "".join(suffix)
    tokens = len(field.prefix) + len(suffix)
    # The name of a query value is never common by chance.
    if len(literal_prefix + literal_suffix) < least_affix and "=" not in field.prefix:
        literal_prefix, literal_suffix, tokens = "", "", 0
    quantifier = unless_empty if field.shortest > tokens else "*"
    return _Regex(
        _escaped(literal_prefix) + wildcard + quantifier + _escaped(literal_suffix),
        len(literal_prefix + literal_suffix),
    )


def _escaped(text: str) -> str:
    """Return a literal, escaping only characters that are special in all dialects of regular expressions."""
    return _META.sub(r"\\\g<0>", text)
