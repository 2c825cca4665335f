"""What the storage network's ports counted while something was measured: pauses and errors of the link. Told beside what decides (acceptance 4).

A run or soak may bring `ports.json` (docs/evidence-format.md): {job, readings: [{when: before|after, mono_ns, boot_id, ports: {port: {pauses_us:
{rx_prio3: us}, errors: {name: count}, corrected: {name: bits}, bit_per_s: speed}}}]}. It says something of the rig alone, so it is answered
whatever the claims say; real time on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from gates import declared_common, remedies
from gates.bundle import Bundle
from gates.model import CheckResult, Verdict
from gates.plan import Plan
from gates.readers.strict import Reader, at, count
from gates.rules.claim import Run
from gates.rules.estimates import beside, percent
from gates.steps import during, run_name
from gates.text import Text

FILE = "ports.json"
CORRECTED = "rx_corrected_bits_phy"
_US = 1000  # nanoseconds
_SILENT = Text("{n} of {m} runs do not tell what their ports counted, before and after.", "{m} 轮中有 {n} 轮未给出端口前后计数。")


@dataclass(frozen=True)
class Grown:
    """By how much the counters of one run's ports grew, (port, name) -> growth, and within how many nanoseconds."""

    run: str
    counters: Mapping[tuple[str, str], int]
    ns: int
    speeds: Mapping[str, int]  # bit/s of each port, of those that tell the same one at both readings


def port_checks(gate: str, plan: Plan, bundle: Bundle, runs: Sequence[Run]) -> tuple[CheckResult | dict[str, Any], ...]:
    """Return the advisory checks of pauses and of errors over all runs; an entry for what no run tells."""
    views = {(run.key, view.host): view for run in runs for view in run.places}
    brought = {key: view for key, view in views.items() if bundle.has(view.pack.path(FILE))}
    rows = {key: _read(bundle, view) for key, view in brought.items()}
    out: list[CheckResult | dict[str, Any]] = []
    for what, declared, answer in (
        ("pauses_us", declared_common.pauses(gate), _pauses),
        ("errors", declared_common.port_errors(gate), _errors),
        ("corrected", declared_common.corrected_bits(gate), _corrected),
    ):
        told = {key: pair for key, pair in rows.items() if pair is None or any(_counted(row, what) for row in pair)}
        if not told:
            out.append(declared.not_told(plan))
            continue
        blank = declared.blank(plan, evidence=tuple(dict.fromkeys(view.pack.path(FILE) for view in brought.values())))
        grown = {key: _growth(", ".join(filter(None, key)), told.get(key), what) for key in views}
        silent = tuple(dict.fromkeys(view.pack.path(FILE) for key, view in views.items() if grown[key] is None))
        if silent:
            out.append(replace(blank, reason=_SILENT.fill(n=len(silent), m=len(runs)), change=remedies.told(silent)))
        else:
            out.append(answer(plan, blank, [one for one in grown.values() if one is not None]))
    return tuple(out)


def _pauses(plan: Plan, blank: CheckResult, runs: Sequence[Grown]) -> CheckResult:
    """Hold the worst port of the worst run against the plan; any pause of another priority than the lossless one is a fault of the fabric."""
    limit, lossless = plan.validity.pause_share_max, f"_prio{plan.g1.link.pfc_priority}"
    strange = sorted((run.run, port, way) for run in runs for (port, way), us in run.counters.items() if us and not way.endswith(lossless))
    if strange:
        key, port, _ = strange[0]
        ways = ", ".join(way for one, name, way in strange if (one, name) == (key, port))
        reason = Text(
            "{p} was paused in {s} during {r}; the plan makes priority {q} lossless.", "{r}期间 {p} 在 {s} 上出现暂停；计划的无损优先级为 {q}。"
        )
        return replace(blank, verdict=Verdict.FAIL, reason=reason.fill(p=port, s=ways, r=during(key), q=plan.g1.link.pfc_priority))
    shares = [(Fraction(us * _US, run.ns), port, way, run.run) for run in runs for (port, way), us in run.counters.items()]
    share, port, way, key = max(shares)
    value = beside(share, limit, 6)
    reason = Text(
        "The ports were paused for at most {v} of the time ({p}, {w}, {r}; at most {l}).", "端口暂停时间占比最高为 {v}（{p}，{w}，{r}；上限 {l}）。"
    )
    reason = reason.fill(p=port, w=way, r=run_name(key), v=percent(share, limit, places=3), l=percent(limit))
    verdict = Verdict.PASS if share <= Fraction(limit) else Verdict.FAIL
    return replace(blank, verdict=verdict, reason=reason, value=value, margin=limit - value)


