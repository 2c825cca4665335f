"""How a host is tuned, from the kernel's own files as `grep -H` prints them: frequency policies, NUMA nodes, the command line it was started with.

Observations: host.governor (text; label `policy`), host.policy_cpus (text: the processors of a policy, parted by spaces; label `policy`),
numa.cpus (text: the list of the kernel; label `node`), numa.memory (B; label `node`), kernel.parameter (text; label `place`: its position on the
command line, from 0).
"""

from __future__ import annotations

import re
from decimal import Decimal

from gates.model import Reading
from gates.readers.common import Collector, decode
from gates.units import convert

_GOVERNOR = re.compile(r"^\S*/cpufreq/policy(\d{1,5})/scaling_governor:([a-z_]{1,30})$")
_POLICY = re.compile(r"^\S*/cpufreq/policy(\d{1,5})/affected_cpus:(\d{1,5}(?: \d{1,5}){0,4000}) ?$")
_CPUS = re.compile(r"^\S*/node/node(\d{1,5})/cpulist:([0-9,-]{1,4000})$")
_MEMORY = re.compile(r"^\S*/node/node(\d{1,5})/meminfo:Node \1 MemTotal:\s+(\d{1,15}) kB$")
_CMDLINE = re.compile(r"^\S*/proc/cmdline:(.{1,8000})$")


def read_host_tuning(data: bytes) -> Reading:
    """Read governors, NUMA nodes and command line. What a host does not have (a virtual machine has no governor) gives no observation.

    Every host has a command line, which is read last; a policy that tells its processors has a governor, and a node with processors a file of its
    memory: where one is missing, a line was left out.
    """
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    seen: set[tuple[str, str]] = set()
    for line in filter(str.strip, text.splitlines()):
        forms = governor, policy, cpus, memory, cmdline = [form.match(line) for form in (_GOVERNOR, _POLICY, _CPUS, _MEMORY, _CMDLINE)]
        matches = [match for match in forms if match is not None]
        if len(matches) != 1:  # one that could be of two files was joined from both
            found.trouble("unknown_shape", "This line is not what the kernel's file holds: {line}", "该行不是内核文件的内容：{line}", line=line)
            continue
        [match] = matches
        key = (match.re.pattern, "" if cmdline else match[1])
        if key in seen:
            found.trouble("duplicate", "This file stands twice: {line}", "该文件重复出现：{line}", line=line)
            continue
        seen.add(key)
        if governor:
            found.see("host.governor", governor[2], "text", policy=governor[1])
        elif policy:
            found.see("host.policy_cpus", policy[2], "text", policy=policy[1])
        elif cpus:
            found.see("numa.cpus", cpus[2], "text", node=cpus[1])
        elif memory:  # the kernel writes kB and counts KiB
            found.see("numa.memory", convert(Decimal(memory[2]), "KiB", "B"), "B", node=memory[1])
        elif cmdline:
            for place, parameter in enumerate(cmdline[1].split()):
                found.see("kernel.parameter", parameter, "text", place=str(place))
    _pairs(seen, found)
    return found.reading()


def _pairs(seen: set[tuple[str, str]], found: Collector) -> None:
    """Add the problem of a file whose partner is not there."""
    governors, policies, cpus, memory, cmdline = (
        {number for pattern, number in seen if pattern == form.pattern} for form in (_GOVERNOR, _POLICY, _CPUS, _MEMORY, _CMDLINE)
    )
    if not cmdline:
        found.absent("/proc/cmdline", None)
    for policy in sorted(policies - governors, key=int):
        found.absent(f"policy{policy}/scaling_governor", None)
    for policy in sorted(governors - policies, key=int) if policies else ():
        found.absent(f"policy{policy}/affected_cpus", None)
    for node in sorted(cpus - memory, key=int):
        found.absent(f"node{node}/meminfo", None)
