"""fio: sequential or random reads of the rack's drives, in fio's JSON. Its time passes scaled; its speed follows drive and PCIe link."""

import json
import random
import signal
import sys
import time
from typing import Any, Dict, List

import state

ENCODING = {"2.5": 0.8, "5": 0.8}  # 8b/10b below 8 GT/s; 128b/130b from there on
PROTOCOL_SHARE = 0.90  # of the line rate, what is left for data behind packet headers
JITTER = 0.004  # run to run


def main(argv: List[str], rack: Dict[str, Any]) -> int:
    """Run one job given on the command line."""
    if "--version" in argv or "-v" in argv:
        print(rack["tools"]["fio"])
        return 0
    options = _options(argv[1:])
    paths = [p for p in options.get("filename", "").split(":") if p]
    drives = [state.drive_of(rack, p) for p in paths]
    if not paths or not all(drives):
        missing = next((p for p, d in zip(paths, drives) if d is None), "(no filename)")
        sys.stderr.write("fio: looks like your file system does not support direct=1/buffered=0, or %s does not exist\n" % missing)
        return 1
    runtime_s = float(options.get("runtime", "10").rstrip("s"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        for drive in drives:
            state.mark_busy(drive["controller"], True)
        time.sleep(runtime_s / float(rack["time_scale"]))
    finally:
        for drive in drives:
            state.mark_busy(drive["controller"], False)
    text = "".join(_error_lines(drive) for drive in drives if drive.get("io_error"))
    text += json.dumps(_result(options, drives, runtime_s, rack), indent=2) + "\n"
    if "output" in options:
        with open(options["output"], "w", encoding="utf-8") as f:
            f.write(text)
    else:
        sys.stdout.write(text)
    return 0


def _options(argv: List[str]) -> Dict[str, str]:
    options = {}
    for word in argv:
        key, _, value = word.lstrip("-").partition("=")
        options[key] = value
    return options


def _error_lines(drive: Dict[str, Any]) -> str:
    device = "/dev/" + drive["namespace"]
    return "fio: io_u error on file %s: Input/output error: read offset=184912257024, buflen=1048576\n" % device


def link_bytes_per_s(link: Dict[str, Any]) -> float:
    """Return what a PCIe link carries: lanes x transfers x encoding x protocol."""
    share = ENCODING.get(link["rated_gt"], 128 / 130)
    return float(link["rated_gt"]) * 1e9 / 8 * share * link["width"] * PROTOCOL_SHARE


def _result(options: Dict[str, str], drives: List[Dict[str, Any]], runtime_s: float, rack: Dict[str, Any]) -> Dict[str, Any]:
    block = _size(options.get("bs", "4k"))
    rate = sum(min(d["read_bytes_per_s"], link_bytes_per_s(d["link"])) for d in drives) * random.uniform(1 - JITTER, 1 + JITTER)
    operations = int(rate * runtime_s / block)
    bandwidth = int(operations * block / runtime_s)
    write = "write" in options.get("rw", "read")
    latency = drives[0]["read_latency_ns"]
    busy = {
        "io_bytes": operations * block,
        "io_kbytes": operations * block // 1024,
        "bw_bytes": bandwidth,
        "bw": bandwidth // 1024,
        "iops": round(operations / runtime_s, 6),
        "runtime": int(runtime_s * 1000),
        "total_ios": operations,
        "short_ios": 0,
        "drop_ios": 0,
        "clat_ns": _latency(latency, operations),
        "lat_ns": {**_latency(latency, operations), "percentile": {}},
    }
    idle = {**dict.fromkeys(busy, 0), "clat_ns": _latency(0, 0), "lat_ns": _latency(0, 0)}
    job = {
        "jobname": options.get("name", "job"),
        "groupid": 0,
        "error": 5 if any(drive.get("io_error") for drive in drives) else 0,
        "eta": 0,
        "elapsed": int(runtime_s) + 1,
        "job options": {k: v for k, v in options.items() if k not in ("output", "output-format")},
        "read": idle if write else busy,
        "write": busy if write else idle,
        "trim": idle,
        "job_runtime": int(runtime_s * 1000),
        "usr_cpu": 1.2,
        "sys_cpu": 6.4,
    }
    usage = [{"name": d["namespace"], "read_ios": 0 if write else operations, "write_ios": operations if write else 0, "util": 99.7} for d in drives]
    now = int(time.time())
    return {
        "fio version": rack["tools"]["fio"],
        "timestamp": now,
        "timestamp_ms": now * 1000,
        "time": time.ctime(now),
        "jobs": [job],
        "disk_util": usage,
    }


def _latency(mean_ns: int, samples: int) -> Dict[str, Any]:
    if not samples:
        return {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    points = {"50.000000": 0.98, "90.000000": 1.12, "99.000000": 1.36, "99.900000": 1.9}
    return {
        "min": int(mean_ns * 0.4),
        "max": int(mean_ns * 3.1),
        "mean": mean_ns * 1.0,
        "stddev": mean_ns * 0.11,
        "N": samples,
        "percentile": {k: int(mean_ns * v) for k, v in points.items()},
    }


def _size(text: str) -> int:
    units = {"k": 1024, "m": 1024**2, "g": 1024**3}
    return int(text[:-1]) * units[text[-1].lower()] if text[-1].lower() in units else int(text)
