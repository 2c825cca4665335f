"""The list of commands that the probe runs on one host, from what the host was seen to have. Pure.

What is seen here only names devices. Whether they are the right ones is judged from the evidence, by serial number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

NAMESPACE = re.compile(r"(nvme\d+)n\d+")
INTERFACE = re.compile(r"[A-Za-z0-9_.:@-]{1,32}")
# A load must be alive before and after the reading, or the reading tells nothing about a link under load.
UNDER_LOAD = """
alive() { if kill -0 "$load" 2>/dev/null; then echo "# load alive $1 reading: yes"; else echo "# load alive $1 reading: no"; fi; }
settle=$1
shift
fio "$@" >/dev/null 2>&1 &
load=$!
sleep "$settle"
alive before
lspci -D -vvv
alive after
kill "$load" 2>/dev/null
wait "$load" 2>/dev/null
exit 0
"""
# Totals and parts of each device and of the port that it hangs on: a bad link may count on either side only. 0x0108: NVMe, 0x02: network, 0x12: GPU.
AER = """
for device in "$1"/bus/pci/devices/*; do
  read -r class <"$device/class" 2>/dev/null || continue
  case $class in 0x0108*|0x02*|0x12*) grep -Hs . "$device"/aer_dev_* "$device"/../aer_dev_* ;; esac
done
exit 0
"""
GID_TYPES = 'grep -Hs . "$1"/class/infiniband/*/ports/*/gid_attrs/types/*; exit 0'  # an unused place of the table cannot be read
IB_COUNTERS = 'grep -Hs . "$1"/class/infiniband/*/ports/*/counters/*; exit 0'
GPU_RAS = 'grep -Hs . "$1"/bus/pci/devices/*/ras/*_err_count; exit 0'
# The journal keeps the whole boot; the ring buffer forgets. An end is set, since a fault may write without one.
KERNEL_LOG = """
if journalctl -k -b -q --no-pager -o short-monotonic -n 1 2>/dev/null | grep -q .; then
  journalctl -k -b -q --no-pager -o short-monotonic -n 100000
else
  dmesg
fi
"""
# Governors, NUMA nodes and command line, from the kernel's own files: /proc lies beside /sys.
TUNING = """
grep -Hs . "$1"/devices/system/cpu/cpufreq/policy*/scaling_governor "$1"/devices/system/cpu/cpufreq/policy*/affected_cpus
for node in "$1"/devices/system/node/node[0-9]*; do
  grep -Hs . "$node/cpulist"
  grep -Hs MemTotal "$node/meminfo"
done
grep -Hs . "${1%/sys}/proc/cmdline"
exit 0
"""
SECTION = re.compile(r"^--- (\w+)$", re.MULTILINE)
NPU = re.compile(r"NPU ID\s*:\s*([0-9]{1,4})")
STRESS_S = 1800  # how long the stress test of GPUs may take where the site does not say
LOAD_S = 3600  # the longest that the load can last when nobody ends it


def survey_spec(
    seen: str,
    plan: str,
    host: str,
    groups: Sequence[str],
    path_prefix: Sequence[str],
    fio: Mapping[str, Any],
    sysfs: str = "/sys",
    stress: Mapping[str, Any] | None = None,
    switches: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the probe's survey specification for `plan` (survey or storage). `sysfs` is where the kernel's files are read.

    `stress`: the site's stress test of its GPUs (targets.gpu_stress); where there is none, no survey puts a load on them.
    `switches`: which host asks which switch for its PFC watchdog, and how (targets.pfc_watchdog).
    """
    first, *rest = SECTION.split(seen)
    told = {"drives": first, **dict(zip(rest[::2], rest[1::2]))}
    namespaces = _namespaces(_json(told["drives"]))
    ports = [row for row in _json(told.get("rdma", "")) or [] if isinstance(row, dict)]
    tools, npus = told.get("tools", "").split(), NPU.findall(told.get("npus", ""))
    commands = _storage(namespaces, fio) if plan == "storage" else _survey(namespaces, ports, groups, sysfs, _gpus(tools, npus, sysfs))
    if plan == "survey" and "engine" in groups:
        commands += _stress(stress or {})
    if plan == "survey":
        asked = [switch for switch in switches if switch["host"] == host]
        commands += [_command(f"sonic-pfcwd.{s['switch']}", "sonic-pfcwd", [str(word) for word in s["command"]], timeout_s=60) for s in asked]
    return {"host": host, "commands": commands, "path_prefix": list(path_prefix)}


