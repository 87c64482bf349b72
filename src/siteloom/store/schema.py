"""The tables, as the newest migration leaves them.

A URL has versions: each different content that was seen at it. The bytes of a
version stand in a pack file, at a block's offset and a slot in that block.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    false,
)
from sqlalchemy.types import JSON

from siteloom.core.database import damaged_value
from siteloom.core.model import in_utc

metadata = MetaData()

# SQLite numbers rows by itself only in columns of exactly this type.
RowId = BigInteger().with_variant(Integer, "sqlite")


class UtcTime(TypeDecorator[datetime]):
    """A point in time, always in UTC; SQLite itself knows no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:  # noqa: ARG002
        """To the database."""
        return None if value is None else in_utc(value)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:  # noqa: ARG002
        """From the database."""
        return None if value is None else in_utc(value)

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        """The same with the text that SQLite holds instead, which may be any."""
        read = super().result_processor(dialect, coltype)
        if read is None:
            return None

        def read_time(value: Any) -> datetime | None:
            try:
                return read(value)
            except (ValueError, TypeError) as error:
                raise damaged_value("a point in time") from error

        return read_time


workspace = Table(
    "workspace",
    metadata,
    Column("id", Text, primary_key=True),
    Column("created_at", UtcTime, nullable=False),
)

