"""What other tools were taught, as examples for this one."""

from siteloom.peer_files.model import Layout, PeerExample, PeerModel, Sample, Values, best_example
from siteloom.peer_files.reading import read_peer_file

__all__ = [
    "Layout",
    "PeerExample",
    "PeerModel",
    "Sample",
    "Values",
    "best_example",
    "read_peer_file",
]
