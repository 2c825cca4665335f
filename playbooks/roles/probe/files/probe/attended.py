"""An engine host elsewhere, as its attendant shows it (probe.attend): the same questions as to this host, asked over the network.

Whatever comes back bears `on`: the host's name, boot and own clocks at the end of the work, and the driver's clock before it asked and after it
was answered. What is ordered against requests is ordered by the driver's; between the two lies what nobody knows.
"""

from __future__ import annotations

import http.client
import json
import secrets
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from probe import attend_seal, clock
from probe.engine_host import START_S, STOP_S
from probe.errors import Ended, ProbeError, Refused
from probe.files import dumps
from probe.job_main import Job

CONNECT_S, LOOK_S, BYE_S = 10.0, 0.05, 5.0


class AttendedHost:
    """The engine's host behind its attendant. A host that stays silent for LOST_S ends the job by name."""

    same_clock = False

    def __init__(self, job: Job, where: Dict[str, Any], key: bytes) -> None:
        """Take an entry {host, address, port} of the job file's `attendants`, and the key of the job."""
        self._job, self._where, self._key = job, where, key
        limits = job.spec.get("limits") or {}
        self.start_s = float(limits.get("start_timeout_s") or START_S)
        self.stop_s = float(limits.get("stop_timeout_s") or STOP_S)
        self.name = str(where["host"])
        self._lost_s = float(where.get("lost_s") or attend_seal.LOST_S)
        self.boot_id = ""  # of that host, known from the greeting on
        self._session, self._seq = "", 0
        self._lock, self._over = threading.Lock(), threading.Event()
        self._line: Optional[http.client.HTTPConnection] = None
        if not key:
            raise ProbeError("attendant", "The job was started without the key of its attendant on %s. Nothing was measured." % self.name)
        self._greet()
        self._beat = threading.Thread(target=self._beats, name="beat", daemon=True)
        self._beat.start()

    # The same questions as LocalHost answers.

    def process(self) -> Optional[Dict[str, Any]]:
        """Return {pid, start_ticks, boot_id} of the living engine there, or None."""
        found: Optional[Dict[str, Any]] = self._ask("process")["answer"]
        return found

    def control(self, verb: str, sleep: Callable[[float], None] = time.sleep, timeout: Optional[float] = None) -> Optional[Dict[str, Any]]:
        """Let the engine be started or stopped there; where `sleep` raises, the command there is ended too. Return the process behind it."""
        found: Optional[Dict[str, Any]] = self._ask("control", sleep, verb=verb, timeout=timeout)["answer"]
        return found

    def reset(self, sleep: Callable[[float], None] = time.sleep) -> Dict[str, Any]:
        """Let the engine there forget its GPU cache; where `sleep` raises, nobody goes on asking it."""
        asked = self._ask("reset", sleep)
        return dict(asked["answer"], on=asked["on"])

    def words(self, instances: int) -> List[Dict[str, Any]]:
        """Return what each instance was started with."""
        found: List[Dict[str, Any]] = self._ask("words", instances=instances)["answer"]
        return found

    def hash_seed(self) -> Optional[str]:
        """Return PYTHONHASHSEED of the engine there."""
        found: Optional[str] = self._ask("hash_seed")["answer"]
        return found

    def reading(self) -> Dict[str, Any]:
        """Return that host's part of a line of counters.jsonl."""
        return self._row("reading")

    def offload(self) -> Dict[str, Any]:
        """Return the pages of the offload software there."""
        found: Dict[str, Any] = self._ask("offload")["answer"]
        return found

    def kv_size(self) -> Dict[str, int]:
        """Return {files, bytes} of the KV directories there."""
        found: Dict[str, int] = self._ask("kv_size")["answer"]
        return found

    def sync(self) -> None:
        """Put the files of the KV directories on the medium."""
        self._ask("sync", self._job.sleep)

    def drop(self) -> List[Dict[str, Any]]:
        """Empty the page cache there."""
        return self._rows("drop")

    def residency(self) -> List[Dict[str, Any]]:
        """Return what is resident of each KV directory there."""
        return self._rows("residency")

    def medium(self, needed: int) -> List[Dict[str, Any]]:
        """Return what was found of the medium there; its refusal is ours."""
        return self._rows("medium", needed=needed)

    def ports(self) -> Dict[str, Any]:
        """Return what the storage ports there counted, with that host's stamps."""
        return self._row("ports")

    def require_counters(self, lacking_array_is_fine: bool = False) -> None:
        """Refuse a soak whose fatal counters have no source there."""
        self._ask("require_counters", self._job.sleep, lacking_array_is_fine=lacking_array_is_fine)

    def watch_begin(self) -> None:
        """Let programs and endpoints there be asked every minute."""
        self._ask("watch_begin")

    def watch_end(self) -> None:
        """Let them be asked once more."""
        self._ask("watch_end")

    def health(self) -> List[Dict[str, Any]]:
        """Return the lines of health.jsonl that came there since the last time, stamped by our clock; `on` has that host's."""
        asked = self._ask("health")
        rows = []
        for told in asked["answer"]:
            own = {key: told.pop(key) for key in ("wall_ns", "mono_ns", "boot_id")}
            rows.append(dict(told, on=dict(asked["on"], **own)))
        return rows

    def kernel(self) -> List[Dict[str, Any]]:
        """Return the lines of kernel.jsonl that came there since the last time; `on` has both clocks at the answer."""
        asked = self._ask("kernel")
        return [dict(told, on=asked["on"]) for told in asked["answer"]]

    def sample(self) -> Dict[str, Any]:
        """Return that host's part of a line of telemetry.jsonl."""
        return self._row("sample")

    def inject(self, label: str, verb: str) -> Optional[int]:
        """Let the command of a planned disturbance be run there; return its exit code."""
        found: Optional[int] = self._ask("inject", label=label, verb=verb)["answer"]
        return found

    def cell(self, kind: str, _: Callable[[float], None] = time.sleep) -> Dict[str, Any]:
        """Let a cell be measured there, by that host's clock."""
        return self._row("cell", kind=kind)

    def weights(self, drop: bool) -> Dict[str, Any]:
        """Return what the engine there loads and what was read of it so far; with `drop` it is put out of memory before."""
        return self._row("weights", drop=drop)

    def close(self, outcome: str) -> None:
        """Say goodbye, so that the attendant ends. One that does not hear it ends of the silence."""
        self._over.set()
        try:
            with self._lock:
                self._exchange({"verb": "bye", "args": {"outcome": outcome}}, BYE_S)
        except ProbeError:
            pass
        finally:
            self._hang_up()

    # How they are asked.

    def _row(self, verb: str, /, **arguments: Any) -> Dict[str, Any]:
        asked = self._ask(verb, self._job.sleep, **arguments)
        return dict(asked["answer"], on=asked["on"])

    def _rows(self, verb: str, /, **arguments: Any) -> List[Dict[str, Any]]:
        asked = self._ask(verb, self._job.sleep, **arguments)
        return [dict(row, on=asked["on"]) for row in asked["answer"]]

    def _ask(self, verb: str, sleep: Callable[[float], None] = time.sleep, /, **arguments: Any) -> Dict[str, Any]:
        """Return {answer, on}. What takes longer there is asked for again until it is done; `sleep` may raise, then it is given up."""
        asked_ns = clock.mono_ns()
        found = self._say({"verb": verb, "args": arguments})
        while "ticket" in found:
            try:
                sleep(LOOK_S)
            except BaseException:
                self._say({"verb": "give_up", "args": {"ticket": found["ticket"]}})
                raise
            found = self._say({"verb": "result", "args": {"ticket": found["ticket"]}})
        error = found.get("error")
        if error:
            kind, message = str(error.get("kind")), "%s: %s" % (self.name, error.get("message"))
            raise Refused(kind, message) if error.get("refused") else ProbeError(kind, message)
        return {"answer": found.get("answer"), "on": dict(found["at"], host=self.name, asked_ns=asked_ns, answered_ns=clock.mono_ns())}

    def _say(self, words: Dict[str, Any]) -> Dict[str, Any]:
        try:
            with self._lock:
                return self._exchange(words, self._lost_s)
        except ProbeError as error:
            if error.kind == "attendant":
                self._job.give_up(Ended("attendant", str(error)))
            raise

    def _greet(self) -> None:
        """Get to know the attendant: its session makes every later word one to it alone."""
        told = self._exchange({"verb": attend_seal.HELLO, "args": {}}, self._lost_s)
        found, self.boot_id = told["answer"], str(told["at"]["boot_id"])
        if found["host"] != self.name:
            raise ProbeError("attendant", "%s answers as %s; the job is not for that host." % (self._place(), found["host"]))
        self._session, self._seq = str(found["session"]), int(found["seq"])

    def _exchange(self, words: Dict[str, Any], patience_s: float) -> Dict[str, Any]:
        """Send one request and read its sealed answer; the same request goes out again until it is answered, and counts once."""
        body = dumps(words).encode("ascii")
        if self._session:
            self._seq += 1
        seq, nonce, end = (self._seq if self._session else 0), secrets.token_hex(16), time.monotonic() + patience_s
        while True:
            try:
                return self._once(body, seq, nonce, patience_s)
            except (OSError, http.client.HTTPException) as error:
                self._hang_up()
                if time.monotonic() > end or self._job.why_stop() in ("stopped", "deadline", "given_up"):
                    raise ProbeError(
                        "attendant",
                        "The attendant on %s (%s) gave no answer for %d s: %s. Look whether that host and the network between are up."
                        % (self.name, self._place(), patience_s, str(error) or type(error).__name__),
                    ) from error
                time.sleep(0.2)

    def _once(self, body: bytes, seq: int, nonce: str, patience_s: float) -> Dict[str, Any]:
        name = str(self._job.spec["job"])
        head = {"Content-Type": "application/json", attend_seal.SESSION: self._session, attend_seal.SEQ: str(seq), attend_seal.NONCE: nonce}
        head[attend_seal.SEAL] = attend_seal.seal(self._key, attend_seal.ASK, name, self._session, seq, nonce, body)
        if self._line is None:
            self._line = http.client.HTTPConnection(str(self._where["address"]), int(self._where["port"]), timeout=min(CONNECT_S, patience_s))
        self._line.request("POST", attend_seal.PATH, body, head)
        answer = self._line.getresponse()
        text = answer.read(attend_seal.ANSWER_MAX)
        wanted = attend_seal.seal(self._key, attend_seal.ANSWER, name, self._session, seq, nonce, text, answer.status)
        if not attend_seal.same(answer.getheader(attend_seal.SEAL) or "", wanted):
            raise ProbeError(
                "attendant",
                "What answers at %s (status %d) is not the attendant of this job on %s: its answer bears no seal of the job's key. Another program "
                "may hold the port, or the attendant was started with another key." % (self._place(), answer.status, self.name),
            )
        found: Dict[str, Any] = json.loads(text.decode("utf-8"))
        if answer.status != 200:
            raise ProbeError("attendant", "The attendant on %s refused: %s" % (self.name, (found.get("error") or {}).get("message")))
        return found

    def _beats(self) -> None:
        """Say that we are here, also through hours of measuring in which nothing is asked."""
        while not self._over.wait(float(self._where.get("beat_s") or attend_seal.BEAT_S)):
            try:
                self._say({"verb": "alive", "args": {}})
            except ProbeError:
                return  # the job was told

    def _place(self) -> str:
        return "%s port %s" % (self._where["address"], self._where["port"])

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
