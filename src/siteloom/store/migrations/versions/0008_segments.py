"""The text segments of each site."""

import sqlalchemy as sa
from alembic import op

from siteloom.store.schema import RowId

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Apply the step."""
    op.create_table(
        "segment_tables",
        sa.Column("site_id", RowId, sa.ForeignKey("sites.id"), primary_key=True),
        sa.Column("counted_to", RowId, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
