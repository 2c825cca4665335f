"""The checks of G2, declared. Sources: the plan's section g2, and the volume of acceptance 3."""

from __future__ import annotations

from decimal import Decimal

from gates.declared import Declared, at_most, exactly
from gates.declared_fabric import fabric_declared
from gates.text import Text

_RUNS = ("run-1..n: records.jsonl",)
_CV = Text("sample standard deviation over mean of the runs, compared exactly", "各轮样本标准差与均值之比，精确比较")

TTFT_CV = Declared(
    "g2.ttft_p50_cv.c{tier}",
    Text("TTFT p50 repeatable at c{tier}", "c{tier} TTFT p50 可重复"),
    "lower",
    _RUNS,
    "g2.repeatability_cv_max",
    "ttft_p50_cv",
    rule=_CV,
    share=True,
    limit=at_most(lambda p: p.g2.repeatability_cv_max),
    arm="baseline",
    over_tiers=True,
)
THROUGHPUT_CV = Declared(
    "g2.throughput_cv.c{tier}",
    Text("Output throughput repeatable at c{tier}", "c{tier} 输出吞吐可重复"),
    "lower",
    _RUNS,
    "g2.repeatability_cv_max",
    "throughput_cv",
    rule=_CV,
    share=True,
    limit=at_most(lambda p: p.g2.repeatability_cv_max),
    arm="baseline",
    over_tiers=True,
)
RAID = Declared(
    "g2.volume.raid",
    Text("RAID of the KV volume is whole", "KV 卷 RAID 完整"),
    "equal",
    ("deploy: mdadm",),
    "acceptance 3",
    "members missing or failed",
    rule=Text("RAID 0, as many members as devices, none failed", "RAID 0，成员数与设备数一致，无故障"),
    limit=exactly(lambda _: Decimal(0)),
    group="volume",
)
STRIPE = Declared(
    "g2.volume.stripe",
    Text("XFS follows the stripes of the RAID", "XFS 条带与 RAID 一致"),
    "equal",
    ("deploy: xfs-info", "deploy: mdadm"),
    "acceptance 3",
    "stripe width / (members x stripe unit)",
    rule=Text("stripe width is members x stripe unit, and the stripe unit is the chunk", "条带宽度等于成员数乘以条带单元，且条带单元等于 chunk"),
    limit=exactly(lambda _: Decimal(1)),
    group="volume",
)
MOUNT = Declared(
    "g2.volume.mount",
    Text("KV volume is mounted as XFS, writable", "KV 卷以 XFS 可写挂载"),
    "equal",
    ("deploy: findmnt",),
    "acceptance 3",
    "mounts that differ",
    limit=exactly(lambda _: Decimal(0)),
    group="volume",
)
FABRIC = fabric_declared("g2")
CHECKS = (TTFT_CV, THROUGHPUT_CV, RAID, STRIPE, MOUNT, *FABRIC)
