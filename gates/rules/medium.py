"""Did the KV lie on the medium that the engagement declares for the arm: the mount, its file system and its source, seen at every check of the run.

A mount that is not there after a reboot leaves an empty folder on the system disk. KV that is stored in it is as cold, as much hit and as much
read from a device as any other, so no other claim would tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gates.model import ClaimResult, ClaimStatus
from gates.readers.strict import at
from gates.rules.claim import Finding, Findings, Run, each, fold, not_applicable, unknown
from gates.text import Text

_TRANSPORTS = {"tcp": "tcp", "rdma": "rdma", "fc": "fc", "pcie": "pcie", "local": "pcie"}  # words of arm.json, and the kernel's for the same
_FILES = ("job.json", "arm.json", "coldness.jsonl")


def _seen(data: Findings, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a check of a KV directory with the mount that counts: of a simulated rig what the simulated rack told (`rack`), if it did."""
    rack = row.get("rack")
    if not data.plan.rig.simulated or not isinstance(rack, Mapping):
        return row
    return {**row, **{key: rack.get(key) for key in ("fs_type", "source", "mount_point")}}


def on_its_medium(data: Findings, arm: str) -> ClaimResult:
    """Return whether each KV directory lay on the mount that the job was told of (`engine.media`), and every run of the arm on the same one.

    Evidence that does not tell leaves the claim unknown; only a simulated rig may have media that nobody describes. A breach is the rig's.
    """
    if not data.plan.arms.recovers(arm):
        return not_applicable("on_its_medium", arm, "This arm reads no stored KV.", "该对照组不读取已存的 KV。")

    first: dict[str | None, tuple[Run, tuple[str, str]]] = {}  # of each engine host

    def findings(run: Run) -> Iterator[Finding | None]:
        told = at(run.pack.job, "engine")
        media = told.get("media") if isinstance(told, dict) else None
        if media is None and isinstance(told, dict) and "media" in told and data.plan.rig.simulated:
            nothing = Text("The simulated site describes no medium, only its name.", "模拟站点只给出介质名称，未描述介质。")
            yield Finding(ClaimStatus.NOT_APPLICABLE, nothing, None, run.key)
            return
        rows = [_seen(data, row) for row in run.pack.coldness]
        yield from (_of_run(run, media, rows), _elsewhere(run, rows, first.get(run.host)))
        if place := _place(rows):
            first.setdefault(run.host, (run, place))

    return fold(data.plan, "on_its_medium", arm, each(data.places(arm), findings))


def _of_run(run: Run, media: Any, checks: Sequence[Mapping[str, Any]]) -> Finding:
    """Return what the checks of one run say."""
    dirs = at(run.pack.job, "engine", "kv_dirs")
    listed = [row for row in media if isinstance(row, dict)] if isinstance(media, list) else []
    declared = {str(row.get("dir")): row for row in listed}
    if not isinstance(dirs, list) or not dirs or sorted(declared) != sorted(map(str, dirs)) or len(listed) != len(dirs):
        return unknown(
            run,
            "job.json does not say on which medium each KV directory shall lie (targets.volume describes the media).",
            "job.json 未说明各 KV 目录应位于哪个介质（介质由 targets.volume 描述）。",
            files=("job.json",),
        )
    seen = {name: [row for row in checks if row.get("dir") == name] for name in declared}
    if any(not all(_checked(rows, when, tier) for when, tier in _wanted(run)) for rows in seen.values()):
        return unknown(
            run,
            "a check of a KV directory is missing, so where it lay is not known.",
            "缺少对 KV 目录的检查，无法得知其所在介质。",
            files=("coldness.jsonl",),
        )
    rows = [(row, declared[name]) for name, of_it in seen.items() for row in of_it]
    for row, wanted in rows:
        if not all(isinstance(row.get(key), str) and row[key] for key in ("mount_point", "fs_type", "source")):
            return unknown(
                run,
                "a check of a KV directory does not tell its mount point, file system and source.",
                "对 KV 目录的检查未给出挂载点、文件系统和来源。",
                files=("coldness.jsonl",),
            )
        if wrong := _wrong(row, wanted) or _another_transport(run, row):
            return Finding(ClaimStatus.BREACHED, wrong, None, run.key, row.get("tier"), tuple(run.pack.path(f) for f in _FILES))
    good = Text("{f} on {s}, mounted at {m}, as declared.", "位于 {s}（{f}，挂载于 {m}），与声明一致。")
    last = rows[0][0]
    reason = good.fill(f=last["fs_type"], s=str(last["source"])[:80], m=str(last["mount_point"])[:80])
    return Finding(ClaimStatus.HOLDS, reason, None, run.key, None, tuple(run.pack.path(f) for f in _FILES))


