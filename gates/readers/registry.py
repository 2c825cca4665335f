"""Every reader by its name: kebab-case of the tool. A reader takes the bytes of one file and never raises."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from gates.model import Problem, Reading
from gates.readers.bench.declared import CLIENTS
from gates.readers.bench.documents import first_document
from gates.text import Text

Reader = Callable[[bytes], Reading]
# Bytes of one file. 2,000 requests of 1,000 tokens with every gap in it are 44 MB of JSON, and read in about ten times their size.
LARGEST = 64 * 2**20
# Values of one file, by the characters that part them. That same file has 2.1 million; each takes about 120 bytes once it is read.
MOST_PARTS = 4_000_000
_PARTS = (b",", b"\n", b"[", b"{")


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
            _spec("aer", "sysfs:read_aer", "grep -H . of aer_dev_*: PCIe error counters", "aer_dev_* 的 grep -H .：PCIe 错误计数"),
            _spec(
                "amd-smi-firmware",
                "amd_smi:read_amd_smi_firmware",
                "amd-smi firmware --json: firmware of each GPU",
                "amd-smi firmware --json：GPU 固件",
            ),
            _spec("amd-smi-list", "amd_smi_host:read_amd_smi_list", "amd-smi list --json: address and identity", "amd-smi list --json：地址与身份"),
            _spec("amd-smi-metric", "amd_smi:read_amd_smi_metric", "amd-smi metric --json: health of each GPU", "amd-smi metric --json：GPU 健康"),
            _spec(
                "amd-smi-partition",
                "amd_smi_host:read_amd_smi_partition",
                "amd-smi partition --current --json: how GPUs are divided",
                "amd-smi partition --current --json：GPU 分区",
            ),
            _spec("amd-smi-static", "amd_smi:read_amd_smi_static", "amd-smi static --json: the GPUs of a host", "amd-smi static --json：主机的 GPU"),
            _spec(
                "amd-smi-topology",
                "amd_smi_host:read_amd_smi_topology",
                "amd-smi topology --json: links between GPUs",
                "amd-smi topology --json：GPU 间链路",
            ),
            _spec(
                "amd-smi-version",
                "amd_smi_host:read_amd_smi_version",
                "amd-smi version --json: tool, ROCm and driver",
                "amd-smi version --json：工具、ROCm 与驱动版本",
            ),
            _spec(
                "dmidecode",
                "dmidecode:read_dmidecode",
                "dmidecode -t 1,4,17,127: machine, processors and memory modules",
                "dmidecode -t 1,4,17,127：整机、处理器与内存条",
            ),
            _spec("diskstats", "kernel_io:read_diskstats", "/proc/diskstats: I/O of each block device", "/proc/diskstats：块设备读写量"),
            _spec("ethtool", "ethernet:read_ethtool", "ethtool IF: speed and link", "ethtool 接口：速率与链路"),
            _spec("ethtool-driver", "ethernet:read_ethtool_driver", "ethtool -i IF: driver and firmware", "ethtool -i 接口：驱动与固件"),
            _spec(
                "ethtool-fec", "link_errors:read_ethtool_fec", "ethtool -I --show-fec IF: what FEC corrected", "ethtool -I --show-fec 接口：FEC 纠错"
            ),
            _spec("ethtool-module", "fabric:read_ethtool_module", "ethtool -m IF: transceiver or cable", "ethtool -m 接口：光模块或线缆"),
            _spec("ethtool-stats", "fabric:read_ethtool_stats", "ethtool -S IF: counters of the port", "ethtool -S 接口：端口计数"),
            _spec("fincore", "kernel_io:read_fincore", "fincore --json --bytes: files in the page cache", "fincore --json --bytes：页缓存中的文件"),
            _spec("findmnt", "volume:read_findmnt", "findmnt -J: mounts and options", "findmnt -J：挂载与选项"),
            _spec("fio", "fio:read_fio", "fio --output-format=json: raw reads and writes", "fio --output-format=json：裸盘读写"),
            _spec("gid-types", "sysfs:read_gid_types", "grep -H . of gid_attrs/types: RoCE versions", "gid_attrs/types 的 grep -H .：RoCE 版本"),
            _spec("gpu-ras", "sysfs:read_gpu_ras", "grep -H . of ras/*_err_count: ECC of AMD GPUs", "ras/*_err_count 的 grep -H .：AMD GPU 的 ECC"),
            _spec("host-tuning", "host_tuning:read_host_tuning", "governor, NUMA nodes, kernel command line", "调频策略、NUMA 节点、内核启动参数"),
            _spec("ib-counters", "link_errors:read_ib_counters", "grep -H . of counters/*: RDMA ports", "counters/* 的 grep -H .：RDMA 端口计数"),
            _spec("ibv-devinfo", "rdma:read_ibv_devinfo", "ibv_devinfo -v: port state, MTU, firmware", "ibv_devinfo -v：端口状态、MTU、固件"),
            _spec("ip-link", "ethernet:read_ip_link", "ip -j -s link: MTU and error counters", "ip -j -s link：MTU 与错误计数"),
            _spec("kernel-log", "kernel_log:read_kernel_log", "journalctl -k -b or dmesg: the kernel's log", "journalctl -k -b 或 dmesg：内核日志"),
            _spec("lspci", "pci_link:read_lspci", "lspci -D -vvv: PCIe links and product data", "lspci -D -vvv：PCIe 链路与产品数据"),
            _spec("lmcache-metrics", "exposition:read_lmcache_metrics", "LMCache /metrics: Prometheus text", "LMCache /metrics：Prometheus 文本"),
            _spec("mdadm", "volume:read_mdadm", "mdadm --detail [--export]: RAID members", "mdadm --detail [--export]：RAID 成员"),
            _spec("mlnx-qos", "fabric:read_mlnx_qos", "mlnx_qos -i IF: PFC, trust, DSCP", "mlnx_qos -i 接口：PFC、trust、DSCP"),
            _spec("mountstats", "kernel_io:read_mountstats", "/proc/self/mountstats: bytes of NFS mounts", "/proc/self/mountstats：NFS 读写量"),
            _spec("npu-smi", "other_gpu:read_npu_smi", "npu-smi info: Ascend chips of a host", "npu-smi info：主机的昇腾芯片"),
            _spec("npu-smi-board", "npu:read_npu_smi_board", "npu-smi info -t board -i N: an Ascend card", "npu-smi info -t board -i N：昇腾卡"),
            _spec("npu-smi-ecc", "npu:read_npu_smi_ecc", "npu-smi info -t ecc -i N: ECC of an Ascend card", "npu-smi info -t ecc -i N：昇腾卡 ECC"),
            _spec(
                "nvme-error-log", "nvme_logs:read_nvme_error_log", "nvme error-log -o json: failed commands", "nvme error-log -o json：失败命令记录"
            ),
            _spec("nvme-id-ctrl", "nvme_health:read_nvme_id_ctrl", "nvme id-ctrl -o json: a drive's identity", "nvme id-ctrl -o json：硬盘身份"),
            _spec("nvme-list", "nvme_list:read_nvme_list", "nvme list -o json: the drives of a host", "nvme list -o json：主机的硬盘"),
            _spec("nvme-list-subsys", "nvme_list:read_nvme_list_subsys", "nvme list-subsys -o json: paths", "nvme list-subsys -o json：路径"),
            _spec(
                "nvme-self-test-log",
                "nvme_logs:read_nvme_self_test_log",
                "nvme self-test-log -o json: a drive's own tests",
                "nvme self-test-log -o json：硬盘自检记录",
            ),
            _spec(
                "nvme-smart-log", "nvme_health:read_nvme_smart_log", "nvme smart-log -o json: a drive's health", "nvme smart-log -o json：硬盘健康"
            ),
            _spec("perfquery", "link_errors:read_perfquery", "perfquery: counters of an InfiniBand port", "perfquery：InfiniBand 端口计数"),
            _spec("perftest", "rdma:read_perftest", "ib_write_bw and its kin: RDMA bandwidth", "ib_write_bw 等：RDMA 带宽"),
            _spec("rdma-link", "rdma:read_rdma_link", "rdma -j link show: RDMA ports", "rdma -j link show：RDMA 端口"),
            _spec("rocm-smi", "other_gpu:read_rocm_smi", "rocm-smi -a --json: the GPUs of a host", "rocm-smi -a --json：主机的 GPU"),
            _spec(
                "rocm-smi-partition",
                "other_gpu:read_rocm_smi_partition",
                "rocm-smi --showcomputepartition --showmemorypartition --json: how GPUs are divided",
                "rocm-smi --showcomputepartition --showmemorypartition --json：GPU 分区",
            ),
            _spec("rvs", "other_gpu:read_rvs", "rvs: GPU stress, intervals and answers", "rvs：GPU 压力测试"),
            _spec("sglang-metrics", "exposition:read_sglang_metrics", "SGLang /metrics: Prometheus text", "SGLang /metrics：Prometheus 文本"),
            _spec("smartctl", "nvme_health:read_smartctl", "smartctl -x --json: a drive's health", "smartctl -x --json：硬盘健康"),
            _spec(
                "sonic-pfcwd",
                "switch:read_sonic_pfcwd",
                "show pfcwd stats --empty (SONiC): PFC watchdog",
                "show pfcwd stats --empty（SONiC）：PFC 看门狗",
            ),
            _spec("sysfs-link", "pci_link:read_sysfs_link", "current/max link speed and width from sysfs", "sysfs 中的当前与额定链路速率和宽度"),
            _spec("unpacking", "unpacking:read_unpacking", "the unpacking form of Quadgate", "本系统的开箱检验表"),
            _spec("vllm-metrics", "exposition:read_vllm_metrics", "vLLM /metrics: Prometheus text", "vLLM /metrics：Prometheus 文本"),
            _spec("xfs-info", "volume:read_xfs_info", "xfs_info: stripe geometry", "xfs_info：条带几何"),
            *(_spec(client.name, client.where, client.reads.en, client.reads.zh) for client in CLIENTS.values()),
        ]
    )
)


def read(name: str, data: bytes) -> Reading:
    """Read one file with the named reader. An unknown name, and a file larger than any tool's output, are problems, never an exception."""
    spec = READERS.get(name)
    if spec is None:
        text = Text("There is no reader {name}. Known: {known}.", "没有名为 {name} 的读取器。已有：{known}。").fill(
            name=name, known=", ".join(READERS)
        )
        return Reading(problems=(Problem("unknown_tool", text),))
    problem = too_large(data)
    return Reading(problems=(problem,)) if problem is not None else _of_its_own_tool(name, data, spec.load()(data))


