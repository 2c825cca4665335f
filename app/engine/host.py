"""The program that runs one playbook, detached from whoever started it: `python -P host.py RUN_DIR LOCK_FD [RUN_DIR LOCK_FD]...`.

It is alive as long as it holds the flock that the starter handed over. It says `started` once, appends every event to
events.jsonl, and ends with result.json; with several run directories, in each of them what is its share (shares.py).
It knows no database; the directory is its only contract (see runs.py).
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # started by path with -P, so that no module of this folder shadows another

from app.engine import durable, nudge
from app.engine.policy import ROUND_S
from app.engine.shares import Share, document, ended
from app.kit import traces


def detach() -> None:
    """Let the starter go on: a second process in a session of its own, adopted by init, so that nobody has to reap it."""
    if os.fork():
        os._exit(0)
    os.setsid()


def told_of(words: Sequence[str]) -> list[tuple[Path, int]]:
    """Return the run directories and locks that a command line names in turn."""
    return [(Path(folder), int(lock)) for folder, lock in zip(words[::2], words[1::2], strict=True)]


def main(runs: Sequence[tuple[Path, int]]) -> None:
    """Run the playbook of these run directories once, whoever asks how often; each comes with the descriptor of its lock."""
    shares = _begin(runs)
    if not shares:
        return
    job = shares[0].job
    told = {"attempt": job["attempt"], "run": shares[0].folder.name, "playbook": Path(job["playbook"]).name, "together": len(shares)}
    with traces.span("playbook", parent=str(job.get("traceparent") or ""), endpoint=str(job.get("otlp_endpoint") or ""), **told) as span:
        status, rc, done = _host(shares)
        span.say(status=status, rc=rc, events=sum(share.capture.count for share in shares))
        for share in done:
            _nudge(share.job)
    traces.flush()


def _begin(runs: Sequence[tuple[Path, int]]) -> list[Share]:
    """Say `started` in every run directory where nobody has, and return those."""
    begun = []
    for folder, lock in runs:
        os.set_inheritable(lock, False)  # a playbook's left-over must not look like a living host
        try:
            os.close(os.open(folder / "started", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            continue
        begun.append((folder, json.loads((folder / "job.json").read_bytes())))
    secrets = {secret for _, job in begun for secret in job["secrets"]}
    return [Share(folder, job, number if len(begun) > 1 else None, secrets) for number, (folder, job) in enumerate(begun)]


def _host(shares: Sequence[Share]) -> tuple[str, int | None, list[Share]]:
    """Run the playbook and leave the results. Returns its status and exit code, and whose runs have a result."""
    problem: str | None = None
    status, rc = "failed", None
    try:
        for share in shares:
            durable.reserve(share.folder / "result.json")
        status, rc = _play(shares)
    except Exception as error:
        problem = shares[0].redactor.text(f"{type(error).__name__}: {error}")
    finally:
        for share in reversed(shares):  # the directories of the first are those of the process
            share.clear()
    return status, rc, ended(shares, status, rc, problem)


def _play(shares: Sequence[Share]) -> tuple[str, int | None]:
    """Let ansible-runner run the playbook. Returns its status and exit code."""
    import ansible_runner

    first, private = shares[0], shares[0].folder / "private"
    inventory, more, timeout_s = private / "inventory.json", {"cmdline": f"-e {shlex.quote(f'@{private}/vars.json')}"}, first.job["timeout_s"]
    if len(shares) > 1:  # what is known differs from host to host
        inventory, more, timeout_s = private / "round.json", {}, min(timeout_s, ROUND_S)
        durable.write_private(inventory, json.dumps(document(shares), ensure_ascii=False))

    def keep(event: dict[str, Any]) -> bool:
        for share in shares:
            share.event(event)
        return False  # the runner is to keep no unredacted copy

    end = time.monotonic() + timeout_s  # the runner's own time-out goes by the wall clock, which steps
    over: list[bool] = []

    def too_long() -> bool:
        if time.monotonic() > end:
            over.append(True)
        return bool(over)

    runner = ansible_runner.run(
        private_data_dir=str(private),
        project_dir=str(Path(first.job["playbook"]).parent),
        playbook=first.job["playbook"],
        inventory=str(inventory),
        **more,
        ident="run",
        event_handler=keep,
        quiet=True,
        settings={"suppress_output_file": True, "pexpect_timeout": 2},
        cancel_callback=too_long,
    )
    return ("timeout" if over else runner.status), runner.rc


def _nudge(job: dict[str, Any]) -> None:
    """Tell the engine at once. A hint only: the tick finds the result in any case."""
    message = job["nudge"]
    if traceparent := traces.carried():
        message["headers"][traces.HEADER] = traceparent
    try:
        nudge.push(job["broker_url"], job["queue"], message)
    except nudge.NotPlain:
        _nudge_by_library(job)
    except Exception as error:
        print(f"no nudge: {type(error).__name__}", file=sys.stderr)  # noqa: T201 - host.log


def _nudge_by_library(job: dict[str, Any]) -> None:
    """Do the same where the broker wants more than plain words."""
    try:
        from app.engine.hints import send

        send(job["broker_url"], "advance", [job["attempt"], None], queue=job["queue"])
    except Exception as error:
        print(f"no nudge: {type(error).__name__}", file=sys.stderr)  # noqa: T201 - host.log


if __name__ == "__main__":
    detach()
    main(told_of(sys.argv[1:]))
