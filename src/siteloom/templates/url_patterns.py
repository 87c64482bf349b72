r"""What the addresses of a cluster have in common, written as regular expressions.

`^https?://www\.shop\.example/product/[^/?#]+\.html$` matches the products of
a shop, those that were never seen among them. Patterns are a cheap first test,
made before a page is even parsed: one that is too wide costs a little time,
one that is too narrow loses pages. So http and https are the same, and so are
addresses that differ behind a `#`, which no server ever sees.

A pattern takes linear time on any text: between a wildcard and the separator
behind it, which it does not match, there are only literals. So a wildcard ends
where it must, and what failed once is not tried again with another end.
"""

from __future__ import annotations

import re
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

# After Gulhane et al. (ICDE 2011), as far as it is known: a cluster has few
# patterns, and affixes so short that they may be common by chance are not kept.
_MAX_PATTERNS = 3
_LEAST_AFFIX = 3

# That fewer addresses have a number in common is taken for chance: five cars of one year are soon found.
# Of words that would be wrong more often than right, for scripts and folders have such names.
_FEW_ADDRESSES = 10

# To choose what is merged takes the third power of the groups: for 32, a quarter of a second.
_MAX_GROUPS = 32

# Against hostile addresses, and far above what real ones have: of longer paths
# and queries the rest is one field, of longer fields the rest is a wildcard.
_MAX_FIELDS = 16
_MAX_LITERAL = 128
_MAX_ORIGIN = 300  # a host name has 253 characters at most; and there are scheme and port

# So many hosts are listed one by one; of more, what they end with is kept.
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
# What patterns of one host begin with, where it stands in them as a plain literal.
_HOST = re.compile(r"\^https\?://[^/?\[(]+(?=/)")
_META = re.compile(r"[\\.^$*+?{}\[\]|()]")


def url_patterns(urls: Iterable[str]) -> tuple[str, ...]:
    """At most three patterns, as narrow as is sensible, that together match all the URLs.

    They do not depend on the order of the URLs, nor on how often each comes.
    """
    addresses = [_address(url) for url in sorted({_plain(url) for url in urls})]
    shapes = [_shape(group) for group in _groups(addresses)]
    while len(shapes) > _MAX_PATTERNS:
        first, second = min(combinations(shapes, 2), key=lambda pair: _loss(*pair))
        shapes.remove(second)
        shapes[shapes.index(first)] = _merged(first, second)
    return tuple(sorted({_pattern(shape).regex for shape in shapes}))


def matches(pattern: str, url: str) -> bool:
    """Whether a URL has the form of a pattern."""
    return re.fullmatch(pattern, _plain(url)) is not None


class PatternSet:
    """Patterns that are tried in one call; if they are many, that is faster than one by one."""

    def __init__(self, patterns: Iterable[str]) -> None:
        by_host: dict[str, list[tuple[int, str]]] = {}
        for number, pattern in enumerate(patterns):
            host = found[0] if (found := _HOST.match(pattern)) else "^"
            by_host.setdefault(host, []).append((number, pattern[len(host) : -1]))
        self._numbers = [number for rests in by_host.values() for number, _ in rests]
        self._all = re.compile(
            "".join(
                rf"(?=(?:{host}{''.join(_setting_a_group(rest) for _, rest in rests)})?)"
                for host, rests in by_host.items()
            )
        )

    def matching(self, url: str) -> set[int]:
        """The numbers of the patterns that a URL has the form of."""
        found = self._all.match(_plain(url))
        assert found is not None, "looking ahead for what may be missing succeeds"
        matched = zip(self._numbers, found.groups(), strict=True)
        return {number for number, group in matched if group is not None}


def _setting_a_group(rest: str) -> str:
    """What looks ahead for the rest of a pattern and sets an empty group if it is there, up to the end.

    The end is written so because the usual sign for it allows a line break behind it.
    """
    return rf"(?=(?:{rest}\Z())?)"


