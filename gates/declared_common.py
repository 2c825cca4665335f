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
        limit=at_most(lambda p: p.validity.client_cpu_max),
        severity=Severity.ADVISORY,
    )
