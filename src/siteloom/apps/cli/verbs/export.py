"""`siteloom export`: a wrapper as what other programs run."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.result_tables import load_wrappers
from siteloom.apps.cli.result_tables import named as listed
from siteloom.apps.cli.source_arguments import SOURCE_HELP, pages_of, write_text
from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import NoWorkspace, OutputError, UsageError
from siteloom.core.remote_files import has_scheme, shown
from siteloom.core.table_files import STANDARD_OUTPUT, check_place
from siteloom.core.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from siteloom.core.model import Page
    from siteloom.wrappers.matching import NamedWrapper
    from siteloom.wrappers.named_wrappers import WrapperText
    from siteloom.wrappers.wrapper import Wrapper

NAME = "export"

_FORMATS = ("xslt", "xpath-json", "scrapy", "web-poet")

# A handful shows what differs between pages and is soon tested; it is chosen among so many.
_FIXTURES = 5
_LOOKED_AT = 100


def run(
    shell: Shell,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help=f"Pages for the tests of web-poet: {SOURCE_HELP}; without, those of the workspace.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        str | None,
        typer.Option("--format", metavar="NAME", help=f"As what: {', '.join(_FORMATS)}.", show_default=False),
    ] = None,
    wrapper: Annotated[
        str | None,
        typer.Option(
            "--wrapper",
            metavar="NAME|FILE",
            help="A wrapper of the workspace by its name, or a file [the only one of the workspace].",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|FOLDER",
            help="Where to write it: a file, or - for standard output; for web-poet a folder.",
        ),
    ] = STANDARD_OUTPUT,
) -> None:
    """Write a wrapper as XSLT, XPath in JSON, spider or page object.

    What is written gives the records that siteloom extract gives, and needs nothing of Siteloom. web-poet
    needs the extra web-poet, and a folder that is empty, new or an earlier export.
    """
    if format not in _FORMATS:
        wrong = "Say as what" if format is None else f"There is no format {format}"
        raise UsageError(f"{wrong}: --format is one of {', '.join(_FORMATS)}.")
    is_folder = format == "web-poet"
    _check_output(output, is_folder=is_folder)
    if sources and not is_folder:
        raise UsageError("Only --format web-poet takes a SOURCE, for its tests: leave it out.")
    (named,) = load_wrappers(shell, [_chosen(shell, wrapper)])
    if is_folder:
        _write_folder(shell, named, sources, Path(output))
    else:
        write_text(output, _text(named, format))
        if output != STANDARD_OUTPUT:
            shell.say(f"{named} is in {shown(output)}.")
    if types := _types(named.wrapper):
        told = listed([f"{name} ({kind})" for name, kind in types.items()])
        shell.say(
            f"It gives texts as they stand on the page: siteloom withholds those of {told} that it cannot "
            "read as such, the export does not."
        )


def _text(named: NamedWrapper, format: str) -> str:  # noqa: A002 - as above
    from siteloom.wrappers.exports.scrapy_spider import to_spider
    from siteloom.wrappers.exports.xpath_json import to_xpath_json

    match format:
        case "xslt":
            return named.wrapper.to_xslt()
        case "scrapy":
            return to_spider(named.wrapper, named.name)
        case _:
            return to_xpath_json(named.wrapper)


def _check_output(output: str, *, is_folder: bool) -> None:
    if is_folder:
        if output == STANDARD_OUTPUT or has_scheme(output):
            raise UsageError("A page object for web-poet is a folder: say where to write it with -o FOLDER.")
        from siteloom.wrappers.exports.web_poet_page import check_folder

        check_folder(Path(output))
    elif Path(output).is_dir():
        raise OutputError(f"{output} is a folder: give the name of a file.")
    elif output != STANDARD_OUTPUT:
        check_place(output)


def _chosen(shell: Shell, wanted: str | None) -> WrapperText:
    """The wrapper of a file, or of the workspace."""
    from siteloom.operations.stored_wrappers import wrapper_texts_of_store
    from siteloom.wrappers.named_wrappers import wrapper_texts_of_files

    if wanted is not None and (has_scheme(wanted) or Path(wanted).is_file()):
        return wrapper_texts_of_files([wanted])[0]
    try:
        with shell.store() as store:
            known = wrapper_texts_of_store(store)
    except NoWorkspace as error:
        if wanted is None:
            raise UsageError("Give --wrapper FILE: there is no workspace with wrappers.") from error
        raise UsageError(f"There is no file {wanted}, and no workspace with such a wrapper.") from error
    found = known if wanted is None else [one for one in known if one.name == wanted]
    if len(found) == 1:
        return found[0]
    names = listed([one.name for one in known])
    if found:
        raise UsageError(f"The workspace has several wrappers: choose one with --wrapper, of {names}.")
    raise UsageError(f"There is no wrapper {wanted}, nor such a file: the workspace has {names}.")


def _write_folder(shell: Shell, named: NamedWrapper, sources: list[str] | None, folder: Path) -> None:
    from siteloom.templates.sampling import sample
    from siteloom.wrappers.exports.web_poet_page import write_page_object

    pages = list(islice(_pages_for(named, _all_pages(shell, sources)), _LOOKED_AT))
    fixtures = [pages[number] for number in sample(pages, _FIXTURES)]
    if not fixtures:
        raise UsageError(
            f"No page is for {named}, and web-poet's tests are made of such pages: give some as SOURCE."
        )
    made = write_page_object(named.wrapper, named.name, fixtures, folder)
    shell.say(f"{named} is in {folder / made.module}.py, with tests of {plural(len(fixtures), 'page')}.")
    shell.say(f"Run them: cd {folder} && python -m pytest")


def _all_pages(shell: Shell, sources: list[str] | None) -> Iterator[Page]:
    if sources:
        yield from pages_of(shell, sources, "Reading")
        return
    try:
        with shell.store() as store:
            yield from store.pages()
    except NoWorkspace as error:
        raise UsageError(
            "The tests of web-poet are made of pages: give some as SOURCE, there is no workspace."
        ) from error


def _pages_for(named: NamedWrapper, pages: Iterable[Page]) -> Iterator[Page]:
    """The pages that a wrapper is for; all of them if it has no footprint."""
    from siteloom.core.model import Footprint
    from siteloom.wrappers.matching import Matcher

    matcher = Matcher([named])
    is_for_all = named.wrapper.footprint == Footprint()
    return (page for page in pages if is_for_all or matcher.match(page).chosen)


def _types(wrapper: Wrapper) -> dict[str, str]:
    """The attributes whose texts are read as something else, and as what."""
    found = {name: rules.attribute.type for name, rules in wrapper.attributes.items()}
    return {name: kind for name, kind in found.items() if kind is not None and kind != "text"}
