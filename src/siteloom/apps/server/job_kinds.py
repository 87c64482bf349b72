"""What a job may be: each kind is a function that tells how far it is, and gives what came of it as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from siteloom.core.errors import NotFound, Overtaken, UsageError
from siteloom.sources.crawling.url_filters import checked_url
from siteloom.store.erasure.erasure import erasure_targets

if TYPE_CHECKING:
    from siteloom.core.settings import Settings
    from siteloom.store.queries.accounts import Role
    from siteloom.store.store import Store

Report: TypeAlias = Callable[[int, int | None, str], None]
"""Tells how much is done, of how much if that is known, of what."""

What = Literal[
    "site",
    "sites",
    "sites or urls",
    "cluster",
    "wrapper",
    "text",
    "texts",
    "url",
    "urls",
    "number",
    "flag",
    "texts by name",
]
"""What an argument is: the name of something that must be there, or a value."""

_LARGEST_NUMBER = 2**31 - 1  # what databases take for one

_WORDS: Mapping[What, str] = {
    "site": "a text",
    "sites": "a list of texts",
    "sites or urls": "a list of texts",
    "cluster": "a text",
    "wrapper": "a text",
    "text": "a text",
    "texts": "a list of texts",
    "url": "a text",
    "urls": "a list of texts",
    "number": f"a whole number of at most {_LARGEST_NUMBER:,}",
    "flag": "true or false",
    "texts by name": "texts by name",
}


class Argument(NamedTuple):
    """An argument of a kind of job: what it is, and whether the job cannot do without."""

    what: What
    is_needed: bool = False


class JobKind(NamedTuple):
    """A kind of job: what it does, what it is called on pages, what it takes, and who may have it done."""

    run: Callable[[Store, Settings, Mapping[str, Any], Report], dict[str, Any]]
    title: str
    arguments: Mapping[str, Argument]
    role: Role = "editor"


class JobInput(NamedTuple):
    """Fields of a request that no argument can hold, such as the pages of an upload.

    `arguments` are those of the job that it takes in place of fields. `fields` makes the fields of them for
    the time that the operation runs; what it does after its `yield` is done if the operation succeeds.
    """

    arguments: Mapping[str, Argument]
    fields: Callable[[Store, Settings, Mapping[str, Any]], AbstractContextManager[Mapping[str, Any]]]


def checked_arguments(
    store: Store, kind: str, arguments: Mapping[str, object], kinds: Mapping[str, JobKind]
) -> dict[str, Any]:
    """The arguments of a job, complete, or one sentence about what is wrong with them."""
    if kind not in kinds:
        raise UsageError(f"There is no kind of job {kind}: there are {', '.join(kinds)}.")
    known = kinds[kind].arguments
    if others := sorted(arguments.keys() - known.keys()):
        takes = f"takes {', '.join(known)}, but not" if known else "takes no arguments, so no"
        raise UsageError(f"A job of the kind {kind} {takes} {others[0]}.")
    return {name: _checked(store, kind, name, one, arguments.get(name)) for name, one in known.items()}


def form_arguments(kind: JobKind, fields: Mapping[str, list[str]]) -> dict[str, object]:
    """The arguments of a job as a form of a page gives them; fields that are empty are not given."""
    given: dict[str, object] = {}
    for name, argument in kind.arguments.items():
        texts = [text for text in fields.get(name, ()) if text]
        if not texts:
            continue
        match argument.what:
            case "sites" | "sites or urls" | "texts":
                given[name] = texts
            case "urls":
                given[name] = " ".join(texts).split()  # many are written into one field
            case "number":
                is_number = texts[0].isdecimal() and len(texts[0]) <= len(str(_LARGEST_NUMBER))
                given[name] = int(texts[0]) if is_number else texts[0]
            case "flag":
                given[name] = True
            case _:
                given[name] = texts[0]
    return given


def check_edition(store: Store, arguments: Mapping[str, Any]) -> None:
    """Raise if a cluster was found anew since a person looked at it: its name may be that of another now.

    Who has looked tells the `edition` that it had then.
    """
    name, edition = arguments["cluster"], arguments["edition"]
    if edition not in (None, store.cluster_edition(name)):
        raise Overtaken(f"The templates were found anew since you looked at {name}: look at it again.")


def _checked(store: Store, kind: str, name: str, argument: Argument, given: object) -> object:
    if given is None:
        if argument.is_needed:
            raise UsageError(f"A job of the kind {kind} needs {name}.")
        return None
    if not _is(argument.what, given):
        raise UsageError(f"The {name} of a job must be {_WORDS[argument.what]}.")
    match argument.what:
        case "site" | "sites":
            known = store.page_urls.sites()
            for site in [given] if isinstance(given, str) else given:  # type: ignore[attr-defined]
                if site not in known:
                    raise NotFound(f"There is no site {site}.")
        case "sites or urls":
            if not given:
                raise UsageError(f"A job of the kind {kind} needs {name}: at least one.")
            # As the store has them: what is forgotten is so found, and taken out, where jobs name it.
            named = erasure_targets(store, given)  # type: ignore[arg-type]
            return [*named.sites, *named.urls]
        case "cluster" if not store.has_cluster(str(given)):
            raise NotFound(f"There is no cluster {given}.")
        case "url":
            return checked_url(str(given))
        case "urls":
            return [checked_url(one) for one in given]  # type: ignore[attr-defined]
        case "wrapper":
            store.wrapper(str(given))
    return given


def _is(what: What, given: object) -> bool:
    match what:
        case "sites" | "sites or urls" | "texts" | "urls":
            return isinstance(given, list) and all(isinstance(one, str) for one in given)
        case "number":
            return isinstance(given, int) and not isinstance(given, bool) and abs(given) <= _LARGEST_NUMBER
        case "flag":
            return isinstance(given, bool)
        case "texts by name":
            return isinstance(given, dict) and all(isinstance(one, str) for one in given.values())
        case _:
            return isinstance(given, str)
