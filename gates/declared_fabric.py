"""The checks of the NVMe-oF paths of the engine hosts, declared once for G1 and G2: each gate has them where its section of the plan names them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from gates.declared import Declared
from gates.model import Limit
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan
    from gates.plan_arrival import Fabric

TOOL = "nvme-list-subsys"


def fabric_declared(gate: str) -> tuple[Declared, Declared]:
    """Return the declarations of transports and of the number of paths of a gate (g1, g2)."""
    evidence = (f"{'survey' if gate == 'g1' else 'deploy'}: {TOOL}",)
    transport = Declared(
        f"{gate}.fabric.transport",
        Text("Transport of the NVMe-oF paths", "NVMe-oF 路径的传输方式"),
        "lower",
        evidence,
        f"{gate}.fabric.transport",
        "paths over another transport",
        rule=Text(
            "every path of every NVMe-oF subsystem of every engine host; asked where the plan names it",
            "每台引擎主机的全部 NVMe-oF 路径；计划约定时检查",
        ),
        limit=lambda _: Limit("<=", high=Decimal(0)),
    )
    paths = Declared(
        f"{gate}.fabric.paths",
        Text("Live NVMe-oF paths of each subsystem", "各 NVMe-oF 子系统的 live 路径数"),
        "equal",
        evidence,
        f"{gate}.fabric.paths",
        "live paths",
        rule=Text("as many as planned, on every engine host; asked where the plan names it", "每台引擎主机均为约定数量；计划约定时检查"),
        limit=lambda plan: _exactly(wanted_by(plan, gate).paths),
    )
    return transport, paths


def _exactly(paths: int | None) -> Limit:
    return Limit("none") if paths is None else Limit("==", low=Decimal(paths), high=Decimal(paths))


def wanted_by(plan: Plan, gate: str) -> Fabric:
    """Return what the plan's section of a gate names."""
    return plan.g1.fabric if gate == "g1" else plan.g2.fabric
