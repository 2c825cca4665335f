"""The closed loop: exactly C requests in flight, one persistent connection a slot, one epoll, no framework.

Accuracy first: bodies are bytes before the first send; of all sockets that are ready, the bytes are read and stamped first (by the kernel,
where it can: receipt.py) and parsed afterwards; the garbage collector rests; journals are written by another thread. What the loop costs is
measured by its own ticks. The open loop (open_loop.py) is the same one with another way of starting requests.
"""

from __future__ import annotations

import errno
import gc
import select
import socket
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from probe.account import Account
from probe.clock import mono_ns
from probe.prompts import Shot
from probe.receipt import ANCILLARY, Receipts
from probe.shares import Apart, Shares
from probe.slot import Slot, Target, code_text, progress, quiet
from probe.ticker import Ticker
from probe.wire import BadAnswer

RECV = 1 << 15  # beyond 128 KiB every read would map and unmap memory, which costs 15 us
SLICE = 1 << 15  # a long body is sent in slices, so that what arrives meanwhile for other slots is stamped in time
STOP_GRACE_NS = 2_000_000_000
SWITCH_S = 0.0005  # the writer of journals may keep the interpreter for this long, not for Python's 5 ms
BACKOFF_FIRST_NS, BACKOFF_MAX_NS = 100_000_000, 5_000_000_000


