"""orders to wipe drives, and the records of wipes

Revision ID: 0007
Revises: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "wipe_order",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("engagement_id", sa.String(length=36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("way", sa.String(length=20), nullable=False),
        sa.Column("drives", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("ordered_by", sa.String(length=120), nullable=False),
        sa.Column("ordered_party", sa.String(length=16), nullable=False),
        sa.Column("ordered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("withdrawn_by", sa.String(length=120), nullable=False),
        sa.Column("withdrawn_why", sa.Text(), nullable=False),
        sa.Column("withdrawn_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("started_by", sa.String(length=120), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("report", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["engagement_id"], ["engagement.id"], name=op.f("fk_wipe_order_engagement_id_engagement")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_wipe_order")),
        sa.UniqueConstraint("engagement_id", "number", name=op.f("uq_wipe_order_engagement_id_number")),
    )
    op.create_table(
        "wipe_file",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("wipe_order_id", sa.String(length=36), nullable=False),
        sa.Column("host", sa.String(length=120), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["wipe_order_id"], ["wipe_order.id"], name=op.f("fk_wipe_file_wipe_order_id_wipe_order")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_wipe_file")),
        sa.UniqueConstraint("wipe_order_id", "host", "name", name=op.f("uq_wipe_file_wipe_order_id_host_name")),
    )


def downgrade() -> None:
    op.drop_table("wipe_file")
    op.drop_table("wipe_order")
