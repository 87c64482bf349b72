"""Records that were extracted, and the shards of pages that a run is done with."""

import sqlalchemy as sa
from alembic import op

from siteloom.store.schema import RowId

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Apply the step."""
    op.create_table(
        "records",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("run_id", RowId, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("shard", sa.Integer, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("url_key", sa.LargeBinary, nullable=False, index=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("wrapper", sa.Text, nullable=False),
        sa.Column("wrapper_version", sa.Integer),
        sa.Column("content", sa.Text, nullable=False),
    )
    op.create_index("ix_records_run_id_shard_place", "records", ["run_id", "shard", "place"], unique=True)
    op.create_table(
        "extracted_shards",
        sa.Column("run_id", RowId, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("shard", sa.Integer, primary_key=True),
        sa.Column("summary", sa.JSON, nullable=False),
    )
