"""The account that an attendant keeps on its engine host of what it was asked there: it comes home from that host and not through the driver."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gates.bundle import Bundle
from gates.model import Problem, StepSpec
from gates.readers.boots import engine_of as boot_of_engine
from gates.readers.places import cells_of, engine_of, hosts_of
from gates.readers.run_pack import Pack
from gates.readers.strict import Reader, at, count
from gates.text import Text

Moment = tuple[str, int]  # boot, monotonic ns
CLIENT = "client"  # a cell that the driver measures alone


@dataclass(frozen=True)
class Control:
    """One start or stop of the engine that the attendant carried out: when, which, and the process behind it."""

    moment: Moment
    did: str
    process: tuple[int | None, int | None, Any] | None


@dataclass(frozen=True)
class Account:
    """What the engine's host itself says: its boots, by verb the moments of its answers with their digests, and what it did to its engine."""

    host: str
    boots: tuple[str, ...]  # the newest last; none where it is not told
    answered: Mapping[str, Mapping[Moment, Any]]
    controls: Sequence[Control] = ()
    place: int = 0  # among the engine hosts of the job

    def boot_of(self, row: Mapping[str, Any]) -> str | None:
        """Return in which boot a row of the driver must have been taken: the one that it names, else the newest; None where there is none."""
        named = row.get("boot_id")
        boot = (boot_of_engine(named, self.place) if isinstance(named, str) else None) or (self.boots[-1] if self.boots else None)
        return boot if boot in self.boots else None

    def last(self, boot: str) -> int:
        """Return the last moment of a boot of which it gave account, -1 for none."""
        return max((moment for rows in self.answered.values() for there, moment in rows if there == boot), default=-1)


def read_account(bundle: Bundle, step: StepSpec, pack: Pack, host: str, found: list[Problem]) -> Account:
    """Read what the attendant brought, and record what is wrong with it: another job, another specification, an end that was not due."""
    reader = Reader(bundle, f"evidence/{step.key}/{host}")
    told = {name: reader.document(name) for name in ("job.json", "exit.json", "pack.json", "started")}
    rows = reader.journal("asked.jsonl")
    found += [p for p in reader.problems if p.code != "missing"]  # missing files are listed by identity already
    job, end, boot = told["job.json"], told["exit.json"], at(told["started"], "boot_id")
    boots = [*(_earlier(reader) if step.params["kind"] == "soak" else ()), boot]
    for name, wrong in (
        ("job.json", job.get("job") != pack.job.get("job") or job.get("kind") != "attend" or job.get("host") != host),
        ("job.json", job.get("engine") != engine_of(pack, host) or (job.get("cells") or []) != _measured_there(pack, host)),
        ("exit.json", end.get("outcome") != "done" or end.get("job") != pack.job.get("job")),
        ("pack.json", bool(told["pack.json"]) and told["pack.json"].get("job") != pack.job.get("job")),  # one that is missing is listed by identity
        ("started", not isinstance(boot, str) or not boot or boot != end.get("boot_id")),
        ("asked.jsonl", any(row.get("boot_id") not in boots for row in rows)),
    ):
        if wrong:
            text = Text(
                "{p} is not that of the attendant that served this run on {h} from its begin to its end, in one boot (a soak: in those it names).",
                "{p} 不属于在 {h} 上自始至终、同一次开机内（稳定性运行：其所列各次开机内）服务本轮的代理。",
            )
            found.append(Problem("attendant", text.fill(p=reader.path(name), h=host), reader.path(name)))
    answered: dict[str, dict[Moment, Any]] = {}
    controls = []
    for row in rows:
        at_ns = count(row.get("mono_ns"))
        if at_ns is None or row.get("error") is not None:
            continue
        moment = (str(row.get("boot_id")), at_ns)
        answered.setdefault(str(row.get("verb")), {})[moment] = row.get("sha256")
        if row.get("verb") == "control":
            controls.append(Control(moment, str(row.get("did")), process_of(row.get("engine"))))
    known, place = tuple(dict.fromkeys(one for one in boots if isinstance(one, str) and one)), hosts_of(pack).index(host)
    return Account(host, known, answered, tuple(controls), place)


def _earlier(reader: Reader) -> Iterator[Any]:
    """Yield the boots before the newest in which a job ran, as its marks `started.N` tell them."""
    for n in itertools.count(1):
        if not reader.bundle.has(reader.path(f"started.{n}")):
            return
        yield at(reader.document(f"started.{n}"), "boot_id")


def _measured_there(pack: Pack, host: str) -> list[Any]:
    """Return the cells of a run that the engine's host has its part in, as the driver's job file names them."""
    return [row for row in cells_of(pack, host) if at(row, "cell") != CLIENT]


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
        boot, moment = at(row, "on", "boot_id"), count(at(row, "on", "mono_ns"))
        before = [c for c in account.controls if moment is not None and c.moment[0] == boot and c.moment[1] <= moment]
        done = [c.did for c in before[-2:]]
        if done != ["stop", "start"] or before[-1].process is None or before[-1].process != process_of(row.get("engine")):
            return pack.path("coldness.jsonl")
    return None


RESET = ("url", "answers", "success", "kv_cache_usage")  # of the proof of a reset, what the engine's host answered; the hits are the driver's


def not_reset(pack: Pack, account: Account) -> str | None:
    """Return the file whose word on a reset the host's own account does not bear out, None where it does (or none was asked for).

    The reset must be that host's answer, before the look behind it, and the engine may not have been stopped or started between the two: what was
    emptied is then what was looked at.
    """
    if at(pack.job, "phases", "cool") != "reset":
        return None
    for row in (row for row in pack.coldness if row.get("when") == "after_cool" and at(row, "on", "host") == account.host):
        proof, boot, looked = row.get("reset"), at(row, "on", "boot_id"), count(at(row, "on", "mono_ns"))
        done, asked, answered = (count(at(proof, "on", key)) for key in ("mono_ns", "asked_ns", "answered_ns"))
        said = account.answered.get("reset", {}).get((str(boot), -1 if done is None else done))
        told = {key: proof[key] for key in RESET if key in proof} if isinstance(proof, Mapping) else {}
        begun = count(at(row, "on", "asked_ns"))  # the look, by the driver's clock
        if (
            (at(proof, "on", "host"), at(proof, "on", "boot_id")) != (account.host, boot)
            or done is None
            or looked is None
            or said != digest(told)
            or asked is None
            or answered is None
            or begun is None
            or not (asked <= answered <= begun and done <= looked)
            or any(c.moment[0] == boot and done <= c.moment[1] <= looked for c in account.controls)
        ):
            return pack.path("coldness.jsonl")
    return None


def digest(answer: Any) -> str:
    """Return the SHA-256 (hex) of an answer in the probe's canonical form: compact ASCII JSON with keys in order."""
    return hashlib.sha256(_canonical(answer).encode("ascii")).hexdigest()


def _canonical(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(key)}:{_canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    return json.dumps(float(value) if isinstance(value, Decimal) else value)  # a float that was written as its shortest form reads back as itself
