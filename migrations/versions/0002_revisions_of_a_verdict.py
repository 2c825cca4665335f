"""what a revision of a verdict says, rests on, and who asked for it

Revision ID: 0002
Revises: 0001
"""

import hashlib
import json

import rfc8785
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

VERDICTS = sa.table("verdict_revision", sa.column("id", sa.String), sa.column("document", sa.JSON), sa.column("substance", sa.String))


def upgrade() -> None:
    with op.batch_alter_table("verdict_revision", schema=None) as batch_op:
        batch_op.add_column(sa.Column("substance", sa.String(length=80), nullable=False, server_default=""))
        batch_op.add_column(sa.Column("g2_baseline", sa.String(length=80), nullable=True))
        batch_op.add_column(sa.Column("judged_by", sa.String(length=120), nullable=False, server_default=""))
        batch_op.add_column(sa.Column("why", sa.Text(), nullable=False, server_default=""))
    connection = op.get_bind()
    for key in [row.id for row in connection.execute(sa.select(VERDICTS.c.id))]:
        document = connection.execute(sa.select(VERDICTS.c.document).where(VERDICTS.c.id == key)).scalar_one()
        connection.execute(sa.update(VERDICTS).where(VERDICTS.c.id == key).values(substance=_substance(document)))


def downgrade() -> None:
    with op.batch_alter_table("verdict_revision", schema=None) as batch_op:
        for name in ("why", "judged_by", "g2_baseline", "substance"):
            batch_op.drop_column(name)


def _substance(document: dict) -> str:
    """Say what app/attempts/revisions.py said when this migration was written."""
    checks = {str(c["id"]): [c.get("verdict"), c.get("because"), c.get("severity")] for c in document.get("checks") or []}
    told = {"verdict": document.get("verdict"), "because": list(document.get("because") or []), "checks": checks}
    return "sha256:" + hashlib.sha256(rfc8785.dumps(json.loads(json.dumps(told)))).hexdigest()
