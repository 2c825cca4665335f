"""Planned disturbances of a soak, each with its label: begun at its time, ended after its length, and on record from before it begins.

The job runs the commands of its file and nothing else; what it must not do is decide whether a disturbance is fair. A label whose end is
not on record (the job was killed) is no injection: the judge then sees a fault.
"""

from __future__ import annotations

import os
import subprocess
import threading
from typing import Any, Dict, List, Optional

from probe import clock
from probe.engine import GRACE_S, Engine
from probe.errors import ProbeError
from probe.job_main import Job
from probe.selfexec import clean_environment

COMMAND_S = 300.0
RESTART = "engine-restart"


class Injections:
    """The thread that carries out what `soak.injections` plans: [{label, at_s, seconds, action, start: [argv], stop: [argv]}]."""

    def __init__(self, job: Job, engine: Engine) -> None:
        self._job, self._engine = job, engine
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
            self._thread.join(max(2 * COMMAND_S, self._engine.stop_s + 2 * self._engine.start_s + 3 * GRACE_S))

    def _work(self) -> None:
        for planned in self._planned:
            wait = float(planned["at_s"]) - (clock.mono_ns() - self._began_ns) / 1e9
            if self._ended.wait(max(0.0, wait)) or self._job.why_stop():
                return
            self._carry_out(planned)

    def _carry_out(self, planned: Dict[str, Any]) -> None:
        row: Dict[str, Any] = {"label": planned["label"], "action": planned.get("action"), "from_ns": clock.mono_ns(), "boot_id": clock.boot_id()}
        self._say("injection_begins", row)
        self._job.journals.flush()
        restart = planned.get("action") == RESTART
        try:
            row["begin_exit"] = self._restart() if restart else self._command(planned.get("start"))
            self._ended.wait(float(planned["seconds"]))
        finally:
            row["end_exit"] = 0 if restart else self._command(planned.get("stop"))
            row["to_ns"] = clock.mono_ns()
            self._say("injection", row)

    def _restart(self) -> int:
        try:
            self._engine.control("stop", self._job.sleep)
            self._engine.control("start", self._job.sleep)
            self._engine.wait_healthy(self._job.sleep)
        except ProbeError as error:
            self._say("injection_failed", {"kind": error.kind, "message": str(error)})
            return 1
        return 0

    def _command(self, argv: Optional[List[str]]) -> Optional[int]:
        """Return the exit code of a command, 124 where it did not end in time, 127 where it cannot be run, None where there is none."""
        if not argv:
            return None
        with open(os.path.join(self._job.folder, "job.log"), "ab") as log:
            try:
                child = subprocess.Popen(
                    [str(a) for a in argv], env=clean_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
            except OSError as error:
                log.write(("The injection's command %s cannot be run: %s\n" % (argv[0], error)).encode("utf-8", "replace"))
                return 127
            try:
                return child.wait(COMMAND_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                return 124

    def _say(self, kind: str, detail: Dict[str, Any]) -> None:
        self._job.journals.put("events.jsonl", {"kind": kind, "detail": dict(detail)})
