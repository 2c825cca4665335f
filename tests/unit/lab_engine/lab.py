"""A running simulated engine, a client for it, and a loop whose time is only counted."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from app.settings import ROOT

PACKAGE = ROOT / "playbooks" / "roles" / "lab_engine" / "files"
if str(PACKAGE) not in sys.path:
    sys.path.insert(0, str(PACKAGE))

BLOCK = 256  # tokens; times 16 bytes is one page, the least that can be written past the page cache
FAST = {
    "model": "lab",
    "prefill_tokens_per_s": 1e6,
    "decode_base_s": 0.0002,
    "kv_bytes_per_token": 16,
    "block_tokens": BLOCK,
    "hbm_tokens": 64 * BLOCK,
}


def prompt(number: int, blocks: int = 4, suffix: int = 8) -> list[int]:
    """Return a prompt of full blocks and a short rest; the number makes it another one."""
    return [100 + (number * 7919 + i * 31 + i // 900) % 900 for i in range(blocks * BLOCK)] + [100 + (number + i) % 900 for i in range(suffix)]


class Lab:
    """One engine process. Ended by the context manager, by its own pid."""

    def __init__(self, folder: Path, **config: Any) -> None:
        self.config = folder / "config.json"
        self.config.write_text(json.dumps({**FAST, **config}))
        self.process: subprocess.Popen[str] | None = None
        self.port = 0

    def __enter__(self) -> Lab:
        argv = [sys.executable, "-m", "lab_engine", "--config", str(self.config)]
        self.process = subprocess.Popen(argv, cwd=PACKAGE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "http://" in line, line
        self.port = int(line.rsplit(":", 1)[1])
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            assert self.process.stdout is not None
            self.process.stdout.close()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Return status and body of one exchange on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, json.dumps(body) if not isinstance(body, bytes | None) else body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def complete(self, tokens: Any, max_tokens: int = 4, **more: Any) -> dict[str, Any]:
        """Return the answer of a request without a stream."""
        body = {"model": "lab", "prompt": tokens, "max_tokens": max_tokens, "ignore_eos": True, "temperature": 0, **more}
        answer: dict[str, Any] = json.loads(self.call("POST", "/v1/completions", body)[1])
        return answer

    def events(self, tokens: Any, max_tokens: int = 4, **more: Any) -> list[Any]:
        """Return the events of a stream, `[DONE]` as text."""
        body = {"model": "lab", "prompt": tokens, "max_tokens": max_tokens, "stream": True, "stream_options": {"include_usage": True}, **more}
        status, data = self.call("POST", "/v1/completions", {"ignore_eos": True, "temperature": 0, **body})
        assert status == 200, data
        payloads = [part.removeprefix("data: ") for part in data.decode().split("\n\n") if part]
        return [payload if payload == "[DONE]" else json.loads(payload) for payload in payloads]

    def metric(self, name: str, **labels: str) -> float:
        """Return one value of /metrics."""
        for line in self.call("GET", "/metrics")[1].decode().splitlines():
            if line.startswith(name) and line[len(name)] in "{ " and all(f'{k}="{v}"' in line for k, v in labels.items()):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError(f"no metric {name} {labels}")


def empty_page_cache(folder: Path) -> None:
    """Put every file of a folder out of the page cache."""
    for path in folder.iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


class _Jump(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    """A selector that does not wait: it lets the time pass."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout and timeout > 0:
            self.passed += timeout
        return super().select(0)


class CountedLoop(asyncio.SelectorEventLoop):
    """An event loop in which nobody waits: sleeping for a second takes no time and counts as a second, to the microsecond."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return 1000.0 + self._jump.passed


class Inline(Executor):
    """An executor that works at once, in the caller's own thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


def counted(config: dict[str, Any], cells: Iterable[tuple[int, list[Any]]], output: int) -> list[dict[str, float]]:
    """Run closed loops (concurrency, prompts) on the engine's model in counted time. Return for each {ttft_p50, rate: requests a second}."""
    from lab_engine.config import parse
    from lab_engine.engine import Engine, Request
    from lab_engine.prompt import Prompt

    loop = CountedLoop()

    async def closed(engine: Engine, concurrency: int, prompts: list[Any]) -> dict[str, float]:
        todo, ttft, ends = iter(prompts), [], []

        async def client() -> None:
            for tokens in todo:
                sent = loop.time()
                text = Prompt(b",".join(b"%d" % token for token in tokens))

                def begin(_answer: Any, sent: float = sent) -> Callable[[int], bool]:
                    ttft.append(loop.time() - sent)
                    return lambda _due: True

                await engine.run(Request(text, output, True, 0.0, 0, "", sent), begin)
                ends.append(loop.time())

        await asyncio.gather(*(client() for _ in range(concurrency)))
        ends.sort()
        steady = ends[concurrency - 1 : -concurrency + 1]
        return {"ttft_p50": sorted(ttft)[len(ttft) // 2], "rate": (len(steady) - 1) / (steady[-1] - steady[0])}

    async def all_cells() -> list[dict[str, float]]:
        engine = Engine(parse({**FAST, **config}), loop.time())
        engine._threads = Inline()
        return [await closed(engine, concurrency, prompts) for concurrency, prompts in cells]

    try:
        return loop.run_until_complete(all_cells())
    finally:
        loop.close()
