"""Runs of verbs, and the pages that failed in them."""

import sqlalchemy as sa
from alembic import op

from siteloom.store.schema import RowId, UtcTime

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Apply the step."""
    op.create_table(
        "runs",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("verb", sa.Text, nullable=False),
        sa.Column("arguments", sa.JSON, nullable=False),
        sa.Column("started_at", UtcTime, nullable=False),
        sa.Column("ended_at", UtcTime),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("counts", sa.JSON, nullable=False),
    )
    op.create_table(
        "failures",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("run_id", RowId, sa.ForeignKey("runs.id"), nullable=False, index=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
