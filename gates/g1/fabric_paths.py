"""The NVMe-oF paths of the engine hosts, by `nvme list-subsys`: transport and number of live paths of each subsystem, where the plan names them.

G1 asks it of the survey, where the array is connected at arrival already; G2 of the deployment, which connects it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.declared import Declared
from gates.declared_fabric import TOOL, wanted_by
from gates.g1.pack import Answer, HostPack
from gates.model import CheckResult
from gates.rules.findings import Finding, bad, conclude, doubtful, good, left_out, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

_LOCAL, _LIVE = "pcie", "live"
_CONNECTED = Text(
    "the array connected on {h} (nvme connect) before its paths are read would tell; where the deployment connects it, g2.fabric is the place",
    "在读取路径之前于 {h} 连接阵列方可判定；由部署步骤连接时，请在计划的 g2.fabric 中约定",
)
_UNASKED = Text("The plan does not name it ({f}), so it was not asked.", "计划未约定此项（{f}），未作检查。")
Paths = dict[str, tuple[str | None, str | None]]  # controller -> transport and state


def fabric_path_checks(
    plan: Plan, gate: str, declared: tuple[Declared, Declared], packs: Mapping[str, HostPack]
) -> Iterator[CheckResult | dict[str, Any]]:
    """Return both checks over the packs of the engine hosts; the entry of one that the plan does not name."""
    wanted = wanted_by(plan, gate)
    asks: tuple[tuple[object, Callable[[str, str, Paths, str], Finding], Text], ...] = (
        (
            wanted.transport,
            lambda *of: _transport(str(wanted.transport), *of),
            Text("Every NVMe-oF path is {w} (subsystems: {n}).", "全部 NVMe-oF 路径均为 {w}（子系统：{n}）。"),
        ),
        (
            wanted.paths,
            lambda *of: _number(int(wanted.paths or 0), *of),
            Text("Every subsystem has {w} live paths (subsystems: {n}).", "各子系统均有 {w} 条 live 路径（子系统：{n}）。"),
        ),
    )
    for one, (value, ask, passed) in zip(declared, asks, strict=True):
        if value is None:
            yield left_out(one.id, one.heading(plan), _UNASKED.fill(f=one.source))
            continue
        findings = [finding for host, pack in packs.items() for finding in _of_host(host, pack, ask)]
        values = [f.value for f in findings if f.value is not None]
        bound = one.limit(plan).high
        worst = max(values, key=lambda seen: abs(seen - bound), default=None) if isinstance(bound, Decimal) else None
        margin = None if worst is None or not isinstance(bound, Decimal) else -abs(worst - bound)
        yield conclude(one.blank(plan), findings, passed=passed, words={"w": value}, value=worst, margin=margin)


def _of_host(host: str, pack: HostPack, ask: Callable[[str, str, Paths, str], Finding]) -> Iterator[Finding]:
    if pack.trouble:
        yield unknown("{why}", "{why}", why=pack.trouble)
        return
    answers = pack.answers(TOOL)
    if not answers:
        yield unknown("{h} did not run {t}", "{h} 未执行 {t}", pack.path("commands.json"), h=host, t=TOOL)
    for answer in answers:
        troubles = [p for p in answer.problems if p.code != "nothing_found"]
        subsystems = {} if troubles else _subsystems(answer)
        if troubles:
            yield doubtful(host, troubles, answer.path)
        elif not subsystems:
            text = "{h}: no NVMe-oF subsystem is connected", "{h}：未连接任何 NVMe-oF 子系统"
            yield unknown(*text, answer.path, remedy=_CONNECTED.fill(h=host), h=host)
        for name, paths in subsystems.items():
            yield ask(host, name, paths, answer.path)


def _subsystems(answer: Answer) -> dict[str, Paths]:
    """Return the subsystems over a fabric: {name: {controller: (transport, state)}}. Drives of the host itself are none."""
    told: dict[str, dict[str, str]] = {
        quantity: {o.labels["controller"]: str(o.value) for o in answer.all(quantity)}
        for quantity in ("drive.transport", "drive.path_state", "drive.address", "drive.nqn")
    }
    names = {o.labels["controller"]: o.labels.get("subsystem", "?") for o in answer.all("drive.address")}
    names |= {o.labels["controller"]: o.labels.get("subsystem", "?") for o in answer.all("drive.path_state")}
    found: dict[str, Paths] = {}
    for controller, subsystem in names.items():
        transport = told["drive.transport"].get(controller)
        over_fabric = transport != _LOCAL if transport is not None else "trsvcid=" in told["drive.address"].get(controller, "")
        if over_fabric:
            name = told["drive.nqn"].get(controller, subsystem)
            found.setdefault(name, {})[controller] = transport, told["drive.path_state"].get(controller)
    return found


def _transport(wanted: str, host: str, name: str, paths: Paths, path: str) -> Finding:
    other = {controller: transport for controller, (transport, _) in paths.items() if transport is not None and transport != wanted}
    words: dict[str, Any] = {"h": host, "n": name, "w": wanted}
    if other:
        listed = ", ".join(f"{controller} {transport}" for controller, transport in sorted(other.items()))
        text = "{h}: {n} has paths over another transport than {w} ({o})", "{h}：{n} 有路径的传输方式不是 {w}（{o}）"
        return bad(*text, path, value=Decimal(len(other)), o=listed, **words)
    if any(transport is None for transport, _ in paths.values()):
        return unknown("{h}: the transport of {n} is not told", "{h}：未报告 {n} 的传输方式", path, **words)
    return good("{h}: {n} over {w}", "{h}：{n} 经 {w}", path, value=Decimal(0), **words)


def _number(wanted: int, host: str, name: str, paths: Paths, path: str) -> Finding:
    live = sum(state == _LIVE for _, state in paths.values())
    words: dict[str, Any] = {"h": host, "n": name, "v": live, "m": len(paths), "w": wanted}
    text = "{h}: {n} has {v} live paths of {m}, planned {w}", "{h}：{n} 共 {m} 条路径，其中 {v} 条 live，约定 {w} 条"
    return (good if live == wanted else bad)(*text, path, value=Decimal(live), **words)
