"""Annotations of pages, and the versions of wrappers."""

import sqlalchemy as sa
from alembic import op

from siteloom.store.schema import RowId, UtcTime

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Apply the step."""
    op.create_table(
        "annotations",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("url_id", RowId, sa.ForeignKey("urls.id"), nullable=False, index=True),
        sa.Column("version_id", RowId, sa.ForeignKey("versions.id"), nullable=False),
        sa.Column("example", sa.JSON, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("format", sa.Integer, nullable=False),
    )
    op.create_table(
        "wrappers",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("site", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
    )
    op.create_index("ix_wrappers_name_version", "wrappers", ["name", "version"], unique=True)
