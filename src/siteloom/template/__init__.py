"""What the pages of a cluster share: essential paths and template text; and what tells them apart."""

from siteloom.template.informative import Informativeness, importance, informativeness
from siteloom.template.paths import PathSet, class_path_hashes, page_paths
from siteloom.template.shared import Delta, SharedPaths, describe_template, page_delta, shared_paths
from siteloom.template.tables import PathRow, TagRow, path_rows, tag_rows

__all__ = [
    "Delta",
    "Informativeness",
    "PathRow",
    "PathSet",
    "SharedPaths",
    "TagRow",
    "class_path_hashes",
    "describe_template",
    "importance",
    "informativeness",
    "page_delta",
    "page_paths",
    "path_rows",
    "shared_paths",
    "tag_rows",
]
