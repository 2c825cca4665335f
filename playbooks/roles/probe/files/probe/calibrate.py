"""Is the ruler straight? The driver measures a server whose truth is known, and the error is evidence of every run.

Three questions, one server, about two seconds: is the TTFT right; how late are receipts when as many requests are in flight as the largest
tier has; and are the ways in which streams differ and fail told apart.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any, Dict, List, Optional

from probe.driver import ClosedLoop
from probe.errors import ProbeError
from probe.prompts import Prompts, Shot
from probe.selfexec import clean_environment, command, own_path
from probe.slot import Target

REQUESTS = 16
TOKENS = 8
BUSY_MOST = 64
STALL_S = 0.6  # an answer that stalls is given up after this long; the others end within 0.2 s

# kind of answer: (kind of error, chunks of text, role, empty, bundled) that the account must show; bundled None: no usage came
EXPECTED: Dict[str, Any] = {
    "plain": (None, 8, 0, 0, False),
    "role": (None, 8, 1, 0, False),
    "empty_chunks": (None, 8, 0, 2, False),
    "bundled": (None, 2, 0, 0, True),
    "http": ("http", 0, 0, 0, None),
    "stream_error": ("stream_error", 1, 0, 0, None),
    "empty_stream": ("empty_stream", 0, 0, 0, False),
    "no_finish": ("no_finish", 8, 0, 0, False),
    "short": ("short", 4, 0, 0, False),
    "connection": ("connection", 1, 0, 0, None),
    "timeout": ("timeout", 1, 0, 0, None),
}


def calibrate(workload: Optional[Dict[str, Any]] = None, concurrency: int = 2, busy: int = 16) -> Dict[str, Any]:
    """Return {true_ttft_ns, measured_ttft_p50_ns, n, error, concurrency, receipt, kinds, told_apart}.

    The truth is what the server, another process, says about each request (first text written minus headers read), in the same clock.
    `error` is |measured - true| / true of the medians. With a workload, bodies are as long as those to be measured. `receipt` is of a second
    pass at `busy` requests in flight: when the first text was received minus when the server handed it to its socket, ns. `kinds` says for
    each way of answering what the account made of it.
    """
    server = subprocess.Popen(command(own_path(), "calibration-server"), env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    line = b""
    try:
        line = server.stdout.readline() if server.stdout else b""
        target = Target("http://127.0.0.1:%d" % json.loads(line.decode("ascii"))["port"])
        result = _ttft(target, workload, concurrency)
        result["receipt"] = _receipt(target, min(max(busy, 1), BUSY_MOST))
        result["kinds"] = _kinds(target)
    except ValueError as error:
        raise ProbeError("calibration", "The calibration server did not start: %r." % line) from error
    finally:
        if server.stdin:
            server.stdin.close()
        server.kill()
        server.wait()
        if server.stdout:
            server.stdout.close()
    result["told_apart"] = all(row["as_expected"] for row in result["kinds"])
    return result


def _shots(model: str, label: str, count: int, workload: Optional[Dict[str, Any]] = None) -> List[Shot]:
    base = {"seed": 1, "set": "calibration", "context_tokens": 1024, "suffix_tokens": 0, "output_tokens": TOKENS, "vocab": [1, 900]}
    prompts = Prompts(workload or base, model)
    return [prompts.shot("calibration", None, n, prompts.prefix(label, n), label, "m", TOKENS) for n in range(count)]


def _send(target: Target, shots: List[Shot], concurrency: int, timeout_s: float = 10.0) -> List[Dict[str, Any]]:
    records: List[Dict[str, Any]] = []
    ClosedLoop([target], concurrency, timeout_s, records.append).run(iter(shots))
    return records


def _good(records: List[Dict[str, Any]], count: int) -> List[Dict[str, Any]]:
    good = [r for r in records if r["error"] is None]
    if len(good) != count:
        raise ProbeError("calibration", "Only %d of %d calibration requests succeeded: %s." % (len(good), count, records[-1]["error"]))
    return good


def _ttft(target: Target, workload: Optional[Dict[str, Any]], concurrency: int) -> Dict[str, Any]:
    good = _good(_send(target, _shots("truth", "calibration", REQUESTS, workload), concurrency), REQUESTS)
    true = _median([r["server"]["send_ns"] - r["server"]["recv_ns"] for r in good])
    measured = _median([r["first_text_ns"] - r["sent_ns"] for r in good])
    error = round(abs(measured - true) / true, 6)
    return {"true_ttft_ns": true, "measured_ttft_p50_ns": measured, "n": len(good), "error": error, "concurrency": concurrency}


def _receipt(target: Target, concurrency: int) -> Dict[str, Any]:
    count = max(32, 2 * concurrency)
    good = _good(_send(target, _shots("truth", "busy", count), concurrency), count)
    late = sorted(r["first_text_ns"] - r["server"]["send_ns"] for r in good)
    p99 = late[-(-99 * len(late) // 100) - 1]
    row = {
        "concurrency": concurrency,
        "n": len(late),
        "late_min_ns": late[0],
        "late_p50_ns": _median(late),
        "late_p99_ns": p99,
        "late_max_ns": late[-1],
    }
    row["tokens_exact"] = all(r["usage"] == {"prompt_tokens": 1024, "completion_tokens": TOKENS, "cached_tokens": None} for r in good)
    return row


def _kinds(target: Target) -> List[Dict[str, Any]]:
    shots = [_shots("truth/" + kind, kind, 1)[0] for kind in EXPECTED]
    records = {r["prompt_sha256"]: r for r in _send(target, shots, len(shots), STALL_S)}
    rows = []
    for shot, (kind, expected) in zip(shots, EXPECTED.items()):
        record = records[shot.sha256]
        chunks = record["chunks"]
        seen = ((record["error"] or {}).get("kind"), chunks["text"], chunks["role"], chunks["empty"], chunks["bundled"])
        rows.append({"kind": kind, "error": seen[0], "chunks": chunks, "as_expected": seen == expected and _first_text_is_late(kind, record)})
    return rows


def _first_text_is_late(kind: str, record: Dict[str, Any]) -> bool:
    """Tell whether what comes before the first text (a role, empty text) was not taken for it: the text was written, then received."""
    if kind not in ("role", "empty_chunks"):
        return True
    return bool(record["server"]) and record["first_byte_ns"] < record["server"]["send_ns"] <= record["first_text_ns"]


def _median(values: List[int]) -> int:
    ordered, n = sorted(values), len(values)
    return ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) // 2