def _errors(_: Plan, blank: CheckResult, runs: Sequence[Grown]) -> CheckResult:
    """Count what grew: a link that is up and counts errors is no good link."""
    grown = [(run.run, port, name, more) for run in runs for (port, name), more in run.counters.items() if more]
    total = Decimal(sum(more for *_, more in grown))
    if grown:
        key, port, name, more = max(grown, key=lambda row: row[3])
        reason = Text(
            "The ports counted {t} errors, most of them {n} of {p}: {m} during {r}.", "端口新增错误 {t} 个，其中最多为 {p} 的 {n}：{r}期间 {m} 个。"
        )
        return replace(blank, verdict=Verdict.FAIL, reason=reason.fill(t=total, n=name, p=port, m=more, r=during(key)), value=total, margin=-total)
    ports = len({port for run in runs for port, _ in run.counters})
    reason = Text("No port counted an error (ports: {n}, runs: {m}).", "{n} 个端口在 {m} 轮中均无新增错误。").fill(n=ports, m=len(runs))
    return replace(blank, verdict=Verdict.PASS, reason=reason, value=total, margin=total)


def _corrected(plan: Plan, blank: CheckResult, runs: Sequence[Grown]) -> CheckResult:
    """Hold the bit error ratio before FEC of the worst port of the worst run against the plan; a lane with most of the raw errors is named."""
    limit = plan.validity.corrected_ber_max
    rows = [(run, port, bits) for run in runs for (port, name), bits in run.counters.items() if name == CORRECTED]
    slow = sorted({port for run, port, _ in rows if port not in run.speeds})
    untold = sorted({port for run in runs for port, _ in run.counters} - {port for _, port, _ in rows})
    if slow or untold or not rows:
        words = {"p": (untold or slow or [""])[0], "n": CORRECTED}
        nothing = Text("{p} does not tell {n}.", "{p} 未给出 {n}。") if untold else Text("{p} does not tell one speed.", "{p} 未给出前后一致的速率。")
        return replace(blank, reason=nothing.fill(**words), change=remedies.told(blank.evidence))
    ratio, port, run, bits = max(
        ((Fraction(bits * 10**9, run.speeds[port] * run.ns), port, run, bits) for run, port, bits in rows), key=lambda row: (row[0], row[1])
    )
    lanes = {name: more for (one, name), more in run.counters.items() if one == port and name != CORRECTED}
    lane = max(lanes, key=lambda name: lanes[name], default="")
    value = beside(ratio, limit, 15)
    reason = Text(
        "FEC corrected at most {v} of a port's bits ({p}, {r}: {b} bits{w}; at most {l}).",
        "FEC 纠正的比特占比最高为 {v}（{p}，{r}：{b} 比特{w}；上限 {l}）。",
    ).fill(
        p=port,
        r=run_name(run.run),
        b=bits,
        v=f"{value:.2e}",
        l=f"{limit:.2e}",
        w=Text(f", most on {lane}", f"，{lane} 最多") if lanes and lanes[lane] else "",
    )
    return replace(blank, verdict=Verdict.PASS if ratio <= Fraction(limit) else Verdict.FAIL, reason=reason, value=value, margin=limit - value)


def _read(bundle: Bundle, run: Run) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the reading before and the one after, or None where the file does not hold one of each, in this order, of one boot of the host.

    A file that does not name the run's own job is of another run, or may be.
    """
    reader = Reader(bundle, run.pack.path("").rstrip("/"))
    told = reader.document(FILE)
    rows = told.get("readings") if told.get("job") == run.pack.job.get("job") else None
    own = [row for row in rows if at(row, "on", "host") == run.host] if isinstance(rows, list) else []
    if reader.problems or [at(row, "when") for row in own] != ["before", "after"]:
        return None
    before, after = own
    return (before, after) if before.get("boot_id") == after.get("boot_id") else None


def _growth(key: str, pair: tuple[dict[str, Any], dict[str, Any]] | None, what: str) -> Grown | None:
    """Return what grew in between, or None where a port or a counter is told once only, is no count, or went back."""
    if pair is None:
        return None
    (before, after), (low, high) = pair, (count(row.get("mono_ns")) for row in pair)
    first, second = _counted(before, what), _counted(after, what)
    if low is None or high is None or high <= low or not first or second is None or first.keys() != second.keys():
        return None
    grown = {name: second[name] - value for name, value in first.items()}
    speeds = {port: count(at(before, "ports", port, "bit_per_s")) for port, _ in first}
    same = {port: speed for port, speed in speeds.items() if speed and speed == count(at(after, "ports", port, "bit_per_s"))}
    return None if min(grown.values()) < 0 else Grown(key, grown, high - low, same)


def _counted(row: Mapping[str, Any], what: str) -> dict[tuple[str, str], int] | None:
    """Return {(port, name): count} of one reading, or None where something of it is no count."""
    out: dict[tuple[str, str], int] = {}
    ports = row.get("ports")
    for port in ports if isinstance(ports, Mapping) else ():
        told = at(ports, port, what)
        if not isinstance(told, Mapping):
            return None
        for name, value in told.items():
            number = count(value)
            if number is None:
                return None
            out[(port, name)] = number
    return out