def _gpus(tools: Sequence[str], npus: Sequence[str], sysfs: str) -> list[dict[str, Any]]:
    """Return the commands for the GPUs, of whichever tools the host has. A host with none is asked by amd-smi, whose absence is then evidence."""
    commands = []
    if "amd-smi" in tools or not {"rocm-smi", "npu-smi"} & set(tools):
        commands.append(_command("amd-smi-static", "amd-smi-static", ["amd-smi", "static", "--json"], ["amd-smi", "version"], timeout_s=120))
        commands.append(_command("amd-smi-metric", "amd-smi-metric", ["amd-smi", "metric", "--json"], timeout_s=120))
        commands.append(_command("amd-smi-firmware", "amd-smi-firmware", ["amd-smi", "firmware", "--json"], timeout_s=120))
        commands.append(_command("amd-smi-partition", "amd-smi-partition", ["amd-smi", "partition", "--current", "--json"], timeout_s=120))
        commands.append(_command("amd-smi-topology", "amd-smi-topology", ["amd-smi", "topology", "--json"], timeout_s=120))
    elif "rocm-smi" in tools:
        commands.append(_command("rocm-smi", "rocm-smi", ["rocm-smi", "-a", "--json"], ["rocm-smi", "--version"], timeout_s=120))
        divided = ["rocm-smi", "--showcomputepartition", "--showmemorypartition", "--json"]
        commands.append(_command("rocm-smi-partition", "rocm-smi-partition", divided, timeout_s=120))
        commands.append(_command("gpu-ras", "gpu-ras", ["sh", "-c", GPU_RAS, "read-gpu-ras", sysfs]))
    if "npu-smi" in tools:
        commands.append(_command("npu-smi", "npu-smi", ["npu-smi", "info"], ["npu-smi", "-v"], timeout_s=120))
        for npu in npus:
            for what in ("board", "ecc"):
                commands.append(_command(f"npu-smi-{what}.{npu}", f"npu-smi-{what}", ["npu-smi", "info", "-t", what, "-i", npu], timeout_s=60))
    return commands


