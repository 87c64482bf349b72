"""What Siteloom keeps: page bytes in pack files, everything else in SQL."""

from siteloom.store.accounts import (
    LOCAL,
    ROLES,
    SESSION_TIME,
    Account,
    Accounts,
    ApiKey,
    Role,
    new_session_key,
    role_called,
)
from siteloom.store.amendments import Amendment
from siteloom.store.annotations import Annotation
from siteloom.store.changes import CheckOutcome, StoredCheck, StoredRepair, StoredWatch
from siteloom.store.cluster_schemas import ClusterSchema
from siteloom.store.cluster_summaries import ClusterSummary
from siteloom.store.clusters import PageAddress
from siteloom.store.growth import GrownSite, GrownState
from siteloom.store.jobs import Job, JobEnd, Jobs, JobState
from siteloom.store.passwords import Passwords
from siteloom.store.reading import BlockPart, PackedPages, Place
from siteloom.store.records import ExtractedRow, Extraction, StoredRecord
from siteloom.store.runs import Run, RunRecorder
from siteloom.store.search_index import FoundDocument, NewestVersion, SearchIndex
from siteloom.store.seeds import SeedCounts, SeedSource
from siteloom.store.segments import CountedSegments, UncountedVersion
from siteloom.store.store import Problem, Site, Store, StoredPages
from siteloom.store.workspace import open_store, workspace_exists
from siteloom.store.wrappers import WITHDRAWN, StoredWrapper
from siteloom.store.writer import PageWriter

__all__ = [
    "LOCAL",
    "ROLES",
    "SESSION_TIME",
    "WITHDRAWN",
    "Account",
    "Accounts",
    "Amendment",
    "Annotation",
    "ApiKey",
    "BlockPart",
    "CheckOutcome",
    "ClusterSchema",
    "ClusterSummary",
    "CountedSegments",
    "ExtractedRow",
    "Extraction",
    "FoundDocument",
    "GrownSite",
    "GrownState",
    "Job",
    "JobEnd",
    "JobState",
    "Jobs",
    "NewestVersion",
    "PackedPages",
    "PageAddress",
    "PageWriter",
    "Passwords",
    "Place",
    "Problem",
    "Role",
    "Run",
    "RunRecorder",
    "SearchIndex",
    "SeedCounts",
    "SeedSource",
    "Site",
    "Store",
    "StoredCheck",
    "StoredPages",
    "StoredRecord",
    "StoredRepair",
    "StoredWatch",
    "StoredWrapper",
    "UncountedVersion",
    "new_session_key",
    "open_store",
    "role_called",
    "workspace_exists",
]
