"""What a switch says of its PFC watchdog: `show pfcwd stats --empty` of SONiC, which lists every lossless queue that is watched.

Observations, labelled `queue` (Ethernet0:3): switch.storms (1: pause storms that were detected), switch.queue_state (text: operational or stormed).
"""

from __future__ import annotations

import re
from decimal import Decimal

from gates.model import Reading
from gates.readers.common import Collector, decode

_HEAD = re.compile(r"^\s*QUEUE\s+STATUS\s+STORM DETECTED/RESTORED\b")
_ROW = re.compile(r"^\s*(\S{1,60}:\d{1,2})\s+(\S{1,30})\s+(\d{1,12})/(\d{1,12})\s+\d{1,18}/\d{1,18}\b")
_RULE = re.compile(r"^[\s-]+$")


def read_sonic_pfcwd(data: bytes) -> Reading:
    """Read the storms of each queue. A table without a queue is a problem: a watchdog that watches nothing has seen nothing."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    inside, seen = False, set()
    for line in text.splitlines():
        row = _ROW.match(line)
        if _HEAD.match(line):
            inside = True
        elif inside and row and row[1] not in seen:
            seen.add(row[1])
            found.see("switch.storms", Decimal(row[3]), "1", queue=row[1])
            found.see("switch.queue_state", row[2], "text", queue=row[1])
        elif line.strip() and not _RULE.match(line) and inside:
            found.trouble("unknown_shape", "This line is no row of the table: {line}", "该行不是表格中的一行：{line}", line=line)
    if not inside:
        found.trouble("unknown_shape", "The table of `show pfcwd stats` is missing.", "缺少 show pfcwd stats 的表格。")
    elif not seen:
        found.trouble(
            "empty_inventory",
            "The switch lists no watched queue: ask `show pfcwd stats --empty`; if it stays empty, the watchdog is off.",
            "交换机未列出任何受监视的队列：请用 show pfcwd stats --empty；若仍为空，则看门狗未启用。",
        )
    return found.reading()