sites = Table(
    "sites",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

urls = Table(
    "urls",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("site_id", RowId, ForeignKey("sites.id"), nullable=False, index=True),
    # A hash of site and URL: URLs are longer than PostgreSQL lets an index be.
    Column("key", LargeBinary, nullable=False, unique=True),
    Column("url", Text, nullable=False),
)

packs = Table(
    "packs",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("site_id", RowId, ForeignKey("sites.id"), nullable=False, index=True),
    Column("file", Text, nullable=False, unique=True),
    Column("committed_bytes", BigInteger, nullable=False),
)

versions = Table(
    "versions",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("url_id", RowId, ForeignKey("urls.id"), nullable=False),
    Column("content_hash", LargeBinary, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    # When this content was last met at the URL: the newest version is the one met last.
    Column("last_seen_at", UtcTime, nullable=False),
    Column("pack_id", RowId, ForeignKey("packs.id"), nullable=False),
    Column("block_offset", BigInteger, nullable=False),
    Column("slot", Integer, nullable=False),
    Index("ix_versions_url_id_content_hash", "url_id", "content_hash", unique=True),
)

# What the server said when it sent a version, of those that it said anything of.
validators = Table(
    "validators",
    metadata,
    Column("version_id", RowId, ForeignKey("versions.id"), primary_key=True, autoincrement=False),
    Column("etag", Text, nullable=False),
    Column("last_modified", Text, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("verb", Text, nullable=False),
    Column("arguments", JSON, nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    # running, done, failed, interrupted; killed if it was found running when no process was at work
    Column("status", Text, nullable=False),
    Column("counts", JSON, nullable=False),
)

failures = Table(
    "failures",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("run_id", RowId, ForeignKey("runs.id"), nullable=False, index=True),
    Column("url", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("detail", Text, nullable=False),
)

clusters = Table(
    "clusters",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("run_id", RowId, ForeignKey("runs.id"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("site", Text, nullable=False, index=True),
    Column("mask", Text, nullable=False),
    Column("mask_pages", Integer, nullable=False),
    Column("accepted", JSON, nullable=False),
    Column("importance", Float, nullable=False),
    Column("url_patterns", JSON, nullable=False),
    Column("template", JSON, nullable=False),
)

cluster_pages = Table(
    "cluster_pages",
    metadata,
    Column("cluster_id", RowId, ForeignKey("clusters.id"), primary_key=True),
    Column("url_id", RowId, ForeignKey("urls.id"), primary_key=True, index=True),
)

# The newest of a URL holds; one that is empty takes back what was said before.
annotations = Table(
    "annotations",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("url_id", RowId, ForeignKey("urls.id"), nullable=False, index=True),
    # The content that was annotated: the page may have changed since.
    Column("version_id", RowId, ForeignKey("versions.id"), nullable=False),
    Column("example", JSON, nullable=False),
    Column("author", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("format", Integer, nullable=False),
    Column("is_empty", Boolean, nullable=False, server_default=false()),
)

# Those of a page stand in one shard, and those of a shard were written together with its mark.
records = Table(
    "records",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("run_id", RowId, ForeignKey("runs.id"), nullable=False),
    Column("shard", Integer, nullable=False),
    # Its number within the shard.
    Column("place", Integer, nullable=False),
    # A hash of the URL, which may be too long for an index here too.
    Column("url_key", LargeBinary, nullable=False),
    Column("url", Text, nullable=False),
    Column("wrapper", Text, nullable=False),
    # None of a wrapper that is not in the store.
    Column("wrapper_version", Integer),
    # JSON
    Column("content", Text, nullable=False),
    Index("ix_records_run_id_shard_place", "run_id", "shard", "place", unique=True),
    Index("ix_records_url_key_run_id_shard_place", "url_key", "run_id", "shard", "place"),
)

# The shards of the pages that a run is done with; when it has ended well, one row that sums them up.
extracted_shards = Table(
    "extracted_shards",
    metadata,
    Column("run_id", RowId, ForeignKey("runs.id"), primary_key=True),
    Column("shard", Integer, primary_key=True),
    Column("summary", JSON, nullable=False),
)

# The highest version of a name holds.
wrappers = Table(
    "wrappers",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("name", Text, nullable=False),
    Column("site", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    # learn, or what put it in the place of the version before
    Column("origin", Text, nullable=False),
    Column("note", Text, nullable=False),
    Index("ix_wrappers_name_version", "name", "version", unique=True),
)

watches = Table(
    "watches",
    metadata,
    Column("wrapper", Text, primary_key=True),
    Column("site", Text, nullable=False),
    Column("wrapper_version", Integer),
    # JSON
    Column("text", Text, nullable=False),
    Column("saved_at", UtcTime, nullable=False),
)

checks = Table(
    "checks",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("run_id", RowId, ForeignKey("runs.id"), nullable=False),
    Column("wrapper", Text, nullable=False, index=True),
    Column("wrapper_version", Integer),
    Column("at", UtcTime, nullable=False),
    # bellwethers or output
    Column("kind", Text, nullable=False),
    Column("is_healthy", Boolean, nullable=False),
    Column("content", JSON, nullable=False),
)

# Of those of a wrapper, only the newest may still wait for a person.
repairs = Table(
    "repairs",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("run_id", RowId, ForeignKey("runs.id"), nullable=False),
    Column("wrapper", Text, nullable=False, index=True),
    Column("version_before", Integer, nullable=False),
    # None as long as no version came of it.
    Column("version_after", Integer),
    # reused, repaired, needs-annotation
    Column("outcome", Text, nullable=False),
    # applied: in force; review, annotation: waits for a yes, for examples; rejected; superseded
    Column("state", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("at", UtcTime, nullable=False),
    # The JSON of the wrapper that was proposed.
    Column("text", Text),
    Column("content", JSON, nullable=False),
)

seeds = Table(
    "seeds",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("source", Text, nullable=False),
    # Whether it was extracted from the site that is its source; else it was imported.
    Column("is_grown", Boolean, nullable=False),
    # A hash of source, URL and values, and of whether it is grown.
    Column("key", LargeBinary, nullable=False, unique=True),
    # The values by attribute, as JSON.
    Column("content", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    # The run that met it last, and a number that all have that were met together.
    Column("run_id", RowId, ForeignKey("runs.id"), nullable=False),
    Column("met", BigInteger, nullable=False),
    Column("added_at", UtcTime, nullable=False),
    Index("ix_seeds_source_id", "source", "id"),
)

# What became of sites that were to be wrapped from seeds.
grown_sites = Table(
    "grown_sites",
    metadata,
    Column("site", Text, primary_key=True),
    # wrapped, poor, withdrawn, failed
    Column("state", Text, nullable=False),
    Column("round", Integer, nullable=False),
    # How many seeds there were when it was tried.
    Column("tried_seeds", BigInteger, nullable=False),
    Column("wrapper", Text),
    Column("wrapper_version", Integer),
    Column("content", JSON, nullable=False),
    Column("at", UtcTime, nullable=False),
)

# One row for each site whose pages were counted.
segment_tables = Table(
    "segment_tables",
    metadata,
    Column("site_id", RowId, ForeignKey("sites.id"), primary_key=True),
    # The greatest id of a version that was counted.
    Column("counted_to", RowId, nullable=False),
    Column("content", LargeBinary, nullable=False),
)

# What is searched; the terms of these stand in a table that only the database itself can read: search_terms.
search_documents = Table(
    "search_documents",
    metadata,
    Column("id", RowId, primary_key=True),
    # page or record
    Column("kind", Text, nullable=False),
    Column("site", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("url_id", RowId, ForeignKey("urls.id"), index=True),
    # Of a page: what was indexed of it.
    Column("version_id", RowId, ForeignKey("versions.id"), unique=True),
    # Of a record: a hash of all that there is of it.
    Column("key", LargeBinary, unique=True),
    # JSON, compressed
    Column("content", LargeBinary, nullable=False),
)

search_marks = Table(
    "search_marks",
    metadata,
    # terms: the version of the words that are indexed; records: which these are; attributes: their names;
    # counted pages of a site: by how large a table its pages were indexed
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    # admin, editor, viewer
    Column("role", Text, nullable=False),
    # As argon2 writes it; None of a person who is not to sign in any more, but stays as the author of things.
    Column("password", Text),
    Column("created_at", UtcTime, nullable=False),
)

# Browsers that are signed in, or that may be asked to.
sessions = Table(
    "sessions",
    metadata,
    # Of what the browser keeps only a hash is here, so that whoever reads the tables cannot be anyone.
    Column("key_hash", LargeBinary, primary_key=True),
    Column("user_id", RowId, ForeignKey("users.id"), index=True),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("key_hash", LargeBinary, nullable=False, unique=True),
    Column("user_id", RowId, ForeignKey("users.id"), nullable=False, index=True),
    # What it is for, in its owner's words.
    Column("label", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("last_used_at", UtcTime),
)

# What is counted against those who guess passwords.
failed_sign_ins = Table(
    "failed_sign_ins",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("name", Text, nullable=False, index=True),
    Column("address", Text, nullable=False, index=True),
    Column("at", UtcTime, nullable=False),
)

# What was said of the attributes of a cluster's pages; the highest revision of a cluster holds.
cluster_schemas = Table(
    "cluster_schemas",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("cluster", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    # By attribute, in the order in which they are shown.
    Column("content", JSON, nullable=False),
    Column("author", Text, nullable=False),
    Column("at", UtcTime, nullable=False),
    Index("ix_cluster_schemas_cluster_revision", "cluster", "revision", unique=True),
)

# Long work that was asked for through the server.
jobs = Table(
    "jobs",
    metadata,
    Column("id", RowId, primary_key=True),
    # Which work: cluster, learn, extract, ...
    Column("kind", Text, nullable=False),
    Column("arguments", JSON, nullable=False),
    Column("author", Text, nullable=False),
    # waiting, running, done, failed, cancelled; lost if the server ended before the job did
    Column("state", Text, nullable=False, index=True),
    # How far it is: so many done, of so many if that is known, of what the message names.
    Column("done", BigInteger, nullable=False),
    Column("total", BigInteger),
    Column("message", Text, nullable=False),
    # What came of it, or why nothing did.
    Column("result", JSON),
    Column("created_at", UtcTime, nullable=False),
    Column("started_at", UtcTime),
    Column("ended_at", UtcTime),
)

# What records were linked last, in one row: by which attributes, and what came of it in numbers.
linkings = Table(
    "linkings",
    metadata,
    Column("run_id", RowId, ForeignKey("runs.id"), primary_key=True),
    Column("content", JSON, nullable=False),
    Column("at", UtcTime, nullable=False),
)

# The things that these records tell of. There is no index but their number: whatever is asked for is found by
# going through them in order, and an index would only lead astray from it.
entities = Table(
    "entities",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    # How many sources tell of it, and in how many attributes they differ.
    Column("sources", Integer, nullable=False),
    Column("conflicts", Integer, nullable=False),
    # The names of these attributes, each between two marks.
    Column("conflicting", Text, nullable=False),
    # All that is said of it, in small letters.
    Column("words", Text, nullable=False),
    # JSON
    Column("content", Text, nullable=False),
)

# Clusters that a person found not worth annotating.
dismissed_clusters = Table(
    "dismissed_clusters",
    metadata,
    Column("cluster_id", RowId, ForeignKey("clusters.id"), primary_key=True, autoincrement=False),
    Column("at", UtcTime, nullable=False),
)
