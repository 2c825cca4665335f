"""How driver and attendant know each other's words: each request and each answer is sealed with a key that only this job's two ends have.

A seal is an HMAC-SHA256 over the direction, the job, the attendant's session, a sequence number, a nonce of the asker and the body. So a word
of somebody else, of another job, of an earlier attendant, or one said before, is none.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Any, Dict

from probe.errors import ProbeError

PATH = "/v1/ask"
ASK, ANSWER = "ask", "answer"
KEY = re.compile(r"[0-9a-f]{64}")
SESSION, SEQ, NONCE, SEAL = "X-Quadgate-Session", "X-Quadgate-Seq", "X-Quadgate-Nonce", "X-Quadgate-Seal"
HELLO = "hello"  # the only verb that needs no session: it asks for one
ASK_MAX, ANSWER_MAX = 4096, 32 << 20  # bytes of a body
SILENCE_S = 120.0  # an attendant that hears nothing for so long ends, and ends the engine
LOST_S = 60.0  # a driver that gets no answer for so long ends its job
BEAT_S = 10.0  # between two words of a driver that has nothing to ask
_VERSION = "quadgate-attend-1"


def seal(key: bytes, way: str, job: str, session: str, seq: int, nonce: str, body: bytes, status: int = 0) -> str:
    """Return the seal in hex. `way` is ASK or ANSWER; an answer's HTTP status is sealed too."""
    digest = hashlib.sha256(body).hexdigest()
    words = "\n".join((_VERSION, way, job, session, str(seq), nonce, str(status), digest))
    return hmac.new(key, words.encode("utf-8"), hashlib.sha256).hexdigest()


def same(seal_a: str, seal_b: str) -> bool:
    """Compare two seals in a time that tells nothing."""
    return hmac.compare_digest(seal_a.encode("utf-8", "replace"), seal_b.encode("utf-8", "replace"))


def take_key(spec: Dict[str, Any]) -> bytes:
    """Take the key out of a specification that came on stdin, so that it is written nowhere. Empty where there is none."""
    given = spec.pop("attend_key", None)
    if given is None or given == "":
        return b""
    if not isinstance(given, str) or not KEY.fullmatch(given):
        raise ProbeError("spec", "attend_key must be 64 hexadecimal digits; nothing was started.")
    return bytes.fromhex(given)
