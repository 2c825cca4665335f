"""The attendant: on the engine's host it does for a driver elsewhere what a driver on this host does itself (probe.engine_host).

It is a job of kind `attend`, with the id of the job that it serves: started once, fenced, holding the job's lock. It listens where the
engagement says, answers sealed requests only (probe.attend_seal), and knows no more than its verbs (probe.attend_verbs). It ends with the job
that it serves, when it is stopped, or when it hears nothing for a while; then it ends the engine too, since nobody drives it any more.
"""

from __future__ import annotations

import hashlib
import http.server
import itertools
import json
import secrets
import socket
import threading
import time
from contextlib import suppress
from typing import Any, Callable, Dict, Optional, Tuple

from probe import VERSION, attend_seal
from probe.attend_verbs import ACCOUNTED, UNWRITTEN, checked
from probe.engine_host import LocalHost, now
from probe.errors import Ended, ProbeError, Refused
from probe.files import canonical
from probe.job_main import Job

PATIENCE_S = 0.2  # what takes longer gets a ticket, so that no request is a long one
CONNECTIONS, IDLE_S = 16, 60.0
TICKETS = 16
PARTED = "parted"  # the soak that is served lost another engine host: what ends by silence elsewhere ends so here at once
OUTCOMES = ("done", "error", "stopped", PARTED)


class Task:
    """One thing that is being done. `give_up` ends it at its next breath."""

    def __init__(self, work: Callable[[Callable[[float], None]], Any], why_stop: Callable[[], Optional[str]]) -> None:
        self._work, self._why_stop = work, why_stop
        self.done, self.give_up = threading.Event(), False
        self.answer: Dict[str, Any] = {}
        threading.Thread(target=self._run, name="task", daemon=True).start()

    def _run(self) -> None:
        try:
            self.answer = {"answer": self._work(self._sleep)}
        except ProbeError as error:
            self.answer = {"error": {"kind": error.kind, "message": str(error), "refused": isinstance(error, Refused)}}
        except Exception as error:
            self.answer = {"error": {"kind": "internal", "message": "%s: %s" % (type(error).__name__, error), "refused": False}}
        self.answer["at"] = now()
        self.done.set()

    def _sleep(self, seconds: float) -> None:
        if self.give_up or self._why_stop():
            raise Ended("stopped", "Whoever asked for it has given up.")
        time.sleep(min(seconds, 0.1))


