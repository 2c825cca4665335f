"""`fio --output-format=json`: every job, both directions, with the lines that fio writes before its JSON kept as evidence.

Observations, labelled `job`, `device` and `direction` (read, write; `n` from the second job of one name on): io.error (1),
io.bandwidth (B/s), io.iops (1/s), io.operations (1), io.short, io.dropped (1), io.latency_samples (1), io.latency_p99 (ns), io.runtime (ms),
io.steady_state (1 or 0), io.mode (text: fio's own word for what the job did: read, randread, write, randwrite, rw, randrw, trim, ...). A job that
does not tell its mode, or that moved data in a direction in which its mode moves none, is a problem: its figures may be of another work.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from gates.model import Reading
from gates.readers.common import Collector, exact, load_json, part, rows

KIB = 1024
MS_PER_S = 1000
NS_PER_US = 1000
_BEFORE_3 = re.compile(r"fio-[12]\b")
# Option `rw` (alias `readwrite`) of fio(1), and in which directions each moves data. What stands behind a colon says how offsets go on.
_MODES: dict[str, frozenset[str]] = {
    **dict.fromkeys(("read", "randread"), frozenset({"read"})),
    **dict.fromkeys(("write", "randwrite", "trimwrite", "randtrimwrite"), frozenset({"write"})),
    **dict.fromkeys(("rw", "readwrite", "randrw"), frozenset({"read", "write"})),
    **dict.fromkeys(("trim", "randtrim"), frozenset()),
}
_ONE_NAME = {"readwrite": "rw"}
ROUNDING = Decimal("0.001")  # fio tells its runtime in whole milliseconds


def read_fio(data: bytes) -> Reading:
    """Read one fio result. Text before the JSON, an error code, no samples, or a unit conflict are problems."""
    found = Collector()
    document = load_json(data, found)
    if document is None:
        return found.reading()
    jobs = rows(document, "jobs")
    if not jobs:
        found.trouble("zero_samples", "fio's result names no job: nothing was measured.", "fio 结果中没有任何作业：没有进行测量。")
    version = part(document, "fio version")
    if isinstance(version, str):
        found.see("io.tool_version", version, "text")
    alike: dict[tuple[str, str], int] = {}  # with --numjobs several jobs bear one name and one device, and each has figures of its own
    for job in jobs:
        device = part(job, "job options", "filename") or part(document, "global options", "filename")
        key = (str(job.get("jobname")), device if isinstance(device, str) else "")
        alike[key] = alike.get(key, 0) + 1
        if (part(job, "job options", "direct") or part(document, "global options", "direct")) == "0":
            found.trouble(
                "buffered",
                "fio job {job} ran with direct=0: its figures are those of the page cache.",
                "fio 作业 {job} 以 direct=0 运行：数值来自页缓存。",
                job=key[0],
            )
        _in_nanoseconds(job, version)
        labels = {"job": key[0], "device": key[1]} | ({"n": str(alike[key])} if alike[key] > 1 else {})
        _job(job, labels, _mode(job, document, labels, found), found)
    return found.reading()


def _in_nanoseconds(job: dict[str, Any], version: Any) -> None:
    """Give a job of a fio before 3.0 the completion latency as later ones tell it: those wrote `clat` in microseconds, and no count of samples.

    Of every other version that lacks `clat_ns`, the latency stays missing: its unit is not known.
    """
    if not (isinstance(version, str) and _BEFORE_3.match(version)):
        return
    for direction in ("read", "write"):
        side = job.get(direction)
        old = side.get("clat") if isinstance(side, dict) and "clat_ns" not in side else None
        if isinstance(side, dict) and isinstance(old, dict):
            tails = {key: exact(value) for key, value in (part(old, "percentile") or {}).items()} if isinstance(part(old, "percentile"), dict) else {}
            side["clat_ns"] = {"N": side.get("total_ios"), "percentile": {key: v * NS_PER_US for key, v in tails.items() if v is not None}}


def _mode(job: dict[str, Any], document: Any, labels: dict[str, str], found: Collector) -> str | None:
    """Return what a job did, by its own option or the global one; None with a problem where that is not told or not known."""
    told = next((mode for place in (part(job, "job options"), part(document, "global options")) if (mode := _told_mode(place)) is not None), None)
    name = told.partition(":")[0].strip() if isinstance(told, str) else None
    mode = _ONE_NAME.get(name, name) if name is not None else None
    if mode in _MODES:
        found.see("io.mode", mode, "text", **labels)
        return mode
    found.trouble(
        "unknown_mode",
        "fio job {job} does not tell what it did: its option rw is {mode}.",
        "fio 作业 {job} 未说明读写方式：其选项 rw 为“{mode}”。",
        job=labels["job"],
        mode="-" if told is None else told,
    )
    return None


def _told_mode(options: Any) -> Any:
    """Return the option `rw` under either of its names; where both stand and differ, both words, which are no mode."""
    given = [options[key] for key in ("rw", "readwrite") if key in options] if isinstance(options, dict) else []
    return None if not given else given[0] if all(mode == given[0] for mode in given) else " / ".join(map(str, given))


def _job(job: dict[str, Any], labels: dict[str, str], mode: str | None, found: Collector) -> None:
    name = labels["job"]
    error = found.number(job, "error", "io.error", "1", **labels)
    if error:
        found.trouble("io_error", "fio job {job} ended with error {error}.", "fio 作业 {job} 以错误 {error} 结束。", job=name, error=error)
    if "job_runtime" in job:
        found.number(job, "job_runtime", "io.runtime", "ms", **labels)
    moved = False
    for direction in ("read", "write"):
        side = job.get(direction)
        if isinstance(side, dict) and exact(side.get("total_ios")) != 0:
            if mode is not None and direction not in _MODES[mode]:
                found.trouble(
                    "mode_conflict",
                    "fio job {job} ran as {mode}, and its result tells of {direction} operations.",
                    "fio 作业 {job} 以“{mode}”方式运行，结果中却有“{direction}”操作。",
                    **_in_words({**labels, "direction": direction}),
                    mode=mode,
                )
                moved = True  # something was: what, nobody can tell
                continue
            moved = _side(side, found, {**labels, "direction": direction}) or moved
    if not moved:
        found.trouble("zero_samples", "fio job {job} moved no data: there is no sample.", "fio 作业 {job} 没有任何读写：无样本。", job=name)
    steady = job.get("steadystate")
    if isinstance(steady, dict):
        attained = exact(steady.get("attained"))
        found.see("io.steady_state", Decimal(1 if attained == 1 else 0), "1", **labels)
        if attained != 1:
            found.trouble("not_steady", "fio job {job} did not reach its steady state.", "fio 作业 {job} 未达到稳态。", job=name)


def _side(side: dict[str, Any], found: Collector, labels: dict[str, str]) -> bool:
    """Read one direction and tell whether it holds samples."""
    operations = found.number(side, "total_ios", "io.operations", "1", **labels)
    if not _adds_up(side, found, labels):
        return operations is not None
    _bandwidth(side, found, labels)
    found.number(side, "iops", "io.iops", "1/s", **labels)
    for key, quantity in (("short_ios", "io.short"), ("drop_ios", "io.dropped")):
        if key in side:
            found.number(side, key, quantity, "1", **labels)
    latency = side.get("clat_ns")
    samples = exact(part(latency, "N"))
    if latency is None:
        found.absent("clat_ns", None, **labels)
        return operations is not None
    if samples is None or samples <= 0:
        found.trouble(
            "zero_samples",
            "fio job {job} holds no latency sample ({direction}).",
            "fio 作业 {job} 没有时延样本（{direction}）。",
            **_in_words(labels),
        )
        return False
    found.see("io.latency_samples", samples, "1", **labels)
    p99 = exact(part(latency, "percentile", "99.000000"))
    if p99 is not None and p99 > 0:
        found.see("io.latency_p99", p99, "ns", **labels)
    else:
        raw = part(latency, "percentile", "99.000000")
        found.absent("clat_ns.percentile.99.000000", None if raw is None else str(raw), **labels)
    return operations is not None


def _adds_up(side: dict[str, Any], found: Collector, labels: dict[str, str]) -> bool:
    """Tell whether the rates are what bytes and operations over the runtime give: fio divides these very figures.

    A fio before 3 counts `io_bytes` in KiB and has no `bw_bytes` to hold against it. A rate that is not there is told by whoever reads it.
    """
    runtime = exact(side.get("runtime"))
    if runtime is None or runtime <= 0:
        return True
    for rate, total in (("bw_bytes", "io_bytes"), ("iops", "total_ios")):
        told, over = exact(side.get(rate)), exact(side.get(total))
        if told is None or over is None:
            continue
        given = over * MS_PER_S / runtime
        if abs(told - given) > max(given * ROUNDING, Decimal(1)):
            found.trouble(
                "statistics_conflict",
                "{rate} of job {job} ({direction}) is {told}, and {total} {over} in {runtime} ms give {given}.",
                "作业 {job}（{direction}）的 {rate} 为 {told}，而 {runtime} ms 内 {total} 为 {over}，折合 {given}。",
                **_in_words(labels),
                rate=rate,
                told=told,
                total=total,
                over=over,
                runtime=runtime,
                given=given.quantize(Decimal("0.1")),
            )
            return False
    return True


def _bandwidth(side: dict[str, Any], found: Collector, labels: dict[str, str]) -> None:
    """Read B/s: `bw_bytes`, or for old versions `bw`, which is KiB/s. Both, when given, must tell the same."""
    exactly, kib = exact(side.get("bw_bytes")), exact(side.get("bw"))
    if exactly is None and kib is None:
        found.absent("bw_bytes", side.get("bw_bytes"), **labels)
        return
    if exactly is None and kib is not None:
        found.see("io.bandwidth", kib * KIB, "B/s", **labels)
        return
    if exactly is not None and kib is not None and abs(kib * KIB - exactly) > KIB:
        found.trouble(
            "unit_conflict",
            "bw_bytes {a} and bw {b} KiB/s of job {job} do not agree.",
            "作业 {job} 的 bw_bytes {a} 与 bw {b} KiB/s 不一致。",
            a=exactly,
            b=kib,
            job=labels["job"],
        )
        return
    if exactly is not None and exactly >= 0:
        found.see("io.bandwidth", exactly, "B/s", **labels)
    else:
        found.absent("bw_bytes", side.get("bw_bytes"), **labels)


def _in_words(labels: dict[str, str]) -> dict[str, str]:
    return {"job": labels["job"], "direction": labels["direction"]}
