"""A second pair of eyes in the real ansible-playbook: writes down the kind of each event, whatever the runner makes of it."""

from __future__ import annotations

import os
from pathlib import Path

from ansible import context
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: witness
type: notification
short_description: counts events for the chaos lane
description: [Writes down the kind of each event, where neither the runner nor the service looks.]
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "witness"
    CALLBACK_NEEDS_ENABLED = False

    def _saw(self, kind: str) -> None:
        run = Path(context.CLIARGS["inventory"][0]).parents[1]  # of STATE/runs/ATTEMPT/RUN/private/inventory.json
        path = run.parents[2] / "witnessed" / run.parent.name / run.name  # as lanes/chaos/witness.py says
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        os.write(fd, f"{kind}\n".encode())
        os.close(fd)

    def v2_playbook_on_start(self, playbook) -> None:
        self._saw("playbook_on_start")

    def v2_runner_on_ok(self, result) -> None:
        self._saw("runner_on_ok")

    def v2_runner_on_failed(self, result, ignore_errors=False) -> None:
        self._saw("runner_on_failed")

    def v2_runner_on_unreachable(self, result) -> None:
        self._saw("runner_on_unreachable")

    def v2_runner_on_skipped(self, result) -> None:
        self._saw("runner_on_skipped")

    def v2_playbook_on_stats(self, stats) -> None:
        self._saw("playbook_on_stats")
