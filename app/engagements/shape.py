"""The shape of an engagement file: which keys there are, and what each may hold. Values are read by gates.schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any

from app.accounts.roles import Role
from app.engagements.hardware_shape import ADDRESS, ARRAY, FABRIC, NAME, NETDEV, PACKAGES, VOLUME
from app.engagements.keys import Keys, Named
from gates.canonical import plain
from gates.g1.kinds import KINDS, needs_serial
from gates.schema import BAD, Choice, Items, Measure, Problems, Whole, Words, YesNo, join

CELLS = ("checkpoint", "tier_read", "fio", "ib_write_bw", "model_load")  # what a plan may name in workload.cells
GROUPS = ("engine", "storage", "loadgen", "bmc")
TEXT = Words()


@dataclass(frozen=True)
class Free:
    """A map whose keys belong to a playbook role: any plain data, checked by the role's own argument_specs."""

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        """Return the plain map."""
        if not isinstance(value, Mapping):
            return problems.expected(path, value, "a map", "映射")
        try:
            return plain(_numbers(value))
        except OverflowError as error:
            return problems.expected(path, str(error), "numbers up to 1.7e308", "不超过 1.7e308 的数值")

    def write(self, value: Any) -> Any:
        """Return the plain form."""
        return value


def _numbers(value: Any) -> Any:
    """Give roles the numbers that they expect: what is no part of the judgement need not be exact."""
    if isinstance(value, Decimal):
        number = float(value)
        if not isfinite(number):  # it could be stored, and no JSON could show it again
            raise OverflowError(f"{value:.6}")
        return number
    if isinstance(value, Mapping):
        return {key: _numbers(item) for key, item in value.items()}
    return [_numbers(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class AsWritten:
    """A quantity that is checked and kept as it was written, e.g. "7.68 TB"."""

    measure: Measure

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        """Return the text, or BAD after adding a problem."""
        return BAD if self.measure.read(value, path, problems) is BAD else str(value)

    def write(self, value: Any) -> Any:
        """Return the plain form."""
        return value


@dataclass(frozen=True)
class SecretRef:
    """Where a secret stands, never the secret: `{file: NAME}` below credentials/ of the state folder, or `{env: QUADGATE_SECRET_NAME}`."""

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        """Return the reference, or BAD after adding a sentence that never repeats what stood there."""
        if isinstance(value, Mapping) and len(value) == 1:
            kind, name = next(iter(value.items()))
            if kind in SECRET_NAMES and isinstance(name, str) and re.fullmatch(SECRET_NAMES[kind], name):
                return {str(kind): name}
        problems.add(
            path,
            "a secret must not stand in this file; name where it is: {file: NAME} for a file below credentials/ of the state folder, "
            "or {env: QUADGATE_SECRET_NAME} for an environment variable of the service.",
            "此文件中不得出现明文秘密；请写明其所在：{file: 文件名}（状态目录 credentials/ 下的文件）"
            "或 {env: QUADGATE_SECRET_名称}（服务的环境变量）。",
        )
        return BAD

    def write(self, value: Any) -> Any:
        """Return the plain form."""
        return value


SECRET_NAMES = {"file": r"[a-z0-9][a-z0-9._-]{0,79}", "env": r"QUADGATE_SECRET_[A-Z0-9_]{1,60}"}
PERSON = Keys(
    {
        "login": Words(
            r"[A-Za-z0-9][A-Za-z0-9._-]{1,79}", "2 to 80 letters, digits, dots, dashes or underscores", "2 到 80 个字母、数字、点、连字符或下划线"
        ),
        "name": TEXT,
        "roles": Items(Choice(tuple(str(role) for role in Role if role is not Role.ADMIN)), least=1),
    },
    {"title": TEXT},
)
PEOPLE = Keys({"vendor": Items(PERSON, least=1, unique=False), "customer": Items(PERSON, least=1, unique=False)})
LINE = Keys(
    {"kind": Choice(tuple(KINDS)), "model": TEXT, "quantity": Whole(1, 100_000)},
    {
        "firmware": Items(TEXT, least=1),
        "capacity": AsWritten(Measure("bytes", open_low=True)),
        "speed": AsWritten(Measure("rate", open_low=True)),
        "note": TEXT,
    },
)


@dataclass(frozen=True)
class Piece:
    """An entry of the packing list: a piece by its serial number, or so many pieces (`quantity`) of a kind that carries none."""

    keys: Keys

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        """Return the plain map, or BAD after adding a sentence for each problem."""
        read = self.keys.read(value, path, problems)
        if read is BAD:
            return BAD
        if "serial" not in read and needs_serial(read["kind"]):
            free = ", ".join(kind for kind in KINDS if not needs_serial(kind))
            en, zh = "this key is missing; without a serial number may stand: ", "缺少此键；以下类别可不填序列号："
            return problems.add(join(path, "serial"), f"{en}{free}.", f"{zh}{free}。")
        if "serial" in read and read.get("quantity", 1) != 1:
            return problems.add(join(path, "quantity"), "one serial number is one piece.", "一个序列号对应一件。")
        return read

    def write(self, value: Any) -> Any:
        """Return the plain form."""
        return value


PIECE = Piece(
    Keys(
        {"kind": Choice(tuple(KINDS)), "model": TEXT},
        {"serial": TEXT, "quantity": Whole(1, 100_000), "slot": TEXT, "firmware": TEXT, "host": NAME, "note": TEXT},
    )
)
PACKING_LIST = Items(PIECE, least=1, most=5000, unique=False)
IP = Words(r"[0-9A-Fa-f:.]{3,45}", "an IP address", "IP 地址")
HOST = Keys(
    {"groups": Items(Choice(GROUPS)), "connection": Choice(("local", "ssh"))},
    {
        "address": ADDRESS,
        "port": Whole(1, 65535),
        "user": Words(r"[a-z_][a-z0-9_-]{0,31}", "a user name", "用户名"),
        "credential": Words(
            r"[a-z0-9][a-z0-9._-]{0,79}", "the name of a file below credentials/ of the state folder", "状态目录 credentials/ 下的文件名"
        ),
        "password": SecretRef(),
        "become": YesNo(),
        "become_user": Words(r"[a-z_][a-z0-9_-]{0,31}", "a user name", "用户名"),
        "become_password": SecretRef(),
        "attend": Keys({"address": IP, "port": Whole(1, 65535)}),
        "host_key": Words(r"[^\x00-\x1f\x7f]{1,1000}", "the host's public key, one line", "主机公钥，单行"),
        "python": Words(r"/[^\x00-\x1f\x7f]{1,200}", "an absolute path", "绝对路径"),
        "root": Words(r"/[^\x00-\x1f\x7f]{1,200}", "an absolute path", "绝对路径"),
    },
)
PAIR = Keys({"host": NAME, "interface": NETDEV, "far_host": NAME, "far_interface": NETDEV, "far_address": ADDRESS})
TARGETS = Keys(
    {"simulated": YesNo(), "hosts": Named(NAME, HOST), "engine": Free(), "arms": Free()},
    {
        "rack": TEXT,
        "faults": Free(),
        "packages": PACKAGES,
        "fabric": FABRIC,
        "array": ARRAY,
        "volume": VOLUME,
        "offload": Free(),
        "workload": Free(),
        "facts": Free(),
        "cells": Keys({}, dict.fromkeys(CELLS, Free())),
        "clients": Free(),
        "injections": Free(),
        "disk_quota_bytes": Whole(100_000_000, 100_000_000_000),  # of a job's journals; the upper end is probe.preflight.QUOTA_MOST
        "gpu_stress": Keys(
            {"config": Words(r"/[^\x00-\x1f\x7f]{1,200}", "an absolute path", "绝对路径")},
            {"timeout_s": Whole(1, 1800)},
        ),
        "pfc_watchdog": Items(
            Keys(
                {
                    "switch": Words(
                        r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}",
                        "1 to 60 letters, digits, dots, dashes or underscores",
                        "1 到 60 个字母、数字、点、连字符或下划线",
                    ),
                    "host": NAME,
                    "command": Items(TEXT, least=1, unique=False),
                }
            ),
            most=256,
        ),
        "rdma_bandwidth": Keys(
            {"pairs": Items(PAIR, least=1, most=256)},
            {
                "seconds": Whole(1, 600),
                "message_bytes": Whole(1, 2**23),
                "queue_pairs": Whole(1, 1024),
                "gid_index": Whole(0, 255),
                "port": Whole(1024, 65000),
            },
        ),
    },
)
FILE = Keys(
    {
        "engagement": Keys(
            {
                "code": Words(r"[A-Z0-9][A-Z0-9-]{1,39}", "2 to 40 capital letters, digits or dashes", "2 到 40 个大写字母、数字或连字符"),
                "customer": TEXT,
                "vendor": TEXT,
                "site": TEXT,
                "contract": Words(r"[^\x00-\x1f\x7f]{1,80}", "text of 1 to 80 characters on one line", "1 到 80 个字符的单行文字"),
                "people": PEOPLE,
            }
        ),
        "order": Keys({"model": TEXT, "quantity": Whole(1, 100_000), "lines": Items(LINE, least=1, most=500, unique=False)}),
        "packing_list": PACKING_LIST,
        "targets": TARGETS,
    },
    {"plan": Free()},
)
