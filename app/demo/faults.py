"""The one fault of a demo that happens to the controller: worker and playbook host are killed with SIGKILL in the middle of a step."""

from __future__ import annotations

from typing import Any

BUSY = ("starting", "polling", "collecting")


class WorkerKill:
    """Strikes once in a gate, at a moment when a playbook is running."""

    def __init__(self, supervisor: Any, gate: str) -> None:
        self.supervisor = supervisor
        self.gate = gate
        self.done: dict[str, Any] = {}

    def strike(self, view: dict[str, Any]) -> bool:
        """Kill when a playbook of a job step runs and it has not been done yet; tell whether it struck."""
        if self.done:
            return False
        # G3 is struck in its second run: by then there is something to lose. G4 has one job only.
        wanted = 1 if self.gate == "G3" else 0
        jobs = [s for s in view["steps"] if s["kind"] == "job"]
        if len(jobs) <= wanted or jobs[wanted]["status"] not in BUSY:
            return False
        hosts = self.supervisor.kill_hosts()
        if not hosts:
            return False  # the playbook has not started yet, or has just ended
        workers = self.supervisor.kill_worker()
        self.done = {"gate": self.gate, "step": jobs[wanted]["key"], "step_status": jobs[wanted]["status"], "workers": workers, "hosts": hosts}
        return True
