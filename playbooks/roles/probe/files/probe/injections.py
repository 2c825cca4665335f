"""Planned disturbances of a soak, each with its label: begun at its time, ended after its length, and on record from before it begins.

The job runs the commands of its file and nothing else; what it must not do is decide whether a disturbance is fair. A label whose end is
not on record (the job was killed) is no injection: the judge then sees a fault. Of several engine hosts every one is disturbed, all at once: they
serve one load, and what the plan agrees to is not said of one of them.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Optional, Sequence

from probe import clock
from probe.engine import Engine
from probe.engine_host import COMMAND_S, GRACE_S
from probe.engines import Engines
from probe.errors import ProbeError
from probe.job_main import Job

RESTART = "engine-restart"


class Injections:
    """The thread that carries out what `soak.injections` plans: [{label, at_s, seconds, action, start: [argv], stop: [argv]}]."""

    def __init__(self, job: Job, engines: Engines) -> None:
        self._job, self._engines = job, engines
        planned = [row for row in job.spec["soak"].get("injections") or [] if row["label"] not in job.earlier.labels]  # begun in an earlier boot
        self._planned: List[Dict[str, Any]] = sorted(planned, key=lambda row: float(row["at_s"]))
        self._began_ns = clock.mono_ns()
        self._ended = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def __enter__(self) -> "Injections":
        if self._planned:
            self._began_ns = clock.mono_ns()
            self._thread = threading.Thread(target=self._work, name="injections", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        if self._thread:
            self._thread.join(max([2 * COMMAND_S, *(engine.stop_s + 2 * engine.start_s + 3 * GRACE_S for engine in self._engines)]))

    def _work(self) -> None:
        for planned in self._planned:
            wait = float(planned["at_s"]) - (clock.mono_ns() - self._began_ns) / 1e9
            if self._ended.wait(max(0.0, wait)) or self._job.why_stop():
                return
            self._carry_out(planned)

    def _carry_out(self, planned: Dict[str, Any]) -> None:
        row: Dict[str, Any] = {"label": planned["label"], "action": planned.get("action"), "from_ns": clock.mono_ns(), "boot_id": self._job.boot_id}
        self._say("injection_begins", row)
        self._job.journals.flush()
        restart = planned.get("action") == RESTART
        try:
            row.update(self._on_all("begin", self._restart if restart else lambda engine: self._command(engine, planned["label"], "start")))
            self._ended.wait(float(planned["seconds"]))
        finally:
            row.update(self._on_all("end", (lambda _: 0) if restart else (lambda engine: self._command(engine, planned["label"], "stop"))))
            row["to_ns"] = clock.mono_ns()
            self._say("injection", row)

    def _on_all(self, edge: str, work: Callable[[Engine], Optional[int]]) -> Dict[str, Any]:
        """Return {EDGE_exit} of all engine hosts, and of several {EDGE_exits: {host: code}}; one that does not come about fails alone."""
        codes = self._engines.each(lambda engine, _: work(engine))
        if len(codes) == 1:
            return {edge + "_exit": codes[0]}
        return {edge + "_exit": worst(codes), edge + "_exits": {str(engine.name): code for engine, code in zip(self._engines, codes)}}

    def _restart(self, engine: Engine) -> int:
        try:
            engine.control("stop", self._job.sleep)
            engine.control("start", self._job.sleep)
            engine.wait_healthy(self._job.sleep)
        except ProbeError as error:
            self._failed(engine, error)
            return 1
        return 0

    def _command(self, engine: Engine, label: str, verb: str) -> Optional[int]:
        """Return the exit code of a command on the engine's host, 125 where that host does not answer any more."""
        try:
            code: Optional[int] = engine.host.inject(label, verb)
        except ProbeError as error:
            self._failed(engine, error)
            return 125
        return code

    def _failed(self, engine: Engine, error: ProbeError) -> None:
        self._say("injection_failed", {"kind": error.kind, "message": str(error), **self._engines.part(engine).named})

    def _say(self, kind: str, detail: Dict[str, Any]) -> None:
        self._job.journals.put("events.jsonl", {"kind": kind, "detail": dict(detail)})


def worst(codes: Sequence[Optional[int]]) -> Optional[int]:
    """Return the exit code of a command on several hosts: the first that is not 0, None where a host had no such command."""
    return next((code for code in codes if code), None if None in codes else 0)
