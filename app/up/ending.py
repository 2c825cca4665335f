"""The end of the service on one machine: what runs is canceled while the worker still lives, and whoever waits is told what for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress

from app.engine import shutdown
from app.engine.policy import STOP_GRACE_S
from app.settings import settings
from gates.text import Text

log = logging.getLogger("quadgate.up")
AROUND_S = 10.0  # before a stop begins and after it ended: ending playbooks, a tick, a commit
TELL_S = 5.0  # who waits longer than this is told for what
STOPPED = Text("The service was stopped.", "服务已停止。")
STOPPING = Text(
    "Waiting until the targets have stopped what {attempts} runs there, {seconds} s at most.",
    "正在等待目标主机停止 {attempts} 的作业，最长 {seconds} 秒。",
)
LEFT = Text(
    "{attempts} could not be stopped within {seconds} s, and may still run on its targets. The next start goes on with stopping it.",
    "{attempts} 未能在 {seconds} 秒内停止，目标主机上可能仍在运行；下次启动时将继续停止。",
)

CANCELED = Text("Canceled: {attempts}. No attempt starts anew by itself.", "已取消：{attempts}。尝试不会自行重新启动。")
WAITING = Text("Waiting, and going on at the next start: {attempts}.", "等待中，下次启动后继续：{attempts}。")


def patience_s() -> float:
    """Return how long a cancel may take in all. The stop of the targets may take its whole time: a shorter patience would cut it off, unsaid."""
    return settings().stop_seconds + STOP_GRACE_S + AROUND_S


def cancel(tell: Callable[[Text], object]) -> None:
    """Let the engine cancel what runs. `tell` gets a sentence when that takes its time, and what became of every attempt that had not ended."""
    ours = left = shutdown.cancel_running(STOPPED)
    began, told, patience = time.monotonic(), False, patience_s()
    while left and time.monotonic() < began + patience:
        if not told and time.monotonic() > began + TELL_S:
            told = True
            _tell(tell, STOPPING.fill(attempts=", ".join(shutdown.names(left)), seconds=round(patience)))
        time.sleep(0.2)
        left = shutdown.active()
    if ended := [attempt for attempt in ours if attempt not in left]:
        _tell(tell, CANCELED.fill(attempts=", ".join(shutdown.names(ended))))
    if waiting := shutdown.waiting():
        _tell(tell, WAITING.fill(attempts=", ".join(shutdown.names(waiting))))
    if left:
        _tell(tell, LEFT.fill(attempts=", ".join(shutdown.names(left)), seconds=round(patience)))
    for trouble in shutdown.troubles(ours):
        _tell(tell, trouble)


def _tell(tell: Callable[[Text], object], text: Text) -> None:
    """Log it and say it. The terminal may be gone: that must not keep anything running."""
    log.warning("%s", text.en)
    with suppress(OSError, ValueError, SystemExit):
        tell(text)
