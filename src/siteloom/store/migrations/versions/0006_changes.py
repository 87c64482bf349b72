"""What is watched of each wrapper's pages, what checks found, and how wrappers were repaired."""

import sqlalchemy as sa
from alembic import op

from siteloom.store.schema import RowId, UtcTime

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Apply the step."""
    op.create_table(
        "watches",
        sa.Column("wrapper", sa.Text, primary_key=True),
        sa.Column("site", sa.Text, nullable=False),
        sa.Column("wrapper_version", sa.Integer),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("saved_at", UtcTime, nullable=False),
    )
    op.create_table(
        "checks",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("run_id", RowId, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("wrapper", sa.Text, nullable=False, index=True),
        sa.Column("wrapper_version", sa.Integer),
        sa.Column("at", UtcTime, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("is_healthy", sa.Boolean, nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
    )
    op.create_table(
        "repairs",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("run_id", RowId, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("wrapper", sa.Text, nullable=False, index=True),
        sa.Column("version_before", sa.Integer, nullable=False),
        sa.Column("version_after", sa.Integer),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("confidence", sa.Float, nullable=False),
        sa.Column("at", UtcTime, nullable=False),
        sa.Column("text", sa.Text),
        sa.Column("content", sa.JSON, nullable=False),
    )
