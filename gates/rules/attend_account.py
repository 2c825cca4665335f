"""The account that an attendant keeps on its engine host of what it was asked there: it comes home from that host and not through the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gates.bundle import Bundle
from gates.model import Problem, StepSpec
from gates.readers.places import engine_of
from gates.readers.run_pack import Pack
from gates.readers.strict import Reader, at, count
from gates.text import Text


@dataclass(frozen=True)
class Control:
    """One start or stop of the engine that the attendant carried out: when (ns of its monotonic clock), which, and the process behind it."""

    moment: int
    did: str
    process: tuple[int | None, int | None, Any] | None


@dataclass(frozen=True)
class Account:
    """What the engine's host itself says: its boot, by verb the moments (ns of its monotonic clock) of its answers with digests, and its controls."""

    host: str
    boot_id: str | None
    answered: Mapping[str, Mapping[int, Any]]
    controls: Sequence[Control] = ()


def read_account(bundle: Bundle, step: StepSpec, pack: Pack, host: str, found: list[Problem]) -> Account:
    """Read what an attendant brought, and record what is wrong with it: another job, another specification, an end that was not due."""
    reader = Reader(bundle, f"evidence/{step.key}/{host}")
    told = {name: reader.document(name) for name in ("job.json", "exit.json", "started")}
    rows = reader.journal("asked.jsonl")
    found += [p for p in reader.problems if p.code != "missing"]  # missing files are listed by identity already
    job, end, boot = told["job.json"], told["exit.json"], at(told["started"], "boot_id")
    for name, wrong in (
        ("job.json", job.get("job") != pack.job.get("job") or job.get("kind") != "attend" or job.get("host") != host),
        ("job.json", job.get("engine") != engine_of(pack, host)),
        ("exit.json", end.get("outcome") != "done" or end.get("job") != pack.job.get("job")),
        ("started", not isinstance(boot, str) or not boot or boot != end.get("boot_id")),
        ("asked.jsonl", any(row.get("boot_id") != boot for row in rows)),
    ):
        if wrong:
            text = Text(
                "{p} is not that of the attendant that served this run on {h} from its begin to its end, in one boot.",
                "{p} 不属于在 {h} 上自始至终、同一次开机内服务本轮的代理。",
            )
            found.append(Problem("attendant", text.fill(p=reader.path(name), h=host), reader.path(name)))
    answered: dict[str, dict[int, Any]] = {}
    controls = []
    for row in rows:
        moment = count(row.get("mono_ns"))
        if moment is None or row.get("error") is not None:
            continue
        answered.setdefault(str(row.get("verb")), {})[moment] = row.get("sha256")
        if row.get("verb") == "control":
            controls.append(Control(moment, str(row.get("did")), process_of(row.get("engine"))))
    return Account(host, boot if isinstance(boot, str) else None, answered, tuple(controls))


def process_of(value: Any) -> tuple[int | None, int | None, Any] | None:
    """Return (pid, start in ticks, boot) of a process as the probe tells it, None where there is none."""
    return None if value is None else (count(at(value, "pid")), count(at(value, "start_ticks")), at(value, "boot_id"))


def not_started_anew(pack: Pack, account: Account) -> str | None:
    """Return the file whose word on a restart the host's own account does not bear out, None where it does (or none was asked for).

    The process that was looked at after cooling must be the one that the last start before the look left behind, and a stop must have come before it.
    Whether the stop ended anything is the claim's question (engine_restarted_cold).
    """
    if at(pack.job, "phases", "cool") is not True:
        return None
    looks = [row for row in pack.coldness if row.get("when") == "after_cool" and at(row, "on", "host") == account.host]
    for row in looks:
        moment = count(at(row, "on", "mono_ns"))
        before = [c for c in account.controls if moment is not None and c.moment <= moment]
        done = [c.did for c in before[-2:]]
        if done != ["stop", "start"] or before[-1].process is None or before[-1].process != process_of(row.get("engine")):
            return pack.path("coldness.jsonl")
    return None
