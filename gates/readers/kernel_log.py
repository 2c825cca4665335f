"""The kernel's log since boot, from the journal (`journalctl -k -b -o short-monotonic`) or from the ring buffer (`dmesg`).

Observations: kernel.event (1: so many lines; label `family`, every one of FAMILIES), kernel.first (text: the first such line; label `family`),
kernel.lines (1), kernel.whole (1 where the log begins with the boot, else 0: what came before has been overwritten).
The wording is the kernel's own: drivers/nvme/host, drivers/pci/pcie/aer.c and dpc.c, arch/x86/kernel/cpu/mce, drivers/edac, drivers/gpu/drm/amd,
kernel/hung_task.c, kernel/watchdog.c, kernel/rcu/tree_stall.h, fs/xfs, drivers/md, mm/oom_kill.c.
`told_in` gives the same lines one by one, of a stretch of the log that a soak brought (gates.readers.soak_kernel).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from gates.model import Reading
from gates.readers.common import Collector, clip, decode

# In this order: the first that a line matches is its family. "Shutdown timeout set to 10 seconds" and "AER: enabled" are no faults.
# What stands before a `.*` is looked for once a line and never given back (`^(?>...)`): a line that repeats it would cost its square.
FAMILIES: dict[str, re.Pattern[str]] = {
    "nvme_timeout": re.compile(
        r"^(?>.*?\bnvme\w*: )(?:.*\bQID \d+ timeout\b|.*\btimeout, (?:aborting|reset|disable|completion)|.*controller is down|.*Device not ready"
        r"|.*Removing after probe failure|.*Disabling device after reset failure|.*Abort status)"
    ),
    "nvme_fabric": re.compile(
        r"^(?>.*?\bnvme\w*: ).*(?:starting error recovery|Reconnecting in|failed nvme_keep_alive_end_io|[Kk]eep.?[Aa]live(?>.*?fail)"
        r"|Failed reconnect attempt|Successfully reconnected)|no (?:usable|available) path - (?:requeuing|failing) I/O"
    ),
    "block_io": re.compile(
        r"(?:I/O|critical \w+) error, dev (?:nvme|md|dm-)|Buffer I/O error on dev (?:nvme|md|dm-)|\bnvme\d+(?:c\d+)?n\d+: I/O Cmd"
    ),
    "pcie_uncorrected": re.compile(r"^(?>.*?AER: ).*Uncorrect|PCIe Bus Error: severity=Uncorrect|device recovery failed|DPC: containment event"),
    "pcie_corrected": re.compile(r"^(?>.*?AER: ).*Correct|PCIe Bus Error: severity=Correct"),
    "machine_check": re.compile(r"\[Hardware Error\]|Machine check events logged|\bEDAC \S+: \d+ [CU]E\b|Memory failure: |BERT: Error records"),
    "gpu": re.compile(r"^(?>.*?\bamdgpu\b).*(?:GPU reset|\bring \S+ timeout|\b[1-9]\d* uncorrectable hardware error)|NVRM: Xid"),
    "link_down": re.compile(r"Slot\([^)]*\): Link Down"),
    "hung_task": re.compile(r"INFO: task .{1,80} blocked for more than \d+ seconds|BUG: soft lockup|hard LOCKUP|rcu\w*: INFO: rcu\w* .{0,40}stall"),
    "file_system": re.compile(
        r"^(?>.*?\bXFS \([^)]{1,80}\): ).*(?:[Ss]hut(?:ting)? down|[Cc]orruption|metadata I/O error|log I/O error)"
        r"|\bmd/raid\S{0,20}: ?.*(?:Disk failure|disk failure|failing)"
    ),
    "out_of_memory": re.compile(r"\bOut of memory: Kill|oom-kill:|invoked oom-killer"),
}
TOLD_ONLY = frozenset(("pcie_corrected",))  # the link mended it by itself: counted, and no fault by itself
_STAMPED = re.compile(r"^(?:<\d{1,3}>)?\[\s*(\d{1,9}\.\d{1,9})\] (?:\S{1,80} kernel: )?(.*)$")
# A port says that it is down when it is configured at boot too; only one that was up before has lost its link.
_PORT = re.compile(r"\b([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?: [\w.@-]{1,32})?): (?:NIC )?Link (?:is )?(up|down)\b", re.IGNORECASE)
_BOOT = "Linux version "
_BEGINNING = 20  # lines within which a log that begins with the boot names the kernel
_LONGEST = 2000  # characters of a line that are looked at; the kernel's own records hold at most 1,024


@dataclass(frozen=True)
class Told:
    """One line that tells something: when the kernel wrote it (s since its boot), its family, and its words."""

    at: Decimal
    family: str
    line: str


def told_in(lines: Iterable[str], *, ports_were_up: bool = True) -> Iterator[Told]:
    """Yield each line of a kernel's log that has a stamp; the family of one that tells nothing is empty.

    `ports_were_up`: a port that says down has lost its link, as in a stretch long after the boot; else only one that said up before.
    """
    up: set[str] = set()
    for raw in lines:
        stamped = _STAMPED.match(raw[:_LONGEST])
        if stamped is None:
            continue  # a line that goes on from the one before, or that the reading command wrote
        line = stamped[2]
        family = next((name for name, form in FAMILIES.items() if form.search(line)), None) or _lost(line, up, ports_were_up=ports_were_up)
        yield Told(Decimal(stamped[1]), family or "", line)


def read_kernel_log(data: bytes) -> Reading:
    """Read how many lines of each family stand in the log. A text without a single stamped line is no kernel log."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    counts, first = dict.fromkeys(FAMILIES, 0), dict.fromkeys(FAMILIES, "")
    lines, whole = 0, False
    for told in told_in(text.splitlines(), ports_were_up=False):
        lines += 1
        whole = whole or (lines <= _BEGINNING and told.line.startswith(_BOOT))
        if told.family:
            counts[told.family] += 1
            first[told.family] = first[told.family] or told.line
    if not lines:
        found.trouble("unknown_shape", "No line of a kernel log stands in this text.", "文本中没有内核日志行。")
        return found.reading()
    if not text.endswith("\n"):
        found.trouble("truncated", "The log ends within a line.", "日志末行不完整。")
    found.see("kernel.lines", Decimal(lines), "1")
    found.see("kernel.whole", Decimal(int(whole)), "1")
    for family, count in counts.items():
        found.see("kernel.event", Decimal(count), "1", family=family)
        if count:
            found.see("kernel.first", clip(first[family]), "text", family=family)
    return found.reading()


def _lost(line: str, up: set[str], *, ports_were_up: bool) -> str | None:
    """Follow the links of ports; return link_down for one that was up and is no more."""
    port = _PORT.search(line)
    if port is None:
        return None
    if port[2].lower() == "up":
        up.add(port[1])
        return None
    if port[1] not in up and not ports_were_up:
        return None
    up.discard(port[1])
    return "link_down"
