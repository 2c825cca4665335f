"""The checks of drives and accelerators over the soak, declared. They inform: what decides of them are the plan's fatal counters (acceptance 4)."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from gates.declared import Declared, at_least, at_most
from gates.model import Severity
from gates.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from gates.model import Limit
    from gates.plan import Plan

_HEALTH = ("soak: health.jsonl",)
NONE = at_most(lambda _: Decimal(0))
BELOW = at_least(lambda _: Decimal(1))  # both figures are whole degrees: one that is reached leaves 0


def _part(
    ident: str,
    title: Text,
    quantity: str,
    rule: Text,
    *,
    limit: Callable[[Plan], Limit] = NONE,
    unit: str = "1",
    direction: str = "lower",
    source: str = "acceptance 4",
    share: bool = False,
) -> Declared:
    return Declared(f"g4.{ident}", title, direction, _HEALTH, source, quantity, unit, rule=rule, limit=limit, severity=Severity.ADVISORY, share=share)


DRIVE_SAME = _part(
    "drive_same",
    Text("The drives stay the same", "硬盘未被更换"),
    "drives that came or went",
    Text("the serial numbers of the first reading, in every later one", "首次读取的序列号在其后每次读取中均在"),
)
DRIVE_HEAT = _part(
    "drive_heat",
    Text("Drives stay below their own warning temperature", "硬盘温度低于自身告警阈值"),
    "distance to the drive's own threshold",
    Text(
        "highest reading against WCTEMP of the same drive; one that declares none is inconclusive", "最高读数与该盘 WCTEMP 比较；未声明阈值则无法判定"
    ),
    limit=BELOW,
    unit="K",
    direction="higher",
)
DRIVE_THROTTLE = _part(
    "drive_throttle",
    Text("Drives are not throttled by heat", "硬盘未因过热降速"),
    "growth of thermal counters",
    Text(
        "minutes above warning and critical temperature, and times and seconds of thermal management, per drive",
        "逐盘统计超过告警与临界温度的分钟数、热管理触发次数与秒数",
    ),
)
DRIVE_MEDIA = _part(
    "drive_media_errors",
    Text("Media errors of each drive", "各硬盘介质错误"),
    "growth of media errors",
    Text("first reading to last, per drive; a count that goes back is inconclusive", "逐盘首末读数之差；计数回退则无法判定"),
)
DRIVE_WARNING = _part(
    "drive_warning",
    Text("Critical warnings of each drive", "各硬盘严重告警"),
    "drives with a warning bit",
    Text("no bit is set in any reading", "任何读数均无告警位"),
)
DRIVE_SPARE = _part(
    "drive_spare",
    Text("Available spare of the drives does not fall", "硬盘可用备用空间不减少"),
    "fall of available spare",
    Text("first reading less the lowest; at or below the drive's own threshold is a fail", "首次读数减最低读数；达到或低于该盘自身阈值即不通过"),
    unit="%",
)
DRIVE_WEAR = _part(
    "drive_wear",
    Text("Wear of the drives over the soak", "全程硬盘磨损"),
    "growth of percentage used",
    Text("first reading to last, per drive; the drive counts whole percents", "逐盘首末读数之差；硬盘以整百分点计"),
    limit=at_most(lambda p: p.g4.drive_wear_max.base),
    unit="%",
    source="g4.drive_wear_max",
)
GPU_HEAT = _part(
    "gpu_heat",
    Text("GPUs stay below their own slowdown temperature", "GPU 温度低于自身降频阈值"),
    "distance to the GPU's own threshold",
    Text("highest reading of each sensor against its slowdown limit, where one is declared", "各传感器最高读数与其所声明的降频阈值比较"),
    limit=BELOW,
    unit="K",
    direction="higher",
)
GPU_THROTTLE = _part(
    "gpu_throttle",
    Text("GPUs are not throttled by heat", "GPU 未因过热降频"),
    "growth of thermal residencies",
    Text(
        "PROCHOT and the residencies of socket, regulators and HBM; that of the power limit is no heat",
        "PROCHOT 及封装、稳压与 HBM 的过热降频累计；功耗封顶不计",
    ),
)
GPU_STATUS = _part(
    "gpu_throttled",
    Text("Readings in which a GPU was throttled", "GPU 处于降频状态的读数占比"),
    "throttled readings / readings",
    Text("of GPUs that count no residencies; the worst GPU", "仅限不提供降频累计的 GPU；取最差者"),
    limit=at_most(lambda p: p.g4.throttled_share_max),
    source="g4.throttled_share_max",
    share=True,
)
DRIVE_PATHS = _part(
    "drive_paths",
    Text("Paths to the drives stay live", "硬盘各路径保持 live"),
    "readings with a path that is not live",
    Text(
        "every controller of each drive, local or over the fabric, at every reading; what was mended between two readings is not seen",
        "每次读取时各硬盘的全部控制器（本地或经网络）；两次读取之间已恢复的中断无法看到",
    ),
)
KERNEL_LOG = Declared(
    "g4.kernel_log",
    Text("Kernel logs of the soak's hosts", "稳定性运行主机内核日志"),
    "lower",
    ("soak: kernel.jsonl",),
    "acceptance 4",
    "lines that tell a fault",
    rule=Text(
        "under load, on every host of the soak, no lost or reconnecting NVMe-oF path, no NVMe time-out, no failed I/O, no link that went down, no "
        "uncorrected PCIe error, no machine check, no GPU reset, no task that hung, no file system or RAID that failed, no process killed for "
        "want of memory; lines within a planned injection, up to 60 s behind it, are told and no break; a log that was not read whole proves nothing",
        "加载期间，每台主机均无 NVMe-oF 路径丢失或重连、NVMe 超时、I/O 失败、链路中断、不可纠正 PCIe 错误、机器检查异常、GPU 复位、任务挂起、"
        "文件系统或 RAID 故障、内存不足终止进程；计划内注入期间及其后 60 s 内的记录只列出；未完整读取的日志不能证明",
    ),
    limit=NONE,
    group="soak_kernel_log",
)
PARTS = (
    *(DRIVE_SAME, DRIVE_HEAT, DRIVE_THROTTLE, DRIVE_MEDIA, DRIVE_WARNING, DRIVE_SPARE, DRIVE_WEAR, DRIVE_PATHS),
    *(GPU_HEAT, GPU_THROTTLE, GPU_STATUS),
)
