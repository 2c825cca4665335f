"""Is a command the one that its name claims: the tool, what it was asked for, and the device whose output it is kept for.

commands.json keeps the argv of each command (docs/evidence-format.md). What says nothing of itself in its output, as the smart log of a drive, is
told by its name alone, so the name must be borne out by what was run. Sources: the survey of this release (roles/facts, roles/rdma,
filter_plugins/hardware.py), and the manual pages of the tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gates.model import Problem
from gates.text import Text

_DEVICE = re.compile(r"(?:--?[A-Za-z_-]+=)?(/dev/.+)")
_INTERFACE = re.compile(r"[A-Za-z0-9_.:@-]{1,32}")
_SHELLS = ("sh", "bash", "dash")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
Words = tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """What the command of a reader's tool looks like. `subject`: whether the part of the name behind the tool is what was asked about, by argv.

    `script`: the survey runs it within a script of the shell, whose words are those looked at then; which of them ran, the output's reader tells.
    """

    programs: Words
    words: Words = ()  # all of them must stand in argv
    subject: Callable[[str, Words], bool] | None = None
    script: bool = False


def _of_controller(name: str, words: Words) -> bool:
    """Return whether the only device is this controller, or a namespace of it."""
    seen = _devices(words)
    return len(seen) == 1 and re.fullmatch(rf"/dev/{re.escape(name)}(n\d+)?", seen[0]) is not None


def _of_namespace(name: str, words: Words) -> bool:
    return _devices(words) == [f"/dev/{name}"]


def _of_interface(name: str, words: Words) -> bool:
    return words[-1] == name  # ethtool and mlnx_qos take one interface, at the end


def _of_port_or_its_far_end(name: str, words: Words) -> bool:
    """Return whether it is this interface; the speed of a far end is kept under the port that it serves (far-of.HOST.IF), so any one interface is."""
    return len(words) == 2 and _INTERFACE.fullmatch(words[1]) is not None if name.startswith("far-of.") else words[1:] == (name,)


def _of_number(name: str, words: Words) -> bool:
    return [after for word, after in pairwise(words) if word == "-i"] == [name]


_PERFTEST = tuple(f"ib_{verb}_{what}" for verb in ("write", "read", "send", "atomic") for what in ("bw", "lat"))
ASKED: Mapping[str, Asked] = {
    "aer": Asked(("grep",), ("aer_dev_",), script=True),
    "amd-smi-firmware": Asked(("amd-smi",), ("firmware",)),
    "amd-smi-list": Asked(("amd-smi",), ("list",)),
    "amd-smi-metric": Asked(("amd-smi",), ("metric",)),
    "amd-smi-partition": Asked(("amd-smi",), ("partition",)),
    "amd-smi-static": Asked(("amd-smi",), ("static",)),
    "amd-smi-topology": Asked(("amd-smi",), ("topology",)),
    "amd-smi-version": Asked(("amd-smi",), ("version",)),
    "dmidecode": Asked(("dmidecode",)),
    "ethtool": Asked(("ethtool",), (), _of_port_or_its_far_end),
    "ethtool-driver": Asked(("ethtool",), ("-i",), _of_interface),
    "ethtool-fec": Asked(("ethtool",), ("--show-fec",), _of_interface),
    "ethtool-module": Asked(("ethtool",), ("-m",), _of_interface),
    "ethtool-stats": Asked(("ethtool",), ("-S",), _of_interface),
    "findmnt": Asked(("findmnt",)),
    "fio": Asked(("fio",), (), _of_namespace),
    "gid-types": Asked(("grep",), ("gid_attrs",), script=True),
    "gpu-ras": Asked(("grep",), ("ras",), script=True),
    "host-tuning": Asked(("grep",), ("scaling_governor",), script=True),
    "ib-counters": Asked(("grep",), ("counters",), script=True),
    "ibv-devinfo": Asked(("ibv_devinfo",)),
    "ip-link": Asked(("ip",), ("link",)),
    "kernel-log": Asked(("journalctl", "dmesg"), script=True),
    "lspci": Asked(("lspci",), script=True),
    "mdadm": Asked(("mdadm",)),
    "mlnx-qos": Asked(("mlnx_qos",), ("-i",), _of_interface),
    "npu-smi": Asked(("npu-smi",), ("info",)),
    "npu-smi-board": Asked(("npu-smi",), ("board",), _of_number),
    "npu-smi-ecc": Asked(("npu-smi",), ("ecc",), _of_number),
    "nvme-error-log": Asked(("nvme",), ("error-log",), _of_controller),
    "nvme-id-ctrl": Asked(("nvme",), ("id-ctrl",), _of_controller),
    "nvme-list": Asked(("nvme",), ("list",)),
    "nvme-list-subsys": Asked(("nvme",), ("list-subsys",)),
    "nvme-self-test-log": Asked(("nvme",), ("self-test-log",), _of_controller),
    "nvme-smart-log": Asked(("nvme",), ("smart-log",), _of_controller),
    "perftest": Asked(_PERFTEST),  # it takes the RDMA device, and says itself which
    "rdma-link": Asked(("rdma",), ("link",)),
    "rocm-smi": Asked(("rocm-smi",)),
    "rocm-smi-partition": Asked(("rocm-smi",), ("--showcomputepartition",)),
    "rvs": Asked(("rvs",)),
    "smartctl": Asked(("smartctl",), (), _of_controller),
    "xfs-info": Asked(("xfs_info", "xfs_growfs")),
}


def other_command(name: str, tool: str, argv: Any) -> Problem | None:
    """Return the problem of a command whose argv is not what its name and its reader say, None where it is. A switch is asked as its site says."""
    asked = ASKED.get(tool)
    if asked is None:
        return None
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        text = "what was run for {name} is not told (argv of commands.json)", "未记录 {name} 所执行的命令（commands.json 的“argv”）"
        return _problem("no_argv", *text, name)
    words: Words = tuple(argv)
    subject = name.partition(".")[2]
    program, told = _told(words, script=asked.script)
    if not program & {*asked.programs} or not all(_named(word, told) for word in asked.words):
        text = "{name} is kept as the output of {tool}, but what was run is: {argv}", "{name} 记为 {tool} 的输出，实际执行的却是“{argv}”"
        return _problem("other_command", *text, name, tool=tool, argv=_shown(words))
    if subject and asked.subject is not None and not asked.subject(subject, words):
        text = "{name} is kept as the output for {s}, but what was run is: {argv}", "{name} 记为 {s} 的输出，实际执行的却是“{argv}”"
        return _problem("other_device", *text, name, s=subject, argv=_shown(words))
    return None


def _told(words: Words, *, script: bool) -> tuple[set[str], Words]:
    """Return the program and the words of a command; of a script, all of its words."""
    program = words[0].rpartition("/")[2]
    if script and program in _SHELLS and len(words) > 2 and words[1] == "-c":
        found = tuple(_WORD.findall(words[2]))
        return {*found}, found
    return {program}, words[1:]


def _named(word: str, told: Words) -> bool:
    """Return whether a word stands there by itself, or within a path: the kernel's files bear the name of what they tell."""
    return word in told or any(word in path for path in told if "/" in path)


def _devices(words: Words) -> list[str]:
    return [found[1] for word in words[1:] if (found := _DEVICE.fullmatch(word))]


def _shown(words: Words) -> str:
    return " ".join(words)[:160]


def _problem(code: str, en: str, zh: str, name: str, **more: Any) -> Problem:
    return Problem(code, Text(en, zh).fill(name=name, **more))