def _plain(url: str) -> str:
    """A URL without its fragment; scheme and host mean the same in capitals."""
    origin = _ORIGIN.match(url)
    return (url if origin is None else origin[0].lower() + url[origin.end() :]).partition("#")[0]


class _Syntax(NamedTuple):
    """How a path or a query is written: what opens it, what separates its fields, what they may hold."""

    opening: str
    separator: str
    field: str
    open_field: str
    unless_empty: str  # how often, if no empty text was seen


_PATH = _Syntax("/", "/", "[^/?#]", "[^?#]", "+")
# Forms send the fields that were left empty, so any value may be empty some day.
_QUERY = _Syntax(r"\?", "&", "[^&#]", "[^#]", "*")


class _Field(NamedTuple):
    """What the texts in one place have in common, in tokens: words, numbers and other characters.

    Prefix and suffix may overlap; `shortest` says how many tokens there is room for.
    """

    prefix: tuple[str, ...]
    suffix: tuple[str, ...]
    shortest: int
    is_constant: bool


class _Part(NamedTuple):
    """The fields of a path or of a query; the last may hold separators, and there may be none at all."""

    fields: tuple[_Field, ...]
    is_open: bool
    is_optional: bool


class _Origin(NamedTuple):
    """What stands before the path, as far as it matters."""

    opening_regex: str
    authority: str


class _Address(NamedTuple):
    """A URL in parts; an origin that is too long to be real is None, like a part that is not there."""

    origin: _Origin | None
    path: _Part | None
    query: _Part | None
    query_keys: tuple[str, ...] | None


class _Shape(NamedTuple):
    """What is common to some addresses, and how many they are."""

    origins: frozenset[_Origin | None]
    path: _Part | None
    query: _Part | None
    size: int


class _Regex(NamedTuple):
    """A piece of a pattern, and how many characters of it stand for themselves, separators aside."""

    regex: str
    literals: int


def _address(url: str) -> _Address:
    found = _URL.fullmatch(url)
    assert found is not None, "the expression matches any text"
    opening, authority, path, query = found.group("opening", "authority", "path", "query")
    opening_regex = _HTTP if opening in ("http://", "https://") else _escaped(opening)
    return _Address(
        origin=_Origin(opening_regex, authority) if len(opening + authority) <= _MAX_ORIGIN else None,
        path=_part(path, _PATH),
        query=_part(query, _QUERY),
        query_keys=_query_keys(query),
    )


def _part(text: str | None, syntax: _Syntax) -> _Part | None:
    if text is None:
        return None
    texts = text.split(syntax.separator, _MAX_FIELDS - 1)
    is_open = syntax.separator in texts[-1]
    return _Part(tuple(map(_field, texts)), is_open, is_optional=False)


def _query_keys(query: str | None) -> tuple[str, ...] | None:
    if query is None:
        return None
    items = query.split(_QUERY.separator, _MAX_FIELDS - 1)
    return tuple(item.partition("=")[0] if "=" in item else "" for item in items)


def _field(text: str) -> _Field:
    tokens = tuple(_TOKEN.findall(text[:_MAX_LITERAL]))
    is_whole = len(text) <= _MAX_LITERAL
    return _Field(tokens, tokens if is_whole else (), len(tokens), is_whole)


def _groups(addresses: Sequence[_Address]) -> list[list[_Address]]:
    """Addresses of the same form, by the finest of these notions that does not make too many groups."""
    notions: tuple[Callable[[_Address], Hashable], ...] = (
        lambda address: (address.origin, _length(address.path), address.query_keys),
        lambda address: (_length(address.path), address.query_keys),
    )
    for notion in notions:
        groups = _grouped(addresses, notion)
        if len(groups) <= _MAX_GROUPS:
            return groups
    return _grouped(addresses, lambda address: _length(address.path))


def _length(part: _Part | None) -> int:
    """At most `_MAX_FIELDS`, so that by length alone there are never too many groups."""
    return -1 if part is None else len(part.fields)


def _grouped(addresses: Sequence[_Address], notion: Callable[[_Address], Hashable]) -> list[list[_Address]]:
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


