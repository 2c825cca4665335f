"""since when a lease is held, and since when a node is seen to be silent

Revision ID: 0009
Revises: 0008
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("attempt", sa.Column("lease_since", sa.DateTime(timezone=True), nullable=True))
    op.add_column("node", sa.Column("silent_since", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    op.drop_column("node", "silent_since")
    op.drop_column("attempt", "lease_since")
