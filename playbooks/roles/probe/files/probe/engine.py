"""The engine under measurement, as a job sees it: its process, its health, its counters, and how to start and stop it."""

from __future__ import annotations

import hashlib
import re
import time
from decimal import Decimal
from typing import Any, Callable, Dict, List, Optional

from probe import clock, metrics
from probe.engine_control import is_healthy
from probe.engine_counters import BLOCK_TOKENS, GPU_BLOCKS, NO_SETTING, family_of
from probe.engine_host import LocalHost
from probe.errors import ProbeError
from probe.files import canonical
from probe.idle import Quiet

IDLE_S = 60.0  # where the job file says nothing


class Engine:
    """One engine by its endpoints, and by its host (probe.engine_host). Nothing here waits longer than it is told."""

    def __init__(self, spec: Dict[str, Any], folder: str, limits: Optional[Dict[str, Any]] = None, host: Any = None, place: int = 0) -> None:
        """Take the sections `engine` and `limits` of the job file, the job's folder for its log, and the engine's host (without one: this).

        `place` is its number among the engines that serve one load (probe.engines).
        """
        self.spec, self.place = spec, place
        self.host: Any = host or LocalHost({"engine": spec, "limits": limits}, folder)
        self.name: Optional[str] = self.host.name  # None: it is the driver's own
        self.start_s: float = self.host.start_s
        self.stop_s: float = self.host.stop_s
        self.idle_s = float((limits or {}).get("idle_timeout_s") or IDLE_S)
        self.base: str = spec["base_url"].rstrip("/")
        # Several instances of one model are started and stopped as one; requests and counters go to each.
        self.bases: List[str] = [str(url).rstrip("/") for url in spec.get("base_urls") or [self.base]]
        self.kv_dirs: List[str] = list(spec.get("kv_dirs") or [])

    def process(self) -> Optional[Dict[str, Any]]:
        """Return {pid, start_ticks, boot_id} of the living engine, or None."""
        found: Optional[Dict[str, Any]] = self.host.process()
        return found

    def metrics(self) -> Dict[str, str]:
        """Return counters and gauges now; of several instances each series has the label `instance`, by which they add up."""
        return metrics.merged([self._page(base) for base in self.bases])

    def _page(self, base: str) -> Dict[str, str]:
        return metrics.parse(metrics.get(base + (self.spec.get("metrics_path") or "/metrics")).decode("utf-8", "replace"))

    def control(self, verb: str, sleep: Callable[[float], None] = time.sleep, timeout: Optional[float] = None) -> None:
        """Run the start or stop command of the job file on the engine's host (LocalHost.control)."""
        self.host.control(verb, sleep, timeout)

    def ensure(self, sleep: Callable[[float], None]) -> None:
        """Start the engine when it does not run and the job may start it; wait until it is healthy."""
        if self.spec.get("pid_file") and (self.spec.get("control") or {}).get("start") and self.process() is None:
            self.control("start", sleep)
        self.wait_healthy(sleep)

    def wait_healthy(self, sleep: Callable[[float], None], timeout: Optional[float] = None) -> None:
        """Wait until the engine answers its health path, for `timeout` s or as long as the job file gives a start."""
        limit = self.start_s if timeout is None else timeout
        end = time.monotonic() + limit
        for url in [base + (self.spec.get("health_path") or "/health") for base in self.bases]:
            while not is_healthy(url):
                if time.monotonic() > end:
                    raise ProbeError("engine", "The engine did not answer %s within %g s." % (url, limit))
                sleep(0.05)

    def wait_idle(self, sleep: Callable[[float], None], stored: bool = False) -> Dict[str, Any]:
        """Wait until no request runs or waits and nothing is stored any more. Return {idle, waited_s, why} (probe.idle); `idle` may be unknown."""
        return Quiet(self.spec, self.metrics, self.host).wait(sleep, self.idle_s, stored)

    def counters(self, when: str, phase: str, tier: Optional[int]) -> Dict[str, Any]:
        """Return one line of counters.jsonl: engine, device and array at nearly one moment."""
        row: Dict[str, Any] = {"when": when, "phase": phase, "tier": tier, "mono_ns": clock.mono_ns()}
        row.update(self.host.reading())
        row["metrics"] = self.metrics()
        return row

    def instances(self) -> List[Dict[str, Any]]:
        """Return what each instance reports about itself, with its `url` and, of a host elsewhere, its `host`; `declared` fills what stays open."""
        where = {} if self.name is None else {"host": self.name}
        return [dict(self._describe(base, words), url=base, **where) for base, words in zip(self.bases, self.host.words(len(self.bases)))]

    def _describe(self, base: str, words: Dict[str, Any]) -> Dict[str, Any]:
        now = self._page(base)
        info = metrics.get_json(base + "/config") or metrics.get_json(base + "/server_info") or {}
        version = metrics.get_json(base + "/version") or {}
        cache = metrics.labels_of(now, "vllm:cache_config_info")
        config = info.get("config") or info.get("vllm_config") or _settings(info, now) or dict(cache)
        row: Dict[str, Any] = {"argv": words["argv"], "version": version.get("version") or info.get("version"), "config": config}
        row.update({k: words[k] for k in ("model_config_sha256", "hash_seed")})
        row["model"] = info.get("model") or self.served_model(base)
        row["kv_bytes_per_token"] = info.get("kv_bytes_per_token")
        row["num_gpu_blocks"] = _whole(info.get("num_gpu_blocks"), metrics.fact(now, GPU_BLOCKS))
        row["block_tokens"] = _whole(info.get("block_tokens"), metrics.fact(now, BLOCK_TOKENS))
        row["config_sha256"] = info.get("config_sha256") or hashlib.sha256(canonical(config)).hexdigest()
        said = metrics.total(now, "process_start_time_seconds")
        row["started_wall_ns"] = words["started_wall_ns"] if said is None else int(said * Decimal(1_000_000_000))
        row["metrics_names"] = sorted({key.partition("{")[0] for key in now})
        for key, value in (self.spec.get("declared") or {}).items():
            if row.get(key) in (None, "", [], {}):
                row[key] = value
        return row

    def hash_seed(self) -> Optional[str]:
        """Return PYTHONHASHSEED of the living engine: what it stores now is named under it."""
        seed: Optional[str] = self.host.hash_seed()
        return seed

    def served_model(self, base: str = "") -> Optional[str]:
        """Return the model that an instance (by default the first) says it serves, the job's where it is among them; None where it lists none."""
        listed = metrics.get_json((base or self.base) + "/v1/models") or {}
        names = [m.get("id") for m in listed.get("data") or [] if isinstance(m, dict)]
        return self.spec["model"] if self.spec["model"] in names else (names[0] if names else None)


def _settings(info: Dict[str, Any], page: Dict[str, str]) -> Dict[str, Any]:
    """Return what an engine says of its own settings, without its state of now, what each start makes anew, and secrets."""
    left_out = NO_SETTING.get(family_of(page) or "")
    return {key: value for key, value in info.items() if not (left_out and re.fullmatch(left_out, key))}


def _whole(*values: Any) -> Optional[int]:
    """Return the first of these that is a whole number; a gauge writes it as 64.0."""
    for value in values:
        try:
            number = Decimal(str(value))
        except ArithmeticError:
            continue
        if number.is_finite() and number == int(number):
            return int(number)
    return None
