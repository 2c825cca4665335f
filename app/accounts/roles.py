"""Roles, permissions and who holds which. Deny by default: what is not listed is not allowed."""

from __future__ import annotations

from enum import StrEnum


class Party(StrEnum):
    """The two sides of a joint test. A user belongs to exactly one."""

    VENDOR = "vendor"
    CUSTOMER = "customer"


PARTIES = frozenset(str(party) for party in Party)


class Role(StrEnum):
    """What a person is there for."""

    ADMIN = "admin"
    ENGINEER = "engineer"
    APPROVER = "approver"
    VIEWER = "viewer"


class Permission(StrEnum):
    """One thing that can be allowed."""

    VIEW = "view"
    CREATE_ENGAGEMENT = "create_engagement"
    REVISE_PLAN = "revise_plan"
    START_ATTEMPT = "start_attempt"
    CANCEL_ATTEMPT = "cancel_attempt"
    RETRY_ATTEMPT = "retry_attempt"
    SUBMIT_FORM = "submit_form"
    CLAIM_RIG_CAUSE = "claim_rig_cause"
    JUDGE = "judge"
    RECORD_DEVIATION = "record_deviation"
    REMOVE_FROM_TARGETS = "remove_from_targets"
    ORDER_WIPE = "order_wipe"
    EXPORT_EVIDENCE = "export_evidence"
    APPROVE = "approve"
    MANAGE_USERS = "manage_users"
    VERIFY_AUDIT = "verify_audit"


_VIEWER = frozenset({Permission.VIEW, Permission.EXPORT_EVIDENCE, Permission.VERIFY_AUDIT})
_ENGINEER = _VIEWER | {
    Permission.CREATE_ENGAGEMENT,
    Permission.REVISE_PLAN,
    Permission.START_ATTEMPT,
    Permission.CANCEL_ATTEMPT,
    Permission.RETRY_ATTEMPT,
    Permission.SUBMIT_FORM,
    Permission.CLAIM_RIG_CAUSE,
    Permission.JUDGE,
    Permission.RECORD_DEVIATION,
    Permission.REMOVE_FROM_TARGETS,
    Permission.ORDER_WIPE,
}

GRANTS: dict[Role, frozenset[Permission]] = {
    Role.VIEWER: _VIEWER,
    Role.ENGINEER: _ENGINEER,
    Role.APPROVER: _VIEWER | {Permission.APPROVE, Permission.CLAIM_RIG_CAUSE, Permission.RECORD_DEVIATION, Permission.ORDER_WIPE},
    # An administrator runs the service. To approve is a party's act and takes the role approver.
    Role.ADMIN: _ENGINEER | {Permission.MANAGE_USERS},
}


def granted(roles: frozenset[str]) -> frozenset[Permission]:
    """Return all that a set of role names allows; a name that is no role allows nothing."""
    return frozenset().union(*(held for role, held in GRANTS.items() if role in roles))


def roles_with(permission: Permission) -> tuple[Role, ...]:
    """Return the roles that hold a permission, as they are declared: whom a page names instead of a form that is not for its reader."""
    return tuple(role for role in Role if permission in GRANTS[role])
