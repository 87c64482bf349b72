"""`siteloom learn`: from a few pages with their values to a wrapper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.result_tables import say_wrapped
from siteloom.apps.cli.source_arguments import (
    SourcesArgument,
    check_text_file,
    say_unread,
    verb_context,
    write_text,
)
from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import UsageError
from siteloom.core.remote_files import shown
from siteloom.core.table_files import STANDARD_OUTPUT
from siteloom.core.wording import plural
from siteloom.sources.example_files import SchemaOption, read_examples, read_schema

if TYPE_CHECKING:
    from siteloom.learning.annotation.embedded_examples import SelfAnnotated
    from siteloom.learning.induction.learning_session import Method
    from siteloom.learning.induction.wrapper_assembly import Learned
    from siteloom.operations.learn import LearnedWrapper, LearnResult
    from siteloom.operations.watch import WatchedWrapper

NAME = "learn"


def run(
    shell: Shell,
    sources: SourcesArgument = None,
    examples: Annotated[
        str | None,
        typer.Option(
            "--examples",
            metavar="FILE",
            help='JSON Lines such as {"url": "...", "values": {"name": ["Blue Fern"], "phone": []}}.',
        ),
    ] = None,
    from_embedded: Annotated[
        bool,
        typer.Option(
            "--from-embedded",
            help="Learn from what pages carry as JSON-LD, microdata, RDFa or Open Graph; needs the extra "
            "embedded.",
        ),
    ] = False,
    schema: SchemaOption = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="ID", help="Only the wrapper of the cluster of this name."),
    ] = None,
    method: Annotated[
        str,
        typer.Option("--method", metavar="NAME", help="united, or vertex for the paper's one XPath a rule."),
    ] = "united",
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the wrapper here, as JSON; - for standard output."
        ),
    ] = None,
) -> None:
    """Learn wrappers from pages whose values are known.

    With a SOURCE, one wrapper is learned from --examples or --from-embedded and written to -o, and nothing is
    kept. Without, the examples are kept in the workspace as annotations beside those it has, and a wrapper is
    learned for each template. One that changed is kept as a new version, and some of its pages are watched
    for changes from then on. Attributes without an example are found as before. A wrapper that was repaired
    stays in force as long as no example is of its new layout.
    """
    if from_embedded and examples is not None:
        raise UsageError("Give --examples or --from-embedded, but not both.")
    declared = read_schema(schema)
    chosen = _checked_method(method)
    if output is not None:
        check_text_file(output, "A wrapper is", ".json")
    if sources and ((examples is None and not from_embedded) or output is None):
        raise UsageError(
            "With a SOURCE, learn needs --examples FILE or --from-embedded, and -o FILE for the wrapper."
        )
    if sources and cluster is not None:
        raise UsageError("Give a SOURCE or --cluster, but not both.")
    from siteloom.operations.learn import LearnRequest, learn

    request = LearnRequest(
        cluster=cluster,
        examples=() if examples is None else tuple(read_examples(examples)),
        from_embedded=from_embedded,
        method=chosen,
        schema=declared,
        is_single=output is not None,
    )
    with verb_context(shell, sources) as context:
        say_unread(shell, context.unread)
        result = learn(context, request)
    _show(shell, result, is_stored=not sources)
    if output is not None:
        (wrapper,) = result.wrappers
        write_text(output, wrapper.wrapper.to_json())
        if output != STANDARD_OUTPUT or not sources:
            shell.say(f"The wrapper is in {shown(output)}{'' if sources else ', too'}.")


def _show(shell: Shell, result: LearnResult, *, is_stored: bool) -> None:
    if result.annotated:
        shell.say(f"{plural(result.annotated, 'example is', 'examples are')} kept in the workspace.")
    for template in result.skipped:
        say_wrapped(shell, f"{', '.join(template.clusters)}: {template.reason}")
    watched = {watch.wrapper: watch for watch in result.watched}
    for wrapper in result.wrappers:
        if wrapper.embedded is not None:
            _show_findings(shell, wrapper.embedded)
        if is_stored:
            show_wrapper(shell, wrapper, watched.get(wrapper.name))
        elif wrapper.learned is not None:
            show_learned(shell, wrapper.learned)


def _show_findings(shell: Shell, found: SelfAnnotated) -> None:
    """Print what came of what pages carry."""
    rows = [
        (
            name,
            told.carried,
            told.shown,
            f"{told.correct} of {told.checked}" if told.checked else "",
            told.why_left_out or "yes",
        )
        for name, told in found.attributes.items()
    ]
    shell.say(f"\n{found.pages:,} pages that were looked at carry a record of type {found.type}.")
    columns = ("attribute", "pages with it", "shown on", "found on pages held back", "learned")
    shell.show("Embedded data", columns, rows)
    if found.other_types:
        others = ", ".join(f"{name} ({count:,})" for name, count in found.other_types.items())
        say_wrapped(shell, f"Pages of other types were left aside: {others}.")


def show_wrapper(shell: Shell, wrapper: LearnedWrapper, watched: WatchedWrapper | None) -> None:
    """Print what was learned of a template, and what is different from the version before."""
    if wrapper.learned is None:
        shell.say("")
        say_wrapped(
            shell,
            f"{wrapper.name}: version {wrapper.version} stays in force, for all examples are of a layout "
            "that its pages had before: annotate some as they are now to learn from them.",
        )
        return
    clusters = ", ".join(wrapper.clusters) or "pages in no cluster"
    shell.say(f"\n{wrapper.name}, version {wrapper.version}, for {clusters}")
    show_learned(shell, wrapper.learned)
    show_replaced(shell, wrapper, watched)


def show_replaced(shell: Shell, wrapper: LearnedWrapper, watched: WatchedWrapper | None) -> None:
    """Say which attributes keep their rules, which only the version before has, and what is watched now."""
    if wrapper.unchanged_attributes:
        names = ", ".join(wrapper.unchanged_attributes)
        say_wrapped(shell, f"No example tells of {names}: found as before.", hanging=0)
    if wrapper.lost_attributes:
        say_wrapped(
            shell,
            f"No example tells of {', '.join(wrapper.lost_attributes)}, which the version before finds: "
            f"siteloom rollback {wrapper.name} brings it back.",
            hanging=0,
        )
    if watched is None:
        return
    if watched.watched_pages:
        pages = plural(watched.watched_pages, "page is", "pages are")
        say_wrapped(shell, f"{pages} watched for changes: siteloom monitor compares them.", hanging=0)
    else:
        say_wrapped(shell, f"No page can be watched for changes: {watched.reason.rstrip('.')}.", hanging=0)
    if watched.warning:
        shell.warn(watched.warning)


def show_learned(shell: Shell, learned: Learned) -> None:
    """Print what was learned: how each attribute is found, and where to look next."""
    show_rules(shell, learned)
    for conflict in learned.report.disagreements:
        fits = f", although the same rule is right on {conflict.fits}" if conflict.fits else ""
        shell.say(
            f"{conflict.url}: the example says {conflict.attribute} is {_shown(conflict.expected)}, "
            f"the wrapper finds {_shown(conflict.found)}{fits}."
        )
    if learned.report.odd_pages:
        shell.say("These pages would teach most if they were annotated next:")
        for page in learned.report.odd_pages:
            shell.say(f"  {page.url}: {'; '.join(page.reasons)}")


def show_rules(shell: Shell, learned: Learned) -> None:
    """Print how each attribute is found."""
    from siteloom.wrappers.explanation import rule_words

    rows = []
    for name, rules in learned.wrapper.attributes.items():
        told = learned.report.attributes.get(name)
        if told is None:  # it keeps the rules that it has
            continue
        known = rules.attribute
        rows.append(
            (
                name,
                known.type,
                "several" if known.multi else "one",
                "yes" if known.mandatory else "no",
                told.rules,
                f"{told.matched} of {told.examples}",
                f"{told.filled:.0%}",
            )
        )
    columns = ("attribute", "type", "values", "mandatory", "rules", "examples matched", "pages filled")
    shell.show("Learned", columns, rows)
    for name in learned.report.attributes:
        rules = learned.wrapper.attributes[name]
        multi = bool(rules.attribute.multi)
        first = rule_words(rules.rules[0], multi=multi) if rules.rules else "no rule was found"
        say_wrapped(shell, f"{name}: {first}")


def _shown(values: tuple[str, ...]) -> str:
    return ", ".join(map(repr, values)) if values else "absent"


def _checked_method(name: str) -> Method:
    from siteloom.learning.induction.learning_session import METHODS

    for method in METHODS:
        if method == name:
            return method
    raise UsageError(f"No method {name!r} to learn by: use one of {', '.join(METHODS)}.")
