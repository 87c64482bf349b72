"""The stages in order, from pages to wrappers: ingest, cluster, sample, annotate, learn."""

from siteloom.pipeline.annotated import (
    AnnotatedTemplate,
    annotate,
    annotated_templates,
    find_page,
    placed_example,
)
from siteloom.pipeline.clustering import cluster_pages, cluster_store, sample_cluster
from siteloom.pipeline.ingesting import IngestReport, IngestVerb, ingest
from siteloom.pipeline.learning import NewWrapper, has_present_layout, learn_template, learn_together

__all__ = [
    "AnnotatedTemplate",
    "IngestReport",
    "IngestVerb",
    "NewWrapper",
    "annotate",
    "annotated_templates",
    "cluster_pages",
    "cluster_store",
    "find_page",
    "has_present_layout",
    "ingest",
    "learn_template",
    "learn_together",
    "placed_example",
    "sample_cluster",
]