def _merged(a: _Shape, b: _Shape) -> _Shape:
    return _Shape(
        origins=a.origins | b.origins,
        path=_common_path(a.path, b.path),
        query=_common_query(a.query, b.query),
        size=a.size + b.size,
    )


def _loss(a: _Shape, b: _Shape) -> int:
    """How many literals less match the addresses of two shapes, all in all, once these are merged."""
    left = _pattern(_merged(a, b)).literals
    return a.size * (_pattern(a).literals - left) + b.size * (_pattern(b).literals - left)


def _common_path(a: _Part | None, b: _Part | None) -> _Part | None:
    return _common_part(a, b, _PATH.separator)


def _common_query(a: _Part | None, b: _Part | None) -> _Part | None:
    return _common_part(a, b, _QUERY.separator)


def _common_part(a: _Part | None, b: _Part | None, separator: str) -> _Part | None:
    if a is None or b is None:
        present = a or b
        return present and present._replace(is_optional=True)
    length = min(len(a.fields), len(b.fields))
    pairs = zip(_cut(a.fields, length, separator), _cut(b.fields, length, separator), strict=True)
    return _Part(
        tuple(_common_field(left, right) for left, right in pairs),
        is_open=a.is_open or b.is_open or len(a.fields) != len(b.fields),
        is_optional=a.is_optional or b.is_optional,
    )


def _cut(fields: tuple[_Field, ...], length: int, separator: str) -> tuple[_Field, ...]:
    """So many fields, with all that are left over in the last one."""
    last = reduce(lambda a, b: _chained(a, separator, b), fields[length - 1 :])
    return (*fields[: length - 1], last)


def _chained(a: _Field, separator: str, b: _Field) -> _Field:
    return _Field(
        prefix=(*a.prefix, separator, *b.prefix) if a.is_constant else a.prefix,
        suffix=(*a.suffix, separator, *b.suffix) if b.is_constant else b.suffix,
        shortest=a.shortest + 1 + b.shortest,
        is_constant=a.is_constant and b.is_constant,
    )


def _common_field(a: _Field, b: _Field) -> _Field:
    return _Field(
        prefix=_common_prefix(a.prefix, b.prefix),
        suffix=_common_prefix(a.suffix[::-1], b.suffix[::-1])[::-1],
        shortest=min(a.shortest, b.shortest),
        is_constant=a.is_constant and b.is_constant and a.prefix == b.prefix,
    )


