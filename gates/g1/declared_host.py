"""The checks of G1 that inform, declared: processors, partitions and links of GPUs, error logs. What the plan's platform names of them decides."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

from gates.declared import Declared, at_least, at_most, exactly
from gates.model import Severity
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan


def _named(key: str) -> Callable[[Plan, int], Severity]:
    """Return the weight of a check that decides where the plan's platform names what it asks for."""

    def weight(plan: Plan, _: int) -> Severity:
        return Severity.ADVISORY if getattr(plan.platform, key) is None else Severity.BLOCKING

    return weight


CPU = Declared(
    "g1.cpu",
    Text("Processors of the hosts", "主机处理器"),
    "lower",
    ("survey: dmidecode-cpu",),
    "platform.cpu",
    "hosts whose processors are not as they should be",
    rule=Text(
        "one model and core count in a host and on all engine hosts, every core on; what the plan names of model, sockets and cores decides",
        "单台主机及全部引擎主机的型号与核心数一致，核心全部启用；计划列明型号、颗数与核心数时须与之相符并起决定作用",
    ),
    limit=at_most(lambda _: Decimal(0)),
    severity=_named("cpu"),
)
GPU_PARTITION = Declared(
    "g1.gpu.partition",
    Text("Partitions of the GPUs", "GPU 分区"),
    "equal",
    ("survey: amd-smi-partition or rocm-smi-partition",),
    "platform.partition",
    "ways in which the GPUs are divided",
    rule=Text(
        "one compute and one memory partition on all GPUs; where the plan names them (e.g. SPX, NPS1), these, and it decides",
        "全部 GPU 的计算分区与内存分区一致；计划列明（如 SPX、NPS1）时须与之相符并起决定作用",
    ),
    limit=exactly(lambda _: Decimal(1)),
    severity=_named("partition"),
)
GPU_MESH = Declared(
    "g1.gpu.mesh",
    Text("Links between the GPUs", "GPU 间互联"),
    "lower",
    ("survey: amd-smi-topology", "survey: amd-smi-static"),
    "acceptance 3",
    "links that are not as they should be",
    rule=Text(
        "every pair of GPUs is linked and switched on, told from both sides; Instinct modules by XGMI",
        "每对 GPU 双向均报告链路且已启用；Instinct 模组须为 XGMI",
    ),
    limit=at_most(lambda _: Decimal(0)),
    severity=Severity.ADVISORY,
)
LOG_KEPT = Declared(
    "g1.drive.error_log_kept",
    Text("Error log of the drives loses nothing", "硬盘错误日志无丢失"),
    "lower",
    ("survey: nvme-error-log", "survey: nvme-smart-log", "storage: nvme-error-log", "storage: nvme-smart-log"),
    "acceptance 3",
    "errors lost or counted between two readings",
    rule=Text(
        "the life-long count never goes back, no entry is gone in the second reading, and the log holds what was counted",
        "累计计数不回退，第二次读取时条目不消失，且日志与计数相符",
    ),
    limit=at_most(lambda _: Decimal(0)),
    severity=Severity.ADVISORY,
)
GPU_HEAT = Declared(
    "g1.gpu.heat",
    Text("GPUs are below their own slowdown temperature", "GPU 温度低于自身降频阈值"),
    "higher",
    ("survey: amd-smi-static", "survey: amd-smi-metric"),
    "acceptance 3",
    "distance to the GPU's own threshold",
    "K",
    rule=Text("each sensor against its slowdown limit, where one is declared", "各传感器与其所声明的降频阈值比较"),
    limit=at_least(lambda _: Decimal(1)),  # both are whole degrees: a limit that is reached leaves 0
    severity=Severity.ADVISORY,
)
GPU_THROTTLE = Declared(
    "g1.gpu.throttle",
    Text("GPUs are not throttled by heat", "GPU 未因过热降频"),
    "lower",
    ("survey: amd-smi-metric",),
    "acceptance 3",
    "causes of throttling",
    rule=Text(
        "PROCHOT and heat of socket, regulators and HBM; where no cause is told, whether the GPU is throttled at all",
        "PROCHOT 及封装、稳压与 HBM 过热；未报告原因时以是否降频为准",
    ),
    limit=at_most(lambda _: Decimal(0)),
    severity=Severity.ADVISORY,
)
GPU_REPLAYS = Declared(
    "g1.gpu.replays",
    Text("PCIe links of the GPUs repeat nothing", "GPU 的 PCIe 链路无重传"),
    "lower",
    ("survey: amd-smi-static", "survey: amd-smi-metric"),
    "acceptance 3",
    "packets repeated or refused",
    rule=Text(
        "as the GPU's own tool counts them since its driver was loaded; the link mended each", "以 GPU 工具自驱动加载以来的计数为准；链路已自行纠正"
    ),
    limit=at_most(lambda _: Decimal(0)),
    severity=Severity.ADVISORY,
)
INFORM = (CPU, GPU_PARTITION, GPU_MESH, GPU_HEAT, GPU_THROTTLE, GPU_REPLAYS, LOG_KEPT)
