"""What every gate asks before its own questions, declared: may the attempt be judged, is the evidence there, is the measurement valid."""

from __future__ import annotations

from decimal import Decimal

from gates.declared import EXACT, Declared, at_most, exactly
from gates.model import Severity
from gates.text import Text


def attempt(gate: str) -> Declared:
    """Return the check that the attempt may be judged at all; it stands in a verdict only where something forbids a pass."""
    return Declared(
        f"{gate.lower()}.attempt",
        Text("Attempt may be judged", "本次尝试可判定"),
        "equal",
        ("manifest.json", "inputs.json"),
        "DESIGN 4.9",
        rule=Text(
            "stands in the verdict only where a rehearsal, an interruption or an unplanned simulation forbids a pass",
            "仅在预演、中断或未约定的模拟禁止通过时出现",
        ),
    )


def evidence(gate: str) -> Declared:
    """Return the check that all evidence is there."""
    return Declared(
        f"{gate.lower()}.evidence",
        Text("Evidence complete", "证据完整"),
        "set",
        ("manifest.json", "every file that a step must bring"),
        "DESIGN 4.1",
        "problems",
        rule=Text("missing, broken or foreign evidence is inconclusive", "证据缺失、损坏或来源不明则无法判定"),
        limit=exactly(lambda _: Decimal(0)),
    )


def validity(gate: str) -> Declared:
    """Return the check that no claim is breached or in doubt."""
    return Declared(
        f"{gate.lower()}.validity",
        Text("Validity of the measurement", "测量的有效性"),
        "set",
        ("the claims below",),
        "DESIGN 4.2",
        "claims",
        rule=Text("a breach of the rig is invalid, a doubt is inconclusive", "测试装置问题判为无效，存疑则无法判定"),
        limit=exactly(lambda _: Decimal(0)),
    )


def pauses(gate: str) -> Declared:
    """Return the advisory check of how long the storage network's ports were paused while something was measured."""
    return Declared(
        f"{gate.lower()}.pauses",
        Text("Time that the storage ports were paused", "存储端口暂停时间占比"),
        "lower",
        ("every run or soak: ports.json",),
        "validity.pause_share_max",
        "pause_share",
        rule=Text(
            "microseconds of pause over the time between the two readings, of the worst port; a pause of another priority than the plan's is a fault",
            "两次读取之间的暂停微秒数与时长之比，取最差端口；非计划优先级出现暂停即为异常",
        ),
        share=True,
        limit=at_most(lambda p: p.validity.pause_share_max),
        severity=Severity.ADVISORY,
    )


def port_errors(gate: str) -> Declared:
    """Return the advisory check that the storage network's ports counted no error while something was measured."""
    return Declared(
        f"{gate.lower()}.port_errors",
        Text("Errors counted by the storage ports", "存储端口新增错误计数"),
        "lower",
        ("every run or soak: ports.json",),
        "acceptance 4",
        "port_errors",
        rule=Text(
            "growth of CRC, symbol, discard, link-down and heat counters between the two readings",
            "两次读取之间 CRC、符号、丢弃、链路中断与过热计数的增量",
        ),
        limit=at_most(lambda _: Decimal(0)),
        severity=Severity.ADVISORY,
    )


def corrected_bits(gate: str) -> Declared:
    """Return the advisory check of the bit error ratio before FEC of the storage network's ports while something was measured."""
    return Declared(
        f"{gate.lower()}.corrected_bits",
        Text("Bits that FEC corrected on the storage ports", "存储端口 FEC 已纠正的比特"),
        "lower",
        ("every run or soak: ports.json",),
        "validity.corrected_ber_max",
        "corrected_bit_ratio",
        rule=Text(
            "corrected bits over the port's speed times the time between the two readings, of the worst port; FEC covers idle time too",
            "两次读取之间已纠正比特数与端口速率乘以时长之比，取最差端口；空闲时段同样受 FEC 保护",
        ),
        limit=at_most(lambda p: p.validity.corrected_ber_max),
        severity=Severity.ADVISORY,
    )


def clock_steps(gate: str) -> Declared:
    """Return the advisory check that nobody set the host's wall clock while something was measured."""
    return Declared(
        f"{gate.lower()}.clock_steps",
        Text("Steps of the host's wall clock", "主机系统时钟跳变"),
        "lower",
        ("every run or soak: phases.jsonl, exit.json", "soak: events.jsonl"),
        "validity.clock_step_max",
        "clock_step",
        "s",
        rule=Text(
            "largest change of wall clock minus monotonic clock within a boot; slewing (adjtime) moves both and is none",
            "同一次开机内系统时钟与单调时钟之差的最大变化；平滑校时（adjtime）同时作用于两者，不计",
        ),
        limit=at_most(lambda p: p.validity.clock_step_max.base),
        severity=Severity.ADVISORY,
    )


def page_growth(gate: str) -> Declared:
    """Return the advisory check that the page cache did not fill up with the KV that was read."""
    return Declared(
        f"{gate.lower()}.page_cache_growth",
        Text("Page cache while KV is read", "读取 KV 期间的页缓存"),
        "lower",
        ("every run or soak: counters.jsonl, coldness.jsonl",),
        "validity.page_cache_growth_max",
        "page_cache_growth",
        rule=Text(
            "growth of the page cache over the KV read meanwhile (of a soak: over the files that hold it), in the phase with most",
            "页缓存增长与同期读取 KV 之比（稳定性运行则与其文件大小之比），取最大的阶段",
        ),
        share=True,
        limit=at_most(lambda p: p.validity.page_cache_growth_max),
        severity=Severity.ADVISORY,
    )


def client_cpu(gate: str) -> Declared:
    """Return the advisory check of what the measuring client itself used of a processor."""
    return Declared(
        f"{gate.lower()}.client_cpu",
        Text("Processor share of the client", "客户端处理器占用"),
        "lower",
        ("every run or soak: client.json",),
        "validity.client_cpu_max",
        "client_cpu",
        rule=EXACT,
        share=True,
        limit=at_most(lambda p: p.validity.client_cpu_max),
        severity=Severity.ADVISORY,
    )
