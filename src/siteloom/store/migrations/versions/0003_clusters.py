"""Clusters of a run, and the pages in them."""

import sqlalchemy as sa
from alembic import op

from siteloom.store.schema import RowId

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Apply the step."""
    op.create_table(
        "clusters",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("run_id", RowId, sa.ForeignKey("runs.id"), nullable=False, index=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("site", sa.Text, nullable=False, index=True),
        sa.Column("mask", sa.Text, nullable=False),
        sa.Column("mask_pages", sa.Integer, nullable=False),
        sa.Column("accepted", sa.JSON, nullable=False),
        sa.Column("importance", sa.Float, nullable=False),
        sa.Column("url_patterns", sa.JSON, nullable=False),
        sa.Column("template", sa.JSON, nullable=False),
    )
    op.create_table(
        "cluster_pages",
        sa.Column("cluster_id", RowId, sa.ForeignKey("clusters.id"), primary_key=True),
        sa.Column("url_id", RowId, sa.ForeignKey("urls.id"), primary_key=True, index=True),
    )
