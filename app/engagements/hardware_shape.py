"""The shapes of `targets.packages`, `.fabric`, `.array` and `.volume`: every key that the roles read; a mistyped one is refused.

Roles are no part of the service; a test holds their argument_specs against this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from app.engagements.keys import ByKind, Keys, Named
from gates.schema import Choice, Items, Problems, Spec, Whole, Words, YesNo

NAME = Words(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "a host name of lower-case letters, digits and dashes", "由小写字母、数字和连字符组成的主机名")
NETDEV = Words(r"[A-Za-z0-9_.@-]{1,15}", "the name of a network interface", "网络接口名")
ADDRESS = Words(r"[A-Za-z0-9:][A-Za-z0-9.:-]{0,252}", "a host name or an IP address", "主机名或 IP 地址")
NQN = Words(
    r"nqn\.[0-9]{4}-(0[1-9]|1[0-2])\.[^\s\"\\*?\[\]\x00-\x1f\x7f]{1,200}",
    "an NVMe qualified name such as nqn.2026-11.example:array1",
    "NVMe 限定名，如 nqn.2026-11.example:array1",
)
PATH = Words(r"/[^\x00-\x20\x7f]{1,200}", "an absolute path without spaces", "不含空格的绝对路径")
PLACE = Words(
    r"(/|\{root\}/)[^\x00-\x20\x7f]{1,200}", "an absolute path without spaces, or one below {root}", "不含空格的绝对路径，或 {root} 之下的路径"
)
DRIVE = Words(
    r"/dev/(disk/by-(id|path|partuuid|partlabel)|mapper)/[^\s/\x00-\x1f\x7f]{1,200}",
    "a link below /dev/disk/by-id (or by-path, by-partuuid, by-partlabel) or /dev/mapper; the kernel may give a name like /dev/nvme1n1 to another "
    "drive at the next boot",
    "/dev/disk/by-id（或 by-path、by-partuuid、by-partlabel）或 /dev/mapper 下的链接；/dev/nvme1n1 之类的名称在下次启动后可能指向另一块盘",
)
OPTIONS = Items(Words(r"[A-Za-z0-9_.:=/+@-]{1,100}", "one mount option, without a comma", "一个挂载选项，不含逗号"), least=1)
INTERFACE = Keys({"netdev": NETDEV, "device": Words(r"[A-Za-z0-9_.-]{1,63}", "the name of an RDMA device", "RDMA 设备名")}, {"port": Whole(1, 255)})
INTERFACES = Items(INTERFACE, least=1)


@dataclass(frozen=True)
class AsText:
    """A text that people also write as a bare number: 4.1 for "4.1"."""

    inner: Spec

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        """Return the text, or BAD after adding a problem."""
        number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        return self.inner.read(str(value) if number else value, path, problems)

    def write(self, value: Any) -> Any:
        """Return the plain form."""
        return value


PACKAGES = Keys(
    {"needed": Items(Words(r"[A-Za-z0-9][A-Za-z0-9+._-]{0,79}", "the name of a package", "软件包名"), least=1)},
    {"archive": PATH, "archive_sha256": Words(r"[0-9a-f]{64}", "the 64 hexadecimal digits of a SHA-256", "SHA-256 的 64 位十六进制数字")},
)
FABRIC = Keys(
    {},
    {
        "configure": YesNo(),
        "interfaces": INTERFACES,
        "hosts": Named(NAME, Keys({"interfaces": INTERFACES})),
        "mtu": Whole(68, 65535),
        "priority": Whole(0, 7),
        "trust": Choice(("dscp", "pcp")),
        "dscp": Whole(0, 63),
        "gid_index": Whole(0, 255),
        "speed_gbit": Whole(1, 10_000),
        "qos_tool": Choice(("mlnx_qos", "none")),
    },
)
ARRAY = Keys(
    {
        "subsystem": NQN,
        "transport": Choice(("rdma", "tcp")),
        "portals": Items(Keys({"address": ADDRESS}, {"port": Whole(1, 65535), "host_address": ADDRESS, "host_interface": NETDEV}), least=1),
        "namespaces": Whole(1, 1024),
    },
    {
        "iopolicy": Choice(("numa", "round-robin", "queue-depth")),
        "persistent": Choice(("discovery", "service", "none")),
        "discovery_port": Whole(1, 65535),
        "io_queues": Whole(1, 65535),
        "queue_size": Whole(16, 65535),
        "keep_alive_s": Whole(0, 86_400),
        "reconnect_delay_s": Whole(1, 86_400),
        "ctrl_loss_s": Whole(-1, 10_000_000),
        "host_nqn": NQN,
        "config_json": PATH,
    },
)
_ANY: dict[str, Spec] = {"hosts": Items(NAME, least=1), "persistent": YesNo(), "options": OPTIONS}
_STRIPES: dict[str, Spec] = {"members": Whole(1, 256), "chunk_kib": Whole(4, 65_536)}
VOLUME = Named(
    Words(
        r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}",
        "a name of 1 to 32 letters, digits, dots, dashes or underscores",
        "1 到 32 个字母、数字、点、连字符或下划线",
    ),
    ByKind(
        {
            "md_xfs": Keys(
                {"mount": PLACE},
                {
                    **_ANY,
                    **_STRIPES,
                    "devices": Items(DRIVE, least=1, most=256),
                    "device": Words(r"/dev/md/[A-Za-z0-9_.-]{1,32}", "a name below /dev/md", "/dev/md 下的名称"),
                    "mdadm_conf": Words(r"[A-Za-z0-9_./-]{1,100}", "a file below /etc", "/etc 下的文件"),
                },
            ),
            "xfs": Keys({"mount": PLACE, "device": DRIVE}, _ANY),
            "loop_xfs": Keys({"mount": PLACE, "image": PLACE}, {**_ANY, **_STRIPES, "size_mib": Whole(300, 16_777_216)}),
            "nfs": Keys(
                {
                    "mount": PLACE,
                    "source": Words(r"[A-Za-z0-9\[][A-Za-z0-9.:\[\]-]{0,252}:/[^\x00-\x20\x7f]{0,200}", "SERVER:/PATH", "服务器:/路径"),
                },
                {**_ANY, "version": AsText(Choice(("3", "4", "4.0", "4.1", "4.2")))},
            ),
            "directory": Keys({"mount": PLACE}, {"hosts": _ANY["hosts"]}),
        }
    ),
)


def check_packages(targets: Mapping[str, Any], problems: Problems) -> None:
    """Refuse packages for a simulated rack: they would be those of the machine below it."""
    if "packages" in targets and "rack" in targets:
        problems.add(
            "targets.packages",
            "a simulated rack has no packages of its own, and those of the machine below it are not touched; leave this section out.",
            "模拟机柜没有自己的软件包，其所在机器的软件包不作改动；请删去此小节。",
        )
