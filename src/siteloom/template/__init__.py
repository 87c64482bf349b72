"""What the pages of a cluster share: essential paths and template text; and what tells them apart.

Beside it, the text segments of a whole site, page by page.
"""

from siteloom.template.blocks import Block, PageSegments
from siteloom.template.informative import Informativeness, importance, informativeness
from siteloom.template.paths import PathSet, class_path_hashes, page_paths, paths_of_page
from siteloom.template.segment_counts import NO_SEGMENTS, LivingTime, SegmentCounts, merged
from siteloom.template.segment_table import SegmentRule, SegmentTable, blocks_by
from siteloom.template.shared import Delta, SharedPaths, describe_template, page_delta, shared_paths
from siteloom.template.tables import PathRow, TagRow, path_rows, tag_rows

__all__ = [
    "NO_SEGMENTS",
    "Block",
    "Delta",
    "Informativeness",
    "LivingTime",
    "PageSegments",
    "PathRow",
    "PathSet",
    "SegmentCounts",
    "SegmentRule",
    "SegmentTable",
    "SharedPaths",
    "TagRow",
    "blocks_by",
    "class_path_hashes",
    "describe_template",
    "importance",
    "informativeness",
    "merged",
    "page_delta",
    "page_paths",
    "path_rows",
    "paths_of_page",
    "shared_paths",
    "tag_rows",
]
