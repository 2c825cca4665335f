"""The lock of a host with its fencing number: whoever holds a lower number than the host has seen may change nothing any more."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Optional

from probe import clock
from probe.errors import Refused
from probe.files import read_json, write_json

STATE, GUARD = "hostlock.json", "hostlock.guard"


def take(root: str, attempt: str, fence: int) -> Dict[str, Any]:
    """Take the host for an attempt. The same attempt may take it again; a higher fence wins; a lower or used one is refused."""
    with _guarded(root):
        state = _state(root)
        if fence < state["fence"] or (fence == state["fence"] and state["attempt"] not in (None, attempt)):
            raise Refused("fence", _sentence(state, attempt, fence))
        state = {"attempt": attempt, "fence": fence, "held": True, "taken_wall_ns": clock.wall_ns(), "boot_id": clock.boot_id()}
        write_json(os.path.join(root, STATE), state)
        return state


def adopt(root: str, attempt: str, fence: int) -> None:
    """Note a higher fence of the attempt that has the host: its controller was replaced, and the one before must change nothing any more.

    A host of another attempt, and a fence that is not higher, change nothing.
    """
    state = _state(root)
    if state["attempt"] != attempt or fence <= state["fence"]:
        return
    with _guarded(root):
        state = _state(root)
        if state["attempt"] == attempt and fence > state["fence"]:
            write_json(os.path.join(root, STATE), {**state, "fence": fence})


def replaced_by(root: str, attempt: str, fence: int) -> Optional[int]:
    """Return the higher fence of the same attempt that the host has seen: that of the controller which replaced this one. None: nobody did."""
    state = _state(root)
    return int(state["fence"]) if state["attempt"] == attempt and fence < state["fence"] else None


def require_not_replaced(root: str, attempt: str, fence: int, what: str) -> None:
    """Refuse `what` of a controller that another one has replaced."""
    seen = replaced_by(root, attempt, fence)
    if seen is not None:
        raise Refused(
            "fence",
            "%s was not stopped: attempt %s was taken over with fencing number %d, and this order carries %d. It goes on under its new controller."
            % (what, attempt, seen, fence),
        )


def release(root: str, attempt: str, fence: int) -> Dict[str, Any]:
    """Give the host back; the fence stays, so an old attempt still cannot return. Releasing twice is fine."""
    with _guarded(root):
        state = _state(root)
        if state["fence"] != fence or state["attempt"] != attempt:
            if fence < state["fence"] or state["attempt"] is not None:
                raise Refused("fence", _sentence(state, attempt, fence))
            return state
        if state["held"]:
            state["held"] = False
            write_json(os.path.join(root, STATE), state)
        return state


def require_fence(root: str, fence: int, what: str) -> None:
    """Refuse `what` when the host has seen a higher fencing number."""
    state = _state(root)
    if fence < state["fence"]:
        raise Refused(
            "fence",
            "%s carries fencing number %d, but attempt %s took this host with %d. It belongs to an older attempt; do not repeat it."
            % (what, fence, state["attempt"], state["fence"]),
        )


def _state(root: str) -> Dict[str, Any]:
    found = read_json(os.path.join(root, STATE))
    if found is None and os.path.exists(os.path.join(root, STATE)):
        raise Refused(
            "fence", "The host lock %s cannot be read, so nobody can tell whose host this is. Look at the file." % os.path.join(root, STATE)
        )
    return found or {"attempt": None, "fence": 0, "held": False}


def _sentence(state: Dict[str, Any], attempt: str, fence: int) -> str:
    return "The host is %s attempt %s with fencing number %d; attempt %s came with %d. Only a higher number may take it." % (
        "held by" if state["held"] else "marked by",
        state["attempt"],
        state["fence"],
        attempt,
        fence,
    )


@contextmanager
def _guarded(root: str) -> Iterator[None]:
    """Serialise readers and writers of the state; the kernel drops the guard when its holder dies."""
    os.makedirs(root, exist_ok=True)
    fd = os.open(os.path.join(root, GUARD), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