def _survey(
    namespaces: Sequence[str], ports: Sequence[Mapping[str, Any]], groups: Sequence[str], sysfs: str, gpus: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    commands = [_command("dmidecode", "dmidecode", ["dmidecode", "-t", "1,17,127"], ["dmidecode", "--version"])]
    # Type 127 ends the table. Processors stand alone: a doubtful processor says nothing against the machine's own label or its memory.
    commands.append(_command("dmidecode-cpu", "dmidecode", ["dmidecode", "-t", "4,127"]))
    commands.append(_command("kernel-log", "kernel-log", ["sh", "-c", KERNEL_LOG], timeout_s=60))
    commands.append(_command("host-tuning", "host-tuning", ["sh", "-c", TUNING, "read-host-tuning", sysfs]))
    if "engine" in groups:
        commands += gpus
        # Paths to an array that is connected at arrival already; what links the GPUs are rated for, where their own tool does not tell it.
        if "storage" not in groups:
            commands.append(_command("nvme-list-subsys", "nvme-list-subsys", ["nvme", "list-subsys", "-o", "json"]))
            commands.append(_command("lspci", "lspci", ["lspci", "-D", "-vvv"], ["lspci", "--version"]))
    if "storage" in groups:
        commands.append(_command("nvme-list", "nvme-list", ["nvme", "list", "-o", "json"], ["nvme", "version"]))
        commands.append(_command("nvme-list-subsys", "nvme-list-subsys", ["nvme", "list-subsys", "-o", "json"]))
        commands.append(_command("lspci", "lspci", ["lspci", "-D", "-vvv"], ["lspci", "--version"]))
        for index, controller in enumerate(sorted({NAMESPACE.fullmatch(n).group(1) for n in namespaces})):  # type: ignore[union-attr]
            device = f"/dev/{controller}"
            commands.append(_command(f"nvme-id-ctrl.{controller}", "nvme-id-ctrl", ["nvme", "id-ctrl", device, "-o", "json"]))
            commands.append(_command(f"nvme-smart-log.{controller}", "nvme-smart-log", ["nvme", "smart-log", device, "-o", "json"]))
            commands.append(_command(f"nvme-error-log.{controller}", "nvme-error-log", ["nvme", "error-log", device, "-o", "json"]))
            commands.append(_command(f"nvme-self-test-log.{controller}", "nvme-self-test-log", ["nvme", "self-test-log", device, "-o", "json"]))
            version = ["smartctl", "--version"] if index == 0 else None
            commands.append(_command(f"smartctl.{controller}", "smartctl", ["smartctl", "-x", "--json", device], version))
        commands.append(_command("aer", "aer", ["sh", "-c", AER, "read-aer", sysfs]))
        commands.append(_command("rdma-link", "rdma-link", ["rdma", "-j", "link", "show"], ["rdma", "-V"]))
        commands.append(_command("ibv-devinfo", "ibv-devinfo", ["ibv_devinfo", "-v"]))
        commands.append(_command("ip-link", "ip-link", ["ip", "-j", "-s", "link", "show"], ["ip", "-V"]))
        commands.append(_command("gid-types", "gid-types", ["sh", "-c", GID_TYPES, "read-gid-types", sysfs]))
        commands.append(_command("ib-counters", "ib-counters", ["sh", "-c", IB_COUNTERS, "read-ib-counters", sysfs]))
        interfaces = sorted({str(p.get("netdev")) for p in ports if INTERFACE.fullmatch(str(p.get("netdev") or ""))})
        for index, interface in enumerate(interfaces):
            commands.append(_command(f"ethtool.{interface}", "ethtool", ["ethtool", interface], ["ethtool", "--version"] if index == 0 else None))
            commands.append(_command(f"ethtool-driver.{interface}", "ethtool-driver", ["ethtool", "-i", interface]))
            commands.append(_command(f"ethtool-module.{interface}", "ethtool-module", ["ethtool", "-m", interface]))
            commands.append(_command(f"ethtool-stats.{interface}", "ethtool-stats", ["ethtool", "-S", interface]))
            commands.append(_command(f"ethtool-fec.{interface}", "ethtool-fec", ["ethtool", "-I", "--show-fec", interface]))
            commands.append(_command(f"mlnx-qos.{interface}", "mlnx-qos", ["mlnx_qos", "-i", interface]))
    return commands


def _stress(stress: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the stress test of the GPUs that the site names: the tool's own configuration and how long it may take. Level 3 logs every interval."""
    if not stress.get("config"):
        return []
    argv = ["rvs", "-c", str(stress["config"]), "-d", "3"]
    return [_command("rvs", "rvs", argv, ["rvs", "--version"], timeout_s=int(stress.get("timeout_s", STRESS_S)))]


def _storage(namespaces: Sequence[str], fio: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Read every drive alone (read-only: nothing on it changes), then all links while all drives are read, then what the drives logged meanwhile."""
    runtime = int(fio.get("runtime_s", 30))
    commands = [_command("nvme-list", "nvme-list", ["nvme", "list", "-o", "json"], ["nvme", "version"])]
    commands.append(_command("nvme-list-subsys", "nvme-list-subsys", ["nvme", "list-subsys", "-o", "json"]))
    controllers = sorted({NAMESPACE.fullmatch(n).group(1) for n in namespaces})  # type: ignore[union-attr]
    for controller in controllers:
        commands.append(_command(f"nvme-id-ctrl.{controller}", "nvme-id-ctrl", ["nvme", "id-ctrl", f"/dev/{controller}", "-o", "json"]))
    for index, namespace in enumerate(namespaces):
        argv = ["fio", f"--name=read-{namespace}", f"--filename=/dev/{namespace}", "--rw=read", f"--bs={fio.get('block', '1M')}"]
        argv += [f"--iodepth={int(fio.get('depth', 32))}", "--direct=1", "--ioengine=libaio", "--readonly", "--time_based", f"--runtime={runtime}"]
        argv.append("--output-format=json")
        commands.append(_command(f"fio.{namespace}", "fio", argv, ["fio", "--version"] if index == 0 else None, timeout_s=runtime + 60))
    if namespaces:
        devices = ":".join(f"/dev/{n}" for n in namespaces)
        argv = ["sh", "-c", UNDER_LOAD, "read-links-under-load", str(fio.get("settle_s", 1)), "--name=load", f"--filename={devices}", "--rw=read"]
        argv += ["--bs=1M", "--iodepth=8", "--direct=1", "--ioengine=libaio", "--readonly", "--time_based", f"--runtime={LOAD_S}"]
        commands.append(_command("lspci-under-load", "lspci", argv, ["lspci", "--version"], timeout_s=60))
    for controller in controllers:  # the second reading: what the survey read must still stand there
        commands.append(_command(f"nvme-smart-log.{controller}", "nvme-smart-log", ["nvme", "smart-log", f"/dev/{controller}", "-o", "json"]))
        commands.append(_command(f"nvme-error-log.{controller}", "nvme-error-log", ["nvme", "error-log", f"/dev/{controller}", "-o", "json"]))
    return commands


def _command(name: str, tool: str, argv: list[str], version_argv: list[str] | None = None, timeout_s: int = 30) -> dict[str, Any]:
    """Return one command. `tool` is the name of its reader. One command of a tool tells the version: it is the same program for the others."""
    command: dict[str, Any] = {"name": name, "tool": tool, "argv": argv, "timeout_s": timeout_s}
    if version_argv:
        command["version_argv"] = version_argv
    return command


def _namespaces(document: Any) -> list[str]:
    """Return the namespaces (nvme0n1) of any shape of `nvme list -o json`, in order, each once."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                name = str(inner).rsplit("/", 1)[-1]
                if key in ("NameSpace", "DevicePath") and NAMESPACE.fullmatch(name) and name not in found:
                    found.append(name)
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(document)
    return sorted(found, key=lambda name: [int(n) for n in re.findall(r"\d+", name)])


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"survey_spec": survey_spec}
