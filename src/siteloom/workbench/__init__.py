"""The workbench of a cluster: its sample pages, what people said of them, and what is learned of that."""

from siteloom.workbench.benches import Workbenches
from siteloom.workbench.sample_pages import version_of
from siteloom.workbench.workbench import Workbench

__all__ = ["Workbench", "Workbenches", "version_of"]
