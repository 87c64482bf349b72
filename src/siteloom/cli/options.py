"""The options that every verb takes, and all that `siteloom --help` needs to show them."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = "siteloom"


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """The options that every verb takes, before or behind its name."""

    workspace: Annotated[
        str | None, typer.Option("--workspace", metavar="DIR", help="Folder of the workspace [.siteloom].")
    ] = None
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="URL",
            help="Database in place of the workspace's own: postgresql://user@host/name.",
        ),
    ] = None
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            help="How many things to do at once [1].",
        ),
    ] = None
    verbose: Annotated[
        int,
        typer.Option("--verbose", "-v", count=True, show_default=False, help="Say more; twice, all."),
    ] = 0
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False
    log_file: Annotated[
        str | None,
        typer.Option("--log-file", metavar="FILE", help="Append all messages to a file, as JSON lines."),
    ] = None
    debug: Annotated[bool, typer.Option("--debug", help="Show where in the code an error happened.")] = False

    def over(self, before: CommonOptions) -> CommonOptions:
        """These options where given, else those that stood before the verb."""
        return CommonOptions(
            self.workspace or before.workspace,
            self.store or before.store,
            self.jobs if self.jobs is not None else before.jobs,
            self.verbose or before.verbose,
            self.quiet or before.quiet,
            self.log_file or before.log_file,
            self.debug or before.debug,
        )


def common_options(function: Callable[..., None]) -> Callable[..., None]:
    """Replace a function's parameter `options: CommonOptions` by one parameter for each option."""
    own = inspect.signature(function, eval_str=True)
    common = inspect.signature(CommonOptions, eval_str=True)
    parameters = [parameter for parameter in own.parameters.values() if parameter.name != "options"]
    parameters += [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in common.parameters.values()
    ]

    @functools.wraps(function)
    def called(**arguments: Any) -> None:
        options = CommonOptions(**{name: arguments.pop(name) for name in common.parameters})
        function(options=options, **arguments)

    called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called
