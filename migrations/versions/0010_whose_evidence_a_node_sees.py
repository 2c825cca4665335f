"""whose evidence a node sees

Revision ID: 0010
Revises: 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("node", schema=None) as batch_op:
        batch_op.add_column(sa.Column("evidence_token", sa.String(length=36), nullable=True))
        batch_op.add_column(sa.Column("sees", sa.JSON(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("node", schema=None) as batch_op:
        batch_op.drop_column("sees")
        batch_op.drop_column("evidence_token")