def _of_its_own_tool(name: str, data: bytes, reading: Reading) -> Reading:
    """Return the reading of a client's file with the problem that it bears the signature of another client and not of this one, where so.

    Their files share names of fields, and mean other things by them. One that bears no signature is read as who asks says.
    """
    if name not in CLIENTS or not reading.observations:
        return reading
    value = first_document(data)
    named = [client.name for client in CLIENTS.values() if client.known_by(value)]
    if not named or name in named:
        return reading
    text = Text("The file bears the signature of {other}, not of {name}.", "文件带有 {other} 的特征，并非 {name} 的结果。")
    return Reading(reading.observations, (*reading.problems, Problem("other_tool", text.fill(other=", ".join(named), name=name))))


def too_large(data: bytes) -> Problem | None:
    """Return the problem of a file that is larger than any tool's output, or that holds more values: reading it would take memory without end."""
    if len(data) > LARGEST:
        text = Text("The file has {n} bytes; at most {most} are read.", "文件有 {n} 字节；最多读取 {most} 字节。").fill(n=len(data), most=LARGEST)
        return Problem("too_large", text)
    parts = sum(data.count(mark) for mark in _PARTS)
    if parts > MOST_PARTS:
        text = Text("The file holds {n} values; at most {most} are read.", "文件含 {n} 个值；最多读取 {most} 个。").fill(n=parts, most=MOST_PARTS)
        return Problem("too_large", text)
    return None
