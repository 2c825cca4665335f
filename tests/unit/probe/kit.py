"""What the tests of the probe share: the zipapp, specifications, a server that misbehaves to order, and the simulated engine."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from app.targets.probe_archive import build_probe
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "playbooks" / "roles" / "probe" / "files"
LAB = ROOT / "playbooks" / "roles" / "lab_engine" / "files"
if str(SOURCES) not in sys.path:
    sys.path.insert(0, str(SOURCES))


def probe(pyz, *arguments, python=sys.executable, expect=0, env=None):
    """Run the zipapp; return its JSON, or the process when another exit code than 0 is expected."""
    done = subprocess.run([python, str(pyz), *map(str, arguments)], capture_output=True, text=True, timeout=120, env=env, check=False)
    assert done.returncode == expect, f"exit {done.returncode}: {done.stdout[-800:]} {done.stderr[-800:]}"
    return json.loads(done.stdout) if expect == 0 else done


def build(folder) -> Path:
    """Build the zipapp into a folder."""
    path = Path(folder) / "probe.pyz"
    build_probe(path)
    return path


def job_spec(job, port, *, kind="run", **parts):
    """Return a small and valid job file; `parts` update its sections."""
    spec = {
        "schema": 1,
        "job": job,
        "kind": kind,
        "fence": 1,
        "host": "gpu01",
        "engine": {"base_url": f"http://127.0.0.1:{port}", "model": "lab", "control": {}, "pid_file": "", "kv_dirs": [], "array_stats": None},
        "arm": {"engine.tier": "none"},
        "workload": {
            "seed": 11,
            "context_tokens": 512,
            "suffix_tokens": 16,
            "output_tokens": 8,
            "vocab": [100, 1000],
            "set": "unit",
            "unique": True,
            "tiers": [{"tier": 2, "requests": 6}, {"tier": 4, "requests": 8}],
        },
        "phases": {"store": False, "cool": False, "warmup": 0, "canary": False, "expect_hits": False, "repeat": 0, "chunk_offsets": True},
        "soak": {"seconds": 3, "tier": 4, "telemetry_s": 0.3, "rotate_prefixes": 12, "request_cap": None} if kind == "soak" else None,
        "limits": {"request_timeout_s": 10, "disk_quota_bytes": 1 << 26, "deadline_s": 60},
    }
    for key, value in parts.items():
        spec[key] = {**spec[key], **value} if isinstance(spec.get(key), dict) else value
    return spec


def write(path, obj) -> Path:
    """Write a JSON file and return its path."""
    Path(path).write_text(json.dumps(obj))
    return Path(path)


def lines(path):
    """Return the objects of a .jsonl file."""
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def grown(path, rows):
    """Wait until a journal that is being written holds so many whole lines more."""
    path = Path(path)
    least = (path.read_bytes().count(b"\n") if path.exists() else 0) + rows
    wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= least, what=f"{rows} more lines in {path.name}")


def wait_for(condition, seconds=240.0, what="the condition"):
    """Wait until `condition()` is true and return its value; the time is only a guard against hanging."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.03)
    raise AssertionError(f"{what} did not come true within {seconds} s")


def is_gone(pid):
    """Tell whether a process is no more; asking the probe each time would cost more than the job."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def job_over(folder, what="the end of the job"):
    """Wait until the process of a job has begun and ended; `folder` is the job's."""

    def begun():
        with suppress(OSError, ValueError):  # not there yet, or not whole
            return json.loads((Path(folder) / "started").read_text())

    pid = wait_for(begun, what="the begin of the job")["pid"]
    wait_for(lambda: is_gone(pid), what=what)


@contextmanager
def workplace(prefix):
    """Give a folder on the checkout's own disk (/tmp may be in memory); whatever still runs from it at the end is ended, and the folder removed."""
    (ROOT / "var").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=ROOT / "var"))
    try:
        yield folder
    finally:
        for pid in processes_with(str(folder)):
            kill(pid)
        shutil.rmtree(folder, ignore_errors=True)


def processes_with(text):
    """Return the pids of living processes (no zombies) whose command line holds `text`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                argv = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                if text in argv and state not in "ZX":
                    found.append(int(entry.name))
    return found


def lab_engine(folder, pyz, **config):
    """Return (job file's engine section, engine spec's path, port) of a simulated engine that the probe itself starts and stops."""
    folder, port = Path(folder), free_port()
    tier = config.pop("tier", None)
    values = {"model": "lab", "port": port, "block_tokens": 64, "kv_bytes_per_token": 256, "hbm_tokens": 40960, "state_path": str(folder / "state")}
    values.update({"prefill_tokens_per_s": 2000000, "decode_base_s": 0.0005, **config})
    engine = {"base_url": f"http://127.0.0.1:{port}", "model": "lab", "pid_file": str(folder / "engine.pid"), "kv_dirs": [], "array_stats": None}
    if tier:
        (folder / "kv").mkdir(exist_ok=True)
        values["tier"] = {"path": str(folder / "kv"), "array": {"stats_path": str(folder / "array.json"), "counters": ["nvme_media_errors"]}, **tier}
        engine.update(kv_dirs=[str(folder / "kv")], array_stats=str(folder / "array.json"))
    write(folder / "lab.json", values)
    spec = {"name": "lab", "argv": [sys.executable, "-m", "lab_engine", "--config", str(folder / "lab.json")], "env": {"PYTHONPATH": str(LAB)}}
    spec.update(cwd=str(folder), log=str(folder / "engine.log"), pid_file=engine["pid_file"], health_url=f"{engine['base_url']}/health", timeout_s=30)
    path = write(folder / "engine-spec.json", spec)
    engine["control"] = {verb: [sys.executable, str(pyz), "engine", verb, "--spec", str(path)] for verb in ("start", "stop")}
    return engine, path, port


class OddServer:
    """A threaded HTTP server whose answer to the n-th completion is chosen by `behave(n)`: a function (connection, request number) -> keep open."""

    def __init__(self, behave):
        self._behave, self._n, self._lock = behave, 0, threading.Lock()
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        self.port = self._listener.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        buffer = b""
        with suppress(OSError), connection:
            while True:
                while b"\r\n\r\n" not in buffer:
                    data = connection.recv(65536)
                    if not data:
                        return
                    buffer += data
                head, _, buffer = buffer.partition(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                while len(buffer) < length:
                    buffer += connection.recv(65536)
                buffer = buffer[length:]
                with self._lock:
                    number, self._n = self._n, self._n + 1
                if not self._behave(number)(connection):
                    return


@contextmanager
def odd_server(behave):
    """Run an OddServer."""
    server = OddServer(behave)
    try:
        yield server
    finally:
        server.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


def event(obj, name="") -> bytes:
    """Return one server-sent event in an HTTP chunk."""
    data = (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(obj).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


def text_event(text, finish=None, **more) -> bytes:
    """Return a completion chunk."""
    return event({"choices": [{"index": 0, "text": text, "finish_reason": finish}], **more})


def usage_event(completion, prompt=528, **more) -> bytes:
    """Return the chunk with usage."""
    return event({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}, **more})


def whole_stream(tokens=8) -> bytes:
    """Return a complete and honest answer."""
    body = b"".join(text_event(f" t{n}", "length" if n == tokens - 1 else None) for n in range(tokens))
    return HEAD + body + usage_event(tokens) + END


def environment_of(pid) -> str:
    """Return the environment a process was executed with."""
    return Path(f"/proc/{pid}/environ").read_bytes().replace(b"\0", b"\n").decode("utf-8", "replace")


def kill(pid, number=9) -> None:
    """Signal one process that a test started."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
