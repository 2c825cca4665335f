"""the causes of the events that broke a soak's run

Revision ID: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "attempt_cause",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("attempt_id", sa.String(length=36), nullable=False),
        sa.Column("event", sa.String(length=200), nullable=False),
        sa.Column("hour", sa.String(length=20), nullable=False),
        sa.Column("what", sa.JSON(), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("user_id", sa.String(length=36), nullable=False),
        sa.Column("person", sa.String(length=120), nullable=False),
        sa.Column("party", sa.String(length=16), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_attempt_cause_attempt_id_attempt")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt_cause")),
    )
    with op.batch_alter_table("attempt_cause", schema=None) as batch_op:
        batch_op.create_index("ix_attempt_cause_attempt", ["attempt_id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("attempt_cause", schema=None) as batch_op:
        batch_op.drop_index("ix_attempt_cause_attempt")
    op.drop_table("attempt_cause")
