"""The cells as far as the engine's host measures them by itself: its medium, its tools, the weights that its engine loads.

Called by probe.engine_host, so they are measured there wherever the driver is; their times are of that host's monotonic clock.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List

from probe.cells_io import read_tier, write_checkpoint
from probe.cells_tools import bandwidth_matrix, raw_fio
from probe.coldness import diskstats, drop_cache, mountstats
from probe.errors import ProbeError
from probe.files import read_json, walk_files


def measure(engine: Dict[str, Any], spec: Dict[str, Any], check: Callable[[], None]) -> Dict[str, Any]:
    """Measure one cell of MEASURES; return its row without the cell's name. `engine` and `spec` are the job file's; `check` raises to end it."""
    try:
        return dict({"cold": False}, **MEASURES[spec["cell"]](engine, spec, check))
    except (KeyError, TypeError, ValueError) as error:
        raise ProbeError("cell", "The settings of the cell %s are not usable: %s %s." % (spec["cell"], type(error).__name__, error)) from error


def weights(engine: Dict[str, Any], spec: Dict[str, Any], drop: bool) -> Dict[str, Any]:
    """Return {bytes, weight_files, disk, nfs} of what the engine loads. With `drop` it is put out of memory before: `proof` is what is resident.

    The weights are those that the engine loads: `engine.model_dir` of the job file; only of an engine without a model the cell's own `weights`.
    """
    folder = str(engine.get("model_dir") or spec["weights"])
    files = weight_files(folder)
    row: Dict[str, Any] = {"bytes": sum(os.path.getsize(name) for name in files), "weight_files": len(files)}
    if drop:
        row["proof"] = _without_list(drop_cache(folder, links=True))
    return dict(row, **_read_below(files))


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


def _checkpoint(engine: Dict[str, Any], spec: Dict[str, Any], check: Callable[[], None]) -> Dict[str, Any]:
    folder = _folder(engine, spec)
    before = diskstats(folder)
    return dict(write_checkpoint(folder, int(spec["bytes"]), check), disk_before=before, disk_after=diskstats(folder))


def _tier_read(engine: Dict[str, Any], spec: Dict[str, Any], check: Callable[[], None]) -> Dict[str, Any]:
    """Read stored KV files as the offload does, several at a time and past the page cache."""
    folder = str(spec.get("dir") or (engine.get("kv_dirs") or [""])[0])
    if not os.path.isdir(folder):
        raise ProbeError("cell", "This arm has no directory of KV files to read.")
    proof = _without_list(drop_cache(folder))
    before = diskstats(folder)
    row = read_tier(folder, int(spec["bytes"]), int(spec.get("threads") or 8), int(spec.get("block_bytes") or 4 << 20), check)
    row.update(proof=proof, disk_before=before, disk_after=diskstats(folder))
    row["cold"] = proof["resident_bytes"] == 0 and row["bytes"] == int(spec["bytes"])
    return row


def _fio(engine: Dict[str, Any], spec: Dict[str, Any], check: Callable[[], None]) -> Dict[str, Any]:
    return raw_fio(spec if spec.get("filename") else dict(spec, dir=_folder(engine, spec)), check)


def _ib_write_bw(_: Dict[str, Any], spec: Dict[str, Any], check: Callable[[], None]) -> Dict[str, Any]:
    return bandwidth_matrix(spec, check)


def _folder(engine: Dict[str, Any], spec: Dict[str, Any]) -> str:
    """Return the directory to write to: the one named, else the directory that holds the arm's KV directory."""
    kv_dirs = engine.get("kv_dirs") or []
    folder = spec.get("dir") or (os.path.dirname(str(kv_dirs[0])) if kv_dirs else "")
    if not folder or not os.path.isdir(str(folder)):
        raise ProbeError("cell", "The cell %s has no directory on this arm's medium." % spec["cell"])
    return str(folder)


def _without_list(found: Dict[str, Any]) -> Dict[str, Any]:
    keys: List[str] = ["dir", "fs_type", "source", "files", "bytes", "resident_bytes", "method"]
    return {key: found[key] for key in keys}


MEASURES: Dict[str, Callable[[Dict[str, Any], Dict[str, Any], Callable[[], None]], Dict[str, Any]]] = {
    "checkpoint": _checkpoint,
    "tier_read": _tier_read,
    "fio": _fio,
    "ib_write_bw": _ib_write_bw,
}
