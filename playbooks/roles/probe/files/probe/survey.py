"""Run the commands that a survey lists, and keep what they said byte for byte. A command that fails is evidence too."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
from typing import Any, Dict, List, Optional

from probe import clock
from probe.errors import ProbeError
from probe.files import write_json, write_whole
from probe.hostinfo import host_info
from probe.selfexec import clean_environment

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
NOT_FOUND = 127  # what a shell would say, so that readers need no second convention


def run_survey(spec: Dict[str, Any], out: str) -> Dict[str, Any]:
    """Run every listed command and write a survey pack's files to `out`. Return {host, commands, failed: [names]}."""
    commands = spec.get("commands")
    if not isinstance(commands, list) or not commands:
        raise ProbeError("spec", "The survey lists no commands; nothing would be surveyed.")
    os.makedirs(out, exist_ok=True)
    env = clean_environment()
    env["LC_ALL"] = "C"
    env["PATH"] = os.pathsep.join([*list(spec.get("path_prefix") or []), env.get("PATH") or os.defpath, "/usr/sbin", "/sbin"])
    env.update({str(k): str(v) for k, v in (spec.get("env") or {}).items()})
    rows, seen = [], set()
    for command in commands:
        name = str(command.get("name", ""))
        if not NAME.fullmatch(name) or name in seen:
            raise ProbeError("spec", "The survey's command name %r is not usable as a file name or stands twice." % name)
        seen.add(name)
        rows.append(_run_one(command, name, out, env))
    write_json(os.path.join(out, "commands.json"), rows)
    info = host_info(spec.get("host"))
    write_json(os.path.join(out, "host.json"), info)
    return {"host": info["host"], "commands": len(rows), "failed": [r["name"] for r in rows if r["exit_code"] != 0]}


def _run_one(command: Dict[str, Any], name: str, out: str, env: Dict[str, str]) -> Dict[str, Any]:
    argv = [str(a) for a in command.get("argv") or []]
    if not argv:
        raise ProbeError("spec", "The survey's command %r has no argv." % name)
    timeout = float(command.get("timeout_s") or 30)
    row = {"name": name, "tool": command.get("tool") or os.path.basename(argv[0]), "version": _version(command, env), "argv": argv}
    row["path"] = shutil.which(argv[0], path=env["PATH"])  # which program answered: a name alone does not tell
    row.update(started_wall_ns=clock.wall_ns(), started_ns=clock.mono_ns())
    code, stdout, stderr, timed_out = _execute(argv, env, timeout)
    row.update(ended_ns=clock.mono_ns(), boot_id=clock.boot_id(), exit_code=code, timed_out=timed_out, stdout=name + ".out", stderr=name + ".err")
    # Most tools end their text without a mark: what came is held against this, so a line that was lost on the way is seen.
    row.update(stdout_bytes=len(stdout), stdout_sha256=hashlib.sha256(stdout).hexdigest())
    write_whole(os.path.join(out, row["stdout"]), stdout)
    write_whole(os.path.join(out, row["stderr"]), stderr)
    return row


def _version(command: Dict[str, Any], env: Dict[str, str]) -> Optional[str]:
    argv: List[str] = [str(a) for a in command.get("version_argv") or []]
    if not argv:
        return None
    code, stdout, stderr, _ = _execute(argv, env, 10)
    text = (stdout or stderr).decode("utf-8", "replace").strip()
    return text.splitlines()[0][:200] if code == 0 and text else None


def _execute(argv: List[str], env: Dict[str, str], timeout: float) -> Any:
    """Return (exit code, stdout, stderr, timed out). The command is a session of its own, so a time-out ends its children too."""
    try:
        child = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    except OSError as error:
        return NOT_FOUND, b"", ("%s: %s\n" % (argv[0], error.strerror)).encode(), False
    try:
        stdout, stderr = child.communicate(timeout=timeout)
        return child.returncode, stdout, stderr, False
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        stdout, stderr = child.communicate()
        return child.returncode, stdout, stderr, True