class ClosedLoop:
    """Drives shots through C slots. `on_record` gets every request's line, `why_stop` may end the loop, both in this thread.

    With several targets the slots are theirs in turn: of C requests in flight each has its share, in one window. Where they are of several engine
    hosts, each prompt goes to its own host (probe.shares), and every host has a slot at least.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        concurrency: int,
        timeout_s: float,
        on_record: Callable[[Dict[str, Any]], None],
        why_stop: Callable[[], Optional[str]] = lambda: None,
        offsets: bool = True,
        backoff: bool = False,
        spacing_ns: int = 0,
    ) -> None:
        self._timeout_ns = int(timeout_s * 1e9)
        self._on_record, self._why_stop = on_record, why_stop
        self._offsets, self._backoff, self._spacing_ns = offsets, backoff, spacing_ns
        self._places = 1 + max(target.place for target in targets)
        self._slots = [Slot(n, targets[n % len(targets)]) for n in range(max(concurrency, self._places))]
        self._by_fd: Dict[int, Slot] = {}
        self._epoll = select.epoll()
        self._receipts = Receipts()
        self._shares = Shares(iter(()), self._places)
        self._next_start_ns = 0
        self._stopping_ns: Optional[int] = None
        self._stop_reason = ""

    def run(self, shots: Union[Iterator[Shot], Apart]) -> Dict[str, Any]:
        """Send every shot. Return {lags: Histogram of ns, receipts, cpu_s, wall_s, stopped: reason or None}; the records went to `on_record`."""
        self._shares = Shares(shots, self._places)
        for slot in self._slots:
            self._connect_now(slot)
        ticker, switch = Ticker(), sys.getswitchinterval()
        self._epoll.register(ticker.fd, select.EPOLLIN)
        gc.collect()
        gc.freeze()
        gc.disable()
        sys.setswitchinterval(SWITCH_S)
        cpu, wall = time.process_time(), mono_ns()
        try:
            self._begin_load()
            while not self._idle():
                self._round(ticker)
        finally:
            sys.setswitchinterval(switch)
            gc.enable()
            gc.unfreeze()
            ticker.close()
            self._close_all()
        return {
            "lags": ticker.lags,
            "receipts": self._receipts,
            "cpu_s": time.process_time() - cpu,
            "wall_s": (mono_ns() - wall) / 1e9,
            "stopped": self._stop_reason or None,
        }

    def _begin_load(self) -> None:
        for slot in self._slots:
            slot.ready_ns = mono_ns()
            self._start(slot)

    def _idle(self) -> bool:
        if any(slot.account for slot in self._slots):
            return False
        return self._shares.empty or self._stopping_ns is not None

    def _round(self, ticker: Ticker) -> None:
        arrived: List[Tuple[Slot, Any, int, int]] = []
        receipts, tick = self._receipts, False
        for fd, events in self._epoll.poll():
            if fd == ticker.fd:
                tick = True
                continue
            slot = self._by_fd.get(fd)
            if slot is None or slot.sock is None:
                self._woken(fd)
                continue
            if slot.want_write and events & (select.EPOLLOUT | select.EPOLLERR | select.EPOLLHUP):
                self._writable(slot)
            if slot.sock is not None and events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                try:
                    data, ancillary, _, _ = slot.sock.recvmsg(RECV, ANCILLARY)
                except BlockingIOError:
                    continue
                except OSError as error:
                    now = mono_ns()
                    arrived.append((slot, error, now, now))
                    continue
                now = mono_ns()
                slot.seen_ns = receipts.of(ancillary, now, slot.seen_ns) if data else now
                arrived.append((slot, data, slot.seen_ns, now))
        for slot, data, at, now in arrived:
            self._arrived(slot, data, at, now)
        if tick:
            ticker.read()
            receipts.refresh()
            self._tick(mono_ns())

    def _woken(self, fd: int) -> None:
        """Take an event of a descriptor that is no connection; the closed loop has none."""

    def _arrived(self, slot: Slot, data: Any, now: int, read_ns: int) -> None:
        account = slot.account
        if account is None:  # the server closed an idle connection, or spoke out of turn: a new one next time
            self._close(slot)
            return
        if isinstance(data, OSError):
            self._finish(slot, now, {"kind": "connection", "message": "%s: %s" % (errno.errorcode.get(data.errno or 0, "?"), data.strerror)})
            return
        if not data:
            failure = (
                None if account.answer.ended_well() else {"kind": "connection", "message": "The server closed the connection %s." % progress(account)}
            )
            self._finish(slot, now, failure)
            return
        try:
            account.feed(data, now, read_ns)
        except BadAnswer as error:
            self._finish(slot, now, {"kind": "connection", "message": "Not HTTP: %s." % error})
            return
        if account.done:
            self._finish(slot, now, None)

    def _finish(self, slot: Slot, now: int, failure: Optional[Dict[str, str]]) -> None:
        account = slot.account
        if account is None:
            return
        unsent = bool(slot.sending)  # answered before it was asked in full (HTTP 413): the rest would be read as the next request
        slot.account, slot.sending = None, None
        record = account.record(now, failure, self._offsets)
        if slot.target.on is not None:
            record["host"] = slot.target.on
        if failure or unsent or not account.done or not account.answer.keep_alive:
            self._close(slot)
        slot.failures = slot.failures + 1 if record["error"] else 0
        slot.ready_ns = mono_ns()
        if slot.failures and self._backoff:
            slot.ready_ns += min(BACKOFF_MAX_NS, BACKOFF_FIRST_NS << min(slot.failures - 1, 10))
        self._on_record(record)
        self._start(slot)

    def _start(self, slot: Slot) -> None:
        """Put the next shot on a free slot, unless it must wait (back-off, spacing) for a later tick."""
        now = mono_ns()
        if self._stopping_ns is not None or slot.ready_ns > now or self._next_start_ns > now:
            return
        shot = self._shares.take(slot.target.place)
        if shot is None:
            return
        if self._spacing_ns:
            self._next_start_ns = max(now, self._next_start_ns + self._spacing_ns)
        self._put(slot, shot, slot.ready_ns, now)

    def _put(self, slot: Slot, shot: Shot, scheduled_ns: int, now: int) -> None:
        """Put a shot on a free slot and send it."""
        slot.account = Account(shot, scheduled_ns)
        slot.deadline_ns = now + self._timeout_ns
        slot.sending = memoryview(slot.target.request(shot.body))
        if slot.sock is not None and not quiet(slot.sock):
            self._close(slot)
        if slot.sock is None:
            self._connect(slot)
        else:
            self._send(slot)

    def _connect_now(self, slot: Slot) -> None:
        """Connect before the clock runs; a failure shows itself at the first request."""
        family, kind, protocol, _, address = slot.target.address
        sock = socket.socket(family, kind, protocol)
        sock.settimeout(5)
        try:
            sock.connect(address)
        except OSError:
            sock.close()
            return
        self._adopt(slot, sock, select.EPOLLIN)

    def _connect(self, slot: Slot) -> None:
        family, kind, protocol, _, address = slot.target.address
        sock = socket.socket(family, kind, protocol)
        sock.setblocking(False)
        code = sock.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            sock.close()
            self._failed_later(slot, code)
            return
        self._adopt(slot, sock, select.EPOLLIN | select.EPOLLOUT)
        slot.want_write = True

    def _failed_later(self, slot: Slot, code: int) -> None:
        """Finish a request whose connection failed at once, in the next round: no recursion through thousands of failures."""
        slot.deadline_ns = -code

    def _adopt(self, slot: Slot, sock: socket.socket, events: int) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._receipts.prepare(sock)
        slot.sock = sock
        self._by_fd[sock.fileno()] = slot
        self._epoll.register(sock.fileno(), events)

    def _writable(self, slot: Slot) -> None:
        sock = slot.sock
        if sock is None or slot.account is None:
            return
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._finish(slot, mono_ns(), {"kind": "connection", "message": code_text(code)})
            return
        self._send(slot)

    def _send(self, slot: Slot) -> None:
        sock, account = slot.sock, slot.account
        if sock is None or account is None or slot.sending is None:
            return
        if not account.sent_ns:
            account.sent_ns = slot.seen_ns = mono_ns()
        try:
            slot.sending = slot.sending[sock.send(slot.sending[:SLICE]) :]
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno == errno.EPIPE:  # it closed its side while we send: what it said first is still to be read
                slot.sending = memoryview(b"")
            else:
                self._finish(slot, mono_ns(), {"kind": "connection", "message": code_text(error.errno or 0)})
                return
        more = bool(slot.sending)
        if more != slot.want_write:
            slot.want_write = more
            self._epoll.modify(sock.fileno(), select.EPOLLIN | (select.EPOLLOUT if more else 0))

    def _tick(self, now: int) -> None:
        if self._stopping_ns is None:
            reason = self._why_stop()
            if reason:
                self._stopping_ns, self._stop_reason = now, reason
        for slot in self._slots:
            if slot.account is None:
                self._start(slot)
            elif slot.deadline_ns <= 0:
                self._finish(slot, now, {"kind": "connection", "message": code_text(-slot.deadline_ns)})
            elif now > slot.deadline_ns:
                message = "No end within %g s; %s." % (self._timeout_ns / 1e9, progress(slot.account))
                self._finish(slot, now, {"kind": "timeout", "message": message})
            elif self._stopping_ns is not None and now > self._stopping_ns + STOP_GRACE_NS:
                self._finish(slot, now, {"kind": "connection", "message": "Closed by the probe, which had to end (%s)." % self._stop_reason})

    def _close(self, slot: Slot) -> None:
        if slot.sock is not None:
            self._by_fd.pop(slot.sock.fileno(), None)
            slot.sock.close()
        slot.sock, slot.want_write = None, False

    def _close_all(self) -> None:
        for slot in self._slots:
            self._close(slot)
        self._epoll.close()
