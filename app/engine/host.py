"""The program that runs one playbook, detached from whoever started it: `python -P host.py RUN_DIR LOCK_FD`.

It is alive as long as it holds the flock that the starter handed over. It says `started` once, appends every event to
events.jsonl, and ends with result.json. It knows no database; the directory is its only contract (see runs.py).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # started by path with -P, so that no module of this folder shadows another

from app.engine import durable, nudge
from app.engine.capture import Capture
from app.engine.control import close_masters
from app.engine.redact import Redactor
from app.kit import traces


def detach() -> None:
    """Let the starter go on: a second process in a session of its own, adopted by init, so that nobody has to reap it."""
    if os.fork():
        os._exit(0)
    os.setsid()


def main(run_dir: Path, lock_fd: int) -> None:
    """Run the playbook of a run directory once, whoever asks how often."""
    os.set_inheritable(lock_fd, False)  # a playbook's left-over must not look like a living host
    try:
        os.close(os.open(run_dir / "started", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    job = json.loads((run_dir / "job.json").read_bytes())
    told = {"attempt": job["attempt"], "run": run_dir.name, "playbook": Path(job["playbook"]).name}
    with traces.span("playbook", parent=str(job.get("traceparent") or ""), endpoint=str(job.get("otlp_endpoint") or ""), **told) as span:
        result = _host(run_dir, job)
        span.say(status=result["status"], rc=result["rc"], events=result["events"])
        _nudge(job)
    traces.flush()


def _host(run_dir: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Run the playbook of a job and leave result.json, whatever happens. Returns the result."""
    redactor = Redactor(job["secrets"])
    capture = Capture(run_dir / "events.jsonl", redactor)
    problem: str | None = None
    status, rc = "failed", None
    stats: dict[str, Any] = {}
    try:
        durable.reserve(run_dir / "result.json")
        status, rc, stats = _play(run_dir, job, capture)
    except Exception as error:
        problem = redactor.text(f"{type(error).__name__}: {error}")
    finally:
        close_masters(Path(job["control_dir"]))
        shutil.rmtree(run_dir / "private", ignore_errors=True)  # inventory, variables, artifacts
        (run_dir / "job.json").unlink(missing_ok=True)
        shutil.rmtree(job["short_dir"], ignore_errors=True)
    result = {
        "status": status,
        "rc": rc,
        "stats": stats,
        "replies": capture.replies,
        "failures": capture.failures,
        "events": capture.count,
        "events_lost": capture.lost,
        "tail": capture.tail,
        "problem": problem,
    }
    try:
        durable.write_json(run_dir / "result.json", result)
    except OSError as error:  # fits into what was reserved
        short = {
            **result,
            "replies": {},
            "tail": [],
            "failures": [],
            "status": "failed",
            "problem": f"the result could not be written: {error.strerror}",
        }
        durable.write_json(run_dir / "result.json", short)
    return result


def _play(run_dir: Path, job: dict[str, Any], capture: Capture) -> tuple[str, int | None, dict[str, Any]]:
    """Let ansible-runner run the playbook. Returns its status, exit code and the recap by host."""
    import ansible_runner

    private = run_dir / "private"
    runner = ansible_runner.run(
        private_data_dir=str(private),
        project_dir=str(Path(job["playbook"]).parent),
        playbook=job["playbook"],
        inventory=str(private / "inventory.json"),
        cmdline=f"-e @{private / 'vars.json'}",
        ident="run",
        event_handler=capture.event,
        quiet=True,
        settings={"suppress_output_file": True, "pexpect_timeout": 2, "job_timeout": job["timeout_s"]},
    )
    return runner.status, runner.rc, capture.stats


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
    main(Path(sys.argv[1]), int(sys.argv[2]))
