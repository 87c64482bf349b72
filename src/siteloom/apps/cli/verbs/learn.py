"""`siteloom learn`: from a few pages with their values to a wrapper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.result_tables import say_wrapped
from siteloom.apps.cli.source_arguments import SourcesArgument, check_text_file, stored_pages, write_text
from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import ExampleError, UsageError
from siteloom.core.remote_files import shown
from siteloom.core.table_files import STANDARD_OUTPUT
from siteloom.sources.example_files import SchemaOption, read_examples, read_schema

if TYPE_CHECKING:
    from siteloom.core.model import Example
    from siteloom.learning.annotation.embedded_examples import SelfAnnotated
    from siteloom.learning.induction.learning_session import Method, Schema
    from siteloom.learning.induction.wrapper_assembly import Learned
    from siteloom.operations.annotate import AnnotatedTemplate
    from siteloom.operations.learn import NewWrapper
    from siteloom.store.store import Store

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
    learned for each template; one that changed is kept as a new version, and its pages to watch are chosen
    anew if it is watched. A wrapper that was repaired stays in force as long as no example is of its new
    layout.
    """
    if from_embedded and examples is not None:
        raise UsageError("Give --examples or --from-embedded, but not both.")
    known = read_schema(schema)
    chosen = _checked_method(method)
    if output is not None:
        check_text_file(output, "A wrapper is", ".json")
    if not sources:
        if from_embedded:
            _learn_workspace_from_embedded(shell, known, cluster, chosen, output)
        else:
            _learn_workspace(shell, examples, known, cluster, chosen, output)
        return
    if (examples is None and not from_embedded) or output is None:
        raise UsageError(
            "With a SOURCE, learn needs --examples FILE or --from-embedded, and -o FILE for the wrapper."
        )
    if cluster is not None:
        raise UsageError("Give a SOURCE or --cluster, but not both.")
    from siteloom.operations.annotate import placed_example
    from siteloom.operations.learn import learn_together

    lines = [] if examples is None else read_examples(examples)
    with stored_pages(shell, sources) as store:
        known_pages = (
            _self_annotated(shell, store)
            if from_embedded
            else [placed_example(store, line)[1] for line in lines]
        )
        learned = learn_together(store, known_pages, known, chosen, limits=shell.settings.parse)
    write_text(output, learned.wrapper.to_json())
    show_learned(shell, learned)
    if output != STANDARD_OUTPUT:
        shell.say(f"The wrapper is in {shown(output)}.")


def _learn_workspace(
    shell: Shell,
    examples: str | None,
    known: Schema,
    cluster: str | None,
    method: Method,
    output: str | None,
) -> None:
    from siteloom.operations.annotate import annotated_templates

    with shell.store() as store:
        if examples is not None:
            _annotate(shell, store, examples)
        templates = annotated_templates(store, cluster)
        _check_templates(templates, known, output)
        for template in templates:
            _learn_template(shell, store, template, known, method, output)


def _learn_workspace_from_embedded(
    shell: Shell, known: Schema, cluster: str | None, method: Method, output: str | None
) -> None:
    from siteloom.operations.annotate import AnnotatedTemplate, self_annotated_templates

    with shell.store() as store:
        with shell.counting("reading pages") as advance:
            limits = shell.settings.parse
            kinds = self_annotated_templates(store, cluster, lambda _: advance(1), limits)
        templates = []
        for kind in kinds:
            if kind.found is not None:
                examples = kind.found.examples
                templates.append(AnnotatedTemplate(kind.site, kind.clusters, examples, kind.addresses))
            else:
                say_wrapped(shell, f"{', '.join(found.id for found in kind.clusters)}: {kind.why_not}")
        if not templates:
            raise ExampleError("Nothing can be learned from embedded data, as is said above.")
        _check_templates(templates, known, output)
        for template, found in zip(templates, (kind.found for kind in kinds if kind.found), strict=True):
            _show_findings(shell, found)
            _learn_template(shell, store, template, known, method, output)


def _check_templates(templates: list[AnnotatedTemplate], known: Schema, output: str | None) -> None:
    if output is not None and len(templates) > 1:
        names = ", ".join(template.name for template in templates)
        raise UsageError(
            f"There are {len(templates)} wrappers to learn: choose one for -o with --cluster ({names})."
        )
    if unknown := set(known or {}).difference(*(template.attributes for template in templates)):
        raise UsageError(f"The schema tells of {min(unknown)}, which no example has: check its name.")


def _learn_template(
    shell: Shell,
    store: Store,
    template: AnnotatedTemplate,
    known: Schema,
    method: Method,
    output: str | None,
) -> None:
    from siteloom.operations.learn import learn_template

    new = learn_template(store, template, known, method, limits=shell.settings.parse)
    _show_new(shell, store, template, new)
    if output is not None:
        write_text(output, store.wrapper(new.name).text)
        shell.say(f"The wrapper is in {shown(output)}, too.")


def _self_annotated(shell: Shell, store: Store) -> list[Example]:
    """The examples that the pages of a source give by themselves, of the type that most carry."""
    from siteloom.learning.annotation.embedded_examples import self_annotated

    with shell.counting("reading pages") as advance:
        found = self_annotated(store.pages(), lambda _: advance(1), shell.settings.parse)
    _show_findings(shell, found)
    return found.examples


def _show_findings(shell: Shell, found: SelfAnnotated) -> None:
    """Print what came of what pages carry."""
    rows = [
        (
            name,
            told.carried,
            told.seen,
            f"{told.right} of {told.checked}" if told.checked else "",
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


def _show_new(shell: Shell, store: Store, template: AnnotatedTemplate, new: NewWrapper) -> None:
    """Say what came of a template."""
    if new.learned is None:
        shell.say("")
        say_wrapped(
            shell,
            f"{new.name}: version {new.version} stays in force, for all examples are of a layout that its "
            "pages had before: annotate some as they are now to learn from them.",
        )
        return
    clusters = ", ".join(found.id for found in template.clusters) or "pages in no cluster"
    shell.say(f"\n{new.name}, version {new.version}, for {clusters}")
    show_learned(shell, new.learned)
    say_replaced(shell, store, new)


def say_replaced(shell: Shell, store: Store, new: NewWrapper) -> None:
    """Say which attributes only the version before has; if that is watched, the new one is from now on."""
    from siteloom.operations.context import Context
    from siteloom.operations.watch import reselect_watched_pages

    if new.lost:
        say_wrapped(
            shell,
            f"No example tells of {', '.join(new.lost)}, which the version before finds: "
            f"siteloom rollback {new.name} brings it back.",
            hanging=0,
        )
    context = Context(store=store, settings=shell.settings)
    if (again := reselect_watched_pages(context, new.name)) is not None:
        what = "were chosen anew" if again.watch else f"could not be chosen anew: {again.reason}"
        say_wrapped(shell, f"The pages by which its changes are noticed {what.rstrip('.')}.", hanging=0)


def _annotate(shell: Shell, store: Store, file: str) -> None:
    from siteloom.operations.annotate import annotate

    count = annotate(store, read_examples(file), limits=shell.settings.parse)
    shell.say(f"{count:,} {'example is' if count == 1 else 'examples are'} kept in the workspace.")


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
        told = learned.report.attributes[name]
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
    for name, rules in learned.wrapper.attributes.items():
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
