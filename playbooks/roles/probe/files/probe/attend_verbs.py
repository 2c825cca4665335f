"""What an attendant does when it is asked: these verbs, with these arguments, and nothing else.

No verb takes a path, a command or an address: those stand in the specification that the attendant was started with.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

from probe.cells_host import MEASURES
from probe.engine_host import LocalHost
from probe.errors import ProbeError

Sleep = Callable[[float], None]
LONGEST_S = 7 * 86400.0
MOST_BYTES = 1 << 60
MOST_INSTANCES = 64


def _seconds(value: Any, _: LocalHost) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= LONGEST_S)


def _whole(most: int) -> Callable[[Any, LocalHost], bool]:
    return lambda value, _: isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _flag(value: Any, _: LocalHost) -> bool:
    return isinstance(value, bool)


def _start_or_stop(value: Any, _: LocalHost) -> bool:
    return value in ("start", "stop")


def _planned(value: Any, host: LocalHost) -> bool:
    return isinstance(value, str) and value in host.injections


def _measured_here(value: Any, host: LocalHost) -> bool:
    return isinstance(value, str) and value in MEASURES and value in host.cells


# Each verb is a method of LocalHost of that name; these are its arguments, and what each may be.
VERBS: Dict[str, Dict[str, Callable[[Any, LocalHost], bool]]] = {
    "process": {},
    "control": {"verb": _start_or_stop, "timeout": _seconds},
    "reset": {},
    "words": {"instances": _whole(MOST_INSTANCES)},
    "hash_seed": {},
    "reading": {},
    "offload": {},
    "kv_size": {},
    "sync": {},
    "drop": {},
    "residency": {},
    "medium": {"needed": _whole(MOST_BYTES)},
    "ports": {},
    "require_counters": {"lacking_array_is_fine": _flag},
    "watch_begin": {},
    "watch_end": {},
    "health": {},
    "kernel": {},
    "sample": {},
    "inject": {"label": _planned, "verb": _start_or_stop},
    "cell": {"kind": _measured_here},
    "weights": {"drop": _flag},
}
BREATHES = ("control", "cell", "reset")  # take `sleep`, which ends it when whoever asked has given up
# What claims rest on: the digest of the answer stands in asked.jsonl too, so no driver can change it.
ACCOUNTED = ("reading", "residency", "cell", "weights", "reset")
UNWRITTEN = ("process", "health", "kernel")  # asked several times a second; all else stands in asked.jsonl


def checked(host: LocalHost, verb: Any, arguments: Any) -> Callable[[Sleep], Any]:
    """Return what is to be done, or refuse: an unknown verb, an argument that is missing, too many, or of another kind."""
    if not isinstance(verb, str) or verb not in VERBS:
        raise ProbeError("refused", "This attendant has no such verb.")
    wanted = VERBS[verb]
    if not isinstance(arguments, dict) or set(arguments) != set(wanted):
        raise ProbeError("refused", "The verb %s takes %s and nothing else." % (verb, ", ".join(wanted) or "no argument"))
    for name, fits in wanted.items():
        if not fits(arguments[name], host):
            raise ProbeError("refused", "The argument %s of the verb %s is none that it takes." % (name, verb))
    does = getattr(host, verb)
    return lambda sleep: does(**arguments, **({"sleep": sleep} if verb in BREATHES else {}))
