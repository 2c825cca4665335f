"""The simulated tools called in this process: the same code and the same list of commands as on a target, in milliseconds."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from app.settings import ROOT
from gates.bundle import Bundle, make_manifest
from gates.canonical import sha256_hex
from gates.g1_arrival import judge
from gates.model import CheckResult, GateJudgement
from gates.plan import Plan, load_yaml, parse_plan

ROLES = ROOT / "playbooks/roles"
RACK_FILES = ROLES / "lab_rack/files/rack"
DEMO = load_yaml((ROOT / "app/demo/engagement.yaml").read_text())
Files = dict[str, bytes]
HOSTS = {"engine": ["gpu01"], "storage": ["array01"]}
GOOD_FORM = {
    "packaging": "intact",
    "shock_tag": "untripped",
    "appearance": "intact",
    "accessories": "complete",
    "serials_match": True,
    "exceptions": "—",
    "notes": "—",
    "receiver_vendor": "李伟",
    "receiver_customer": "王芳",
}


def load(path: Path) -> ModuleType:
    """Load a plugin file by its path, as Ansible does."""
    spec = importlib.util.spec_from_file_location(f"qg_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rack_for = load(ROLES / "lab_rack/filter_plugins/lab_rack.py").rack_for
survey_spec = load(ROLES / "facts/filter_plugins/survey_spec.py").survey_spec
rdma_pairs = load(ROLES / "rdma/filter_plugins/rdma_pairs.py")
PAIR = {"host": "array01", "interface": "ens8f0np0", "far_host": "gpu01", "far_interface": "ens3f0np0", "far_address": "127.0.0.1"}
TOOLS = load(RACK_FILES / "__main__.py").TOOLS


def rack(name: str = "lab") -> dict[str, Any]:
    """Return a rack's description, with time passing almost at once."""
    described = yaml.safe_load((ROLES / f"lab_rack/files/racks/{name}.yaml").read_text())
    return {**described, "time_scale": 1_000_000}


def part(name: str) -> ModuleType:
    """Return one module of the rack's programs, as they import each other: by its bare name."""
    sys.path.insert(0, str(RACK_FILES))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(RACK_FILES))


def run_tool(argv: list[str], seen: Mapping[str, Any]) -> tuple[str, str, int]:
    """Run one simulated tool. Return stdout, stderr, exit code (127 where the host has no such program)."""
    if argv[0] not in TOOLS:
        return "", f"{argv[0]}: not found\n", 127
    out, err = io.StringIO(), io.StringIO()
    module, handler = part(TOOLS[argv[0]]), signal.getsignal(signal.SIGTERM)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = module.main(list(argv), json.loads(json.dumps(seen)))
    finally:
        signal.signal(signal.SIGTERM, handler)  # fio sets its own, as befits a process of its own
    return out.getvalue(), err.getvalue(), code


def under_load(argv: list[str], seen: Mapping[str, Any]) -> tuple[str, str, int]:
    """Do what the reading under load does: fio, then lspci within the moment in which a link stays fast."""
    fio = ["fio", *(word if not word.startswith("--runtime=") else "--runtime=1" for word in argv[5:])]
    assert argv[:2] == ["sh", "-c"]
    assert run_tool(fio, seen)[2] == 0
    text, err, code = run_tool(["lspci", "-D", "-vvv"], seen)
    return f"# load alive before reading: yes\n{text}# load alive after reading: yes\n", err, code


def from_sysfs(argv: list[str], seen: Mapping[str, Any], folder: str) -> tuple[str, str, int]:
    """Read the kernel's files as the survey does, from a tree that the rack puts below a folder."""
    part("sysfs").install(f"{folder}/sys", seen, part("install")._write)
    done = subprocess.run([*argv[:-1], f"{folder}/sys"], capture_output=True, text=True, check=False, timeout=60)
    return done.stdout, done.stderr, done.returncode


def pack_files(
    host: str, groups: list[str], plan: str, faults: Mapping[str, Any] | None = None, described: dict[str, Any] | None = None
) -> dict[str, bytes]:
    """Return the files of one survey pack, as the probe would bring them."""
    seen = rack_for(described or rack(), host, groups, faults)
    discovered = run_tool(["nvme", "list", "-o", "json"], seen)[0] + "--- rdma\n" + run_tool(["rdma", "-j", "link", "show"], seen)[0]
    spec = survey_spec(discovered, plan, host, groups, [], {}, stress=DEMO["targets"].get("gpu_stress"))
    with tempfile.TemporaryDirectory() as folder, _root(folder):

        def run(command: Mapping[str, Any]) -> tuple[str, str, int]:
            if command["argv"][0] != "sh":
                return run_tool(command["argv"], seen)
            if command["tool"] in ("aer", "gid-types", "host-tuning", "ib-counters"):
                return from_sysfs(command["argv"], seen, folder)
            if command["tool"] == "kernel-log":
                return run_tool(["journalctl", "-k", "-b", "-o", "short-monotonic"], seen)
            return under_load(command["argv"], seen)

        return _answers(host, spec["commands"], run)


