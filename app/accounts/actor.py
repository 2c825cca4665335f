"""Who acts, and by which way they came in. Every use case takes an actor and asks `require` first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.accounts.roles import PARTIES, Permission, Role, granted
from app.kit.errors import Forbidden
from app.kit.i18n import N_
from app.kit.words import in_words

Via = Literal["web", "token", "cli", "engine"]


@dataclass(frozen=True)
class Actor:
    """A person, or the engine, in the middle of doing something."""

    user_id: str
    login: str
    name: str
    title: str
    party: str  # vendor | customer | "" for the engine and the command line
    roles: frozenset[str]
    locale: str = "zh_CN"
    via: Via = "web"

    def may(self, permission: Permission) -> bool:
        """Tell whether the permission is held and can be used by the way the actor came in.

        An approval is a person's act at a page: a token or a command line carries no intent of a signatory.
        """
        if permission is Permission.APPROVE and (self.via != "web" or self.party not in PARTIES):
            return False
        return permission in granted(self.roles)

    @property
    def is_admin(self) -> bool:
        """Tell whether the actor runs the service."""
        return Role.ADMIN in self.roles

    @property
    def label(self) -> str:
        """Return the name that stands in transitions and in the audit chain."""
        return f"{self.login} ({self.via})"


SYSTEM = Actor(
    user_id="00000000-0000-0000-0000-000000000000",
    login="quadgate",
    name="Quadgate",
    title="",
    party="",
    roles=frozenset({Role.ADMIN}),
    locale="en",
    via="engine",
)


def command_line(login: str = "cli") -> Actor:
    """Return the actor of the local command line: it owns the database file anyway, and can never approve."""
    return Actor(SYSTEM.user_id, login, login, "", "", frozenset({Role.ADMIN}), "en", "cli")


def require(actor: Actor, permission: Permission) -> None:
    """Raise Forbidden unless the actor holds the permission."""
    if actor.may(permission):
        return
    if permission is Permission.APPROVE and Role.APPROVER in actor.roles:
        raise Forbidden(
            "approve_in_person",
            N_(
                "An API token or the command line cannot approve for {login}: an approval is the person's own decision. "
                "{login} signs in at the web page with the password and decides in the sign-off inbox (/sign-off)."
            ),
            login=actor.login,
        )
    raise Forbidden(
        "not_permitted",
        N_("{login} may not do this: it takes the permission {permission}, which none of the roles {roles} holds. Ask an administrator."),
        login=actor.login,
        permission=in_words("permission", permission),
        roles=in_words("role", *sorted(actor.roles)),
    )
