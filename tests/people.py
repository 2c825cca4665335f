"""The fixed cast of the tests. The four of both parties are the people of app/demo/engagement.yaml."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from argon2 import PasswordHasher
from sqlalchemy.orm import Session

from app.accounts.actor import Actor
from app.accounts.models import User
from app.kit.clock import now

PASSWORD = "correct horse battery 电池"


@dataclass(frozen=True)
class Cast:
    """All who play. Each is an Actor with via="web"."""

    li_wei: Actor  # 李伟, vendor, engineer
    chen_jing: Actor  # 陈静, vendor, approver
    wang_fang: Actor  # 王芳, customer, approver
    zhao_lei: Actor  # 赵磊, customer, engineer
    admin: Actor  # vendor, admin
    viewer: Actor  # vendor, viewer


ROLES = {
    "li_wei": ("李伟", "交付工程师", "vendor", ["engineer"]),
    "chen_jing": ("陈静", "交付负责人", "vendor", ["approver"]),
    "wang_fang": ("王芳", "验收负责人", "customer", ["approver"]),
    "zhao_lei": ("赵磊", "机房工程师", "customer", ["engineer"]),
    "admin": ("管理员", "系统管理员", "vendor", ["admin"]),
    "viewer": ("周敏", "项目助理", "vendor", ["viewer"]),
}


@lru_cache(maxsize=1)
def _password_hash() -> str:
    """Hash the common password once a process, cheaply: the parameters stand in the hash, so signing in works."""
    return PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1).hash(PASSWORD)


def enrol(s: Session) -> Cast:
    """Add the cast as users, all with the password PASSWORD, and return them as actors."""
    actors = {}
    for key, (name, title, party, roles) in ROLES.items():
        user = User(login=key.replace("_", "."), name=name, title=title, party=party, roles=roles, password_hash=_password_hash(), created_at=now())
        s.add(user)
        s.flush()
        actors[key] = Actor(user.id, user.login, name, title, party, frozenset(roles))
    return Cast(**actors)


def by_token(actor: Actor) -> Actor:
    """Return the same person, coming in by an API token."""
    return replace(actor, via="token")
