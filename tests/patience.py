"""How long tests wait for something before they take it to hang."""

from __future__ import annotations

# Far longer than anything takes on a busy machine. A test that passes does not wait for it.
SECONDS = 300
MILLISECONDS = 1_000 * SECONDS
