"""What the ports of the storage network counted: for how long they were paused or paused the other side, and errors of the link.

`ethtool -S` counts since the driver was loaded; pauses in microseconds, by priority. Asked before and after what is measured, never within.
Bits that FEC corrected and raw errors of each lane stand apart from errors: a PAM4 link always has some, so they are a rate of the line's bits.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any, Callable, Dict, List, Optional

from probe.fatal_sources import ask

# mlx5 (kernel, mlx5 counters) and bnxt_en; a driver that counts frames alone does not tell for how long.
_PAUSES = (
    re.compile(r"(?P<way>rx|tx)_(?P<what>prio[0-7]|global)_pause_duration"),
    re.compile(r"pfc_pri(?P<priority>[0-7])_(?P<way>rx|tx)_duration_us"),
)
_ERRORS = frozenset(
    (
        "rx_crc_errors_phy",
        "rx_symbol_err_phy",
        "rx_pcs_symbol_err_phy",
        "rx_discards_phy",
        "tx_discards_phy",
        "link_down_events_phy",
        "module_high_temp",
    )
)
_CORRECTED = re.compile(r"rx_corrected_bits_phy|rx_err_lane_[0-9]{1,2}_phy")  # mlx5, in bits
_SPEED = re.compile(r"^\s*Speed: ([0-9]{1,9})Mb/s\s*$", re.MULTILINE)
Ports = Dict[str, Dict[str, Any]]


def port_counters(ports: Optional[List[str]] = None, path_prefix: Optional[List[str]] = None) -> Ports:
    """Return {port: {"pauses_us": {"rx_prio3": us, ...}, "errors": {name: count}, "corrected": {name: bits}, "bit_per_s": speed}}.

    `ports`: by name; None for those behind RDMA devices. A port that tells none of the counters has no row, one that tells no corrected bits
    or no speed has no `bit_per_s`.
    """
    run = functools.partial(ask, path_prefix=path_prefix)
    return of(run, ports if ports is not None else rdma_ports(run))


def of(run: Callable[[List[str]], str], ports: List[str]) -> Ports:
    """Return what these ports tell when `run` asks."""
    out: Ports = {}
    for port in ports:
        row: Dict[str, Any] = {"pauses_us": {}, "errors": {}, "corrected": {}}
        for line in run(["ethtool", "-S", port]).splitlines():
            name, _, value = (part.strip() for part in line.partition(":"))
            found = next((m for m in (pattern.fullmatch(name) for pattern in _PAUSES) if m), None)
            if found and value.isdigit():
                words: Dict[str, Any] = found.groupdict()
                row["pauses_us"]["%s_%s" % (words["way"], words.get("what") or "prio" + words["priority"])] = int(value)
            elif name in _ERRORS and value.isdigit():
                row["errors"][name] = int(value)
            elif _CORRECTED.fullmatch(name) and value.isdigit():
                row["corrected"][name] = int(value)
        speed = _SPEED.search(run(["ethtool", port])) if row["corrected"] else None
        if speed:
            row["bit_per_s"] = int(speed.group(1)) * 1000000
        if any(row.values()):
            out[port] = row
    return out


def rdma_ports(run: Callable[[List[str]], str]) -> List[str]:
    """Return the network ports behind the host's RDMA devices."""
    try:
        rows = json.loads(run(["rdma", "-j", "link", "show"]) or "[]")
    except ValueError:
        return []
    return sorted({str(row["netdev"]) for row in rows if isinstance(row, dict) and row.get("netdev")}) if isinstance(rows, list) else []
