"""the first tables

Revision ID: 0001
Revises:
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit_head",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(length=80), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_head")),
    )
    op.create_table(
        "audit_row",
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("prev_hash", sa.String(length=80), nullable=False),
        sa.Column("hash", sa.String(length=80), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.String(length=120), nullable=False),
        sa.Column("action", sa.String(length=60), nullable=False),
        sa.Column("object_kind", sa.String(length=40), nullable=False),
        sa.Column("object_id", sa.String(length=80), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit_row")),
        sa.UniqueConstraint("hash", name=op.f("uq_audit_row_hash")),
        sa.UniqueConstraint("prev_hash", name=op.f("uq_audit_row_prev_hash")),
    )
    op.create_table(
        "canary",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("returned_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_canary")),
    )
    op.create_table(
        "engagement",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("code", sa.String(length=40), nullable=False),
        sa.Column("customer", sa.String(length=200), nullable=False),
        sa.Column("vendor", sa.String(length=200), nullable=False),
        sa.Column("site", sa.String(length=200), nullable=False),
        sa.Column("contract", sa.String(length=80), nullable=False),
        sa.Column("people", sa.JSON(), nullable=False),
        sa.Column("purchase_order", sa.JSON(), nullable=False),
        sa.Column("packing_list", sa.JSON(), nullable=False),
        sa.Column("targets", sa.JSON(), nullable=False),
        sa.Column("source_yaml", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("state_reason", sa.JSON(), nullable=True),
        sa.Column("g2_baseline", sa.JSON(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_by", sa.String(length=36), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_engagement")),
        sa.UniqueConstraint("code", name=op.f("uq_engagement_code")),
    )
    op.create_table(
        "host_lock",
        sa.Column("target", sa.String(length=160), nullable=False),
        sa.Column("attempt_id", sa.String(length=36), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("target", name=op.f("pk_host_lock")),
    )
    op.create_table(
        "idempotency_key",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("user_id", sa.String(length=36), nullable=False),
        sa.Column("key", sa.String(length=120), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_idempotency_key")),
        sa.UniqueConstraint("user_id", "key", name=op.f("uq_idempotency_key_user_id_key")),
    )
    op.create_table(
        "node",
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_node")),
    )
    op.create_table(
        "sign_in_throttle",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("blocked_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_sign_in_throttle")),
    )
    op.create_table(
        "user_account",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("login", sa.String(length=80), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("title", sa.String(length=120), nullable=False),
        sa.Column("party", sa.String(length=16), nullable=False),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("password_hash", sa.String(length=255), nullable=False),
        sa.Column("locale", sa.String(length=16), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_account")),
        sa.UniqueConstraint("login", name=op.f("uq_user_account_login")),
    )
    op.create_table(
        "api_token",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("token_sha256", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["user_account.id"], name=op.f("fk_api_token_user_id_user_account")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_token")),
        sa.UniqueConstraint("token_sha256", name=op.f("uq_api_token_token_sha256")),
    )
    op.create_table(
        "approval",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("engagement_id", sa.String(length=36), nullable=False),
        sa.Column("object_kind", sa.String(length=20), nullable=False),
        sa.Column("object_id", sa.String(length=36), nullable=False),
        sa.Column("object_hash", sa.String(length=80), nullable=False),
        sa.Column("party", sa.String(length=16), nullable=False),
        sa.Column("user_id", sa.String(length=36), nullable=False),
        sa.Column("person", sa.String(length=120), nullable=False),
        sa.Column("role", sa.String(length=120), nullable=False),
        sa.Column("decision", sa.String(length=16), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("scan_sha256", sa.String(length=64), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["engagement_id"], ["engagement.id"], name=op.f("fk_approval_engagement_id_engagement")),
        sa.ForeignKeyConstraint(["user_id"], ["user_account.id"], name=op.f("fk_approval_user_id_user_account")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_approval")),
        sa.UniqueConstraint("object_kind", "object_id", "object_hash", "user_id", name=op.f("uq_approval_object_kind_object_id_object_hash_user_id")),
    )
    op.create_table(
        "plan_revision",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("engagement_id", sa.String(length=36), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("canonical", sa.Text(), nullable=False),
        sa.Column("hash", sa.String(length=80), nullable=False),
        sa.Column("sealed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_by", sa.String(length=36), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["engagement_id"], ["engagement.id"], name=op.f("fk_plan_revision_engagement_id_engagement")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_plan_revision")),
        sa.UniqueConstraint("engagement_id", "revision", name=op.f("uq_plan_revision_engagement_id_revision")),
    )
    op.create_table(
        "web_session",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("token_sha256", sa.String(length=64), nullable=False),
        sa.Column("csrf_token", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=36), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user_account.id"], name=op.f("fk_web_session_user_id_user_account")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_web_session")),
        sa.UniqueConstraint("token_sha256", name=op.f("uq_web_session_token_sha256")),
    )
    op.create_table(
        "attempt",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("engagement_id", sa.String(length=36), nullable=False),
        sa.Column("gate", sa.String(length=4), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("rehearsal", sa.Boolean(), nullable=False),
        sa.Column("plan_id", sa.String(length=36), nullable=False),
        sa.Column("plan_hash", sa.String(length=80), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(length=120), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("next_due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_enqueued_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("node", sa.String(length=120), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancel_reason", sa.Text(), nullable=False),
        sa.Column("counted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("rig_cause", sa.Text(), nullable=False),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("verdict", sa.String(length=16), nullable=True),
        sa.Column("because", sa.JSON(), nullable=True),
        sa.Column("started_by", sa.String(length=36), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["engagement_id"], ["engagement.id"], name=op.f("fk_attempt_engagement_id_engagement")),
        sa.ForeignKeyConstraint(["plan_id"], ["plan_revision.id"], name=op.f("fk_attempt_plan_id_plan_revision")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt")),
        sa.UniqueConstraint("engagement_id", "gate", "rehearsal", "number", name=op.f("uq_attempt_engagement_id_gate_rehearsal_number")),
    )
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.create_index("ix_attempt_due", ["next_due_at"], unique=False)

    op.create_table(
        "attempt_transition",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("attempt_id", sa.String(length=36), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("from_status", sa.String(length=16), nullable=False),
        sa.Column("event", sa.String(length=32), nullable=False),
        sa.Column("to_status", sa.String(length=16), nullable=False),
        sa.Column("actor", sa.String(length=120), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_attempt_transition_attempt_id_attempt")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt_transition")),
        sa.UniqueConstraint("attempt_id", "generation", name=op.f("uq_attempt_transition_attempt_id_generation")),
    )
    op.create_table(
        "report",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("attempt_id", sa.String(length=36), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("number", sa.String(length=80), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("manifest_hash", sa.String(length=80), nullable=False),
        sa.Column("verdict_hash", sa.String(length=80), nullable=False),
        sa.Column("basis", sa.String(length=80), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_report_attempt_id_attempt")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_report")),
        sa.UniqueConstraint("attempt_id", "language", "revision", name=op.f("uq_report_attempt_id_language_revision")),
    )
    op.create_table(
        "step",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("attempt_id", sa.String(length=36), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=60), nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("title", sa.JSON(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("status", sa.String(length=12), nullable=False),
        sa.Column("try_no", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.String(length=120), nullable=True),
        sa.Column("offsets", sa.JSON(), nullable=True),
        sa.Column("expected_end_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_step_attempt_id_attempt")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_step")),
        sa.UniqueConstraint("attempt_id", "key", name=op.f("uq_step_attempt_id_key")),
        sa.UniqueConstraint("attempt_id", "position", name=op.f("uq_step_attempt_id_position")),
    )
    op.create_table(
        "verdict_revision",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("attempt_id", sa.String(length=36), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("hash", sa.String(length=80), nullable=False),
        sa.Column("judge_version", sa.String(length=40), nullable=False),
        sa.Column("rules_hash", sa.String(length=80), nullable=False),
        sa.Column("plan_hash", sa.String(length=80), nullable=False),
        sa.Column("manifest_hash", sa.String(length=80), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_verdict_revision_attempt_id_attempt")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verdict_revision")),
        sa.UniqueConstraint("attempt_id", "revision", name=op.f("uq_verdict_revision_attempt_id_revision")),
    )
    op.create_table(
        "evidence_file",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("attempt_id", sa.String(length=36), nullable=False),
        sa.Column("step_id", sa.String(length=36), nullable=True),
        sa.Column("path", sa.String(length=300), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("host", sa.String(length=120), nullable=False),
        sa.Column("tool", sa.String(length=60), nullable=False),
        sa.Column("tool_version", sa.String(length=120), nullable=False),
        sa.Column("argv", sa.JSON(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("clocks", sa.JSON(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_evidence_file_attempt_id_attempt")),
        sa.ForeignKeyConstraint(["step_id"], ["step.id"], name=op.f("fk_evidence_file_step_id_step")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evidence_file")),
        sa.UniqueConstraint("attempt_id", "path", name=op.f("uq_evidence_file_attempt_id_path")),
    )
    op.create_table(
        "sample",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("attempt_id", sa.String(length=36), nullable=False),
        sa.Column("step_id", sa.String(length=36), nullable=False),
        sa.Column("stream", sa.String(length=40), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_sample_attempt_id_attempt")),
        sa.ForeignKeyConstraint(["step_id"], ["step.id"], name=op.f("fk_sample_step_id_step")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sample")),
        sa.UniqueConstraint("step_id", "stream", "seq", name=op.f("uq_sample_step_id_stream_seq")),
    )
    with op.batch_alter_table("sample", schema=None) as batch_op:
        batch_op.create_index("ix_sample_attempt", ["attempt_id", "id"], unique=False)

    op.create_table(
        "step_event",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("attempt_id", sa.String(length=36), nullable=False),
        sa.Column("step_id", sa.String(length=36), nullable=False),
        sa.Column("run", sa.String(length=80), nullable=False),
        sa.Column("uuid", sa.String(length=60), nullable=False),
        sa.Column("counter", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=60), nullable=False),
        sa.Column("host", sa.String(length=120), nullable=False),
        sa.Column("task", sa.String(length=255), nullable=False),
        sa.Column("stdout", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_step_event_attempt_id_attempt")),
        sa.ForeignKeyConstraint(["step_id"], ["step.id"], name=op.f("fk_step_event_step_id_step")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_step_event")),
        sa.UniqueConstraint("step_id", "run", "uuid", name=op.f("uq_step_event_step_id_run_uuid")),
    )
    with op.batch_alter_table("step_event", schema=None) as batch_op:
        batch_op.create_index("ix_step_event_attempt", ["attempt_id", "id"], unique=False)

    # The audit chain starts from a row of its own, so that moving its end is always the same compare-and-swap.
    genesis = "sha256:" + "0" * 64
    op.bulk_insert(sa.table("audit_head", sa.column("id"), sa.column("seq"), sa.column("hash")), [{"id": 1, "seq": 0, "hash": genesis}])


def downgrade() -> None:
    with op.batch_alter_table("step_event", schema=None) as batch_op:
        batch_op.drop_index("ix_step_event_attempt")

    op.drop_table("step_event")
    with op.batch_alter_table("sample", schema=None) as batch_op:
        batch_op.drop_index("ix_sample_attempt")

    op.drop_table("sample")
    op.drop_table("evidence_file")
    op.drop_table("verdict_revision")
    op.drop_table("step")
    op.drop_table("report")
    op.drop_table("attempt_transition")
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.drop_index("ix_attempt_due")

    op.drop_table("attempt")
    op.drop_table("web_session")
    op.drop_table("plan_revision")
    op.drop_table("approval")
    op.drop_table("api_token")
    op.drop_table("user_account")
    op.drop_table("sign_in_throttle")
    op.drop_table("node")
    op.drop_table("idempotency_key")
    op.drop_table("host_lock")
    op.drop_table("engagement")
    op.drop_table("canary")
    op.drop_table("audit_row")
    op.drop_table("audit_head")
