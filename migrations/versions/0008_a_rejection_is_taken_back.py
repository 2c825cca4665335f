"""whoever rejected may approve later: one row for each of the two words

Revision ID: 0008
Revises: 0007
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

OLD = "uq_approval_object_kind_object_id_object_hash_user_id"
NEW = "uq_approval_object_kind_object_id_object_hash_user_id_decision"


def upgrade() -> None:
    with op.batch_alter_table("approval", schema=None) as batch_op:
        batch_op.drop_constraint(OLD, type_="unique")
        batch_op.create_unique_constraint(NEW, ["object_kind", "object_id", "object_hash", "user_id", "decision"])


def downgrade() -> None:
    # Fails where a rejection was taken back: dropping one of the two words would change what was decided (docs/operations.md: restore instead).
    with op.batch_alter_table("approval", schema=None) as batch_op:
        batch_op.drop_constraint(NEW, type_="unique")
        batch_op.create_unique_constraint(OLD, ["object_kind", "object_id", "object_hash", "user_id"])
