"""Cells that a tool of the host measures: fio in rounds until it is steady, ib_write_bw from port to port. Found on PATH or `path_prefix`."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from typing import Any, Callable, Dict, List, Optional

from probe import clock
from probe.errors import ProbeError
from probe.preflight import require_room
from probe.selfexec import clean_environment

WINDOW, ROUNDS = 5, 25  # SNIA SSS PTS 2.0: five rounds in a row, reached by round 25
SPREAD, SLOPE = 0.20, 0.10  # of the window's mean: largest less smallest; what the fitted line changes within the window
FILE = ".quadgate-fio"


def steady(values: List[float]) -> bool:
    """Tell whether the last five rounds are steady by SNIA SSS PTS: range at most 20 %, fitted excursion at most 10 % of their mean."""
    last = values[-WINDOW:]
    if len(last) < WINDOW:
        return False
    mean = sum(last) / WINDOW
    middle = (WINDOW - 1) / 2
    slope = sum((n - middle) * (v - mean) for n, v in enumerate(last)) / sum((n - middle) ** 2 for n in range(WINDOW))
    return mean > 0 and max(last) - min(last) <= SPREAD * mean and abs(slope) * (WINDOW - 1) <= SLOPE * mean


def raw_fio(spec: Dict[str, Any], check: Callable[[], None]) -> Dict[str, Any]:
    """Precondition (twice the size, sequentially) and run rounds until they are steady. Return the row; not steady by round 25 is a problem.

    Options: filename (a device or file) or dir, bytes, rw (randread), block (4k), depth (32), runtime_s (60), rounds (25), destructive.
    Writing to a device destroys what is on it, so that needs `destructive: true`. The rounds' raw results are kept.
    """
    writes, target, own = "write" in str(spec.get("rw", "randread")) or bool(spec.get("precondition")), str(spec.get("filename") or ""), ""
    if target.startswith("/dev/") and writes and spec.get("destructive") is not True:
        raise ProbeError(
            "cell", "fio would write to %s and destroy what is on it; only `destructive: true` in the site's cells allows that." % target
        )
    if not target:
        target = own = os.path.join(str(spec["dir"]), FILE)
        require_room(str(spec["dir"]), int(spec["bytes"]), "The file for fio")
    env = _environment(spec)
    version = _run(["fio", "--version"], env, 30, check)[0].strip()
    base = ["fio", "--name=cell", "--filename=" + target, "--direct=1", "--ioengine=" + str(spec.get("ioengine") or "libaio"), "--output-format=json"]
    base += ["--group_reporting", "--randrepeat=0", *(["--size=%d" % int(spec["bytes"])] if spec.get("bytes") else [])]
    runtime = int(spec.get("runtime_s") or 60)
    argv = [*base, "--rw=%s" % spec.get("rw", "randread"), "--bs=%s" % spec.get("block", "4k"), "--iodepth=%d" % int(spec.get("depth") or 32)]
    argv += ["--time_based", "--runtime=%d" % runtime] + ([] if writes or own else ["--readonly"])
    values: List[float] = []
    raw: List[str] = []
    moved = started = ended = 0
    try:
        if spec.get("precondition") or own:
            # A hundred hours are the longest that two passes over any drive take; the job's deadline ends it earlier.
            filling = [*base, "--rw=write", "--bs=128k", "--iodepth=32", "--loops=%d" % (2 if spec.get("precondition") else 1)]
            _result(_run(filling, env, 360_000, check)[0], "write")
        for _ in range(min(ROUNDS, int(spec.get("rounds") or ROUNDS))):
            begun = clock.mono_ns()
            text = _run(argv, env, runtime + 120, check)[0]
            side = _result(text, "write" if "write" in str(spec.get("rw", "randread")) else "read")
            raw.append(text)
            values.append(float(side["iops"]))
            started, ended, moved = begun, clock.mono_ns(), int(side["io_bytes"])
            if steady(values):
                break
    finally:
        if own and os.path.exists(own):
            os.unlink(own)
    row: Dict[str, Any] = {
        "version": version,
        "argv": argv,
        "rounds_iops": values,
        "steady": steady(values),
        "preconditioned": bool(spec.get("precondition")),
    }
    row.update(raw=raw[-WINDOW:], filename=target)
    if not row["steady"]:
        return dict(row, problem="fio did not reach its steady state within %d rounds; no single figure stands for it." % len(values))
    mean = sum(values[-WINDOW:]) / WINDOW
    return dict(row, started_ns=started, ended_ns=ended, bytes=moved, cold=True, iops_mean=round(mean, 3))


def bandwidth_matrix(spec: Dict[str, Any], check: Callable[[], None]) -> Dict[str, Any]:
    """Measure every pair with every message size. Return the row with `matrix`: [{device, peer, size, gbit_per_s, output} or with a problem].

    Options: pairs [{device, peer, serve?: argv that starts the other side}], sizes ([65536]), seconds (10), gid_index.
    """
    env, matrix = _environment(spec), []
    started, moved = clock.mono_ns(), 0
    for pair in spec["pairs"]:
        for size in spec.get("sizes") or [65536]:
            check()
            row: Dict[str, Any] = {"device": pair["device"], "peer": pair["peer"], "size": int(size)}
            argv = ["ib_write_bw", "-d", str(pair["device"]), "-s", str(int(size)), "-D", str(int(spec.get("seconds") or 10)), "-F", "--report_gbits"]
            argv += (["-x", str(spec["gid_index"])] if spec.get("gid_index") is not None else []) + [str(pair["peer"])]
            server = _serve(pair.get("serve"), env)
            try:
                began = clock.mono_ns()
                row["output"] = _run(argv, env, int(spec.get("seconds") or 10) + 60, check)[0]
                row["gbit_per_s"] = _average(row["output"])
                moved += int(row["gbit_per_s"] * 1e9 / 8 * (clock.mono_ns() - began) / 1e9)
            except ProbeError as error:
                row["problem"] = str(error)
            finally:
                _end(server)
            matrix.append(row)
    bad = sum(1 for row in matrix if "problem" in row)
    found: Dict[str, Any] = {"matrix": matrix}
    if bad or not matrix:
        return dict(found, problem="%d of %d pairs could not be measured." % (bad, len(matrix)))
    return dict(found, started_ns=started, ended_ns=clock.mono_ns(), bytes=moved, cold=True)


def _average(text: str) -> float:
    """Return the average in Gbit/s of ib_write_bw's table; the unit stands in its header only, so without that header there is no figure."""
    if not re.search(r"BW average\[Gb/sec\]", text):
        raise ProbeError("cell", "ib_write_bw printed no table in Gb/sec.")
    for line in reversed(text.splitlines()):
        words = line.split()
        if len(words) == 5 and words[0].isdigit():
            return float(words[3])
    raise ProbeError("cell", "ib_write_bw printed no result line.")


