"""Small files of /sys, as `grep -H . FILE...` prints them: AER counters of PCIe devices, GID types of RDMA ports.

Observations: aer.correctable, aer.nonfatal, aer.fatal (1; labels `address`, `side`: device or its upstream port, read as
`<address>/../aer_dev_fatal`: a bad link may count on the partner only); rdma.gid_type (text; labels `device`, `port`, `index`).
"""

from __future__ import annotations

import re
from decimal import Decimal

from gates.model import Reading
from gates.readers.common import Collector, decode

_AER = re.compile(r"^\S*/([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/(\.\./)?aer_dev_(correctable|nonfatal|fatal):(\S+)\s+([0-9]{1,20})$")
_TOTALS = {"correctable": "TOTAL_ERR_COR", "nonfatal": "TOTAL_ERR_NONFATAL", "fatal": "TOTAL_ERR_FATAL"}
_GID = re.compile(r"^\S*/infiniband/([A-Za-z0-9_.-]{1,40})/ports/([0-9]{1,3})/gid_attrs/types/([0-9]{1,3}):(.+)$")
_RAS = re.compile(r"^\S*/([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/ras/([a-z0-9_]{1,30})_err_count:(ue|ce): ([0-9]{1,20})$")
GID_TYPES = ("IB/RoCE v1", "RoCE v2")


def read_aer(data: bytes) -> Reading:
    """Read the totals of the AER counters. A file whose total does not add up to its parts was not read at one moment: a problem."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    parts: dict[tuple[str, str, str], int] = {}
    totals: dict[tuple[str, str, str], int] = {}
    for line in text.splitlines():
        match = _AER.match(line.strip())
        if match is None:
            _strange(line, found)
            continue
        address, upstream, kind, name, raw = match.groups()
        key = (address, "port" if upstream else "device", kind)
        if name == _TOTALS[kind]:
            if key in totals:
                found.trouble("duplicate", "{key} stands twice.", "{key} 重复出现。", key=" ".join(key))
            totals[key] = int(raw)
        else:
            parts[key] = parts.get(key, 0) + int(raw)
    for key, value in totals.items():
        address, side, kind = key
        if value < parts.get(key, 0):
            found.trouble(
                "unit_conflict",
                "The AER total {total} of {key} is less than its parts {sum}.",
                "{key} 的 AER 总数 {total} 小于分项之和 {sum}。",
                total=value,
                key=" ".join(key),
                sum=parts[key],
            )
        else:
            found.see(f"aer.{kind}", Decimal(value), "1", address=address, side=side)
    if not totals:
        found.trouble("unknown_shape", "No AER total is named in this text.", "文本中没有任何 AER 总数。")
    for address, side in dict.fromkeys(key[:2] for key in (*totals, *parts)):  # the kernel offers the three files together
        for kind, name in _TOTALS.items():
            if (address, side, kind) not in totals:
                found.absent(name, None, place=f"{address} {side}")
    return found.reading()


def read_gid_types(data: bytes) -> Reading:
    """Read the type of each GID of the RDMA ports; one that is neither RoCE v1 nor v2 is a problem."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    for line in text.splitlines():
        match = _GID.match(line.strip())
        if match is None:
            _strange(line, found)
        elif match[4].strip() not in GID_TYPES:
            found.trouble("unknown_shape", "GID type {raw} is not known.", "不认识 GID 类型 {raw}。", raw=match[4])
        else:
            found.see("rdma.gid_type", match[4].strip(), "text", device=match[1], port=match[2], index=match[3])
    return found.reading()


def read_gpu_ras(data: bytes) -> Reading:
    """Read the kernel's own ECC counts of AMD GPUs, ras/*_err_count of each device, where no amd-smi is: uncorrectable and correctable.

    Each block has a file of two lines, and the GPUs of a host have the same blocks (drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c): a line or a block
    that one of them lacks was left out, and may be the one that counted.
    """
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    told: dict[str, set[tuple[str, str]]] = {}
    for line in text.splitlines():
        match = _RAS.match(line.strip())
        if match is None:
            _strange(line, found)
            continue
        quantity = "gpu.ecc_uncorrectable" if match[3] == "ue" else "gpu.ecc_correctable"
        found.see(quantity, Decimal(match[4]), "1", address=match[1], memory=match[2])
        told.setdefault(match[1], set()).add((match[2], match[3]))
    if not any(kind == "ue" for counts in told.values() for _, kind in counts):
        found.trouble("unknown_shape", "No count of uncorrectable errors is told.", "未报告不可纠正错误计数。")
    blocks = {block for counts in told.values() for block, _ in counts}
    for address, counts in told.items():
        for block, kind in sorted({(block, kind) for block in blocks for kind in ("ue", "ce")} - counts):
            found.absent(f"{block}_err_count:{kind}", None, address=address)
    return found.reading()


def _strange(line: str, found: Collector) -> None:
    if line.strip():
        found.trouble("unknown_shape", "This line is not what the file of /sys holds: {line}", "该行不是 /sys 文件的内容：{line}", line=line)
