"""What is searched of pages and records; the terms of it are indexed when the first search asks for it."""

import sqlalchemy as sa
from alembic import op

from siteloom.store.schema import RowId

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Apply the step."""
    op.create_table(
        "search_documents",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("site", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("url_id", RowId, sa.ForeignKey("urls.id")),
        sa.Column("version_id", RowId, sa.ForeignKey("versions.id"), unique=True),
        sa.Column("key", sa.LargeBinary, unique=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_search_documents_url_id", "search_documents", ["url_id"])
    op.create_table(
        "search_marks",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
