"""What Siteloom keeps: page bytes in pack files, everything else in SQL."""

from siteloom.store.changes import StoredCheck, StoredRepair, StoredWatch
from siteloom.store.clusters import PageAddress
from siteloom.store.growth import GrownSite, GrownState
from siteloom.store.reading import PackedPages
from siteloom.store.records import ExtractedRow, Extraction, StoredRecord
from siteloom.store.runs import Run, RunRecorder
from siteloom.store.seeds import SeedCounts, SeedSource
from siteloom.store.store import Problem, Site, Store, StoredPages
from siteloom.store.workspace import open_store, workspace_exists
from siteloom.store.wrappers import WITHDRAWN, StoredWrapper
from siteloom.store.writer import PageWriter

__all__ = [
    "WITHDRAWN",
    "ExtractedRow",
    "Extraction",
    "GrownSite",
    "GrownState",
    "PackedPages",
    "PageAddress",
    "PageWriter",
    "Problem",
    "Run",
    "RunRecorder",
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
    "open_store",
    "workspace_exists",
]
