"""The job file: checked whole before anything starts, so that a typing error does not surface after an hour of storing."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Dict, List

from probe.errors import ProbeError

CELLS = ("checkpoint", "tier_read", "fio", "ib_write_bw", "model_load")
KINDS = ("run", "soak", "attend")
ATTEND = "attend"  # the kind of a job that serves another, on the engine's host
CLIENT = "client"  # a cell too, as many as the plan asks for
FILE = re.compile(r"client-[a-z0-9][a-z0-9-]{0,60}\.json")
OPTIONAL_LIMITS = ("start_timeout_s", "stop_timeout_s", "idle_timeout_s")
JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")


def check(spec: Dict[str, Any]) -> Dict[str, Any]:
    """Return the specification unchanged, or raise one ProbeError that lists every problem with its field."""
    problems: List[str] = []
    if spec.get("schema") != 1:
        problems.append("schema must be 1, it is %r" % (spec.get("schema"),))
    if not JOB_ID.fullmatch(str(spec.get("job", ""))):
        problems.append("job must be letters, digits, dots, dashes, it is %r" % (spec.get("job"),))
    if spec.get("kind") not in KINDS:
        problems.append("kind must be one of %s, it is %r" % (", ".join(KINDS), spec.get("kind")))
    _integer(problems, spec, "fence", 0)
    (_attendant if spec.get("kind") == ATTEND else _job)(problems, spec)
    if problems:
        raise ProbeError("spec", "The job file is not usable: %s. Nothing was started." % "; ".join(problems))
    return spec


def _job(problems: List[str], spec: Dict[str, Any]) -> None:
    """Check what a run or a soak needs."""
    _attendants(problems, spec)
    _engine(problems, _part(problems, spec, "engine"))
    _workload(problems, _part(problems, spec, "workload"), spec.get("kind"))
    _phases(problems, _part(problems, spec, "phases"))
    if (spec.get("phases") or {}).get("cool") == "reset" and not all((engine or {}).get("reset") for engine in _engines(spec)):
        problems.append("phases.cool is reset, and engine.reset, the path that is posted to, is missing")
    limits = _part(problems, spec, "limits")
    for key in ("request_timeout_s", "disk_quota_bytes", "deadline_s"):
        _positive(problems, limits, key, "limits")
    for key in OPTIONAL_LIMITS:
        if limits.get(key) is not None:
            _positive(problems, limits, key, "limits")
    if spec.get("kind") == "soak":
        soak = _part(problems, spec, "soak")
        for key in ("seconds", "telemetry_s"):
            _positive(problems, soak, key, "soak")
        for key in ("tier", "rotate_prefixes"):
            _integer(problems, soak, key, 1, "soak")
        _soak_extras(problems, soak)
    _cells(problems, spec)


def _engines(spec: Dict[str, Any]) -> List[Any]:
    """Return the section `engine` of the job, and of each engine host elsewhere that has one of its own."""
    away = spec.get("attendants")
    return [spec.get("engine"), *(row["engine"] for row in (away if isinstance(away, list) else []) if isinstance(row, dict) and "engine" in row)]


def _attendant(problems: List[str], spec: Dict[str, Any]) -> None:
    """Check the file of an attendant, which has only what it needs to answer for its host."""
    if not spec.get("host"):
        problems.append("host is missing")
    _engine(problems, _part(problems, spec, "engine"))
    _place(problems, _part(problems, spec, "listen"), "listen")
    limits = _part(problems, spec, "limits")
    for key in ("disk_quota_bytes", "deadline_s"):
        _positive(problems, limits, key, "limits")
    if spec.get("silence_s") is not None:
        _positive(problems, spec, "silence_s", "attendant")
    if spec.get("soak"):
        _soak_extras(problems, _part(problems, spec, "soak"))
    _cells(problems, spec)
    if any(isinstance(row, dict) and row.get("cell") == CLIENT for row in spec.get("cells") or []):
        problems.append("cells: a client drives the engine from the load generator, and this is none")


def _attendants(problems: List[str], spec: Dict[str, Any]) -> None:
    """Check the optional list of engine hosts elsewhere, each with the place where its attendant listens, and its engine where it is its own."""
    rows = spec.get("attendants")
    if rows is None:
        return
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        problems.append("attendants must list {host, address, port, engine?}, one for each engine host")
        return
    names = [row.get("host") for row in rows]
    for n, row in enumerate(rows):
        if not row.get("host") or row.get("host") == spec.get("host") or names.count(row.get("host")) > 1:
            problems.append("attendants[%d].host must name a host of its own, other than the job's" % n)
        _place(problems, row, "attendants[%d]" % n)
        if "engine" in row:
            _engine(problems, _part(problems, row, "engine"))
        elif len(rows) > 1:
            problems.append("attendants[%d].engine is missing: of several hosts each has an engine of its own" % n)
    kinds = [row.get("cell") for row in spec.get("cells") or [] if isinstance(row, dict)]
    if len(rows) > 1 and CLIENT in kinds:
        problems.append("third-party clients have one engine host, and attendants lists %d" % len(rows))
    for n, row in enumerate(rows):
        own = row.get("cells", spec.get("cells") or [])
        listed = [one.get("cell") for one in own if isinstance(one, dict)] if isinstance(own, list) else None
        if listed != kinds and "cells" in row:
            problems.append("attendants[%d].cells must be those of the job, in its order" % n)


def _place(problems: List[str], part: Dict[str, Any], where: str) -> None:
    try:
        address = ipaddress.ip_address(str(part.get("address")))
        if address.is_unspecified or address.is_multicast:
            problems.append("%s.address must be one address of the host, it is %s" % (where, address))
    except ValueError:
        problems.append("%s.address must be an IP address, it is %r" % (where, part.get("address")))
    port = part.get("port")
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65535:
        problems.append("%s.port must be a port number, it is %r" % (where, port))


def _soak_extras(problems: List[str], soak: Dict[str, Any]) -> None:
    """Check the optional sentinel and the planned disturbances."""
    sentinel, planned = soak.get("sentinel"), soak.get("injections") or []
    if sentinel is not None:
        part = sentinel if isinstance(sentinel, dict) else {}
        _positive(problems, part, "every_s", "soak.sentinel")
        _integer(problems, part, "prefixes", 1, "soak.sentinel")
    if not isinstance(planned, list):
        problems.append("soak.injections must be a list")
        return
    for n, row in enumerate(planned):
        part, where = (row if isinstance(row, dict) else {}), "soak.injections[%d]" % n
        for key in ("at_s", "seconds"):
            _positive(problems, part, key, where)
        if not isinstance(part.get("label"), str) or not part.get("label"):
            problems.append("%s.label is missing" % where)
        if part.get("action") != "engine-restart" and not part.get("start"):
            problems.append("%s has neither a command to start nor the action engine-restart" % where)


def _cells(problems: List[str], spec: Dict[str, Any]) -> None:
    """Check the optional cells: each names its kind, once; a client names a file of its own instead, and what is started."""
    rows = spec.get("cells") or []
    listed = rows if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else [{}]
    kinds = [row.get("cell") for row in listed if row.get("cell") != CLIENT]
    if any(kind not in CELLS for kind in kinds) or len(set(kinds)) != len(kinds):
        problems.append("cells must be a list of objects, each with another cell of %s, or %s" % (", ".join(CELLS), CLIENT))
    clients = [row for row in listed if row.get("cell") == CLIENT]
    files = [str(row.get("file")) for row in clients]
    if any(not FILE.fullmatch(name) for name in files) or len(set(files)) != len(files):
        problems.append("cells: each client must have a file of its own, client-NAME.json")
    if any(not isinstance(row.get("argv"), list) or not row.get("argv") or not row.get("result") for row in clients):
        problems.append("cells: a client lacks argv, or result, the name of the file that it writes")


def _part(problems: List[str], spec: Dict[str, Any], key: str) -> Dict[str, Any]:
    part = spec.get(key)
    if not isinstance(part, dict):
        problems.append("%s is missing" % key)
        return {}
    return part


def _integer(problems: List[str], part: Dict[str, Any], key: str, low: int, where: str = "") -> None:
    value = part.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        problems.append("%s must be a whole number of at least %d, it is %r" % (".".join(filter(None, (where, key))), low, value))


def _positive(problems: List[str], part: Dict[str, Any], key: str, where: str) -> None:
    value = part.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        problems.append("%s.%s must be a number above 0, it is %r" % (where, key, value))


def _engine(problems: List[str], engine: Dict[str, Any]) -> None:
    if not engine:
        return
    if not str(engine.get("base_url", "")).startswith("http://"):
        problems.append("engine.base_url must start with http:// (the probe speaks plain HTTP to an engine in the same rack)")
    if not engine.get("model"):
        problems.append("engine.model is missing")
    if not isinstance(engine.get("kv_dirs", []), list):
        problems.append("engine.kv_dirs must be a list")


def _workload(problems: List[str], workload: Dict[str, Any], kind: Any) -> None:
    if not workload:
        return
    for key in ("seed", "suffix_tokens"):
        _integer(problems, workload, key, 0, "workload")
    for key in ("context_tokens", "output_tokens"):
        _integer(problems, workload, key, 1, "workload")
    if not workload.get("set"):
        problems.append("workload.set is missing")
    vocab = workload.get("vocab")
    if not (isinstance(vocab, list) and len(vocab) == 2 and all(isinstance(v, int) for v in vocab) and vocab[0] >= 0 and vocab[0] + 16 <= vocab[1]):
        problems.append("workload.vocab must be [low, high] with at least 16 token ids, it is %r" % (vocab,))
    if workload.get("arrivals") is not None:
        _arrivals(problems, workload["arrivals"], kind)
    tiers = workload.get("tiers")
    if not isinstance(tiers, list) or (not tiers and kind == "run"):
        problems.append("workload.tiers lists no tier")
        return
    for n, tier in enumerate(tiers):
        for key in ("tier", "requests"):
            _integer(problems, tier if isinstance(tier, dict) else {}, key, 1, "workload.tiers[%d]" % n)
    names = [t.get("tier") for t in tiers if isinstance(t, dict)]
    if len(set(names)) != len(names):
        problems.append("workload.tiers names a tier twice")


def _arrivals(problems: List[str], arrivals: Any, kind: Any) -> None:
    if not isinstance(arrivals, dict):
        problems.append("workload.arrivals must be {rate_per_s, pattern} or null, it is %r" % (arrivals,))
        return
    _positive(problems, arrivals, "rate_per_s", "workload.arrivals")
    if arrivals.get("pattern", "constant") not in ("constant", "poisson"):
        problems.append("workload.arrivals.pattern must be constant or poisson, it is %r" % (arrivals.get("pattern"),))
    if kind == "soak":
        problems.append("workload.arrivals is for runs; a soak's load is bounded by soak.request_cap")


def _phases(problems: List[str], phases: Dict[str, Any]) -> None:
    if not phases:
        return
    if phases.get("store"):
        _integer(problems, phases, "store_concurrency", 1, "phases")
    if phases.get("cool", False) not in (True, False, "reset"):
        problems.append("phases.cool must be true, false or reset, it is %r" % (phases.get("cool"),))
    for key in ("warmup", "repeat"):
        _integer(problems, {key: phases.get(key, 0)}, key, 0, "phases")