def _common_prefix(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    same = 0
    for left, right in zip(a, b, strict=False):
        if left != right:
            break
        same += 1
    return a[:same]


def _pattern(shape: _Shape) -> _Regex:
    """The pattern of a shape; short affixes are kept if they are all that it has besides the host."""
    if shape.size == 1:
        shape = shape._replace(path=_loosened_path(shape.path), query=_loosened_query(shape.query))
    elif shape.size < _FEW_ADDRESSES:
        shape = shape._replace(path=_without_numbers(shape.path), query=_without_numbers(shape.query))
    origin = _origin_regex(shape.origins)
    rest = _path_and_query_regex(shape, _LEAST_AFFIX)
    if not rest.literals:
        rest = _path_and_query_regex(shape, 1)
    return _Regex(f"^{origin.regex}{rest.regex}$", origin.literals + rest.literals)


def _path_and_query_regex(shape: _Shape, least_affix: int) -> _Regex:
    path = _part_regex(shape.path, _PATH, least_affix)
    query = _part_regex(shape.query, _QUERY, least_affix)
    return _Regex(path.regex + query.regex, path.literals + query.literals)


def _loosened_path(path: _Part | None) -> _Part | None:
    """What one address alone says of others: nothing of numbers, and nothing of the last segment."""
    if path is None:
        return None
    fields = [_loosened_numbers(field) for field in path.fields]
    named = [i for i, field in enumerate(fields) if field.shortest]  # all but the one behind a last slash
    if named:
        fields[named[-1]] = _Field((), (), fields[named[-1]].shortest, is_constant=False)
    return path._replace(fields=tuple(fields))


def _without_numbers(part: _Part | None) -> _Part | None:
    return part and part._replace(fields=tuple(map(_loosened_numbers, part.fields)))


def _loosened_numbers(field: _Field) -> _Field:
    """A field without the literals from its first number to its last."""
    before = [place for place, token in enumerate(field.prefix) if token[0] in _DIGITS]
    behind = [place for place, token in enumerate(field.suffix) if token[0] in _DIGITS]
    return _Field(
        field.prefix[: before[0]] if before else field.prefix,
        field.suffix[behind[-1] + 1 :] if behind else field.suffix,
        field.shortest,
        field.is_constant and not before,
    )


def _loosened_query(query: _Part | None) -> _Part | None:
    """What one address alone says of others: the names of its values."""
    if query is None:
        return None
    return query._replace(fields=tuple(map(_loosened_value, query.fields)))


def _loosened_value(item: _Field) -> _Field:
    key_end = item.prefix.index("=") + 1 if "=" in item.prefix else 0
    return _Field(item.prefix[:key_end], (), item.shortest, is_constant=False)


def _origin_regex(origins: frozenset[_Origin | None]) -> _Regex:
    known = sorted(origin for origin in origins if origin is not None)
    openings = sorted({origin.opening_regex for origin in known})
    hosts = [origin.authority for origin in known]
    is_listed = len(known) <= _MAX_HOSTS
    if len(known) < len(origins) or (len(openings) > 1 and not is_listed):
        return _Regex(_ANY_ORIGIN, 0)
    if not is_listed:
        end = _common_host_end(hosts)
        return _Regex(openings[0] + (rf"(?:[^/?#]*\.)?{_escaped(end)}" if end else "[^/?#]*"), len(end))
    if len(openings) == 1:
        regex = openings[0] + _one_of([_escaped(host) for host in hosts])
    else:
        regex = _one_of([origin.opening_regex + _escaped(origin.authority) for origin in known])
    return _Regex(regex, min(map(len, hosts)))


def _common_host_end(hosts: Iterable[str]) -> str:
    """The last names of some hosts, as far as they are the same: `shop.example` of `a.shop.example`."""
    return ".".join(reduce(_common_prefix, (tuple(host.split(".")[::-1]) for host in hosts))[::-1])


def _one_of(choices: Sequence[str]) -> str:
    return choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})"


def _part_regex(part: _Part | None, syntax: _Syntax, least_affix: int) -> _Regex:
    if part is None:
        return _Regex("", 0)
    wildcards = [syntax.field] * (len(part.fields) - 1) + [
        syntax.open_field if part.is_open else syntax.field
    ]
    fields = [
        _field_regex(field, wildcard, syntax.unless_empty, least_affix)
        for field, wildcard in zip(part.fields, wildcards, strict=True)
    ]
    regex = syntax.opening + syntax.separator.join(field.regex for field in fields)
    if part.is_optional:
        return _Regex(f"(?:{regex})?", 0)  # demands nothing of an address
    return _Regex(regex, sum(field.literals for field in fields))


def _field_regex(field: _Field, wildcard: str, unless_empty: str, least_affix: int) -> _Regex:
    if field.is_constant:
        text = "".join(field.prefix)
        return _Regex(_escaped(text), len(text))
    room = field.shortest - len(field.prefix)
    suffix = field.suffix[max(0, len(field.suffix) - room) :]
    before, after = "".join(field.prefix), "".join(suffix)
    tokens = len(field.prefix) + len(suffix)
    # The name of a value in a query is never common by chance.
    if len(before + after) < least_affix and "=" not in field.prefix:
        before, after, tokens = "", "", 0
    quantifier = unless_empty if field.shortest > tokens else "*"
    return _Regex(_escaped(before) + wildcard + quantifier + _escaped(after), len(before + after))


def _escaped(text: str) -> str:
    """A literal; unlike `re.escape`, only what any dialect of regular expressions takes for special."""
    return _META.sub(r"\\\g<0>", text)
