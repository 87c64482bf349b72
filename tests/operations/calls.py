"""Operations as tests call them: on a store, with the default settings."""

from __future__ import annotations

from collections.abc import Iterable

from siteloom.core.settings import Settings
from siteloom.operations.annotate import AnnotatedTemplate, AnnotateRequest, annotate
from siteloom.operations.context import Context
from siteloom.operations.extract import (
    ExtractRequest,
    ExtractResult,
    FinishRequest,
    FinishResult,
    extract,
    finish,
)
from siteloom.operations.learn import LearnedWrapper, LearnRequest, LearnResult, learn, learn_template
from siteloom.sources.example_files import ExampleLine
from siteloom.store.store import Store


def context_of(store: Store, settings: Settings = Settings(), author: str | None = None) -> Context:
    return Context(store=store, settings=settings, author=author)


def annotate_pages(store: Store, lines: Iterable[ExampleLine], author: str = "") -> int:
    request = AnnotateRequest(examples=tuple(lines))
    return annotate(context_of(store, author=author), request).annotated


def learn_wrappers(store: Store, cluster: str | None = None) -> LearnResult:
    return learn(context_of(store), LearnRequest(cluster=cluster))


def learned_template(store: Store, template: AnnotatedTemplate, cluster: str | None = None) -> LearnedWrapper:
    return learn_template(context_of(store), template, LearnRequest(cluster=cluster))[0]


def extract_records(store: Store, site: str | None = None) -> ExtractResult:
    return extract(context_of(store), ExtractRequest(site=site))


def finish_cluster(store: Store, cluster: str) -> FinishResult:
    return finish(context_of(store), FinishRequest(cluster=cluster))
