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
from siteloom.store.backup import DUMP_FILE, Backup, back_up
from siteloom.store.changes import NewVersion, PastCheck, StoredCheck, StoredRepair, StoredWatch
from siteloom.store.checking import Problem
from siteloom.store.cluster_schemas import ClusterSchema
from siteloom.store.cluster_summaries import ClusterSummary
from siteloom.store.clusters import PageAddress
from siteloom.store.entities import Entities, EntityFilter, KeptEntity, LinkedEntity, Linking
from siteloom.store.forgetting import (
    Forgotten,
    Named,
    forget,
    forget_after_work,
    forget_expired,
    named_in_full,
    would_forget,
    would_forget_expired,
)
from siteloom.store.growth import GrownSite, GrownState
from siteloom.store.jobs import Job, JobEnd, Jobs, JobState
from siteloom.store.mentions import FORGOTTEN
from siteloom.store.page_index import PageIndex, PageVersion
from siteloom.store.page_urls import PageUrl, PageUrls
from siteloom.store.passwords import Passwords
from siteloom.store.reading import BlockPart, PackedPages, VersionPlace
from siteloom.store.record_columns import (
    Condition,
    Operator,
    RecordColumns,
    RecordQuery,
    Sorting,
    magnitude,
    matching_records,
)
from siteloom.store.record_table import RecordCount, RecordScope, RecordTable, TableRow
from siteloom.store.records import ExtractedRow, Extraction, StoredRecord
from siteloom.store.run_history import RunHistory
from siteloom.store.runs import Run, RunRecorder
from siteloom.store.search_index import FoundDocument, NewestVersion, SearchIndex
from siteloom.store.seeds import SeedCounts, SeedSource
from siteloom.store.segments import CountedSegments, UncountedVersion
from siteloom.store.sites import Site
from siteloom.store.store import Store
from siteloom.store.workspace import open_store, workspace_exists
from siteloom.store.wrappers import WITHDRAWN, StoredWrapper, version_among
from siteloom.store.writer import PageWriter

__all__ = [
    "DUMP_FILE",
    "FORGOTTEN",
    "LOCAL",
    "ROLES",
    "SESSION_TIME",
    "WITHDRAWN",
    "Account",
    "Accounts",
    "Amendment",
    "Annotation",
    "ApiKey",
    "Backup",
    "BlockPart",
    "ClusterSchema",
    "ClusterSummary",
    "Condition",
    "CountedSegments",
    "Entities",
    "EntityFilter",
    "ExtractedRow",
    "Extraction",
    "Forgotten",
    "FoundDocument",
    "GrownSite",
    "GrownState",
    "Job",
    "JobEnd",
    "JobState",
    "Jobs",
    "KeptEntity",
    "LinkedEntity",
    "Linking",
    "Named",
    "NewVersion",
    "NewestVersion",
    "Operator",
    "PackedPages",
    "PageAddress",
    "PageIndex",
    "PageUrl",
    "PageUrls",
    "PageVersion",
    "PageWriter",
    "Passwords",
    "PastCheck",
    "Problem",
    "RecordColumns",
    "RecordCount",
    "RecordQuery",
    "RecordScope",
    "RecordTable",
    "Role",
    "Run",
    "RunHistory",
    "RunRecorder",
    "SearchIndex",
    "SeedCounts",
    "SeedSource",
    "Site",
    "Sorting",
    "Store",
    "StoredCheck",
    "StoredRecord",
    "StoredRepair",
    "StoredWatch",
    "StoredWrapper",
    "TableRow",
    "UncountedVersion",
    "VersionPlace",
    "back_up",
    "forget",
    "forget_after_work",
    "forget_expired",
    "magnitude",
    "matching_records",
    "named_in_full",
    "new_session_key",
    "open_store",
    "role_called",
    "version_among",
    "workspace_exists",
    "would_forget",
    "would_forget_expired",
]
