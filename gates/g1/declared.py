"""The checks of G1, declared. Sources: the plan's section g1, the order, and the commands of the survey (arrival checks)."""

from __future__ import annotations

from decimal import Decimal

from gates.declared import EXACT, Declared, at_least, at_most, exactly
from gates.model import Limit, Severity
from gates.text import Text

ZERO = Decimal(0)
_FORM = ("unpacking: form.json",)
_DRIVES = ("survey: nvme-list", "survey: nvme-list-subsys")
_HEALTH = ("survey: nvme-smart-log", "survey: smartctl")
_LINKS = ("storage: lspci-under-load",)
_BOTH_WAYS = Text("sets are compared both ways, by identity", "按身份双向比对集合")

UNPACKING = Declared("g1.unpacking", Text("Unpacking inspection", "开箱检验"), "set", _FORM, "g1")
RECEIVERS = Declared(
    "g1.receivers",
    Text("Named receivers", "签收人"),
    "higher",
    _FORM,
    "g1.receivers_min",
    "distinct receivers",
    limit=at_least(lambda p: str(p.g1.receivers_min)),
)
PHOTOS = Declared(
    "g1.unpacking.photos", Text("Photos of the unpacking", "开箱照片"), "told", ("unpacking: photos",), "g1", "photos", severity=Severity.ADVISORY
)
HOSTS = Declared(
    "g1.hosts", Text("Every host is present", "全部主机在场"), "set", ("survey: host.json", "storage: host.json"), "g1", "hosts", rule=_BOTH_WAYS
)
ORDER = Declared(
    "g1.order",
    Text("Packing list fulfils the order", "装箱单与订单一致"),
    "equal",
    ("inputs.json",),
    "g1.order",
    "packed items",
    rule=_BOTH_WAYS,
    limit=exactly(lambda _: "ordered"),
)
SERIALS = Declared(
    "g1.serials.{kind}",
    Text("Serial numbers of the {name}", "{name}序列号"),
    "set",
    ("inputs.json", *_DRIVES, "survey: lspci", "survey: dmidecode", "survey: amd-smi-static, rocm-smi or npu-smi"),
    "g1.order",
    "serial numbers found",
    rule=_BOTH_WAYS,
    limit=lambda _: Limit("set", "packed", "packed"),
    at_large=Text("Serial numbers", "序列号"),
)
MODEL = Declared("g1.model", Text("Model of every part", "各部件型号"), "equal", ("inputs.json", *_DRIVES), "g1.order")
FIRMWARE = Declared(
    "g1.firmware",
    Text("Firmware within the order's list", "固件在订单允许范围内"),
    "set",
    ("inputs.json", *_DRIVES, "survey: ethtool-driver"),
    "g1.order",
    limit=lambda _: Limit("set", "ordered", "ordered"),
)
CAPACITY = Declared(
    "g1.capacity",
    Text("Capacity of the drives", "硬盘容量"),
    "higher",
    ("survey: nvme-list",),
    "g1.order",
    "smallest capacity",
    "B",
    limit=at_least(lambda _: "ordered"),
)
WARNING = Declared(
    "g1.drive.critical_warning",
    Text("Critical warnings of the drives", "硬盘严重告警"),
    "lower",
    _HEALTH,
    "g1.drive.critical_warning_max",
    "critical_warning",
    limit=at_most(lambda p: Decimal(p.g1.drive.critical_warning_max)),
)
MEDIA = Declared(
    "g1.drive.media_errors",
    Text("Media errors of the drives", "硬盘介质错误"),
    "lower",
    _HEALTH,
    "g1.drive.media_errors_max",
    "media_errors",
    limit=at_most(lambda p: Decimal(p.g1.drive.media_errors_max)),
)
HOURS = Declared(
    "g1.drive.power_on_hours",
    Text("Power-on hours of the drives", "硬盘通电时间"),
    "lower",
    _HEALTH,
    "g1.drive.power_on_hours_max",
    "power_on_hours",
    "h",
    limit=at_most(lambda p: p.g1.drive.power_on_hours_max.base / 3600),
)
USED = Declared(
    "g1.drive.percentage_used",
    Text("Endurance used by the drives", "硬盘寿命已用比例"),
    "lower",
    _HEALTH,
    "g1.drive.percentage_used_max",
    "percentage_used",
    "%",
    limit=at_most(lambda p: p.g1.drive.percentage_used_max.base),
)
SPARE = Declared(
    "g1.drive.available_spare",
    Text("Available spare of the drives", "硬盘可用备用空间"),
    "higher",
    _HEALTH,
    "g1.drive.available_spare_min",
    "available_spare",
    "%",
    limit=at_least(lambda p: p.g1.drive.available_spare_min.base),
)
AGREEMENT = Declared(
    "g1.drive.agreement",
    Text("Two tools tell the same of each drive", "两种工具对每块硬盘的读数一致"),
    "equal",
    (*_HEALTH, "survey: nvme-id-ctrl"),
    "g1.drive",
)
OWN_VERDICT = Declared(
    "g1.drive.own_verdict",
    Text("No drive calls itself unsound", "硬盘自身健康结论无异常"),
    "lower",
    ("survey: smartctl",),
    "smartctl(8)",
    "drives that call themselves unsound",
    rule=Text(
        "the overall health, failing or failed attributes, and failed self-tests in the exit status; its error log has a check of its own",
        "整体健康结论、退出状态中的失效属性与自检失败；错误日志另有检查项",
    ),
    limit=at_most(lambda _: Decimal(0)),
)
RAW_IO = Declared(
    "g1.raw.io",
    Text("Raw reads without error", "裸盘读取无错误"),
    "equal",
    ("storage: fio", "storage: nvme-list"),
    "g1",
    "drives read",
    limit=exactly(lambda _: "packed"),
)
SPREAD = Declared(
    "g1.raw.spread",
    Text("Drives of one model are alike in speed", "同型号硬盘速度一致"),
    "lower",
    ("storage: fio",),
    "g1.drive_spread_max",
    "(fastest - slowest) / fastest",
    rule=EXACT,
    share=True,
    limit=at_most(lambda p: p.g1.drive_spread_max),
)
CEILING = Declared(
    "g1.raw.ceiling",
    Text("No drive reads faster than its link can carry", "硬盘读取速率不超过其链路上限"),
    "lower",
    ("storage: fio", *_LINKS),
    "acceptance 3",
    "read rate / link rate",
    unproven=True,
    rule=Text("above the link's rate the figure is a cache's: inconclusive", "超过链路速率的数值来自缓存：无法判定"),
    share=True,
    limit=at_most(lambda _: Decimal(1)),
)
WIDTH = Declared(
    "g1.pcie.width",
    Text("PCIe width", "PCIe 链路宽度"),
    "higher",
    _LINKS,
    "g1.pcie.width",
    "lowest PCIe width",
    "lanes",
    limit=at_least(lambda p: p.g1.pcie.width),
)
SPEED = Declared(
    "g1.pcie.speed",
    Text("PCIe speed", "PCIe 链路速率"),
    "higher",
    _LINKS,
    "g1.pcie.speed",
    "lowest PCIe speed",
    "GT/s",
    limit=at_least(lambda p: p.g1.pcie.speed),
)
FLAGS = Declared("g1.pcie.errors", Text("PCIe error flags", "PCIe 错误标志"), "lower", _LINKS, "g1.pcie", severity=Severity.ADVISORY)
PORT_STATE = Declared(
    "g1.rdma.state",
    Text("RDMA ports are up", "RDMA 端口状态"),
    "equal",
    ("survey: rdma-link",),
    "g1.link.state",
    limit=exactly(lambda p: p.g1.link.state.upper()),
)
PORT_MTU = Declared(
    "g1.rdma.mtu",
    Text("Active MTU of the RDMA ports", "RDMA 端口活动 MTU"),
    "higher",
    ("survey: ibv-devinfo", "survey: rdma-link"),
    "g1.link.mtu_min",
    "smallest active MTU",
    "B",
    limit=at_least(lambda p: p.g1.link.mtu_min.base),
)
PORT_SPEED = Declared(
    "g1.rdma.speed",
    Text("Speed of the network ports", "网络端口速率"),
    "higher",
    ("survey: ethtool",),
    "g1.link.speed",
    "lowest port speed",
    "bit/s",
    limit=at_least(lambda p: p.g1.link.speed),
)
GPU = Declared(
    "g1.gpu",
    Text("GPUs: model and count", "GPU 型号与数量"),
    "equal",
    ("survey: amd-smi-static, rocm-smi or npu-smi",),
    "g1.order, platform.count",
    "GPUs",
    limit=exactly(lambda p: str(p.platform.count)),
)
HEALTH = (WARNING, MEDIA, HOURS, USED, SPARE)
