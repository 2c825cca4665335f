"""A job like the probe's, as small as it gets: start (once), run, poll, pack, stop. For the engine's tests only."""

import fcntl
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path


def state_of(folder: Path) -> str:
    if not (folder / "lock").exists():
        return "absent"
    with (folder / "lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return "running"
    if (folder / "exit.json").exists():
        return "exited"
    return "dead" if (folder / "started").exists() else "absent"


def start(folder: Path, seconds: str, lines: str, ends: str = "done") -> dict:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "asked").open("a") as asked:
        asked.write("x\n")
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    answer = {"job": folder.name, "state": "adopted", "expected_s": float(seconds)}
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return answer
    if (folder / "started").exists():
        return answer
    clean = {k: v for k, v in os.environ.items() if not k.startswith("QUADGATE_")}
    subprocess.Popen(
        [sys.executable, __file__, "run", str(folder), seconds, lines, str(lock), ends],
        env=clean,
        pass_fds=[lock],
        start_new_session=True,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return {**answer, "state": "started"}


def run(folder: Path, seconds: str, lines: str, _lock: str, ends: str) -> dict:
    """Write the lines. `ends` other than `done`: the phases after which the engine fails, as long as there is no file `engine-ok` in the root."""
    with (folder / "started").open("a") as started:
        started.write(f"{os.getpid()}\n")
    if ends != "done" and not (folder.parent.parent / "engine-ok").exists():
        (folder / "phases.jsonl").write_text("".join(json.dumps({"phase": name}) + "\n" for name in ends.split(",")))
        (folder / "records.jsonl").write_text('{"seq": 0}\n')
        end = {"outcome": "error", "error": {"kind": "engine", "message": "The engine did not answer http://x/health within 1 s."}}
        (folder / "exit.json").write_text(json.dumps(end))
        return {}
    with (folder / "records.jsonl").open("w") as records:
        for seq in range(int(lines)):
            records.write(json.dumps({"seq": seq, "mono_ns": time.monotonic_ns()}) + "\n")
            records.flush()
            time.sleep(float(seconds) / int(lines))
    (folder / "exit.tmp").write_text(json.dumps({"outcome": "done", "records": int(lines)}))
    (folder / "exit.tmp").rename(folder / "exit.json")
    return {}


def poll(folder: Path, offsets: str = "{}") -> dict:
    state = state_of(folder)
    answer: dict = {"job": folder.name, "state": state, "exit": None, "chunks": {}}
    if state != "absent" and (folder / "records.jsonl").exists():
        at = int(json.loads(offsets).get("records.jsonl", 0))
        data = (folder / "records.jsonl").read_bytes()[at:]
        data = data[: data.rfind(b"\n") + 1]
        answer["chunks"]["records.jsonl"] = {"from": at, "to": at + len(data), "data": data.decode()}
        if (folder / "exit.json").exists():
            answer["exit"] = json.loads((folder / "exit.json").read_text())
    return answer


def pack(folder: Path, out: str) -> dict:
    members = {name: (folder / name).read_bytes() for name in ("records.jsonl", "exit.json", "phases.jsonl") if (folder / name).exists()}
    listed = [{"path": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in members.items()]
    members["pack.json"] = json.dumps({"job": folder.name, "files": listed}).encode()
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(out, "w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return {}


def stop(folder: Path) -> dict:
    if state_of(folder) == "running":
        os.kill(int((folder / "started").read_text().split()[-1]), signal.SIGKILL)
        time.sleep(0.2)
    return {"job": folder.name, "state": state_of(folder)}


if __name__ == "__main__":
    print(json.dumps({"start": start, "run": run, "poll": poll, "pack": pack, "stop": stop}[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])))
