"""What Siteloom keeps: page bytes in pack files, everything else in SQL."""

from siteloom.core.model import FoundDocument
from siteloom.store.erasure.erasure import (
    ErasureResult,
    ErasureTargets,
    erasure_targets,
    forget,
    forget_after_work,
    forget_expired,
    would_forget,
    would_forget_expired,
)
from siteloom.store.erasure.row_erasure import FORGOTTEN
from siteloom.store.packs.page_reader import BlockPart, IntegrityProblem, PackedPages, VersionPlace
from siteloom.store.packs.page_writer import PageWriter
from siteloom.store.queries.accounts import (
    LOCAL,
    ROLES,
    SESSION_TIME,
    Account,
    Accounts,
    ApiKey,
    Passwords,
    Role,
    new_session_key,
    role_named,
)
from siteloom.store.queries.annotations import Annotation, OptimisticUpdate
from siteloom.store.queries.attribute_schemas import ClusterSchema
from siteloom.store.queries.cluster_summaries import ClusterSummary
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.queries.entities import Entities, EntityFilter, LinkedEntity, Linking, StoredEntity
from siteloom.store.queries.jobs import Job, JobEnd, Jobs, JobState
from siteloom.store.queries.pages import PageIndex, PageUrl, PageUrls, PageVersion
from siteloom.store.queries.record_filters import (
    Condition,
    Operator,
    RecordColumns,
    RecordCount,
    RecordQuery,
    RecordScope,
    RecordTable,
    Sorting,
    TableRow,
    magnitude,
    matching_records,
)
from siteloom.store.queries.records import Extraction, StoredRecord
from siteloom.store.queries.run_history import RunHistory
from siteloom.store.queries.runs import Run, RunRecorder
from siteloom.store.queries.search_index import NewestVersion, SearchIndex
from siteloom.store.queries.seeds import SeedCounts, SeedSource, SiteState, StoredSiteOutcome
from siteloom.store.queries.segments import CountedSegments, UncountedVersion
from siteloom.store.queries.sites import Site
from siteloom.store.queries.watches_and_repairs import (
    NewVersion,
    PastCheck,
    StoredCheck,
    StoredRepair,
    StoredWatch,
)
from siteloom.store.queries.wrappers import WITHDRAWN, StoredWrapper, version_among
from siteloom.store.store import Store
from siteloom.store.workspace_copy import DUMP_FILE, Backup, back_up
from siteloom.store.workspace_folder import open_store, workspace_exists

__all__ = [
    "DUMP_FILE",
    "FORGOTTEN",
    "LOCAL",
    "ROLES",
    "SESSION_TIME",
    "WITHDRAWN",
    "Account",
    "Accounts",
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
    "ErasureResult",
    "ErasureTargets",
    "Extraction",
    "FoundDocument",
    "IntegrityProblem",
    "Job",
    "JobEnd",
    "JobState",
    "Jobs",
    "LinkedEntity",
    "Linking",
    "NewVersion",
    "NewestVersion",
    "Operator",
    "OptimisticUpdate",
    "PackedPages",
    "PageAddress",
    "PageIndex",
    "PageUrl",
    "PageUrls",
    "PageVersion",
    "PageWriter",
    "Passwords",
    "PastCheck",
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
    "SiteState",
    "Sorting",
    "Store",
    "StoredCheck",
    "StoredEntity",
    "StoredRecord",
    "StoredRepair",
    "StoredSiteOutcome",
    "StoredWatch",
    "StoredWrapper",
    "TableRow",
    "UncountedVersion",
    "VersionPlace",
    "back_up",
    "erasure_targets",
    "forget",
    "forget_after_work",
    "forget_expired",
    "magnitude",
    "matching_records",
    "new_session_key",
    "open_store",
    "role_named",
    "version_among",
    "workspace_exists",
    "would_forget",
    "would_forget_expired",
]
