"""The things that records of several sites tell of, as they were linked last; clusters that are set aside.

Beside them the records of a page in one run are found without a look at those of other runs.
"""

import sqlalchemy as sa
from alembic import op

from siteloom.store.schema import RowId, UtcTime

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Apply the step."""
    op.create_table(
        "linkings",
        sa.Column("run_id", RowId, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("content", sa.JSON, nullable=False),
        sa.Column("at", UtcTime, nullable=False),
    )
    op.create_table(
        "entities",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("sources", sa.Integer, nullable=False),
        sa.Column("conflicts", sa.Integer, nullable=False),
        sa.Column("conflicting", sa.Text, nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
    )
    op.create_table(
        "dismissed_clusters",
        sa.Column("cluster_id", RowId, sa.ForeignKey("clusters.id"), primary_key=True, autoincrement=False),
        sa.Column("at", UtcTime, nullable=False),
    )
    op.drop_index("ix_records_url_key", "records")
    op.create_index(
        "ix_records_url_key_run_id_shard_place", "records", ["url_key", "run_id", "shard", "place"]
    )
