"""The workbench of a cluster: its sample pages, what people said of them, and what is learned of that."""

from siteloom.workbench.benches import Workbenches
from siteloom.workbench.in_force import rules_to_keep
from siteloom.workbench.sample_pages import version_of
from siteloom.workbench.workbench import Workbench

__all__ = ["Workbench", "Workbenches", "rules_to_keep", "version_of"]
