"""What servers said by which to ask whether a page has changed."""

import sqlalchemy as sa
from alembic import op

from siteloom.store.schema import RowId

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Apply the step."""
    op.create_table(
        "validators",
        sa.Column("version_id", RowId, sa.ForeignKey("versions.id"), primary_key=True, autoincrement=False),
        sa.Column("etag", sa.Text, nullable=False),
        sa.Column("last_modified", sa.Text, nullable=False),
    )
