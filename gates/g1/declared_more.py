"""The checks of G1 whose evidence a site may or may not bring, declared: the plan's evidence.required says which groups decide."""

from __future__ import annotations

from decimal import Decimal

from gates.declared import Declared, at_least, at_most, exactly
from gates.declared_fabric import fabric_declared
from gates.model import Limit
from gates.text import Text

ZERO = at_most(lambda _: Decimal(0))

ERROR_LOG = Declared(
    "g1.drive.error_log",
    Text("Error log of the drives", "硬盘错误日志"),
    "lower",
    ("survey: nvme-error-log", "survey: nvme-smart-log", "storage: nvme-error-log, where it was read again"),
    "acceptance 3",
    "failed commands logged",
    rule=Text(
        "no entry; an empty log is inconclusive where the drive's life-long count, its number of places or the second reading says otherwise",
        "无条目；若累计计数、日志位置数或第二次读取与空日志不符，则无法判定",
    ),
    limit=ZERO,
    group="nvme_logs",
)
SELF_TEST = Declared(
    "g1.drive.self_test",
    Text("Self-test of the drives", "硬盘自检结果"),
    "equal",
    ("survey: nvme-self-test-log",),
    "acceptance 3",
    "newest self-test result",
    rule=Text("the newest result is 0; no test on record is inconclusive", "最近一次结果为 0；无自检记录则无法判定"),
    limit=exactly(lambda _: Decimal(0)),
    group="nvme_logs",
)
PATHS = Declared(
    "g1.drive.paths",
    Text("Every path to the drives is live", "硬盘各路径均为 live"),
    "equal",
    ("survey: nvme-list-subsys",),
    "acceptance 3",
    "paths not live",
    limit=ZERO,
    group="nvme_paths",
)
AER = Declared(
    "g1.pcie.aer",
    Text("PCIe error counters, device and upstream port", "PCIe 错误计数（设备与上游端口）"),
    "lower",
    ("survey: aer",),
    "acceptance 3",
    "fatal and non-fatal errors",
    limit=ZERO,
    group="aer",
)
GID = Declared(
    "g1.rdma.gid",
    Text("RoCE v2 is offered on every RDMA port", "各 RDMA 端口提供 RoCE v2"),
    "set",
    ("survey: gid-types",),
    "acceptance 3",
    "ports without RoCE v2",
    limit=ZERO,
    group="roce_gid",
)
PFC = Declared(
    "g1.link.pfc",
    Text("PFC and trust state of the ports", "端口 PFC 与信任模式"),
    "equal",
    ("survey: mlnx-qos",),
    "g1.link.pfc_priority, g1.link.trust",
    "lossless priority",
    rule=Text("exactly the planned priority is lossless, and the trust state is the planned one", "仅约定的优先级为无损，且信任模式与约定一致"),
    limit=lambda p: Limit("==", str(p.g1.link.pfc_priority), str(p.g1.link.pfc_priority)),
    group="pfc",
)
DSCP = Declared(
    "g1.link.dscp",
    Text("DSCP of the storage traffic reaches the lossless priority", "存储流量的 DSCP 映射到无损优先级"),
    "lower",
    ("survey: mlnx-qos",),
    "g1.link.dscp, g1.link.pfc_priority",
    "code points with another priority",
    rule=Text(
        "every planned code point is mapped to the planned priority on every port, and the port trusts DSCP; asked where the plan names code points",
        "各端口均将约定的 DSCP 值映射到约定的优先级，且信任模式为 dscp；计划约定 DSCP 值时检查",
    ),
    limit=ZERO,
)
NET_MTU = Declared(
    "g1.link.mtu",
    Text("MTU of the network interfaces", "网络接口 MTU"),
    "higher",
    ("survey: ip-link",),
    "g1.link.net_mtu_min",
    "smallest MTU",
    "B",
    limit=at_least(lambda p: p.g1.link.net_mtu_min.base),
    group="net_mtu",
)
COUNTERS = Declared(
    "g1.link.counters",
    Text("Error counters of the ports", "端口错误计数"),
    "lower",
    ("survey: ethtool-stats", "survey: ip-link"),
    "acceptance 4",
    "errors counted",
    rule=Text("CRC, symbol, discard, link-down and PFC storm counters are 0 at arrival", "到货时 CRC、符号、丢弃、链路中断与 PFC 风暴计数均为 0"),
    limit=ZERO,
    group="port_counters",
)
OPTICS = Declared(
    "g1.link.optics",
    Text("Transceivers and cables", "光模块与线缆"),
    "lower",
    ("survey: ethtool-module",),
    "acceptance 3",
    "alarms raised",
    limit=ZERO,
    group="optics",
)
RDMA_RATE = Declared(
    "g1.rdma.bandwidth",
    Text("RDMA bandwidth of the ports", "RDMA 端口带宽"),
    "higher",
    ("rdma: perftest", "rdma: ethtool (far end)", "survey: ethtool", "survey: gid-types"),
    "g1.link.rdma_share_min",
    "bandwidth / port speed",
    rule=Text(
        "at least the planned share, over RoCE v2, by the port's own device; above the line rate, or below the share against a slower far end: "
        "inconclusive",
        "经 RoCE v2、以端口自身设备测得，不低于约定比例；超过线速，或对端较慢而未达比例：无法判定",
    ),
    share=True,
    limit=at_least(lambda p: p.g1.link.rdma_share_min),
    group="rdma_bandwidth",
)
MEMORY = Declared(
    "g1.memory",
    Text("Memory modules of a host are alike", "主机内存条一致"),
    "equal",
    ("survey: dmidecode",),
    "acceptance 3",
    "sizes and speeds",
    rule=Text(
        "one size and one speed in each host, an even number, and as many as in other hosts of the same product",
        "每台主机内存条容量与速率各自唯一，数量为偶数，且与同型号主机相同",
    ),
    limit=exactly(lambda _: Decimal(1)),
    group="memory",
)
GPU_ECC = Declared(
    "g1.gpu.ecc",
    Text("Uncorrectable and deferred ECC errors of the GPUs", "GPU 不可纠正与延迟 ECC 错误"),
    "lower",
    ("survey: amd-smi-metric, gpu-ras or npu-smi-ecc",),
    "acceptance 3",
    "ECC errors",
    limit=ZERO,
    group="gpu_health",
)
GPU_LINK = Declared(
    "g1.gpu.link",
    Text("PCIe link of the GPUs", "GPU 的 PCIe 链路"),
    "higher",
    ("survey: amd-smi-static and amd-smi-metric, or lspci",),
    "acceptance 3",
    "PCIe width",
    "lanes",
    rule=Text(
        "every GPU has the width that the device is rated for; a lower speed, read without load, is inconclusive",
        "各 GPU 宽度达到器件额定值；空载时速率较低则无法判定",
    ),
    limit=at_least(lambda _: "rated"),
    group="gpu_health",
)
GPU_FIRMWARE = Declared(
    "g1.gpu.firmware",
    Text("Firmware is equal on all GPUs", "各 GPU 固件一致"),
    "equal",
    ("survey: amd-smi-firmware, rocm-smi or npu-smi-board",),
    "acceptance 3",
    "blocks that differ",
    limit=ZERO,
    group="gpu_firmware",
)
GPU_STRESS = Declared(
    "g1.gpu.stress",
    Text("GPU stress: steady over its intervals", "GPU 压力测试：各时段稳定"),
    "lower",
    ("survey: rvs",),
    "g1.gpu_stress_spread_max",
    "(best - worst interval) / best",
    rule=Text("judged from the intervals, not from the tool's answer, which rests on the peak", "依据各时段数据，而非以峰值为准的工具结论"),
    share=True,
    limit=at_most(lambda p: p.g1.gpu_stress_spread_max),
    group="gpu_stress",
)
FABRIC = fabric_declared("g1")
MORE = (
    *(ERROR_LOG, SELF_TEST, PATHS, AER, GID, PFC, DSCP, *FABRIC, NET_MTU, COUNTERS, OPTICS, RDMA_RATE),
    *(MEMORY, GPU_ECC, GPU_LINK, GPU_FIRMWARE, GPU_STRESS),
)
