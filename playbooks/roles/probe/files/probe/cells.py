"""Cells: other claims of the vendor, measured once a run, behind everything that is judged. Each is one line of cells.jsonl.

`started_ns` to `ended_ns` is the time that counts, `bytes` what was moved in it, and `cold` says that none of it came from memory, which is
shown (`proof`) and not assumed. A cell that could not be measured has a `problem` in words and no times.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List

from probe import clock
from probe.cells_client import client_cell
from probe.cells_io import read_tier, write_checkpoint
from probe.cells_tools import bandwidth_matrix, raw_fio
from probe.coldness import diskstats, drop_cache, mountstats
from probe.engine_host import GRACE_S
from probe.errors import Ended, ProbeError
from probe.files import read_json, walk_files
from probe.session import Session

FIRST_TOKEN_LABEL = "cell-first-token"


def run_cells(session: Session) -> None:
    """Measure the cells of the job file in its order: those of probe.jobspec.CELLS, where the engine's restart comes last, then clients."""
    for spec in session.spec.get("cells") or []:
        kind = spec["cell"]
        with session.job.phase("cell") as row:
            session.engine.wait_idle(session.job.sleep)
            found: Dict[str, Any] = {"cell": kind, "cold": False}
            try:
                found.update(_MEASURES[kind](session, spec))
            except Ended:
                raise
            except (ProbeError, OSError) as error:
                found["problem"] = str(error)
            except (KeyError, TypeError, ValueError) as error:
                found["problem"] = "The settings of the cell %s are not usable: %s %s." % (kind, type(error).__name__, error)
            session.job.journals.put("cells.jsonl", found)
            row["detail"] = {"cell": kind, "problem": found.get("problem")}
            row["ok"] = "problem" not in found


def _model_load(session: Session, spec: Dict[str, Any]) -> Dict[str, Any]:
    """Stop the engine, put its weights out of memory, start it: the time to healthy and to the first token.

    The weights are those that the engine loads: `engine.model_dir` of the job file; only of an engine without a model the cell's own `weights`.
    `bytes` is what must be read of them, and the counters of device and mount around the time tell whether it was.
    """
    engine, job = session.engine, session.job
    folder = str(session.spec["engine"].get("model_dir") or spec["weights"])
    files = weight_files(folder)
    engine.control("stop", job.sleep)
    proof = _without_list(drop_cache(folder, links=True))
    before, started = _read_below(files), clock.mono_ns()
    limit = float(spec.get("timeout_s") or engine.start_s)
    engine.control("start", job.sleep, limit + GRACE_S)
    engine.wait_healthy(job.sleep, limit)
    healthy = clock.mono_ns()
    label = "%s/%s" % (FIRST_TOKEN_LABEL, session.spec["job"])
    brief = session.send(
        [session.prompts.shot("cell", None, 0, session.prompts.prefix(label, 0), label, "m", session.prompts.output)], 1, offsets=False
    )[0]
    if brief["error"] or brief["first_text_ns"] is None:
        raise ProbeError("cell", "The engine answered its first request with an error: %s." % (brief["error"],))
    after, size = _read_below(files), sum(os.path.getsize(name) for name in files)
    row = {"started_ns": started, "healthy_ns": healthy, "ended_ns": brief["first_text_ns"], "bytes": size, "proof": proof}
    row.update({"%s_before" % key: value for key, value in before.items()})
    row.update({"%s_after" % key: value for key, value in after.items()})
    return dict(row, weight_files=len(files), cold=size > 0 and proof["resident_bytes"] == 0)


def weight_files(folder: str) -> List[str]:
    """Return the real paths of what an engine loads of a model's folder: the files that its index lists, else its safetensors, else all files."""
    index = read_json(os.path.join(folder, "model.safetensors.index.json"))
    listed = index.get("weight_map") if isinstance(index, dict) else None
    names = sorted(set(listed.values())) if isinstance(listed, dict) and listed else []
    names = names or sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    found = [os.path.realpath(os.path.join(folder, str(name))) for name in names] or list(walk_files(folder, links=True))
    if lacking := [name for name in found if not os.path.isfile(name)]:
        raise ProbeError("cell", "The model's folder %s lacks %s." % (folder, ", ".join(lacking[:3])))
    return list(dict.fromkeys(found))


def _read_below(files: List[str]) -> Dict[str, Any]:
    """Return {disk, nfs}: what the device or the mount below the weights has read so far; null where there is none that counts."""
    return {"disk": diskstats(files[0]) if files else None, "nfs": mountstats(files[0]) if files else None}


def _checkpoint(session: Session, spec: Dict[str, Any]) -> Dict[str, Any]:
    folder = _folder(session, spec)
    before = diskstats(folder)
    return dict(write_checkpoint(folder, int(spec["bytes"]), session.job.check), disk_before=before, disk_after=diskstats(folder))


def _tier_read(session: Session, spec: Dict[str, Any]) -> Dict[str, Any]:
    """Read stored KV files as the offload does, several at a time and past the page cache."""
    folder = str(spec.get("dir") or (session.engine.kv_dirs or [""])[0])
    if not os.path.isdir(folder):
        raise ProbeError("cell", "This arm has no directory of KV files to read.")
    proof = _without_list(drop_cache(folder))
    before = diskstats(folder)
    row = read_tier(folder, int(spec["bytes"]), int(spec.get("threads") or 8), int(spec.get("block_bytes") or 4 << 20), session.job.check)
    row.update(proof=proof, disk_before=before, disk_after=diskstats(folder))
    row["cold"] = proof["resident_bytes"] == 0 and row["bytes"] == int(spec["bytes"])
    return row


def _fio(session: Session, spec: Dict[str, Any]) -> Dict[str, Any]:
    return raw_fio(spec if spec.get("filename") else dict(spec, dir=_folder(session, spec)), session.job.check)


def _ib_write_bw(session: Session, spec: Dict[str, Any]) -> Dict[str, Any]:
    return bandwidth_matrix(spec, session.job.check)


def _folder(session: Session, spec: Dict[str, Any]) -> str:
    """Return the directory to write to: the one named, else the directory that holds the arm's KV directory."""
    folder = spec.get("dir") or (os.path.dirname(session.engine.kv_dirs[0]) if session.engine.kv_dirs else "")
    if not folder or not os.path.isdir(str(folder)):
        raise ProbeError("cell", "The cell %s has no directory on this arm's medium." % spec["cell"])
    return str(folder)


def _without_list(found: Dict[str, Any]) -> Dict[str, Any]:
    keys: List[str] = ["dir", "fs_type", "source", "files", "bytes", "resident_bytes", "method"]
    return {key: found[key] for key in keys}


_MEASURES: Dict[str, Callable[[Session, Dict[str, Any]], Dict[str, Any]]] = {
    "checkpoint": _checkpoint,
    "tier_read": _tier_read,
    "fio": _fio,
    "ib_write_bw": _ib_write_bw,
    "model_load": _model_load,
    "client": client_cell,
}
