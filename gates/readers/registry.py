"""Every reader by its name: kebab-case of the tool. A reader takes the bytes of one file and never raises."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from gates.model import Problem, Reading
from gates.text import Text

Reader = Callable[[bytes], Reading]


@dataclass(frozen=True)
class ReaderSpec:
    """Where a reader stands (loaded when it is first used) and what it reads."""

    name: str
    where: str  # module:function
    reads: Text

    def load(self) -> Reader:
        """Return the reader function."""
        module, _, function = self.where.partition(":")
        reader: Reader = getattr(importlib.import_module(module), function)
        return reader


def _spec(name: str, where: str, en: str, zh: str) -> tuple[str, ReaderSpec]:
    return name, ReaderSpec(name, f"gates.readers.{where}", Text(en, zh))


READERS: MappingProxyType[str, ReaderSpec] = MappingProxyType(
    dict(
        [
            _spec("amd-smi-static", "amd_smi:read_amd_smi_static", "amd-smi static --json: the GPUs of a host", "amd-smi static --json：主机的 GPU"),
            _spec("dmidecode", "dmidecode:read_dmidecode", "dmidecode -t 1,17: machine and memory modules", "dmidecode -t 1,17：整机与内存条"),
            _spec("ethtool", "ethernet:read_ethtool", "ethtool IF: speed and link", "ethtool 接口：速率与链路"),
            _spec("ethtool-driver", "ethernet:read_ethtool_driver", "ethtool -i IF: driver and firmware", "ethtool -i 接口：驱动与固件"),
            _spec("fio", "fio:read_fio", "fio --output-format=json: raw reads and writes", "fio --output-format=json：裸盘读写"),
            _spec("ibv-devinfo", "rdma:read_ibv_devinfo", "ibv_devinfo -v: port state, MTU, firmware", "ibv_devinfo -v：端口状态、MTU、固件"),
            _spec("ip-link", "ethernet:read_ip_link", "ip -j -s link: MTU and error counters", "ip -j -s link：MTU 与错误计数"),
            _spec("lspci", "pci_link:read_lspci", "lspci -D -vvv: PCIe links and product data", "lspci -D -vvv：PCIe 链路与产品数据"),
            _spec("nvme-id-ctrl", "nvme_health:read_nvme_id_ctrl", "nvme id-ctrl -o json: a drive's identity", "nvme id-ctrl -o json：硬盘身份"),
            _spec("nvme-list", "nvme_list:read_nvme_list", "nvme list -o json: the drives of a host", "nvme list -o json：主机的硬盘"),
            _spec("nvme-list-subsys", "nvme_list:read_nvme_list_subsys", "nvme list-subsys -o json: paths", "nvme list-subsys -o json：路径"),
            _spec(
                "nvme-smart-log", "nvme_health:read_nvme_smart_log", "nvme smart-log -o json: a drive's health", "nvme smart-log -o json：硬盘健康"
            ),
            _spec("perftest", "rdma:read_perftest", "ib_write_bw and its kin: RDMA bandwidth", "ib_write_bw 等：RDMA 带宽"),
            _spec("rdma-link", "rdma:read_rdma_link", "rdma -j link show: RDMA ports", "rdma -j link show：RDMA 端口"),
            _spec("smartctl", "nvme_health:read_smartctl", "smartctl -x --json: a drive's health", "smartctl -x --json：硬盘健康"),
            _spec("sysfs-link", "pci_link:read_sysfs_link", "current/max link speed and width from sysfs", "sysfs 中的当前与额定链路速率和宽度"),
            _spec("unpacking", "unpacking:read_unpacking", "the unpacking form of Quadgate", "本系统的开箱检验表"),
        ]
    )
)


def read(name: str, data: bytes) -> Reading:
    """Read one file with the named reader. An unknown name is a problem, never an exception."""
    spec = READERS.get(name)
    if spec is None:
        text = Text("There is no reader {name}. Known: {known}.", "没有名为 {name} 的读取器。已有：{known}。").fill(
            name=name, known=", ".join(READERS)
        )
        return Reading(problems=(Problem("unknown_tool", text),))
    return spec.load()(data)
