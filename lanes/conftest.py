"""What the long lanes share: the state, the people and the NOT RUN of the tests, and a whole demo as a separate process with its summary."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import (
    _migrated,
    _server,
    another_database,
    cast,
    patient,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_runtest_setup,
    pytest_terminal_summary,
    state,
)
from tests.ports import free_port
from tests.scenes import demo_plan

__all__ = [
    "_migrated",
    "_server",
    "another_database",
    "cast",
    "demo",
    "demo_in",
    "merged",
    "patient",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_runtest_setup",
    "pytest_terminal_summary",
    "short_engagement",
    "state",
]

ROOT = Path(__file__).resolve().parent.parent
QUADGATE = ROOT / ".venv" / "bin" / "quadgate"
DEMO_SECONDS = 900  # a bound against hanging, no expectation of speed

# The lanes ask whether the right thing happens for the right reason, so they take a plan of fewer requests. `make demo` keeps them all.
# They may share the machine with anything, so the limits that speak of the client's and the machine's calm are out of reach here; those that
# tell a cold cache from a warm one, equal work from unequal, or a sound product from a broken one are the default plan's.
SHORT = {
    "validity": {
        "calibration_error_max": "0.30",
        "client_share_of_ttft_max": "0.30",
        "littles_law_max": "0.60",
        "loop_lag_p99_max": "2 s",
        "gain_explained_max": "0.15",
        "placebo_gain_max": "0.15",  # one run against one, of 48 requests: a third is what a placebo that recovered anything would gain
    },
    "g2": {"repeatability_cv_max": "0.10"},
    "g4": {"gap_max": "6 h"},
    "workload": {"tiers": [8, 16], "requests_per_run": {"min": 48, "per_concurrency": 4}},
    "g3": {
        "agreement_max": "0.20",
        "ttft_p50_drop_min": {"limit": "0.25", "tiers": [8, 16]},
        "throughput_gain_band": {"low": "0.29", "high": "0.40", "tiers": [8, 16], "above": "audit"},
    },
}


def merged(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Return `base` with `change` laid over it, mapping by mapping."""
    result = dict(base)
    for key, value in change.items():
        result[key] = merged(result.get(key) or {}, value) if isinstance(value, dict) else value
    return result


def short_engagement(folder: Path, plan: dict[str, Any] | None = None, **targets: Any) -> Path:
    """Write the demo's engagement file with the short plan, and with further differences of the plan and other targets where asked."""
    document = yaml.safe_load((ROOT / "app/demo/engagement.yaml").read_text(encoding="utf-8"))
    document["targets"] = merged(document["targets"], {"engine": {"port": free_port()}})  # of its own: what else runs here may have the shipped one
    document["plan"] = merged(merged(demo_plan(), SHORT), plan or {})
    document["targets"] = merged(document["targets"], targets)
    path = folder / "engagement.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return path


def _run_to_the_end(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Run a command; when the lane is interrupted or it hangs, interrupt it as a person would, so that it stops what it started."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    try:
        text, _ = process.communicate(timeout=DEMO_SECONDS)
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.wait(90)
        raise
    return process.returncode, text


@pytest.fixture
def demo(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return a function that runs `quadgate demo` with arguments and gives its summary; `folder` is where it wrote."""
    return demo_in(tmp_path)


def demo_in(folder: Path) -> Callable[..., dict[str, Any]]:
    """Return the function of the fixture `demo` for a folder of one's own."""

    def run(*arguments: str, plan: dict[str, Any] | None = None, **targets: Any) -> dict[str, Any]:
        out = Path(os.environ.get("QUADGATE_LANE_OUT", str(folder))) / folder.name
        command = [
            str(QUADGATE),
            "demo",
            "--out",
            str(out),
            "--soak",
            "40",
            "--engagement",
            str(short_engagement(folder, plan, **targets)),
            *arguments,
        ]
        code, text = _run_to_the_end(command, {k: v for k, v in os.environ.items() if not k.startswith("QUADGATE_")})
        assert code == 0, text[-6000:]
        summary: dict[str, Any] = json.loads((out / "summary.json").read_text(encoding="utf-8"))
        summary["folder"] = out
        return summary

    return run
