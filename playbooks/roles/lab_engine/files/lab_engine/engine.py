"""The life of a request: admitted, looked up, loaded, prefilled, decoded, stored. Time comes from the model, bytes from the machine."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Callable, Deque, List, Optional, Tuple

from . import kv
from .clock import Serial, variation
from .config import Config
from .decode import Decoder, Sequence
from .faults import Defects
from .hbm import Hbm
from .metrics import Metrics
from .prompt import Prompt
from .tier import ExternalTier, Loaded


@dataclass(frozen=True)
class Request:
    """One completion as asked for. `arrived` is the loop's time at which its headers were there."""

    prompt: Prompt
    max_tokens: int
    ignore_eos: bool
    temperature: float
    seed: int
    salt: str
    arrived: float


@dataclass(frozen=True)
class Answer:
    """What the model says: token ids, why it ended, and how much of the prompt did not have to be computed."""

    token_ids: List[int]
    finish_reason: str
    cached_tokens: int
    defect: str = ""  # "", "error_stream" or "empty_stream"


class Engine:
    """The model of one inference server: compute, KV memory, decoder, external tier."""

    def __init__(self, config: Config, started: float) -> None:
        self.config = config
        self.metrics = Metrics(config)
        self.defects = Defects(config, started)
        self.decoder = Decoder(config.decode_base_s, config.decode_per_sequence_s, self.defects.slowness)
        self._hbm = Hbm(config.num_blocks)
        self._tier = ExternalTier(config, config.tier, self.defects) if config.tier else None
        self._compute = Serial()
        self._root = kv.root_of(config.model, config.block_tokens, config.kv_bytes_per_token)
        self._threads = ThreadPoolExecutor(4, "kv")
        self._queue: Deque["asyncio.Future[None]"] = deque()
        self._transfer_order: Optional[asyncio.Lock] = None

    async def run(self, request: Request, begin: Callable[[Answer], Callable[[int], bool]]) -> Answer:
        """Serve one request. `begin` is called when the first token is there and returns the receiver of all further ones.

        The receiver is told how many tokens are due by now and says whether anybody still listens.
        """
        digests = kv.chain(request.prompt, self.config.block_tokens, self._root)
        keys = [kv.key_of(digest, request.salt) for digest in digests]
        prints, room = await self._admit(request, keys)
        held = keys[: len(prints)]
        local = len(prints)
        try:
            loaded, ready = await self._load(request, keys[local:])
            for key, found in zip(keys[local:], loaded.fingerprints):
                prints.append(found)
                room -= 1 if self._hbm.put(key, found) else 0
                held.append(key)
            blocks, at = await self._prefill(request, digests, len(prints), ready)
            storing = self._store(keys[len(prints) :], blocks)
            for key, data in zip(keys[len(prints) :], blocks):
                prints.append(kv.fingerprint(data))
                room -= 1 if self._hbm.put(key, prints[-1]) else 0
                held.append(key)
            answer = self._answer(request, prints, local, loaded)
            heard = await self._decode(answer, begin, at)
            await storing
        finally:
            self._hbm.release(held, room)
            self.metrics.running -= 1
            self.metrics.kv_usage = self._hbm.usage
            self._wake_next()
        self.metrics.success[answer.finish_reason if heard else "abort"] += 1
        self.defects.request_served(bool(loaded.fingerprints))
        return answer

    def reset_prefix_cache(self) -> bool:
        """Forget the KV in the memory of the GPU; False while requests run."""
        return self._hbm.reset()

    def close(self) -> None:
        """Finish the writes that are under way."""
        self._threads.shutdown(wait=True)

    async def _admit(self, request: Request, keys: List[str]) -> Tuple[List[bytes], int]:
        """Wait in line for free KV memory. Return the cached leading blocks and the number of reserved ones."""
        whole = math.ceil((request.prompt.count + request.max_tokens) / self.config.block_tokens)
        waited = False
        while True:
            prints = self._hbm.hits(keys)
            in_line = self._queue and not waited
            if not in_line and self.metrics.running < self.config.max_num_seqs and self._hbm.admit(keys[: len(prints)], whole - len(prints)):
                break
            turn: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()
            if waited:
                self._queue.appendleft(turn)  # it was first in line and did not fit
            else:
                self._queue.append(turn)
            self.metrics.waiting += 1
            try:
                await turn
            finally:
                self.metrics.waiting -= 1
            waited = True
        self.metrics.running += 1
        self.metrics.kv_usage = self._hbm.usage
        if waited:
            self._wake_next()
        return prints, whole - len(prints)

    def _wake_next(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    async def _load(self, request: Request, keys: List[str]) -> Tuple[Loaded, float]:
        """Read leading blocks from the tier. Return them and the time at which their transfer ends."""
        if self._tier is None or not keys:
            return Loaded(), request.arrived
        loop = asyncio.get_running_loop()
        self._transfer_order = self._transfer_order or asyncio.Lock()
        reading = loop.run_in_executor(self._threads, self._tier.load, keys)
        async with self._transfer_order:  # the reads overlap, the medium serves in the order of arrival
            loaded = await reading
            now = loop.time()
            factor = self.defects.slowness(now) * variation(bytes.fromhex(keys[0]), self.config.service_spread)
            done = self._tier.done_at(loaded, request.arrived, factor)
        self.metrics.load_bytes += loaded.medium_bytes + loaded.array_bytes + loaded.memory_bytes
        self.metrics.load_failures += loaded.failures
        await asyncio.sleep(done - loop.time())
        return loaded, done

    async def _prefill(self, request: Request, digests: List[bytes], cached: int, ready: float) -> Tuple[List[bytes], float]:
        """Compute the KV of all that is not cached. Return the new full blocks and the time at which the first token is there."""
        loop = asyncio.get_running_loop()
        missing = digests[cached:]
        todo = max(1, request.prompt.count - cached * self.config.block_tokens)
        spread = variation((digests or [self._root])[0], self.config.service_spread) if missing else 1.0
        seconds = todo / self.config.prefill_tokens_per_s * spread * self.defects.slowness(ready)
        at = self._compute.reserve(ready, seconds)
        size = self.config.block_bytes
        blocks = await loop.run_in_executor(self._threads, lambda: [kv.content(digest, size) for digest in missing]) if missing else []
        await asyncio.sleep(at - loop.time())
        return blocks, at

    def _store(self, keys: List[str], blocks: List[bytes]) -> "asyncio.Future[None]":
        """Write new blocks to the tier beside the decoding."""

        async def write() -> None:
            if self._tier is not None and blocks:
                loop = asyncio.get_running_loop()
                # The sum is read after the wait: `x += await y` reads x before it and loses what others added meanwhile.
                written = await loop.run_in_executor(self._threads, self._tier.store, keys, blocks)
                self.metrics.store_bytes += written

        return asyncio.ensure_future(write())

    def _answer(self, request: Request, prints: List[bytes], local: int, loaded: Loaded) -> Answer:
        size, length = self.config.block_tokens, request.prompt.count
        external = len(loaded.fingerprints) * size
        computed = max(1, length - local * size - external)
        from_local = min(local * size, length - computed)
        from_external = length - computed - from_local
        looked_up = length - local * size if self._tier is not None else 0
        self.metrics.prompt(from_local, from_external, computed, looked_up)
        state = kv.state_of(prints, request.prompt.slice(len(prints) * size, length), request.seed, request.temperature)
        defect = ""
        if external:
            defect = next((name for name in ("error_stream", "empty_stream") if self.defects.hits(name, state.hex())), "")
        if defect:
            return Answer([], "error" if defect == "error_stream" else "stop", length - computed, defect)
        tokens, reason = kv.output_tokens(state, request.max_tokens), "length"
        if not request.ignore_eos:
            end = next((i for i, token in enumerate(tokens) if token % kv.EOS_EVERY == 0), None)
            tokens, reason = (tokens, reason) if end is None else (tokens[: end + 1], "stop")
        return Answer(tokens, reason, length - computed)

    async def _decode(self, answer: Answer, begin: Callable[[Answer], Callable[[int], bool]], at: float) -> bool:
        """Hand out the tokens at their times; False when the client went away meanwhile."""
        receiver = begin(answer)
        if not answer.token_ids:
            return True
        done: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()
        sequence = Sequence(len(answer.token_ids), receiver, done)
        self.decoder.join(sequence, at)
        await done
        self.metrics.generation_tokens += sequence.emitted
        return not sequence.aborted
