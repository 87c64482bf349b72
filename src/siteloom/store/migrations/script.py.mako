"""${message}."""

import sqlalchemy as sa
from alembic import op

from siteloom.store.schema import RowId, UtcTime

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """Apply the step."""
    ${upgrades if upgrades else ""}
