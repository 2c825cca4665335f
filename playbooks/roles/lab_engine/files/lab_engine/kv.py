"""What a KV cache holds, in miniature: blocks named by all the tokens before them, and outputs that follow from their content.

The content of a block is a function of every token up to its end, as in a causal model. The output is a function of the content that
was really computed or really read. Two engines that hold the same KV answer alike; one flipped byte in a file gives another answer.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from array import array
from typing import List, Sequence, Union

from .prompt import Prompt

VOCABULARY = 32000
EOS_EVERY = 4001  # one token id in so many ends a text, unless the request says ignore_eos


def chain(prompt: Prompt, block_tokens: int, root: bytes) -> List[bytes]:
    """Return the chained digests of the full blocks of a prompt: digest i covers the tokens 0 .. (i + 1) x block_tokens."""
    digest, digests = root, []
    for start in range(0, prompt.count - block_tokens + 1, block_tokens):
        digest = hashlib.blake2b(prompt.slice(start, start + block_tokens), key=digest, digest_size=16).digest()
        digests.append(digest)
    return digests


def root_of(model: str, block_tokens: int, kv_bytes_per_token: int) -> bytes:
    """Return what the first block is chained to: KV of another model, another layout or, as in vLLM, another PYTHONHASHSEED never matches."""
    seed = os.environ.get("PYTHONHASHSEED", "")
    return hashlib.blake2b(f"{model}|{block_tokens}|{kv_bytes_per_token}|{seed}".encode(), digest_size=16).digest()


def key_of(digest: bytes, salt: str) -> str:
    """Return the name under which a block is cached. A cache salt separates tenants, it does not change what is computed."""
    return hashlib.blake2b(digest, salt=b"kv", person=hashlib.blake2b(salt.encode(), digest_size=16).digest(), digest_size=16).hexdigest()


def content(digest: bytes, size: int) -> bytes:
    """Compute the KV of one block: `size` bytes that follow from the digest."""
    line = hashlib.blake2b(digest, digest_size=64).digest()
    return line * (size // 64) + line[: size % 64]


def fingerprint(data: Union[bytes, bytearray]) -> bytes:
    """Return the checksum of KV content that decides about the output (CRC-32: a change goes unseen once in 2^32)."""
    return zlib.crc32(data).to_bytes(4, "big")


def output_tokens(state: bytes, count: int) -> List[int]:
    """Return the greedy continuation of a state: `count` token ids."""
    raw = array("I")
    raw.frombytes(hashlib.shake_128(state).digest(count * raw.itemsize))
    return [value % VOCABULARY for value in raw]


def state_of(fingerprints: Sequence[bytes], suffix: bytes, sampling_seed: int, temperature: float) -> bytes:
    """Return what decides the output: the KV that is there, the tokens after it, and the seed when the sampling is not greedy."""
    whole = hashlib.blake2b(b"".join(fingerprints), digest_size=32)
    whole.update(b"|" + suffix)
    if temperature > 0:
        whole.update(f"{sampling_seed}|{temperature}".encode())
    return whole.digest()
