"""Sites, URLs, the versions of what was found at them, and the packs that hold the bytes."""

import sqlalchemy as sa
from alembic import op

from siteloom.store.schema import RowId, UtcTime

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Apply the step."""
    op.create_table(
        "workspace",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("created_at", UtcTime, nullable=False),
    )
    op.create_table(
        "sites",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
    )
    op.create_table(
        "urls",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("site_id", RowId, sa.ForeignKey("sites.id"), nullable=False, index=True),
        sa.Column("key", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("url", sa.Text, nullable=False),
    )
    op.create_table(
        "packs",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("site_id", RowId, sa.ForeignKey("sites.id"), nullable=False, index=True),
        sa.Column("file", sa.Text, nullable=False, unique=True),
        sa.Column("committed_bytes", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "versions",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("url_id", RowId, sa.ForeignKey("urls.id"), nullable=False),
        sa.Column("content_hash", sa.LargeBinary, nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("last_seen_at", UtcTime, nullable=False),
        sa.Column("pack_id", RowId, sa.ForeignKey("packs.id"), nullable=False),
        sa.Column("block_offset", sa.BigInteger, nullable=False),
        sa.Column("slot", sa.Integer, nullable=False),
    )
    op.create_index("ix_versions_url_id_content_hash", "versions", ["url_id", "content_hash"], unique=True)
