"""Where the fatal counters of a soak come from: the kernel's files, programs, and the array's own statistics.

Each function returns {counter: {part: whole number}}, a part being a drive, a port, a card or the array. What tells nothing has no row.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
from typing import Any, Callable, Dict, List, Optional, Tuple

from probe.part_health import Drive, whole
from probe.selfexec import clean_environment

ASK_S = 20.0
PATHS = "/usr/local/sbin:/usr/sbin:/sbin"  # a job's PATH need not have them
STORM = re.compile(r"pause_storm\w*_events|pfc\w*storm|pfc\w*watchdog")  # mlx5: tx_pause_storm_warning_events, tx_pause_storm_error_events
_SYSFS = {
    "ecc_uncorrected": ("/devices/system/edac/mc/mc*/ue_count", ""),
    "aer_fatal": ("/bus/pci/devices/*/aer_dev_fatal", "TOTAL_ERR_FATAL"),
    "aer_nonfatal": ("/bus/pci/devices/*/aer_dev_nonfatal", "TOTAL_ERR_NONFATAL"),
    "link_down_events": ("/class/infiniband/*/ports/*/counters/link_downed", ""),
    # What is mended by itself. No default plan forbids it; its growth is told, and a plan may name it among those that must not grow.
    "ecc_corrected": ("/devices/system/edac/mc/mc*/ce_count", ""),
    "aer_correctable": ("/bus/pci/devices/*/aer_dev_correctable", "TOTAL_ERR_COR"),
    "pcie_replays": ("/class/drm/card*/device/pcie_replay_count", ""),
    "link_symbol_errors": ("/class/infiniband/*/ports/*/counters/symbol_error", ""),
    "rdma_ack_timeouts": ("/class/infiniband/*/ports/*/hw_counters/local_ack_timeout_err", ""),
    "rdma_out_of_sequence": ("/class/infiniband/*/ports/*/hw_counters/out_of_sequence", ""),
    "rdma_sequence_errors": ("/class/infiniband/*/ports/*/hw_counters/packet_seq_err", ""),
    "rdma_not_ready": ("/class/infiniband/*/ports/*/hw_counters/rnr_nak_retry_err", ""),
    "rdma_congestion_notices": ("/class/infiniband/*/ports/*/hw_counters/np_cnp_sent", ""),
}
MENDED = (
    *("ecc_corrected", "aer_correctable", "pcie_replays", "rdma_ack_timeouts"),
    *("rdma_out_of_sequence", "rdma_sequence_errors", "rdma_not_ready", "rdma_congestion_notices"),
    *("nvme_error_entries", "nvme_percentage_used", "nvme_warning_minutes", "nvme_throttles"),
    *("link_corrected_bits", "link_symbol_errors"),
)
CORRECTED = "rx_corrected_bits_phy"  # mlx5: bits that FEC corrected
_CARDS = ("ecc_uncorrected", "ecc_deferred")
DRIVES = {"nvme_media_errors": "media_errors", "nvme_critical_warning": "critical_warning"}
# What a drive's health log tells beside: of drives that are asked for the fatal ones.
DRIVES_TOO = {
    "nvme_error_entries": "num_err_log_entries",
    "nvme_percentage_used": "percent_used",
    "nvme_warning_minutes": "warning_temp_time",
    "nvme_throttles": "thm_temp2_trans_count",
}
HOW = {
    "ecc_uncorrected": "EDAC or the accelerator's driver",
    "ecc_deferred": "the RAS files of AMD's driver (a line `de:` in /sys/class/drm/card*/device/ras/*_err_count)",
    "aer_fatal": "PCI devices with AER",
    "aer_nonfatal": "PCI devices with AER",
    "link_down_events": "RDMA ports",
    "ecc_corrected": "EDAC (a host with ECC memory and its driver)",
    "aer_correctable": "PCI devices with AER",
    "pcie_replays": "the driver of AMD's accelerators (pcie_replay_count)",
    "rdma_ack_timeouts": "RDMA ports whose driver counts them (hw_counters/local_ack_timeout_err)",
    **dict.fromkeys(
        ("rdma_out_of_sequence", "rdma_sequence_errors", "rdma_not_ready", "rdma_congestion_notices"),
        "RDMA ports whose driver counts them (hw_counters)",
    ),
    **dict.fromkeys(DRIVES_TOO, "`nvme smart-log -o json` (nvme-cli, as root)"),
    "nvme_media_errors": "`nvme smart-log -o json` (nvme-cli, as root)",
    "nvme_critical_warning": "`nvme smart-log -o json` (nvme-cli, as root)",
    "link_corrected_bits": "`ethtool -S` of a port that counts what FEC corrected (rx_corrected_bits_phy)",
    "link_symbol_errors": "RDMA ports",
    "pfc_storm_events": "`ethtool -S` of a port that counts pause storms",
}
Told = Dict[str, Dict[str, int]]  # counter -> part -> figure


def of_sysfs(sysfs: str = "/sys") -> Told:
    """Return what the kernel counts: memory errors, errors of PCI devices, links that went down."""
    out: Told = {}
    for name, (pattern, word) in _SYSFS.items():
        for path in glob.glob(sysfs + pattern):
            value = _counter(path, word)
            if value is not None:
                out.setdefault(name, {})[path] = value
    return out


def of_cards(cards: Dict[str, Dict[str, int]]) -> Told:
    """Return the memory errors of accelerators (rows of probe.vitals)."""
    return {name: found for name in _CARDS for found in [{card: row[name] for card, row in cards.items() if name in row}] if found}


def of_array(document: Optional[Any]) -> Told:
    """Return the counters of the array's statistics, {counters: {name: whole number}}."""
    counters = document.get("counters") if isinstance(document, dict) else None
    if not isinstance(counters, dict):
        return {}
    return {str(name): {"array": value} for name, value in counters.items() if isinstance(value, int) and not isinstance(value, bool)}