class Attendant:
    """What is asked, and by whom. One request at a time has an effect; the last answer is kept, so that one that got lost can be given again."""

    def __init__(self, job: Job, key: bytes) -> None:
        self._job, self._key, self.host = job, key, LocalHost(job.spec, job.folder)
        self.session = secrets.token_hex(16)
        self.heard, self.refused, self.outcome = time.monotonic(), 0, ""
        self._lock = threading.Lock()
        self._seq, self._last = 0, ("", b"")
        self._tickets, self._number = {}, itertools.count(1)  # type: Dict[int, Tuple[Task, str, Dict[str, Any]]], Any
        self._injected: Dict[str, bool] = {}

    def take(self, head: Dict[str, str], body: bytes) -> Optional[Tuple[int, bytes, str]]:
        """Return (status, body, seal) for a request, None where it is nobody's whom we know."""
        session, nonce, given = (head.get(name, "")[:200] for name in (attend_seal.SESSION, attend_seal.NONCE, attend_seal.SEAL))
        number = head.get(attend_seal.SEQ, "")
        seq = int(number) if number.isascii() and number.isdigit() and len(number) < 16 else -1
        name = str(self._job.spec["job"])
        if seq < 0 or not nonce or not attend_seal.same(given, attend_seal.seal(self._key, attend_seal.ASK, name, session, seq, nonce, body)):
            self.refused += 1
            return None
        if (session, seq) == ("", 0):
            status, text = 200, self._hello(body)
        elif session != self.session:
            status, text = 409, _said("session", "These are words to another attendant than this one.")
        else:
            status, text = self._in_turn(seq, given, body)
        return status, text, attend_seal.seal(self._key, attend_seal.ANSWER, name, session, seq, nonce, text, status)

    def _hello(self, body: bytes) -> bytes:
        if _parsed(body).get("verb") != attend_seal.HELLO:
            return _said("refused", "Only a greeting comes without a session.")
        return _dumps({"answer": {"session": self.session, "seq": self._seq, "host": self._job.spec["host"], "version": VERSION}, "at": now()})

    def _in_turn(self, seq: int, given: str, body: bytes) -> Tuple[int, bytes]:
        """Do what comes next. The same request once more gets the same answer and does nothing; an older one is refused."""
        with self._lock:
            if seq == self._seq and given == self._last[0]:
                self.heard = time.monotonic()
                return 200, self._last[1]
            if seq <= self._seq:
                return 409, _said("replayed", "A request with this number, or a later one, was taken already.")
            self._seq, self.heard = seq, time.monotonic()
            text = self._do(_parsed(body))
            self._last = (given, text)
            return 200, text

    def _do(self, ask: Dict[str, Any]) -> bytes:
        verb, arguments = ask.get("verb"), ask.get("args")
        if verb == "alive":
            return _dumps({"answer": None, "at": now()})
        if verb == "bye":
            outcome = arguments.get("outcome") if isinstance(arguments, dict) else None
            self.outcome = outcome if outcome in OUTCOMES else "error"
            return _dumps({"answer": None, "at": now()})
        if verb in ("result", "give_up"):
            return self._ticket(str(verb), arguments)
        if len(self._tickets) >= TICKETS:
            return _said("refused", "Too much is being done already.")
        try:
            work = checked(self.host, verb, arguments)
        except ProbeError as error:
            self._job.journals.put("asked.jsonl", {"verb": str(verb)[:60], "refused": True})
            return _said(error.kind, str(error))
        if verb == "inject":
            self._injected[arguments["label"]] = arguments["verb"] == "start"
        task, number = Task(work, self._job.why_stop), next(self._number)
        self._tickets[number] = (task, str(verb), arguments)
        return self._looked_at(number)

    def _ticket(self, verb: str, arguments: Any) -> bytes:
        number = arguments.get("ticket") if isinstance(arguments, dict) else None
        if not isinstance(number, int) or number not in self._tickets:
            return _said("refused", "There is no such ticket.")
        if verb == "give_up":
            self._tickets[number][0].give_up = True
        return self._looked_at(number)

    def _looked_at(self, number: int) -> bytes:
        task, verb, arguments = self._tickets[number]
        if not task.done.wait(PATIENCE_S):
            return _dumps({"ticket": number, "at": now()})
        del self._tickets[number]
        if verb not in UNWRITTEN:
            row = {"verb": verb, "error": (task.answer.get("error") or {}).get("kind"), **task.answer["at"]}
            if verb in ACCOUNTED and "answer" in task.answer:
                row["sha256"] = hashlib.sha256(canonical(task.answer["answer"])).hexdigest()
            if verb == "control":  # that the engine was stopped and started anew must not be the driver's word alone
                row.update(did=arguments["verb"], engine=task.answer.get("answer"))
            self._job.journals.put("asked.jsonl", row)
        return _dumps(task.answer)

    def undo(self, engine_too: bool) -> None:
        """End what was begun here and nobody will end: disturbances, and, where nobody drives it any more, the engine."""
        for task, _, _ in self._tickets.values():
            task.give_up = True
        for label in [label for label, begun in self._injected.items() if begun]:
            self.host.inject(label, "stop")
        if engine_too and (self.host.engine.get("control") or {}).get("stop"):
            self.host.control("stop")


