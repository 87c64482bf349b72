"""The table of operations. Add an operation here, and a parity case in tests/operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.operations import bootstrap, discover, entities, search, seeds
from siteloom.operations.annotate import AnnotateRequest, AnnotateResult, annotate
from siteloom.operations.clean import CleanRequest, CleanResult, clean
from siteloom.operations.cluster import (
    ClusterRequest,
    ClusterResult,
    TemplateRequest,
    TemplateResult,
    cluster,
    template,
)
from siteloom.operations.crawl import CrawlRequest, CrawlResult, crawl
from siteloom.operations.explain import ExplainRequest, ExplainResult, explain
from siteloom.operations.export import ExportRequest, ExportResult, export
from siteloom.operations.extract import (
    ExtractRequest,
    ExtractResult,
    FinishRequest,
    FinishResult,
    extract,
    finish,
)
from siteloom.operations.forget import ForgetRequest, ForgetResult, forget
from siteloom.operations.ingest import IngestRequest, IngestResult, ingest
from siteloom.operations.learn import LearnRequest, LearnResult, learn
from siteloom.operations.sample import SampleRequest, SampleResult, sample

if TYPE_CHECKING:
    from siteloom.operations.context import Context
    from siteloom.store.queries.accounts import Role


class Operation(NamedTuple):
    """An operation, which can run as a job if `is_job`.

    `name` is the kind of the job, `title` what pages call it, and `role` who may start it.
    """

    name: str
    function: Callable[[Context, Any], Any]
    request: type
    result: type
    title: str
    role: Role = "editor"
    is_job: bool = True


OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation("ingest", ingest, IngestRequest, IngestResult, "Import pages"),
        Operation("fetch", crawl, CrawlRequest, CrawlResult, "Fetch pages"),
        Operation("cluster", cluster, ClusterRequest, ClusterResult, "Find templates"),
        Operation("clean", clean, CleanRequest, CleanResult, "Remove template text", is_job=False),
        Operation(
            "discover", discover.discover, discover.DiscoverRequest, discover.DiscoverResult, "Make a table"
        ),
        Operation(
            "accept_columns",
            discover.accept_columns,
            discover.AcceptColumnsRequest,
            discover.AcceptColumnsResult,
            "Make attributes of columns",
        ),
        Operation(
            "seeds",
            seeds.import_seeds,
            seeds.ImportSeedsRequest,
            seeds.ImportSeedsResult,
            "Import known records",
        ),
        Operation(
            "remove_seeds",
            seeds.remove_seeds,
            seeds.RemoveSeedsRequest,
            seeds.RemoveSeedsResult,
            "Remove known records",
        ),
        Operation(
            "bootstrap",
            bootstrap.bootstrap,
            bootstrap.BootstrapRequest,
            bootstrap.BootstrapResult,
            "Wrap sites from known records",
        ),
        Operation(
            "accept_site",
            bootstrap.accept_site,
            bootstrap.AcceptSiteRequest,
            bootstrap.AcceptSiteResult,
            "Accept a site",
            is_job=False,
        ),
        Operation(
            "withdraw",
            bootstrap.withdraw,
            bootstrap.WithdrawRequest,
            bootstrap.WithdrawResult,
            "Refuse a site",
        ),
        Operation(
            "entities",
            entities.link_entities,
            entities.LinkEntitiesRequest,
            entities.LinkEntitiesResult,
            "Find the same things on several sites",
        ),
        Operation("search", search.search, search.SearchRequest, search.SearchResult, "Search", is_job=False),
        Operation(
            "index",
            search.update_index,
            search.UpdateIndexRequest,
            search.UpdateIndexResult,
            "Index for search",
        ),
        Operation("template", template, TemplateRequest, TemplateResult, "Show a template", is_job=False),
        Operation("sample", sample, SampleRequest, SampleResult, "Choose pages to annotate", is_job=False),
        Operation("annotate", annotate, AnnotateRequest, AnnotateResult, "Keep examples", is_job=False),
        Operation("learn", learn, LearnRequest, LearnResult, "Learn a wrapper"),
        Operation("extract", extract, ExtractRequest, ExtractResult, "Extract records"),
        Operation("finish", finish, FinishRequest, FinishResult, "Learn and extract"),
        Operation("explain", explain, ExplainRequest, ExplainResult, "Explain a page", is_job=False),
        Operation("export", export, ExportRequest, ExportResult, "Export a wrapper", is_job=False),
        Operation("forget", forget, ForgetRequest, ForgetResult, "Forget sites or pages", "admin"),
    )
}
"""Each operation by its name."""