def of_drives(found: List[Drive]) -> Told:
    """Return media errors, critical warnings and what else the health logs of the host's NVMe subsystems count, local or over a fabric.

    A subsystem with several paths has one health log; a path that is down for an agreed while takes nothing away as long as another is up.
    """
    out: Told = {}
    for drive in found:
        for name, key in {**DRIVES, **DRIVES_TOO}.items():
            value = whole(drive.log.get(key))
            if value is not None:
                parts = out.setdefault(name, {})
                parts[drive.subsystem] = max(value, parts.get(drive.subsystem, 0))
    return out


def of_ports(run: Callable[[List[str]], str], ports: Optional[List[str]] = None, sysfs: str = "/sys") -> Told:
    """Return the pause storms that network ports counted, and the bits that FEC corrected. Plain pause frames are how a lossless network works."""
    names = ports if ports is not None else [path.split("/")[-2] for path in sorted(glob.glob(sysfs + "/class/net/*/device"))]
    out: Told = {}
    for port in names:
        rows = [line.rpartition(":") for line in run(["ethtool", "-S", port]).splitlines()]
        storms = [int(value) for name, _, value in rows if STORM.search(name) and value.strip().isdigit()]
        corrected = [int(value) for name, _, value in rows if name.strip() == CORRECTED and value.strip().isdigit()]
        for name, told in (("pfc_storm_events", storms), ("link_corrected_bits", corrected)):
            if told:
                out.setdefault(name, {})[port] = sum(told)
    return out


def ask(argv: List[str], path_prefix: Optional[List[str]] = None) -> str:
    """Return what a program prints, empty where it is not there, fails, or does not answer in time. `path_prefix`: where to look first."""
    return answer(argv, path_prefix)[0]


def answer(argv: List[str], path_prefix: Optional[List[str]] = None) -> Tuple[str, str]:
    """Return what a program prints, and, where that is not all that it should have said, why (its last words, at most 200 characters)."""
    env = clean_environment()
    path = ":".join([*(path_prefix or []), env.get("PATH") or os.defpath, PATHS])
    program = shutil.which(argv[0], path=path)
    if not program:
        return "", "it is not installed"
    try:
        done = subprocess.run(
            [program, *argv[1:]],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=ASK_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", "it gave no answer within %g s" % ASK_S
    except (OSError, subprocess.SubprocessError) as error:
        return "", "it cannot be run: %s" % error
    if done.returncode != 0:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return "", (last[0] if last else "it ended with %d" % done.returncode)[:200]
    return done.stdout.decode("utf-8", "replace"), ""


def _counter(path: str, word: str) -> Optional[int]:
    try:
        with open(path, encoding="ascii") as f:
            lines = f.read().split("\n")
        return int(next(line.split()[-1] for line in lines if line.startswith(word) and line.strip()))
    except (OSError, ValueError, StopIteration):
        return None
