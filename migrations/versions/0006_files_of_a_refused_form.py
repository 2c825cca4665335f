"""files that came with a form which was refused wait for it

Revision ID: 0006
Revises: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "kept_upload",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36), nullable=False),
        sa.Column("place", sa.String(length=80), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user_account.id"], name=op.f("fk_kept_upload_user_id_user_account")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kept_upload")),
    )
    with op.batch_alter_table("kept_upload", schema=None) as batch_op:
        batch_op.create_index("ix_kept_upload_user_place", ["user_id", "place"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("kept_upload", schema=None) as batch_op:
        batch_op.drop_index("ix_kept_upload_user_place")
    op.drop_table("kept_upload")
