"""What the kernel of a host writes while a soak runs: read once a minute, so that a path lost for seconds between two readings is on record.

Only what is new since the reading before is kept. A reading whose log no longer holds the last line of the one before is not `joined`: something
was overwritten or cleared meanwhile, and the judge must know. A log that may not be read is said, and ends nothing.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from probe import clock
from probe.fatal_sources import answer

PERIOD_S = 60.0
# The ring first: it is small and bounded. Where it may not be read, the journal, of which the last lines are enough.
SOURCES = (["dmesg"], ["journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-monotonic", "-n", "20000"])
WHOLE_BYTES, MOST_BYTES = 2 << 20, 8 << 20  # of a soak: all lines up to the first, up to the second those that may tell something of its hardware
LONGEST = 1200  # characters of a line; the kernel's own records hold at most 1,024
_STAMPED = re.compile(r"^(?:<\d{1,3}>)?\[\s*(\d{1,9}\.\d{1,9})\] (?:\S{1,80} kernel: )?(.*)$")
# Wider than anything that the judge looks for (gates/readers/kernel_log.py): what is left out here says nothing of drives, links, memory or tasks.
_MAY_TELL = re.compile(
    r"nvme|error|fail|link|aer\b|dpc|hardware|edac|memory|mce|amdgpu|nvrm|blocked|lockup|stall|xfs|\bmd\d|md/|path|oom|reset|timeout|linux version",
    re.IGNORECASE,
)
_SECRETS = re.compile(r"((?:pass(?:word|wd|phrase)?|secret|token|api_?key)=)[^\s\"'&,]+|(DHHC-1:)\S+|(\bauthorization: )\S+(?: \S+)?", re.IGNORECASE)
Ask = Callable[[List[str]], Tuple[str, str]]  # what a program printed, and else why not


class KernelLog:
    """The log of one host. `path_prefix`: where its programs are looked for first."""

    def __init__(self, host: Optional[str], path_prefix: Optional[List[str]] = None, ask: Optional[Ask] = None) -> None:
        self._host, self._ask = host, ask or (lambda argv: answer(argv, path_prefix))
        self._source: Optional[List[str]] = None
        self._last: Optional[str] = None  # line of the reading before
        self._begun, self._kept = False, 0
        self._rows: Deque[Dict[str, Any]] = deque()
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._work, name="kernel log", daemon=True)

    def begin(self) -> None:
        """Read where the log ends now, and look every minute from now on."""
        if not self._begun:
            self.read()
            self._thread.start()

    def end(self) -> None:
        """Read it once more, so that the last minute counts."""
        if not self._begun or self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()

    def rows(self) -> List[Dict[str, Any]]:
        """Return the lines of kernel.jsonl that came since the last time."""
        out: List[Dict[str, Any]] = []
        while self._rows:
            out.append(self._rows.popleft())
        return out

    def read(self) -> None:
        """Take one reading: {host, read (stamps), begins, joined, tool, problem, kept, passed_over, left_out, sha256, lines}."""
        with self._lock:
            lines, problem = self._lines()
            row: Dict[str, Any] = {"host": self._host, "read": {"wall_ns": clock.wall_ns(), "mono_ns": clock.mono_ns(), "boot_id": clock.boot_id()}}
            row.update(begins=not self._begun, tool=self._source[0] if self._source else None, problem=problem or None)
            fresh, joined = self._fresh(lines)
            row["joined"] = joined and not problem
            kept, passed_over, left_out = self._within(fresh if self._begun else [])
            row.update(kept=len(kept), passed_over=passed_over, left_out=left_out, lines=kept, sha256=digest(kept))
            self._begun = True
            if lines:
                self._last = lines[-1]
            self._rows.append(row)

    def _work(self) -> None:
        while True:
            over = self._ended.wait(PERIOD_S)
            self.read()
            if over:
                return

    def _lines(self) -> Tuple[List[str], str]:
        """Return the log's lines in one form, whichever program told them; else why there are none. One program is asked all the time."""
        why: List[str] = []
        for argv in [self._source] if self._source else SOURCES:
            text, problem = self._ask(argv)
            stamped = [found for found in map(_STAMPED.match, text.splitlines()) if found]
            if stamped:
                self._source = argv
                return ["[%s] %s" % (found.group(1), found.group(2)[:LONGEST]) for found in stamped], ""
            why.append("%s: %s" % (argv[0], problem or "it prints no line of a kernel's log"))
        return [], "; ".join(why)

    def _fresh(self, lines: List[str]) -> Tuple[List[str], bool]:
        """Return the lines behind the last one of the reading before, and whether that one still stands there."""
        if self._last is None:
            return lines, not self._begun
        for n in range(len(lines) - 1, -1, -1):
            if lines[n] == self._last:
                return lines[n + 1 :], True
        return lines, False

    def _within(self, fresh: List[str]) -> Tuple[List[str], int, int]:
        """Return the lines that are kept, without secrets; how many that tell nothing were passed over, and how many had no room."""
        kept: List[str] = []
        passed_over = left_out = 0
        for line in fresh:
            size = len(line.encode("utf-8", "replace")) + 1
            if self._kept + size > WHOLE_BYTES and not _MAY_TELL.search(line):
                passed_over += 1
            elif self._kept + size > MOST_BYTES:
                left_out += 1
            else:
                self._kept += size
                kept.append(_SECRETS.sub(lambda found: next(word for word in found.groups() if word) + "***", line))
        return kept, passed_over, left_out


def of_job(spec: Dict[str, Any]) -> Optional[KernelLog]:
    """Return what reads the kernel's log on this very host, where the soak of a job file asks for it."""
    wanted = bool((spec.get("soak") or {}).get("kernel_log"))
    return KernelLog(str(spec.get("host")), spec.get("path_prefix")) if wanted else None


def digest(lines: List[str]) -> str:
    """Return the SHA-256 (hex) of lines, each with its line end, in UTF-8."""
    return hashlib.sha256("".join(line + "\n" for line in lines).encode("utf-8", "replace")).hexdigest()
