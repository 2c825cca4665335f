"""deviations, waivers and punch items; revoked tokens; removals from targets

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "deviation",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("engagement_id", sa.String(length=36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("gate", sa.String(length=4), nullable=False),
        sa.Column("severity", sa.String(length=8), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("owner_party", sa.String(length=16), nullable=False),
        sa.Column("owner", sa.String(length=120), nullable=False),
        sa.Column("due", sa.Date(), nullable=False),
        sa.Column("recorded_by", sa.String(length=120), nullable=False),
        sa.Column("recorded_party", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_by", sa.String(length=120), nullable=False),
        sa.Column("closed_party", sa.String(length=16), nullable=False),
        sa.Column("closing", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["engagement_id"], ["engagement.id"], name=op.f("fk_deviation_engagement_id_engagement")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deviation")),
        sa.UniqueConstraint("engagement_id", "number", name=op.f("uq_deviation_engagement_id_number")),
    )
    op.create_table(
        "target_removal",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("engagement_id", sa.String(length=36), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=True),
        sa.Column("started_by", sa.String(length=120), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["engagement_id"], ["engagement.id"], name=op.f("fk_target_removal_engagement_id_engagement")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_target_removal")),
    )
    with op.batch_alter_table("api_token", schema=None) as batch_op:
        batch_op.add_column(sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("api_token", schema=None) as batch_op:
        batch_op.drop_column("revoked_at")
    op.drop_table("target_removal")
    op.drop_table("deviation")