def _answers(host: str, commands: list[dict[str, Any]], run: Callable[[Mapping[str, Any]], tuple[str, str, int]]) -> Files:
    """Return a pack's files: what each command said, in the order of the list."""
    rows, files = [], {}
    for command in commands:
        name = command["name"]
        out, err, code = run(command)
        files[f"{name}.out"], files[f"{name}.err"] = out.encode(), err.encode()
        about = {"argv": command["argv"], "exit_code": code, "timed_out": False, "stdout": f"{name}.out", "stderr": f"{name}.err"}
        rows.append({"name": name, "tool": command["tool"], **about})
    files["commands.json"] = json.dumps(rows).encode()
    files["host.json"] = json.dumps({"host": host, "boot_id": "b", "kernel": "k"}).encode()
    return files


def rdma_files(faults: Mapping[str, Any] | None = None, *, far: Mapping[str, Any] | None = None, pairs: Any = (PAIR,)) -> Files:
    """Return the evidence of step rdma by bundle path: both hosts of the demo's rack, the far end's port with `far` changed."""
    files: Files = {}
    for host, groups in (("gpu01", ["engine"]), ("array01", ["storage"])):
        seen = rack_for(rack(), host, groups, faults)
        other = rack_for(rack(), "gpu01", ["engine"], faults)["nics"][0] | dict(far or {})
        seen["nics"][0].update(far or {} if host == "gpu01" else {})
        links = run_tool(["rdma", "-j", "link", "show"], seen)[0]
        spec = rdma_pairs.rdma_survey({"pairs": list(pairs)}, host, links, [])
        tool = part("tool_perftest")
        before, tool.meet = tool.meet, lambda peer, port, speed, far=other: far["speed_mbit"] / 1000 * far.get("rdma_share", 1.0)
        try:
            brought = _answers(host, spec["commands"], lambda command, seen=seen: run_tool(command["argv"], seen))
        finally:
            tool.meet = before
        files |= {f"evidence/rdma/{host}/{name}": data for name, data in brought.items()}
    return files


@contextlib.contextmanager
def _root(folder: str) -> Any:
    """Let the simulated tools keep their notes of busy drives in a folder of the test."""
    state = part("state")
    before, idle = state.root, state.IDLE_AFTER_S
    state.root, state.IDLE_AFTER_S = lambda: folder, 3600.0  # however busy this machine is, a link stays fast until it was read
    try:
        yield
    finally:
        state.root, state.IDLE_AFTER_S = before, idle


def evidence(faults: Mapping[str, Any] | None = None, *, described: dict[str, Any] | None = None) -> dict[str, bytes]:
    """Return all evidence of a G1 attempt on the demo's rack, by bundle path."""
    files: dict[str, bytes] = {}
    for host, groups, steps in (("gpu01", ["engine", "loadgen"], ["survey"]), ("array01", ["storage"], ["survey", "storage"])):
        for step in steps:
            for name, data in pack_files(host, groups, step, faults, described).items():
                files[f"evidence/{step}/{host}/{name}"] = data
    files["evidence/unpacking/site/form.json"] = json.dumps({"schema": 1, "step": "unpacking", "form": GOOD_FORM, "photos": ["photo-1.jpg"]}).encode()
    files["evidence/unpacking/site/photo-1.jpg"] = b"\xff\xd8 a photo"
    files["evidence/inputs.json"] = json.dumps(inputs()).encode()
    return files


def accounted(files: Mapping[str, bytes]) -> Files:
    """Return evidence with the account of each output that a survey keeps: its bytes and their hash. Without it, it is that of an earlier release."""
    out = dict(files)
    for path in [p for p in files if p.endswith("/commands.json")]:
        rows = json.loads(files[path])
        for row in rows:
            data = files[path.replace("commands.json", row["stdout"])]
            row.update(stdout_bytes=len(data), stdout_sha256=sha256_hex(data))
        out[path] = json.dumps(rows).encode()
    return out


def inputs() -> dict[str, Any]:
    """Return inputs.json of the demo engagement."""
    about = {k: v for k, v in DEMO["engagement"].items() if k != "people"}
    told = {
        "schema": 1,
        "engagement": about,
        "order": DEMO["order"],
        "packing_list": DEMO["packing_list"],
        "hosts": HOSTS,
        "simulated": True,
        "g2_baseline": None,
    }
    return json.loads(json.dumps(told, default=str))


def demo_plan(**differences: Any) -> Plan:
    """Return the demo's plan."""
    return parse_plan({**DEMO["plan"], **differences})


def bundle_of(files: Mapping[str, bytes], plan: Plan) -> Bundle:
    """Return a bundle in memory over these files."""
    entries = [{"path": path, "size": len(data), "sha256": sha256_hex(data)} for path, data in files.items()]
    attempt = {"id": "a", "number": 1, "rehearsal": False, "seed": 1, "status": "finished"}
    manifest = make_manifest(plan=plan, gate="G1", attempt=attempt, simulated=True, created_at="2026-11-29T00:00:00Z", files=entries)
    return Bundle(manifest, files.__getitem__)


def judged(files: Mapping[str, bytes]) -> GateJudgement:
    """Return what G1 makes of these files under the demo's plan."""
    plan = demo_plan()
    return judge(plan, bundle_of(files, plan))


def check(judgement: GateJudgement, name: str) -> CheckResult:
    """Return one check of a judgement."""
    return next(c for c in judgement.checks if c.id == name)
