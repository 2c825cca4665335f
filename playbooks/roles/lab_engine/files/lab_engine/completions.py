"""The completions endpoint: what a request must look like, and the bytes of the answer, whole or as a stream of events."""

from __future__ import annotations

import json
import time
from typing import Any, Callable, Dict, List, Tuple

from .config import Config
from .engine import Answer, Request
from .prompt import Prompt

_HOLE = 987654321012345678  # stands where a token goes in a rendered event; no token and no time stamp is as long


class RequestError(ValueError):
    """The request cannot be served; the message says why, `status` is the HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Completion:
    """One request to /v1/completions and its answer."""

    def __init__(self, body: bytes, number: int, config: Config, arrived: float, recv_ns: int) -> None:
        data, prompt = _read(body)
        if data.get("model", config.model) != config.model:
            raise RequestError(f"the model {data['model']!r} does not exist here; this engine serves {config.model!r}", 404)
        self.stream = bool(data.get("stream", False))
        options = data.get("stream_options") or {}
        self._with_usage = bool(options.get("include_usage")) if isinstance(options, dict) else False
        self._with_ids = bool(data.get("return_token_ids", False))
        self._recv_ns = recv_ns
        self._first_ns = 0
        self._send_ns = 0
        self._prompt_tokens = prompt.count
        self._head = {"id": f"cmpl-{number}", "object": "text_completion", "created": int(time.time()), "model": config.model}
        self._events: List[bytes] = []
        self._sent = 0
        max_tokens = _whole(data, "max_tokens", 16, 1)
        if prompt.count + max_tokens > min(config.max_model_len, config.hbm_tokens):
            raise RequestError(f"the prompt of {prompt.count} tokens and {max_tokens} new ones exceed the model's context or the KV memory")
        self.request = Request(
            prompt=prompt,
            max_tokens=max_tokens,
            ignore_eos=bool(data.get("ignore_eos", False)),
            temperature=_number(data, "temperature", 1.0),
            seed=_whole(data, "seed", 0, 0),
            salt=str(data.get("cache_salt") or ""),
            arrived=arrived,
        )

    def receiver(self, answer: Answer, write: Callable[[bytes], bool]) -> Callable[[int], bool]:
        """Prepare the events of all tokens, so that sending one costs a slice; return who is told that more are due."""
        self._first_ns = time.monotonic_ns() if answer.token_ids else 0
        if not self.stream:
            return lambda _due: True
        self._events = self._token_events(answer)

        def due(count: int) -> bool:
            data = b"".join(self._events[self._sent : count])
            self._sent = count
            self._send_ns = self._send_ns or time.monotonic_ns()  # before the write: a client on this host can read faster than we return
            return write(data)

        return due

    def end(self, answer: Answer) -> bytes:
        """Return the last events of a stream: an error, or usage when it was asked for, and the end mark."""
        if answer.defect == "error_stream":
            error = {"message": "KV transfer failed while the request was running", "type": "InternalServerError", "code": 500}
            return _event({"error": error}) + b"data: [DONE]\n\n"
        last = b""
        if not answer.token_ids:
            last = _event(dict(self._head, choices=[{"index": 0, "text": "", "logprobs": None, "finish_reason": answer.finish_reason}]))
        if self._with_usage:
            last += _event(dict(self._head, choices=[], usage=self._usage(answer), server=self._server()))
        return last + b"data: [DONE]\n\n"

    def whole(self, answer: Answer) -> Dict[str, Any]:
        """Return the answer of a request without a stream."""
        if answer.defect == "error_stream":
            return {"error": {"message": "KV transfer failed while the request was running", "type": "InternalServerError", "code": 500}}
        choice: Dict[str, Any] = {"index": 0, "text": "".join(map(_text, answer.token_ids)), "logprobs": None, "finish_reason": answer.finish_reason}
        if self._with_ids:
            choice["token_ids"] = answer.token_ids
        return dict(self._head, choices=[choice], usage=self._usage(answer), server=self._server())

    def _usage(self, answer: Answer) -> Dict[str, Any]:
        count = len(answer.token_ids)
        return {
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": count,
            "total_tokens": self._prompt_tokens + count,
            "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
        }

    def _server(self) -> Dict[str, Any]:
        """Return the stamps: headers read, first token there, first text written; a whole answer is written when it ends."""
        return {"recv_ns": self._recv_ns, "first_ns": self._first_ns or None, "send_ns": self._send_ns or time.monotonic_ns()}

    def _token_events(self, answer: Answer) -> List[bytes]:
        """Return one event a token. They differ in the token only, so the rest is rendered once."""
        ids = answer.token_ids
        choice: Dict[str, Any] = {"index": 0, "text": _text(_HOLE), "logprobs": None, "finish_reason": None}
        if self._with_ids:
            choice["token_ids"] = [_HOLE]
        parts = _event(dict(self._head, choices=[choice])).split(b"%d" % _HOLE)
        events = [(b"%d" % token).join(parts) for token in ids[:-1]]
        if ids:
            parts = _event(dict(self._head, choices=[dict(choice, finish_reason=answer.finish_reason)])).split(b"%d" % _HOLE)
            events.append((b"%d" % ids[-1]).join(parts))
        return events


def _text(token: int) -> str:
    """Return the text of a token: a word apart, so that the joined text can be split again."""
    return f" {token}"


def _event(data: Dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def _read(body: bytes) -> Tuple[Dict[str, Any], Prompt]:
    """Return the request and its prompt. A list of ids is cut out of the body; only the rest goes through the JSON parser."""
    start = body.find(b"[", body.find(b'"prompt"')) + 1
    end = body.find(b"]", start)
    text = body[start:end] if 0 < start < end else b""
    if text and not text.translate(None, b"0123456789, \r\n\t"):
        rest = _object(body[:start] + body[end:])
        prompt = Prompt(text.translate(None, b" \r\n\t") if b" " in text or b"\n" in text else text)
        if rest.get("prompt") == [] and prompt.whole:  # else the brackets were inside some text, or it is no JSON
            return rest, prompt
    data = _object(body)
    return data, _prompt(data.get("prompt"))


def _object(body: bytes) -> Dict[str, Any]:
    try:
        data = json.loads(body)
    except ValueError as error:
        raise RequestError(f"the body is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise RequestError("the body must be a JSON object")
    return data


def _prompt(prompt: Any) -> Prompt:
    """Return the token ids of a prompt. Text is tokenised byte by byte."""
    if isinstance(prompt, str):
        prompt = list(prompt.encode())
    if not isinstance(prompt, list) or not prompt:
        raise RequestError("prompt must be text or a list of token ids, and not empty")
    wrong = next((token for token in prompt if isinstance(token, bool) or not isinstance(token, int) or token < 0), None)
    if wrong is not None:
        raise RequestError(f"prompt must hold token ids, whole numbers from 0, not {wrong!r}")
    return Prompt(b",".join(b"%d" % token for token in prompt))


def _whole(data: Dict[str, Any], key: str, default: int, least: int) -> int:
    value = data.get(key)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise RequestError(f"{key} must be a whole number, {least} or more, it is {value!r}")
    return value


def _number(data: Dict[str, Any], key: str, default: float) -> float:
    value = data.get(key)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise RequestError(f"{key} must be a number, 0 or more, it is {value!r}")
    return float(value)
