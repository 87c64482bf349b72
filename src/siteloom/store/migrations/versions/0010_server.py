"""Accounts, what was said of the attributes of clusters, and long work that was asked for."""

import sqlalchemy as sa
from alembic import op

from siteloom.store.schema import RowId, UtcTime

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Apply the step."""
    op.create_table(
        "users",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("password", sa.Text),
        sa.Column("created_at", UtcTime, nullable=False),
    )
    op.create_table(
        "sessions",
        sa.Column("key_hash", sa.LargeBinary, primary_key=True),
        sa.Column("user_id", RowId, sa.ForeignKey("users.id")),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("expires_at", UtcTime, nullable=False),
    )
    op.create_index("ix_sessions_user_id", "sessions", ["user_id"])
    op.create_table(
        "api_keys",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("key_hash", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("user_id", RowId, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("last_used_at", UtcTime),
    )
    op.create_index("ix_api_keys_user_id", "api_keys", ["user_id"])
    op.create_table(
        "failed_sign_ins",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("at", UtcTime, nullable=False),
    )
    op.create_index("ix_failed_sign_ins_name", "failed_sign_ins", ["name"])
    op.create_index("ix_failed_sign_ins_address", "failed_sign_ins", ["address"])
    op.create_table(
        "cluster_schemas",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("at", UtcTime, nullable=False),
    )
    op.create_index(
        "ix_cluster_schemas_cluster_revision", "cluster_schemas", ["cluster", "revision"], unique=True
    )
    op.create_table(
        "jobs",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("arguments", sa.JSON, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("done", sa.BigInteger, nullable=False),
        sa.Column("total", sa.BigInteger),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("result", sa.JSON),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("started_at", UtcTime),
        sa.Column("ended_at", UtcTime),
    )
    op.create_index("ix_jobs_state", "jobs", ["state"])
    op.add_column("annotations", sa.Column("is_empty", sa.Boolean, nullable=False, server_default=sa.false()))
