"""Soaks made to measure: one figure of each at a value that a test chooses, everything else as it should be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.bundles import Evidence, record_injection
from tests.bundles.job import MODEL_LABELS, ticked
from tests.unit.gates.even_soak import BETWEEN, PAGE, PERIOD, WINDOW, WINDOWS, S, Soak

KIB, MS = 1024, 10**6
HITS = f"vllm:external_prefix_cache_hits_total{MODEL_LABELS}"


def load(**more: Any) -> Evidence:
    return Soak().load(**more).samples().evidence


def samples(edit: Callable[[int, dict[str, Any]], None], **more: Any) -> Evidence:
    return Soak().load().samples(edit, **more).evidence


def restarts(number: int) -> Evidence:
    soak = Soak().load(paused=(3, 6)[:number]).samples()
    lows = [soak.start + w * WINDOW - BETWEEN for w in (3, 6)[:number]]
    rows = [{"event": f"load_gap:b007-0001:{low}", "kind": "site_fault", "text": "断电", "approved": True, "missing": []} for low in lows]
    return soak.evidence.inputs(lambda d: d.update(rig_causes=rows))


def failures(number: int) -> Evidence:
    return load(failed={(n % WINDOWS, 10 + n // WINDOWS) for n in range(number)})


def in_a_row(number: int) -> Evidence:
    return load(failed={(5, k) for k in range(number)})


def straight(value: Callable[[int], int], off: int) -> Callable[[int], int]:
    """Move one of the middle two windows: that moves the level by half as much, and the slope not at all."""
    return lambda w: value(w) + off * (w == 5)


def uneven(middle: int, apart: int, off: int) -> Callable[[int], int]:
    """Spread the first and the last five windows by `apart`, the upper end moved by `off`."""
    shape = {0: -apart // 2, 1: apart // 2 + off, 7: -apart // 2, 8: apart // 2 + off}
    return lambda w: middle + shape.get(w, 0)


def rising(middle: int, step: int, off: int) -> Callable[[int], int]:
    """Let the first and the last five windows rise along a line."""
    line = {w + first: (w - 2) * step + off * (w == 4) for first in (0, 7) for w in range(5)}
    return lambda w: middle + line.get(w, 0)


def leak(free_kib: int) -> Evidence:
    def grow(n: int, row: dict[str, Any]) -> None:
        row["engine"]["rss_bytes"] = (10_000 + n) * PAGE
        row["host"]["mem_available_bytes"] = free_kib * KIB

    return samples(grow)


def handles(name: str) -> Callable[[int], Evidence]:
    """One more with each sample is 17280 more in 30 days; sample 156 is the middle one behind the warm-up."""
    return lambda level: samples(lambda n, row: row["engine"].update({name: level + n - 156}))


def files_of_the_tier(level: int) -> Evidence:
    return samples(lambda n, row: row.update(kv_dir_bytes=level + n - 156))


def fading(off: int) -> Evidence:
    """Let the tier's share of twelve windows fall along a line by a tenth of its middle; the tokens of a middle window are moved by `off`.

    Twenty requests of 32768 stored tokens are answered in a window.
    """
    grown = [(231 - 2 * w) * 2800 + off * (w == 5) for w in range(WINDOWS)]
    so_far = [sum(grown[: w + 1]) for w in range(WINDOWS)]

    def edit(n: int, row: dict[str, Any]) -> None:
        window = min((n - 1) * PERIOD // WINDOW, WINDOWS - 1)
        row["metrics"] = dict.fromkeys(row["metrics"], str(so_far[window] if n else 0))

    return Soak({"validity": {"external_hits_min": "0.9"}}).load().samples(edit).evidence


def recovered(off: int) -> Evidence:
    """Let the tier have served three quarters of what the load had stored, and `off` tokens more; the GPU cache served none.

    Of the 250 requests one asked a prefix that was never stored.
    """
    tokens = 249 * 32768 * 3 // 4 + off
    soak = Soak({"validity": {"external_hits_min": "0.75"}}).load()
    soak.samples(lambda n, row: row["metrics"].update({HITS: str(tokens * min(n, WINDOWS * WINDOW // PERIOD) // (WINDOWS * WINDOW // PERIOD))}))

    def around(rows: list[dict[str, Any]]) -> None:
        before = next(row["metrics"][HITS] for row in rows if (row["when"], row["phase"]) == ("before", "soak"))
        for row in rows:
            if (row["when"], row["phase"]) == ("after", "soak"):
                row["metrics"][HITS] = str(int(float(before)) + tokens)

    return soak.evidence.lines("soak", "counters.jsonl", around)


def busy(thousandths: int) -> Evidence:
    return load().json(
        "soak",
        "client.json",
        lambda d: d.update(cpu_s=thousandths / 100, wall_s=10, **ticked(1000)),
    )


def silence(last: int, following: int, length: int) -> Callable[[int], Evidence]:
    """Let no sample come for `length` ns (and as many more as asked for) behind the sample `last`."""

    def made(off: int) -> Evidence:
        soak = Soak().load()
        moved = soak.start + last * PERIOD + length + off
        return soak.samples(lambda n, row: row.update(mono_ns=moved) if n == following else None, silent=(last, following)).evidence

    return made


def injected(failed: int) -> Evidence:
    planned = {"label": "pull", "action": "pull-path", "at": "5 h", "lasts": "1 min"}
    soak = Soak({"g4": {"injections": [planned]}}).load(failed=[(5, 3)][:failed]).samples()
    begun = soak.start + 5 * WINDOW + S
    return record_injection(soak.evidence, "pull", begun, begun + S)


def answers(wrong: int) -> Evidence:
    def edit(rows: list[dict[str, Any]]) -> None:
        rows[0]["detail"]["other_answers"] = [161] * wrong

    return load().lines("soak", "events.jsonl", edit)


def without(files: int) -> Evidence:
    evidence = load()
    return evidence.drop(evidence.path("soak", "client.json")) if files else evidence


def another_process(number: int) -> Evidence:
    return samples(lambda n, row: row["engine"].update(pid=row["engine"]["pid"] + number * (n > 100)))


def counted(number: int) -> Evidence:
    return samples(lambda n, row: row["counters"].update(aer_fatal=number * (n > 100)))


def idle(claims: int) -> Evidence:
    return samples(lambda n, row: row.update(metrics=dict.fromkeys(row["metrics"], "0")) if claims else None)
