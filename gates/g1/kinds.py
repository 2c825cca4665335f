"""What an order and a packing list may hold, kind by kind: its name, whether a piece carries a serial number, and which hosts' tools read it.

The one table of kinds: an engagement file accepts these and no others, and the judge knows each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from gates.text import Text


@dataclass(frozen=True)
class Kind:
    """One kind of item. `read_on`: the inventory groups whose hosts tell its serial numbers; empty: no tool does, the unpacking form does."""

    name: Text  # plural
    read_on: tuple[str, ...] = ()
    only_delivered: bool = True  # a further one that a host reports was not delivered: a finding. False: the site's own may stand beside
    counted: bool = False  # of the site's own servers as a rule: ordered by number, without serial numbers in the vendor's packing list
    serial: bool = True  # every piece carries a serial number. False: a packing list may count such pieces by kind and model instead


KINDS: MappingProxyType[str, Kind] = MappingProxyType(
    {
        "array": Kind(Text("arrays", "阵列"), ("storage",)),
        "drive": Kind(Text("drives", "硬盘"), ("storage",)),
        "nic": Kind(Text("network adapters", "网卡"), ("storage",)),
        "gpu": Kind(Text("GPUs", "GPU"), ("engine",), counted=True),
        "server": Kind(Text("servers", "服务器"), ("engine", "storage"), only_delivered=False),
        "switch": Kind(Text("switches", "交换机")),
        "cable": Kind(Text("cables", "线缆"), serial=False),
        "optic": Kind(Text("optical modules", "光模块"), serial=False),
        "transceiver": Kind(Text("transceivers", "收发器"), serial=False),
        "rail": Kind(Text("rails", "导轨"), serial=False),
        "accessory": Kind(Text("accessories", "附件"), serial=False),
        "document": Kind(Text("documents", "随机文件"), serial=False),
        "license": Kind(Text("licences", "许可"), serial=False),
        "other": Kind(Text("other items", "其他物品"), serial=False),
    }
)


def kind_name(kind: str) -> Text:
    """Return the plural of a kind for people."""
    return KINDS[kind].name if kind in KINDS else Text(kind, kind)


def readable(kind: str) -> bool:
    """Tell whether a tool on a host reads the identity of this kind."""
    return kind in KINDS and bool(KINDS[kind].read_on)


def passive(kind: str) -> bool:
    """Tell whether this kind is one that no tool reads and the unpacking form confirms."""
    return kind in KINDS and not KINDS[kind].read_on


def needs_serial(kind: str) -> bool:
    """Tell whether every piece of this kind stands in a packing list by a serial number of its own; an unknown kind does."""
    return kind not in KINDS or KINDS[kind].serial
