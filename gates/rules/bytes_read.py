"""Were the bytes really read that the recovered KV takes: by the engine's process, and below it by the block device or the NFS mount."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from gates.model import ClaimResult, ClaimStatus
from gates.plan import Plan
from gates.readers.prometheus import Sources, failures_to_load
from gates.readers.strict import exact
from gates.rules import doubtful
from gates.rules.claim import Finding, Findings, Run, each, fold, holds, not_applicable, unknown
from gates.rules.cold import ON_A_DISK, account, no_account, read_between
from gates.rules.estimates import percent
from gates.rules.failures_counted import grown
from gates.text import Text

_NFS = Text("NFS mount", "NFS 挂载")  # its counters are the mount's own: nobody else reads through it
_SECTOR = 512


def device_bytes(data: Findings, arm: str) -> ClaimResult:
    """Bytes that the engine process read from storage, over hit tokens x KV bytes per token; block device or NFS mount must have read them too."""
    if not data.plan.arms.recovers(arm):
        return not_applicable("device_bytes", arm, "This arm reads no stored KV.", "该对照组不读取已存的 KV。")
    low, high = data.plan.validity.device_bytes_ratio

    def findings(run: Run) -> Iterator[Finding]:
        per_token = exact(run.pack.engine.get("kv_bytes_per_token"))
        for tier in run.tiers:
            tokens, pair = account(run, tier), run.pack.counter_pair("measure", tier)
            if tokens is None:
                yield no_account(run, tier)
            elif tokens.external == 0:  # the claim external_hits says what that means
                nothing = Text("No KV was recovered, so no bytes are expected.", "未恢复任何 KV，因此没有预期的读取字节。")
                yield Finding(ClaimStatus.NOT_APPLICABLE, nothing, None, run.key, tier)
            elif per_token is None or per_token <= 0:
                yield unknown(
                    run,
                    "no KV bytes are expected, so nothing can be compared.",
                    "没有预期的 KV 字节可供比较。",
                    tier=tier,
                    files=("engine.json",),
                )
            else:
                found = _bytes_read(run, tier, pair, tokens.external * per_token, (low, high), data.plan.validity.account_ratio_max)
                fault = _products_own(run, tier, pair, tokens, per_token, data.plan) if arm == "candidate" else None
                yield Finding(ClaimStatus.NOT_APPLICABLE, fault, None, run.key, tier) if fault and found.status is ClaimStatus.BREACHED else found

    return fold(data.plan, "device_bytes", arm, each(data.places(arm), findings))


def _products_own(
    run: Run, tier: int, pair: tuple[dict[str, Any], dict[str, Any]] | None, tokens: Sources, per_token: Decimal, plan: Plan
) -> Text | None:
    """Return the fault of the product that explains why other bytes were read than the recovered KV takes, or None. A check of its own fails for it.

    KV that was read whole and then not used is more than was recovered, at most all that was asked for. KV whose load failed after it was counted
    as found is less: by what the failed requests asked for, or, where the engine counts failed loads, by what nobody can say.
    """
    low, high = plan.validity.device_bytes_ratio
    read, requests = read_between(pair, "engine_io", "read_bytes"), run.pack.of("measure", tier)
    if read is None or pair is None:
        return None
    wanted = len(requests) * plan.workload.context_tokens
    if tokens.external < plan.validity.external_hits_min * wanted and tokens.external * per_token * high < read <= wanted * per_token * high:
        return Text("More KV was read than was recovered; the share recovered tells it.", "读取的 KV 多于恢复的 KV；由恢复比例检查说明。")
    failed = sum(r.failure is not None for r in requests)
    least = max(tokens.external - failed * plan.workload.context_tokens, Decimal(0))
    if read >= tokens.external * per_token * low:
        return None  # what read too little lies below the process: nothing of the product explains that
    lost = [more for _, more in grown(run, "measure", tier, failures_to_load) if more]
    if lost or (failed and read >= least * per_token * low):
        return Text(
            "Less KV was read than was found, as loads or requests failed; their own checks tell it.",
            "部分加载或请求失败，读取的 KV 少于命中量；由相应检查说明。",
        )
    return None


def _bytes_read(
    run: Run, tier: int, pair: tuple[dict[str, Any], dict[str, Any]] | None, expected: Decimal, band: tuple[Decimal, Decimal], ceiling: Decimal
) -> Finding:
    """Judge by the process's own counter; what lies below it, which others may use too, must then not have read less, nor beyond all measure."""
    files = (run.pack.path("counters.jsonl"),)
    process = read_between(pair, "engine_io", "read_bytes")
    if process is None:
        return unknown(
            run,
            "the engine process's own reads were not counted (/proc/PID/io, which its user and root may read).",
            "未记录引擎进程自身的读取量（/proc/PID/io，须以其用户或 root 读取）。",
            tier=tier,
            files=("counters.jsonl",),
        )
    name, below = _below(run, pair)
    if below is None and name is not None:
        return unknown(run, f"the reads of the {name.en} were not counted.", f"未记录{name.zh}的读取量。", tier=tier, files=("counters.jsonl",))
    own, device = Decimal(process) / expected, None if below is None else Decimal(below) / expected
    most = ceiling if name is _NFS else doubtful.BESIDE
    if device is not None and name is not None and (odd := doubtful.device_units(run, tier, name, device, most)):
        return odd
    reason = Text(
        "{p} of the bytes that the recovered KV takes were read{d} ({l} to {h} allowed).", "实际读取为恢复 KV 应有字节的 {p}{d}（允许 {l} 至 {h}）。"
    ).fill(
        p=percent(own, *band),
        d=Text(f" ({name.en}: {percent(device)})", f"（{name.zh}：{percent(device)}）") if device is not None and name is not None else Text("", ""),
        l=percent(band[0]),
        h=percent(band[1]),
    )
    ok = band[0] <= own <= band[1] and (device is None or device >= band[0])
    return Finding(holds(ok), reason, own, run.key, tier, files)


def _below(run: Run, pair: tuple[dict[str, Any], dict[str, Any]] | None) -> tuple[Text | None, int | None]:
    """Return what must have read the bytes below the process and how many it read, by the kind of file system; a foreign kind has neither."""
    kinds = {str(row["fs_type"]) for row in run.pack.coldness if row.get("fs_type")}
    if any(kind.startswith("nfs") for kind in kinds):
        return _NFS, read_between(pair, "nfs", "server_read_bytes")
    sectors = read_between(pair, "diskstats", "read_sectors")
    if sectors is None and not kinds & set(ON_A_DISK) and kinds:
        return None, None
    return Text("block device", "块设备"), None if sectors is None else sectors * _SECTOR
