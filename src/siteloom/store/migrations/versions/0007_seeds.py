"""Known records, and what became of sites that were to be wrapped from them."""

import sqlalchemy as sa
from alembic import op

from siteloom.store.schema import RowId, UtcTime

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Apply the step."""
    op.create_table(
        "seeds",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("is_grown", sa.Boolean, nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("confidence", sa.Float, nullable=False),
        sa.Column("run_id", RowId, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("met", sa.BigInteger, nullable=False),
        sa.Column("added_at", UtcTime, nullable=False),
    )
    op.create_index("ix_seeds_source_id", "seeds", ["source", "id"])
    op.create_table(
        "grown_sites",
        sa.Column("site", sa.Text, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("tried_seeds", sa.BigInteger, nullable=False),
        sa.Column("wrapper", sa.Text),
        sa.Column("wrapper_version", sa.Integer),
        sa.Column("content", sa.JSON, nullable=False),
        sa.Column("at", UtcTime, nullable=False),
    )
