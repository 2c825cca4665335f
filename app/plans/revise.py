"""What a change of the plan would change: differences read from YAML, tried on the present plan, compared with the sealed one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import Permission
from app.engagements.access import find
from app.kit.errors import BadInput, FieldProblem
from app.kit.i18n import N_
from app.plans import repository
from app.plans.usecases import changed_plan, check_revisable, current, pointer_problems
from gates.plan import InvalidPlan, load_yaml

LARGEST = 1 << 18  # characters


@dataclass(frozen=True)
class Preview:
    """What would change. `against`: number of the newest sealed revision, of the present one while none was ever sealed."""

    against: int
    sealed: bool
    hash: str  # of the plan as it would be
    base: str  # hash of the present revision: whoever keeps the change names it
    changes: list[dict[str, str]]  # {path, before, after}; "" where there is no such field


def read_differences(text: str) -> Mapping[str, Any]:
    """Return the differences that a YAML text states. Raises BadInput that says what is wrong and on which line."""
    if len(text) > LARGEST:
        raise BadInput("text_too_long", N_("The text has {size} characters; at most {most} are read."), size=len(text), most=LARGEST)
    try:
        found = load_yaml(text)
    except InvalidPlan as error:
        raise BadInput("bad_plan", N_("The plan cannot be used. Problems: {count}."), pointer_problems(error), count=len(error.problems)) from None
    if not isinstance(found, Mapping) or not found:
        field = FieldProblem("", N_("Write what shall differ, e.g. g3, a line break, and two spaces before agreement_max: 0.03."))
        raise BadInput("no_differences", N_("These are no differences from a plan."), [field])
    return found


def preview(s: Session, *, engagement_id: str, differences: Mapping[str, Any], actor: Actor) -> Preview:
    """Return what the differences would change against the sealed plan; keeps nothing. Raises what keeping them would raise."""
    require(actor, Permission.REVISE_PLAN)
    engagement = find(s, engagement_id, actor)
    check_revisable(s, engagement)
    present = current(s, engagement_id)
    plan = changed_plan(present, differences)
    sealed = [r for r in repository.revisions(s, engagement_id) if r.sealed_at]
    base = sealed[-1] if sealed else present
    return Preview(base.revision, bool(sealed), plan.hash, present.hash, changes(json.loads(base.canonical), plan.data))


def unsealed_changes(s: Session, *, engagement_id: str, actor: Actor) -> Preview | None:
    """Return what the newest revision changes against the sealed one while it waits for the parties; None when there is nothing to compare."""
    require(actor, Permission.VIEW)
    find(s, engagement_id, actor)
    revisions = repository.revisions(s, engagement_id)
    present, sealed = revisions[-1], [r for r in revisions if r.sealed_at]
    if present.sealed_at or not sealed:
        return None
    changed = changes(json.loads(sealed[-1].canonical), json.loads(present.canonical))
    return Preview(sealed[-1].revision, True, present.hash, present.hash, changed)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return every field whose value differs, by its dotted path. The revision's own number is no change of the plan."""
    old, new = (dict(_leaves("", data)) for data in (before, after))
    return [
        {"path": path, "before": _text(old.get(path)), "after": _text(new.get(path))}
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path) and path != "plan.revision"
    ]


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}" if path else str(key), inner)
    else:
        yield path, value


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
