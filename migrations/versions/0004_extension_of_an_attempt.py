"""an inconclusive attempt is extended once by planned run pairs

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.add_column(sa.Column("may_extend_by", sa.Integer(), nullable=False, server_default="0"))
        batch_op.add_column(sa.Column("extension", sa.JSON(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.drop_column("extension")
        batch_op.drop_column("may_extend_by")
