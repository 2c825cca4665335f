"""Engagements: one customer's joint test, from its file to its end."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import Permission
from app.audit.chain import record
from app.engagements import repository
from app.engagements.file import bad_file, read_file
from app.engagements.models import Engagement
from app.engagements.views import board, overview
from app.kit.clock import now
from app.kit.db import new_id
from app.plans.usecases import first_revision
from gates.g1.packing import packing_warning
from gates.schema import FieldProblem
from gates.text import Text

__all__ = ["board", "create_engagement", "overview", "warning_of"]


def warning_of(text: str, actor: Actor) -> Text | None:
    """Return what to know before an engagement is made of a file: what its packing list lacks of the order. Raises BadInput as making it does."""
    require(actor, Permission.CREATE_ENGAGEMENT)
    file = read_file(text)
    return packing_warning(file.order, file.packing_list)


def create_engagement(s: Session, *, text: str, actor: Actor) -> Engagement:
    """Create an engagement and the first revision of its plan from an engagement file (YAML).

    Raises BadInput with a sentence for each field that is wrong; nothing is kept then.
    """
    require(actor, Permission.CREATE_ENGAGEMENT)
    file = read_file(text)
    if repository.by_code(s, file.code):
        taken = Text(f"engagement.code: an engagement {file.code} exists already.", f"engagement.code：项目 {file.code} 已存在。")
        raise bad_file([FieldProblem("engagement.code", taken)])
    engagement = Engagement(
        id=new_id(),
        code=file.code,
        customer=file.customer,
        vendor=file.vendor,
        site=file.site,
        contract=file.contract,
        people=file.people,
        order=file.order,
        packing_list=file.packing_list,
        targets=file.targets,
        source_yaml=text,
        state="draft",
        state_reason=None,
        version=1,
        created_by=actor.user_id,
        created_at=now(),
    )
    s.add(engagement)
    s.flush()
    data = {"code": file.code, "customer": file.customer, "vendor": file.vendor}
    record(s, actor=actor, action="engagement.create", object_kind="engagement", object_id=engagement.id, data=data)
    first_revision(s, engagement_id=engagement.id, plan=file.plan, actor=actor)
    return engagement