def run_attend(job: Job, key: bytes) -> None:
    """Serve until the job that is served says goodbye, this one is stopped, or nothing was heard for spec.silence_s."""
    if not key:
        raise ProbeError("attendant", "The attendant was started without the key of its job; nobody could be told from anybody else.")
    attendant = Attendant(job, key)
    silence_s = float(job.spec.get("silence_s") or attend_seal.SILENCE_S)
    server = _listen(job.spec["listen"], attendant)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="http", daemon=True)
    serving.start()
    job.progress.update(phase="attend")
    engine_too = False
    try:
        while not attendant.outcome:
            job.check()
            silent = time.monotonic() - attendant.heard
            if silent > silence_s:
                engine_too = True
                words = "Nothing was heard of the job's driver for %d s; the engine was ended. Words of strangers that were refused: %d."
                raise ProbeError("silence", words % (silent, attendant.refused))
            time.sleep(0.05)
        time.sleep(2 * PATIENCE_S)  # the answer to the goodbye is on its way
    finally:
        server.shutdown()
        server.server_close()
        job.journals.put("asked.jsonl", {"verb": "end", "outcome": attendant.outcome or None, "strangers": attendant.refused})
        attendant.undo(engine_too or attendant.outcome == PARTED)
    if attendant.outcome == "stopped":
        raise Ended("stopped", "The job that was served was stopped.")
    if attendant.outcome == PARTED:
        raise ProbeError("silence", "The job's driver lost an engine host and let go of this one; the engine was ended.")
    if attendant.outcome != "done":
        raise ProbeError("served", "The job that was served did not end as done; its own exit.json says why.")


def _listen(where: Dict[str, Any], attendant: Attendant) -> http.server.ThreadingHTTPServer:
    try:
        return _Server((str(where["address"]), int(where["port"])), attendant)
    except (OSError, OverflowError, KeyError, TypeError, ValueError) as error:
        raise ProbeError(
            "attendant",
            "The attendant cannot listen on %s port %s of this host: %s. Give targets.hosts.NAME.attend an address of this host and a free port."
            % (where.get("address"), where.get("port"), error),
        ) from error


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads, allow_reuse_address = True, True

    def __init__(self, place: Tuple[str, int], attendant: Attendant) -> None:
        if ":" in place[0]:
            self.address_family = socket.AF_INET6
        self.attendant, self.room = attendant, threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(place, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Take a connection that broke as what it is: nobody's word."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, timeout, server_version, sys_version = "HTTP/1.1", IDLE_S, "quadgate", ""

    def do_POST(self) -> None:
        """Answer a sealed request; refuse whatever else in one word that tells nothing."""
        length = self.headers.get("Content-Length") or ""
        if self.path != attend_seal.PATH or self.headers.get("Transfer-Encoding"):
            self._refuse(404)
        elif not (length.isascii() and length.isdigit() and len(length) < 10):
            self._refuse(411)
        elif int(length) > attend_seal.ASK_MAX:
            self._refuse(413)
        else:
            self._answer(self.rfile.read(int(length)), int(length))

    def _answer(self, body: bytes, length: int) -> None:
        attendant: Attendant = self.server.attendant  # type: ignore[attr-defined]
        found = attendant.take({name: self.headers.get(name) or "" for name in _HEADERS}, body) if len(body) == length else None
        if found is None:
            self._refuse(401)
        else:
            self._send(*found)

    def _refuse(self, status: int) -> None:
        self.close_connection = True
        self._send(status, _said("refused", "Refused."), "")

    def _send(self, status: int, text: bytes, sealed: str) -> None:
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.send_header(attend_seal.SEAL, sealed)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: strangers must not be able to fill the disk."""


_HEADERS = (attend_seal.SESSION, attend_seal.SEQ, attend_seal.NONCE, attend_seal.SEAL)


def _parsed(body: bytes) -> Dict[str, Any]:
    with suppress(ValueError, RecursionError):
        found = json.loads(body.decode("utf-8"))
        return found if isinstance(found, dict) else {}
    return {}


def _dumps(obj: Any) -> bytes:
    return json.dumps(obj, separators=(",", ":")).encode("ascii")


def _said(kind: str, message: str) -> bytes:
    return _dumps({"error": {"kind": kind, "message": message, "refused": False}, "at": now()})
