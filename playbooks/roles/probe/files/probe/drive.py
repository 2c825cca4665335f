"""One cell of load against any server, without the phases of a job: for benchmarks of the driver itself and for trying an engine by hand."""

from __future__ import annotations

import json
from typing import Any, Dict

from probe.driver import ClosedLoop
from probe.errors import ProbeError
from probe.files import dumps
from probe.histogram import Histogram
from probe.open_loop import Arrivals, OpenLoop
from probe.prompts import Prompts
from probe.slot import Target

LABEL = "drive"


def drive(spec: Dict[str, Any], out: str) -> Dict[str, Any]:
    """Send `requests` prompts and write a record of each to `out` (JSON lines, as records.jsonl without the job's clocks).

    The specification: {base_url, model, concurrency, requests, timeout_s, workload: {as in a job file, `arrivals` too}}. Returns what the
    loop itself cost and how many requests failed.
    """
    try:
        workload, count, concurrency = dict(spec["workload"], tiers=[]), int(spec["requests"]), int(spec["concurrency"])
        prompts, target, timeout = Prompts(workload, str(spec["model"])), Target(spec["base_url"]), float(spec.get("timeout_s", 60))
    except (KeyError, TypeError, ValueError) as error:
        raise ProbeError("spec", "The specification of the load is not usable: %r. Nothing was sent." % error) from error
    shots = [prompts.shot("measure", concurrency, n, prompts.prefix(LABEL, n), LABEL, "m", prompts.output) for n in range(count)]
    records: list = []
    loop = ClosedLoop([target], concurrency, timeout, records.append)
    if workload.get("arrivals"):
        loop = OpenLoop(Arrivals(workload["arrivals"], prompts.seed), [target], concurrency, timeout, records.append)
    result = loop.run(iter(shots))
    with open(out, "w", encoding="ascii") as f:
        f.writelines(dumps(record) + "\n" for record in records)
    lags: Histogram = result["lags"]
    row: Dict[str, Any] = {"requests": count, "failed": sum(1 for r in records if r["error"]), "cpu_s": result["cpu_s"], "wall_s": result["wall_s"]}
    row.update(receipts=result["receipts"].facts(), loop_lag_p99_ns=lags.percentile(0.99))
    return dict(json.loads(json.dumps(row)))
