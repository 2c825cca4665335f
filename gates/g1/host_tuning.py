"""How the hosts are tuned: governor, NUMA nodes, kernel command line. What engine hosts differ in, their measurements differ in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.declared import Declared, by_agreement
from gates.g1.declared_arrival import CMDLINE, GOVERNOR, NUMA
from gates.g1.links import Packs
from gates.g1.pack import Answer, HostPack
from gates.model import CheckResult
from gates.rules.findings import Finding, State, bad, conclude, doubtful, good, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

NAME = "host-tuning"
# Parameters that name the host's own disk, image, console or address: two hosts that are tuned alike differ in them.
OWN = re.compile(r"(?:BOOT_IMAGE|initrd|root|rootflags|resume|ip|hostname|console|crashkernel|ostree|rd\.\S+?|\w*UUID|netboot\S*|ds)=.*|boot=\S*")
Ask = Callable[["Plan", str, Answer], Finding]


def tuning_checks(plan: Plan, engines: tuple[str, ...], survey: Packs) -> Iterator[CheckResult | dict[str, Any]]:
    """Return one check a question over all hosts. Where all is well the reason says what each host has: these are facts that a report shows."""
    brought = any(pack.names(NAME) for pack in survey.values() if not pack.trouble)
    for declared, ask, alike in ((GOVERNOR, _governor, None), (NUMA, _numa, _nodes), (CMDLINE, _cmdline, _parameters)):
        findings = [_of_host(plan, pack, ask) for pack in survey.values()]
        if alike is not None:
            findings += _differ(declared, {host: alike(survey[host]) for host in engines if not survey[host].trouble}, survey)
        values = [f.value for f in findings if f.value is not None]
        facts = [f.text for f in findings if f.state is State.GOOD]
        words = {"facts": Text("; ".join(f.en for f in facts), "；".join(f.zh for f in facts))}
        passed = Text("{facts}.", "{facts}。")
        result = conclude(declared.blank(plan), findings, passed=passed, words=words, value=sum(values, Decimal(0)) if values else None)
        yield by_agreement(declared, plan, result, brought=brought)


def _of_host(plan: Plan, pack: HostPack, ask: Ask) -> Finding:
    if pack.trouble:
        return unknown("{why}", "{why}", why=pack.trouble)
    answer = pack.answer(NAME)
    return doubtful(pack.host, answer.problems, answer.path) if answer.problems else ask(plan, pack.host, answer)


def _governor(plan: Plan, host: str, answer: Answer) -> Finding:
    told, wanted = [str(o.value) for o in answer.all("host.governor")], plan.g1.host.governor
    if not told:
        text = "{h}: no frequency policy is told (a virtual machine has none)", "{h}：未报告调频策略（虚拟机没有）"
        remedy = Text("the machine's own setting (BIOS, or the hypervisor's host) would tell", "以整机设置（BIOS 或宿主机）为准方可判定")
        return unknown(*text, answer.path, remedy=remedy, h=host)
    bare = _uncovered(answer)
    if bare:
        text = "{h}: no frequency policy is told for processors {c}", "{h}：未报告处理器 {c} 的调频策略"
        return unknown(*text, answer.path, h=host, c=", ".join(map(str, bare[:8])))
    other = [governor for governor in told if governor != wanted]
    words: dict[str, Any] = {"h": host, "n": len(told), "o": len(other), "w": wanted, "g": ", ".join(sorted(set(other)))}
    if other:
        return bad(
            "{h}: {o} of {n} policies have {g}, planned {w}",
            "{h}：{n} 个策略中 {o} 个为 {g}，约定 {w}",
            answer.path,
            value=Decimal(len(other)),
            **words,
        )
    return good("{h}: {w} on {n} policies", "{h}：{n} 个策略均为 {w}", answer.path, value=Decimal(0), **words)


def _uncovered(answer: Answer) -> list[int]:
    """Return the processors that stand in a NUMA node and in no policy, or the other way round: a line of either was left out.

    A survey of an earlier release does not tell which processors a policy is for. There, where more than half of the processors have a policy
    named after them, each has one of its own.
    """
    nodes = {cpu for o in answer.all("numa.cpus") for cpu in processors(str(o.value))}
    named = {int(o.labels["policy"]) for o in answer.all("host.governor")}
    covered = {int(cpu) for o in answer.all("host.policy_cpus") for cpu in str(o.value).split()}
    if covered:
        return sorted(nodes ^ covered) if nodes else []
    return sorted(nodes ^ named) if 2 * len(named) > len(nodes) else []


def processors(text: str) -> set[int]:
    """Return the processors of a list as the kernel writes it, such as 0-95,192-287; a part that is no range of at most 10,000 gives none."""
    out: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        first, last = (int(end) if end.isdecimal() and len(end) < 6 else -1 for end in (low, high or low))
        if 0 <= first <= last < first + 10_000:
            out |= set(range(first, last + 1))
    return out


def _numa(_: Plan, host: str, answer: Answer) -> Finding:
    """Every node that has processors needs memory of its own. One without processors is memory alone (CXL), which is fine."""
    cpus = {o.labels["node"] for o in answer.all("numa.cpus")}
    memory = {o.labels["node"]: o.value for o in answer.all("numa.memory") if isinstance(o.value, Decimal)}
    if not cpus or not memory:
        return unknown("{h}: its NUMA nodes are not told", "{h}：未报告 NUMA 节点", answer.path, h=host)
    bare = sorted((node for node in cpus if not memory.get(node)), key=int)
    total = sum(memory.values(), Decimal(0)) / 2**30
    words: dict[str, Any] = {"h": host, "n": len(cpus), "b": ", ".join(bare), "m": f"{total:.0f}"}
    if bare:
        return bad(
            "{h}: NUMA node {b} has processors and no memory", "{h}：NUMA 节点 {b} 有处理器而无内存", answer.path, value=Decimal(len(bare)), **words
        )
    stray = _uncovered(answer) if answer.all("host.policy_cpus") else []
    if stray:
        text = "{h}: processors {c} have a frequency policy and no NUMA node, or the other way round", "{h}：处理器 {c} 的 NUMA 节点与调频策略不对应"
        return unknown(*text, answer.path, h=host, c=", ".join(map(str, stray[:8])))
    return good("{h}: {n} NUMA nodes, {m} GiB", "{h}：{n} 个 NUMA 节点，{m} GiB", answer.path, value=Decimal(0), **words)


def _cmdline(plan: Plan, host: str, answer: Answer) -> Finding:
    told = [str(o.value) for o in answer.all("kernel.parameter")]
    if not told:
        return unknown("{h}: its command line is not told", "{h}：未报告启动参数", answer.path, h=host)
    missing = [parameter for parameter in plan.g1.host.cmdline if parameter not in told]
    words: dict[str, Any] = {"h": host, "m": " ".join(missing), "p": " ".join(p for p in told if not OWN.fullmatch(p)) or "-"}
    if missing:
        return bad("{h}: started without {m}", "{h}：启动参数缺少 {m}", answer.path, value=Decimal(len(missing)), **words)
    return good("{h}: started with {p}", "{h}：启动参数为 {p}", answer.path, value=Decimal(0), **words)


def _nodes(pack: HostPack) -> frozenset[str]:
    return frozenset(o.labels["node"] for o in pack.answer(NAME).all("numa.cpus"))


def _parameters(pack: HostPack) -> frozenset[str]:
    return frozenset(str(o.value) for o in pack.answer(NAME).all("kernel.parameter") if not OWN.fullmatch(str(o.value)))


def _differ(declared: Declared, told: dict[str, frozenset[str]], survey: Packs) -> list[Finding]:
    """Return the finding of engine hosts that are not alike, with what only some of them have. A host that tells nothing is told of elsewhere."""
    told = {host: values for host, values in told.items() if values}
    common = frozenset.intersection(*told.values()) if told else frozenset()
    odd = {host: sorted(values - common) for host, values in told.items()}
    count = len({value for values in odd.values() for value in values})
    if not count:
        return []
    shown = "; ".join(f"{host}: {' '.join(values) or '-'}" for host, values in odd.items())
    text = (
        ("engine hosts have other NUMA nodes than each other ({d})", "各引擎主机的 NUMA 节点不同（{d}）")
        if declared is NUMA
        else ("engine hosts were started with other parameters than each other ({d})", "各引擎主机的启动参数不同（{d}）")
    )
    return [bad(*text, *(survey[host].answer(NAME).path for host in told), value=Decimal(count), d=shown)]
