"""Is the ruler straight? The driver measures a server whose truth is known, and the error is evidence of every run."""

from __future__ import annotations

import json
import subprocess
from typing import Any, Dict, List, Optional

from probe.driver import ClosedLoop
from probe.errors import ProbeError
from probe.prompts import Prompts
from probe.selfexec import clean_environment, command, own_path
from probe.slot import Target

REQUESTS = 16
TOKENS = 8


def calibrate(workload: Optional[Dict[str, Any]] = None, concurrency: int = 2) -> Dict[str, Any]:
    """Return {true_ttft_ns, measured_ttft_p50_ns, n, error, ...}: medians over the same requests.

    The truth is what the server, another process, says about each request (first text written minus headers read), in the
    same clock. `error` is |measured - true| / true of the medians. With a workload, bodies are as long as those to be measured.
    """
    prompts = Prompts(
        workload or {"seed": 1, "set": "calibration", "context_tokens": 1024, "suffix_tokens": 0, "output_tokens": TOKENS, "vocab": [1, 900]}, "truth"
    )
    shots = [prompts.shot("calibration", None, n, prompts.prefix("calibration", n), "calibration", "m", TOKENS) for n in range(REQUESTS)]
    server = subprocess.Popen(command(own_path(), "calibration-server"), env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    records: List[Dict[str, Any]] = []
    try:
        line = server.stdout.readline() if server.stdout else b""
        port = json.loads(line.decode("ascii"))["port"]
        ClosedLoop(Target("http://127.0.0.1:%d" % port), concurrency, 10.0, records.append).run(iter(shots))
    except ValueError as error:
        raise ProbeError("calibration", "The calibration server did not start: %r." % line) from error
    finally:
        if server.stdin:
            server.stdin.close()
        server.kill()
        server.wait()
        if server.stdout:
            server.stdout.close()
    good = [r for r in records if r["error"] is None]
    if len(good) != REQUESTS:
        raise ProbeError("calibration", "Only %d of %d calibration requests succeeded: %s." % (len(good), REQUESTS, records[-1]["error"]))
    true = _median([r["server"]["send_ns"] - r["server"]["recv_ns"] for r in good])
    measured = _median([r["first_text_ns"] - r["sent_ns"] for r in good])
    return {
        "true_ttft_ns": true,
        "measured_ttft_p50_ns": measured,
        "n": len(good),
        "error": round(abs(measured - true) / true, 6),
        "concurrency": concurrency,
    }


def _median(values: List[int]) -> int:
    ordered, n = sorted(values), len(values)
    return ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) // 2
