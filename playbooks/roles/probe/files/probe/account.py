"""The account of one request: what came, when, and which of the seven kinds of failure it is. Nothing is dropped, nothing is guessed.

The first text is the first chunk with non-empty text: a chunk that carries only a role, or empty text, is no token (llm-bench 1.8).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, List, Optional

from probe.prompts import Shot
from probe.wire import Answer, Event, Events

HEAD = 16
BODY_KEPT = 2000


class Account:
    """Collects one answer. Times are ns of CLOCK_MONOTONIC and come from the caller."""

    def __init__(self, shot: Shot, scheduled_ns: int) -> None:
        self.shot = shot
        self.scheduled_ns = scheduled_ns
        self.sent_ns = 0
        self.first_byte_ns: Optional[int] = None
        self.first_read_ns: Optional[int] = None
        self.text_ns: List[int] = []
        self.answer = Answer()
        self.usage: Optional[Dict[str, Any]] = None
        self.finish_reason: Optional[str] = None
        self.server: Optional[Dict[str, Any]] = None
        self.stream_error: Optional[str] = None
        self._events = Events()
        self._texts: List[str] = []
        self._ids: List[int] = []
        self._roles = self._empties = 0
        self._all_ids = True
        self._body = b""

    @property
    def done(self) -> bool:
        """Tell whether the answer has ended by HTTP's rules."""
        return self.answer.done

    def feed(self, data: bytes, now_ns: int, read_ns: Optional[int] = None) -> None:
        """Take bytes that arrived at `now_ns` and were read from the socket at `read_ns`. Raises BadAnswer when they are not HTTP."""
        before = len(self.text_ns)
        if self.first_byte_ns is None:
            self.first_byte_ns = now_ns
        body = self.answer.feed(data)
        if len(self._body) < BODY_KEPT and not self.text_ns:
            self._body += body[:BODY_KEPT]
        if self.answer.status == 200:
            for event in self._events.feed(body):
                self._event(event, now_ns)
        if not before and self.text_ns:
            self.first_read_ns = read_ns or now_ns

    def _event(self, event: Event, now_ns: int) -> None:
        if event.data == "[DONE]":
            return
        try:
            chunk = json.loads(event.data) if event.data else {}
        except ValueError:
            chunk = None
        if event.name == "error" or not isinstance(chunk, dict):
            self.stream_error = self.stream_error or "event %s: %s" % (event.name or "without JSON", event.data[:300])
            return
        if chunk.get("error"):
            self.stream_error = self.stream_error or str(chunk["error"])[:300]
            return
        for choice in chunk.get("choices") or ():
            self._choice(choice, now_ns)
        if isinstance(chunk.get("usage"), dict):
            self.usage = _usage(chunk["usage"])
        if isinstance(chunk.get("server"), dict):
            self.server = {k: chunk["server"].get(k) for k in ("recv_ns", "first_ns", "send_ns")}

    def _choice(self, choice: Dict[str, Any], now_ns: int) -> None:
        text = choice.get("text")
        if text is None:
            delta = choice.get("delta") or {}
            text = delta.get("content") or delta.get("reasoning_content") or ""
        if not text:
            if not choice.get("finish_reason"):  # an end without text is no chunk of its own kind
                role = bool((choice.get("delta") or {}).get("role"))
                self._roles, self._empties = self._roles + role, self._empties + (not role)
        else:
            self.text_ns.append(now_ns)
            self._texts.append(text)
            ids = choice.get("token_ids")
            if ids and self._all_ids:
                self._ids.extend(ids)
            else:
                self._all_ids = False
        if choice.get("finish_reason"):
            self.finish_reason = str(choice["finish_reason"])

    def verdict(self, failure: Optional[Dict[str, str]] = None) -> Optional[Dict[str, str]]:
        """Return None for a whole answer, else {kind, message}. `failure` is what the driver met (timeout, connection).

        What the server said comes before how the connection ended: an HTTP error or an error event explains the rest.
        """
        status = self.answer.status
        if status is not None and status != 200:
            return _error("http", "HTTP %d: %s" % (status, self._body.decode("utf-8", "replace").strip()[:300]))
        if self.stream_error:
            return _error("stream_error", self.stream_error)
        if failure:
            return failure
        if not self.answer.ended_well():
            return _error("connection", "The connection ended before the answer did.")
        if not self.text_ns and not self._one_token_without_text():
            body = self._body.decode("utf-8", "replace").strip()
            kind = "stream_error" if body.startswith("{") and '"error"' in body else "empty_stream"  # an error as plain JSON under HTTP 200
            return _error(kind, "HTTP 200 without any text. %s" % body[:200])
        if self.finish_reason is None:
            return _error("no_finish", "%d chunks of text, then no finish_reason." % len(self.text_ns))
        if self.finish_reason not in ("length", "stop"):
            return _error("stream_error", "finish_reason is %s." % self.finish_reason)
        tokens = self.usage["completion_tokens"] if self.usage else None
        if tokens is not None and tokens < self.shot.max_tokens:
            return _error("short", "%d of %d tokens, finish_reason %s." % (tokens, self.shot.max_tokens, self.finish_reason))
        if tokens is None and self.finish_reason == "stop":
            return _error("short", "finish_reason stop although the end of text was to be ignored; no usage was sent.")
        return None

    def _one_token_without_text(self) -> bool:
        """Tell whether the one token that was asked for came and has no text of its own, as a part of a character has none.

        Only storing asks for one token. It then has no first text, so nothing can be timed by it; longer answers without text are failures.
        """
        tokens = self.usage["completion_tokens"] if self.usage else None
        return self.shot.max_tokens == 1 and tokens == 1 and self.finish_reason == "length"

    def record(self, now_ns: int, failure: Optional[Dict[str, str]], offsets: bool) -> Dict[str, Any]:
        """Return the line of records.jsonl without its number and clocks. `end_ns` is the last text, or the moment of failure."""
        error = self.verdict(failure)
        shot, texts = self.shot, self.text_ns
        sent = self.sent_ns or now_ns
        return {
            "phase": shot.phase,
            "tier": shot.tier,
            "prompt": shot.index,
            "prompt_sha256": shot.sha256,
            "prompt_tokens_sent": shot.tokens,
            "max_tokens": shot.max_tokens,
            "scheduled_ns": self.scheduled_ns,
            "sent_ns": sent,
            "first_byte_ns": self.first_byte_ns,
            "first_text_ns": texts[0] if texts else None,
            "first_text_read_ns": self.first_read_ns,
            "end_ns": texts[-1] if texts and error is None else now_ns,
            "chunk_offsets_us": [(t - sent) // 1000 for t in texts] if offsets else [],
            "chunks": {"text": len(texts), "empty": self._empties, "role": self._roles, "bundled": self._bundled()},
            "usage": self.usage,
            "finish_reason": self.finish_reason,
            "http_status": self.answer.status,
            "error": error,
            "output_sha256": self._output_sha256(),
            "output_head": self._texts[:HEAD],
            "server": self.server,
        }

    def _bundled(self) -> Optional[bool]:
        """Tell whether fewer chunks than tokens came, so that gaps between chunks are not gaps between tokens; None when usage does not say."""
        tokens = self.usage["completion_tokens"] if self.usage else None
        return None if tokens is None else tokens > len(self.text_ns)

    def _output_sha256(self) -> Optional[str]:
        if not self._texts:
            return None
        text = ",".join(map(str, self._ids)) if self._all_ids and self._ids else "".join(self._texts)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _error(kind: str, message: str) -> Dict[str, str]:
    return {"kind": kind, "message": message}


def _usage(usage: Dict[str, Any]) -> Dict[str, Any]:
    details = usage.get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens", usage.get("cached_tokens"))
    return {"prompt_tokens": usage.get("prompt_tokens"), "completion_tokens": usage.get("completion_tokens"), "cached_tokens": cached}