def _result(text: str, direction: str) -> Dict[str, Any]:
    """Return one direction of fio's only job. Lines before the JSON, an error, or no samples are a problem: they are evidence of failed I/O."""
    if not text.lstrip().startswith("{"):
        raise ProbeError("cell", "fio printed before its result: %s" % text[:300].strip())
    try:
        job = json.loads(text)["jobs"][0]
        side: Dict[str, Any] = job[direction]
        if job["error"] or not side["total_ios"] or not float(side["iops"]) > 0:
            raise ProbeError("cell", "fio ended with error %s and %s operations." % (job["error"], side["total_ios"]))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise ProbeError("cell", "fio's result lacks what is needed: %s." % error) from error
    return side


def _environment(spec: Dict[str, Any]) -> Dict[str, str]:
    env = clean_environment()
    env["PATH"] = ":".join([*map(str, spec.get("path_prefix") or []), env.get("PATH", "/usr/bin:/bin"), "/usr/sbin:/sbin"])
    return env


def _run(argv: List[str], env: Dict[str, str], timeout: float, check: Callable[[], None]) -> List[str]:
    """Return [stdout, stderr] of a tool; a sentence when it is absent, fails or hangs. The job's own end ends it too."""
    program = shutil.which(argv[0], path=env["PATH"])
    if not program:
        raise ProbeError("cell", "%s is not installed on this host." % argv[0])
    child = subprocess.Popen(
        [program, *argv[1:]], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    end = time.monotonic() + timeout
    try:
        while True:
            try:
                out, err = child.communicate(timeout=0.5)
                break
            except subprocess.TimeoutExpired:
                check()
                if time.monotonic() > end:
                    raise ProbeError("cell", "%s did not end within %g s." % (argv[0], timeout)) from None
    finally:
        _end(child)
    texts = [out.decode("utf-8", "replace"), err.decode("utf-8", "replace")]
    if child.returncode != 0:
        raise ProbeError("cell", "%s ended with %d: %s" % (argv[0], child.returncode, (texts[1] or texts[0])[-300:].strip()))
    return texts


def _serve(argv: Optional[List[str]], env: Dict[str, str]) -> Optional["subprocess.Popen[bytes]"]:
    if not argv:
        return None
    program = shutil.which(str(argv[0]), path=env["PATH"])
    if not program:
        raise ProbeError("cell", "%s is not installed on this host." % argv[0])
    quiet = subprocess.DEVNULL
    child = subprocess.Popen([program, *map(str, argv[1:])], env=env, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    time.sleep(1.0)  # the other side has to listen first
    return child


def _end(child: Optional["subprocess.Popen[bytes]"]) -> None:
    if child is not None and child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