def _wanted(run: Run) -> Sequence[tuple[str, int | None]]:
    """Return the checks that a run must have made: after cooling, and before each measured tier."""
    tiers = () if run.phase == "soak" else run.tiers
    return (("after_cool", None), *(("before_tier", tier) for tier in tiers))


def _checked(rows: Sequence[Mapping[str, Any]], when: str, tier: int | None) -> bool:
    return any(row.get("when") == when and (tier is None or row.get("tier") == tier) for row in rows)


def _wrong(row: Mapping[str, Any], wanted: Mapping[str, Any]) -> Text | None:
    """Return where a KV directory lay instead, or None. What the declaration leaves open (a plain folder) is not held against anything."""
    kinds, sources = _names(wanted.get("fs_types")), _names(wanted.get("sources"))
    named = {str(row["source"]).rstrip("/"), *(name.rstrip("/") for name in _names(row.get("names")))}
    point = wanted.get("mount_point")
    if (
        (point is None or row["mount_point"] == point or point in named)
        and (not kinds or row["fs_type"] in kinds)
        and (not sources or named & {s.rstrip("/") for s in sources})
    ):
        return None
    text = Text(
        "the KV lay on {s} ({f}, mounted at {m}) and not on the declared medium ({ds}, {df}, mounted at {dm}).",
        "KV 位于 {s}（{f}，挂载于 {m}），并非所声明的介质（{ds}，{df}，挂载于 {dm}）。",
    )
    anything = Text("any", "不限")
    return text.fill(
        s=str(row["source"])[:80],
        f=row["fs_type"],
        m=str(row["mount_point"])[:80],
        ds=" / ".join(sources)[:160] or anything,
        df="/".join(kinds) or anything,
        dm=str(point)[:80] if point is not None else anything,
    )


def _another_transport(run: Run, row: Mapping[str, Any]) -> Text | None:
    """Return that the medium was reached in another way than arm.json says.

    Where the kernel tells none (a loop device, a client of its own), or arm.json uses a word of its own, nothing is held against it.
    """
    said, seen = run.pack.arm.get("transport"), _names(row.get("transports"))
    wanted = _TRANSPORTS.get(str(said).lower())
    if wanted is None or not seen or set(seen) == {wanted}:
        return None
    text = Text("the medium was reached by {s}; arm.json says {w}.", "介质经由 {s} 访问，而 arm.json 声明为 {w}。")
    return text.fill(s=", ".join(seen)[:60], w=str(said)[:60])


def _names(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _place(checks: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Return (mount point, file system) of a run's first check of a directory, where it tells them."""
    row: Mapping[str, Any] = next((row for row in checks if row.get("dir")), {})
    return (row["mount_point"], row["fs_type"]) if isinstance(row.get("mount_point"), str) and isinstance(row.get("fs_type"), str) else None


def _elsewhere(run: Run, checks: Sequence[Mapping[str, Any]], first: tuple[Run, tuple[str, str]] | None) -> Finding | None:
    """Return that a run lay on another mount than the first run of its arm: a plain folder has no declaration that would tell."""
    place = _place(checks)
    if first is None or place is None or place == first[1]:
        return None
    text = Text("the KV lay on {f} at {m}; in {r} it lay on {of} at {om}.", "KV 位于 {m}（{f}）；{r} 中位于 {om}（{of}）。")
    reason = text.fill(f=place[1], m=place[0][:80], r=first[0].shown, of=first[1][1], om=first[1][0][:80])
    return Finding(ClaimStatus.BREACHED, reason, None, run.key, None, (run.pack.path("coldness.jsonl"),))
