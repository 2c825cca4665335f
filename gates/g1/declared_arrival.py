"""The checks of G1 on what parts and hosts bring along, declared: wear of the drives, the kernel's log, how hosts are tuned, the switch's watchdog.

They inform. A plan that names their group in evidence.required lets them decide.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from gates.declared import Declared, at_most
from gates.text import Text
from gates.units import convert

if TYPE_CHECKING:
    from gates.plan import Plan

_ZERO = at_most(lambda _: Decimal(0))
_HEALTH = ("survey: nvme-smart-log", "survey: smartctl")
_BOTH = ("survey: nvme-smart-log", "storage: nvme-smart-log")


def hottest(plan: Plan) -> Decimal:
    """Return the plan's limit on the temperature of a drive, in degrees Celsius."""
    return convert(plan.g1.drive.temperature_max.base, "K", "degC").normalize()


WRITTEN = Declared(
    "g1.drive.written",
    Text("Data written to the drives before arrival", "硬盘到货前已写入量"),
    "lower",
    (*_HEALTH, "survey: nvme-list"),
    "g1.drive.writes_max",
    "bytes written / capacity",
    rule=Text("a new drive was written for its factory's tests at most; more is a used one", "新硬盘至多有出厂测试写入；超出即为用过的硬盘"),
    limit=at_most(lambda p: p.g1.drive.writes_max),
    group="drive_wear",
)
UNSAFE = Declared(
    "g1.drive.unsafe_shutdowns",
    Text("Power losses of the drives without notice", "硬盘非正常断电次数"),
    "lower",
    _BOTH,
    "g1.drive.unsafe_shutdowns_max",
    "unsafe shutdowns",
    limit=at_most(lambda p: Decimal(p.g1.drive.unsafe_shutdowns_max)),
    group="drive_wear",
)
HEAT = Declared(
    "g1.drive.temperature",
    Text("Temperature of the drives, at rest and after raw reads", "硬盘温度（空载与裸读之后）"),
    "lower",
    _BOTH,
    "g1.drive.temperature_max",
    "highest temperature",
    "°C",
    limit=at_most(hottest),
    group="drive_wear",
)
OVERHEATED = Declared(
    "g1.drive.overheated",
    Text("Time that the drives were too hot in their life", "硬盘累计过热时间"),
    "lower",
    _BOTH,
    "acceptance 3",
    "time above the warning or critical temperature",
    "s",
    rule=Text("the drive's own account, in whole minutes", "以硬盘自身记录为准，按整分钟计"),
    limit=_ZERO,
    group="drive_wear",
)
KERNEL_LOG = Declared(
    "g1.kernel.log",
    Text("Kernel log of the hosts", "主机内核日志"),
    "lower",
    ("survey: kernel-log",),
    "acceptance 3, 4",
    "lines that tell a fault",
    rule=Text(
        "since boot no time-out or lost controller of NVMe, no failed I/O, no uncorrected PCIe error, no link that went down, no machine check, no "
        "GPU reset, no task that hung, no file system or RAID that failed, no process killed for want of memory; "
        "a log whose beginning is lost proves nothing",
        "自启动以来无 NVMe 超时或控制器丢失、I/O 失败、不可纠正 PCIe 错误、链路中断、机器检查异常、"
        "GPU 复位、任务挂起、文件系统或 RAID 故障、内存不足终止进程；开头已丢失的日志不能证明",
    ),
    limit=_ZERO,
    group="kernel_log",
)
GOVERNOR = Declared(
    "g1.host.governor",
    Text("Frequency governor of the processors", "处理器调频策略"),
    "lower",
    ("survey: host-tuning",),
    "g1.host.governor",
    "frequency policies with another governor",
    rule=Text("every frequency policy of every host has the planned governor", "每台主机的全部调频策略均为约定值"),
    limit=_ZERO,
    group="host_tuning",
)
NUMA = Declared(
    "g1.host.numa",
    Text("NUMA nodes of the hosts", "主机 NUMA 节点"),
    "lower",
    ("survey: host-tuning",),
    "acceptance 3",
    "nodes without memory, and engine hosts that differ",
    rule=Text("every node with processors has memory, and all engine hosts have as many nodes", "有处理器的节点均有内存，且全部引擎主机节点数相同"),
    limit=_ZERO,
    group="host_tuning",
)
CMDLINE = Declared(
    "g1.host.cmdline",
    Text("Kernel command line of the hosts", "主机内核启动参数"),
    "lower",
    ("survey: host-tuning",),
    "g1.host.cmdline",
    "parameters that are missing or differ",
    rule=Text(
        "what the plan names stands there, and all engine hosts have the same but for what names their own disk and network",
        "计划列明的参数均在其中，且除标识本机磁盘与网络的参数外，全部引擎主机一致",
    ),
    limit=_ZERO,
    group="host_tuning",
)
STORMS = Declared(
    "g1.link.pfc_storms",
    Text("Pause storms seen by the switches", "交换机检测到的 PFC 暂停风暴"),
    "lower",
    ("survey: sonic-pfcwd",),
    "acceptance 4",
    "storms detected",
    rule=Text(
        "the watchdog of each switch that the site lets us ask has detected none since its counters began",
        "现场允许询问的各交换机，其看门狗自计数以来未检测到风暴",
    ),
    limit=_ZERO,
    group="pfc_watchdog",
)
FEC = Declared(
    "g1.link.fec",
    Text("Bit errors that FEC did not correct", "FEC 未能纠正的误码"),
    "lower",
    ("survey: ethtool-fec", "survey: ethtool-stats", "survey: ib-counters"),
    "acceptance 4",
    "blocks and symbols not corrected",
    rule=Text(
        "0 of uncorrectable_blocks, rx_pcs_symbol_err_phy and symbol_error, as far as the port counts them; what was corrected is told, "
        "with the encoding and the worst lane",
        "端口所计 uncorrectable_blocks、rx_pcs_symbol_err_phy 与 symbol_error 均为 0；已纠正的误码随编码与最差通道一并列出",
    ),
    limit=_ZERO,
    group="link_fec",
)
ARRIVED = (WRITTEN, UNSAFE, HEAT, OVERHEATED, KERNEL_LOG, GOVERNOR, NUMA, CMDLINE, STORMS, FEC)
