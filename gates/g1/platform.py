"""Whether all hosts are there, and the platform is the one that the result shall hold for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gates.g1.declared import GPU, HOSTS
from gates.g1.gpus import devices, gpu_lists
from gates.g1.order import Order, same_model
from gates.g1.pack import HostPack
from gates.model import CheckResult, Limit
from gates.rules.findings import Finding, bad, conclude, doubtful, good, left_out, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

NO_ACCELERATOR = ("cpu", "none")


_HOST = Text("an engagement that names a host in the group {g} would give something to judge", "项目为 {g} 组列出主机后方有可判定的对象")


def host_check(plan: Plan, expected: dict[str, tuple[str, ...]], survey: dict[str, HostPack], storage: dict[str, HostPack]) -> CheckResult:
    """Judge that every host of the engagement brought its packs, by name."""

    def findings() -> Iterator[Finding]:
        for group in ("engine", "storage"):
            if not expected[group]:
                yield unknown("the engagement names no host in the group {g}", "项目未列出 {g} 组的主机", remedy=_HOST.fill(g=group), g=group)
        for packs in (survey, storage):
            for host, pack in packs.items():
                if pack.trouble:
                    yield unknown("{why}", "{why}", why=pack.trouble)
                elif gone := pack.missing():
                    words = "{h} lists {n} in step {s} and did not bring it", "{h} 在步骤 {s} 中列出 {n} 但未带回"
                    yield unknown(*words, pack.path("commands.json"), h=host, n=", ".join(gone[:3]), s=pack.step)
                else:
                    yield good("{h} ({s})", "{h}（{s}）", pack.path("host.json"), h=host, s=pack.step)

    names = sorted({*survey, *storage})
    passed = Text("All hosts brought their evidence: {names}.", "全部主机均已带回证据：{names}。")
    return conclude(HOSTS.blank(plan), findings(), passed=passed, words={"names": ", ".join(names)}, value=str(len(names)))


def gpu_check(plan: Plan, order: Order, engines: tuple[str, ...], survey: dict[str, HostPack]) -> CheckResult | dict[str, Any]:
    """Count the GPUs of all engine hosts by model: against the order's lines, else against the plan's platform for each host."""
    blank = GPU.blank(plan)
    lines = [(line.model, line.quantity) for line in order.lines if line.kind == "gpu"]
    accelerator = plan.platform.accelerator
    if not lines and (accelerator is None or accelerator.lower() in NO_ACCELERATOR):
        return left_out(blank.id, blank.title, Text("Neither the order nor the plan names a GPU.", "订单与计划均未指定 GPU。"))
    wanted = lines or [(str(accelerator), plan.platform.count * len(engines))]
    seen: list[str] = []
    gaps: list[Finding] = []
    paths: list[str] = []
    for host in engines:
        pack = survey[host]
        if pack.trouble:
            gaps.append(unknown("{why}", "{why}", why=pack.trouble))
            continue
        for answer in gpu_lists(pack):
            paths.append(answer.path)
            if answer.problems:
                gaps.append(doubtful(host, answer.problems, answer.path))
            seen += [device.model for device in devices(answer) if device.model]

    def findings() -> Iterator[Finding]:
        yield from gaps
        for model, quantity in wanted:
            count = sum(1 for name in seen if same_model(model, name))
            words: dict[str, Any] = {"model": model, "want": quantity, "have": count}
            if count == quantity:
                yield good("{model}: {have}", "{model}：{have}", *paths, **words)
            elif gaps and count < quantity:
                yield unknown("{model}: {want} expected, {have} read for certain", "{model}：应为 {want}，确认读到 {have}", *paths, **words)
            else:
                yield bad("{model}: {want} expected, {have} found", "{model}：应为 {want}，实为 {have}", *paths, **words)
        for name in sorted({n for n in seen if not any(same_model(model, n) for model, _ in wanted)}):
            yield bad("{name} is present and not expected", "存在未预期的 {name}", *paths, name=name)

    total = sum(quantity for _, quantity in wanted)
    return conclude(
        replace(blank, source="g1.order" if lines else "platform.count"),
        findings(),
        passed=Text("{total} GPUs of the expected model.", "{total} 块预期型号的 GPU。"),
        words={"total": total},
        value=str(len(seen)),
        limit=Limit("==", str(total), str(total)),
    )
