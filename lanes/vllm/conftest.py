"""The lane of the real engine: demos as separate processes whose progress is seen, and what this machine has of them afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from app.demo.medium import loops, mounts, release
from lanes.conftest import QUADGATE, ROOT
from lanes.vllm.meddling import Deed, Meddler
from lanes.vllm.short import write_short

STOP_S = 180


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the same lane run on the simulated engine: the same medium, plan and meddling in a minute each, without vLLM."""
    parser.addoption("--engine", choices=("vllm-cpu", "sim"), default="vllm-cpu", help="what is measured: vLLM on the CPU, or the simulated engine")


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """Return the engine that the lane runs on."""
    return str(request.config.getoption("--engine"))


@pytest.fixture
def out(request: pytest.FixtureRequest, engine: str) -> Iterator[Path]:
    """Return the folder of a test's demo, which stays for whoever wants to look; nothing of it stays mounted."""
    name = request.node.callspec.id if hasattr(request.node, "callspec") else request.node.name.removeprefix("test_")[:40]
    folder = ROOT / "out" / "lane-vllm" / engine / name
    folder.mkdir(parents=True, exist_ok=True)
    release(folder)  # what a lane that was killed left
    yield folder
    release(folder)


def begin(*arguments: str) -> subprocess.Popen[bytes]:
    """Start `quadgate demo`; its progress goes where ours goes."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("QUADGATE_")}
    return subprocess.Popen([str(QUADGATE), "demo", *arguments], env=environment, stdin=subprocess.DEVNULL)


def follow(process: subprocess.Popen[bytes]) -> int:
    """Wait for its end. Whoever interrupts us interrupts it as well, so that it takes away what it made."""
    try:
        return process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.wait(STOP_S)
        raise


@pytest.fixture
def short_demo(out: Path, engine: str) -> Callable[..., dict[str, Any]]:
    """Return a function that runs the short engagement up to G3, meddled with or not, and gives its summary."""

    def run(deed: Deed | None = None, **targets: Any) -> dict[str, Any]:
        file = write_short(out.with_suffix(".yaml"), engine, **targets)
        with ExitStack() as stack:
            meddler = stack.enter_context(Meddler(out, deed)) if deed else None
            code = follow(begin("--engine", engine, "--out", str(out), "--engagement", str(file), "--until", "G3"))
        assert code == 0, f"the demo ended with {code}; its logs are below {out}/state/log"
        assert meddler is None or meddler.done, "nobody meddled: the candidate of G3 never stored"
        return summary_of(out)

    return run


def summary_of(out: Path) -> dict[str, Any]:
    """Return the summary of a demo."""
    found: dict[str, Any] = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return found


def traces(out: Path) -> list[str]:
    """Return what this machine still has of a demo: mounts, loop devices, processes."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if f"{out}/state" in words:
            processes.append(words[:200])
    return [*mounts(out), *loops(out), *processes]
