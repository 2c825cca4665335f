"""Prompts as token ids, derived from seed, set, label and index alone: the same on every host, in every run and arm.

A prompt is a prefix of `context_tokens` and a suffix of `suffix_tokens`. Tokens come from SHAKE-256, whose output is fixed by a
standard (FIPS 202), not from a random module that may change between Python versions.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from typing import Any, Dict, List, NamedTuple, Optional, Set

from probe.errors import ProbeError
from probe.files import dumps

HEAD_TOKENS = 16  # the smallest block that engines share; no two prompts may begin with the same


class Shot(NamedTuple):
    """One request, ready to be sent: what it is and the bytes of its body."""

    phase: str
    tier: Optional[int]
    index: int
    sha256: str
    tokens: int
    max_tokens: int
    body: bytes


class Prompts:
    """Makes prompts of one workload."""

    def __init__(self, workload: Dict[str, Any], model: str) -> None:
        self.seed, self.set = int(workload["seed"]), str(workload["set"])
        self.context, self.suffix, self.output = int(workload["context_tokens"]), int(workload["suffix_tokens"]), int(workload["output_tokens"])
        self.low, high = (int(v) for v in workload["vocab"])
        self.span = high - self.low
        self.model = model
        self._wide = self.span > 1 << 16
        words = [] if self._wide else [str(self.low + v) for v in range(self.span)]  # one object a word: they stay in the processor's cache
        self._words: List[str] = [words[v % self.span] for v in range(1 << 16)] if words else []
        self._heads: Set[str] = set()

    def text(self, label: str, index: int, part: str, count: int) -> str:
        """Return `count` token ids in decimal joined by commas. `part` tells prefix from suffix, `label` names the tier or the purpose."""
        key = "quadgate/1|%d|%s|%s|%d|%s" % (self.seed, self.set, label, index, part)
        width = 4 if self._wide else 2
        values = array("I" if self._wide else "H")
        values.frombytes(hashlib.shake_256(key.encode("utf-8")).digest(width * count))
        if sys.byteorder == "big":
            values.byteswap()
        if self._wide:
            return ",".join([str(self.low + v % self.span) for v in values])
        return ",".join(map(self._words.__getitem__, values))

    def prefix(self, label: str, index: int) -> str:
        """Return the prefix of one prompt; each is new from its first block on, which is checked, not assumed."""
        text = self.text(label, index, "prefix", self.context)
        head = ",".join(text.split(",", HEAD_TOKENS)[:HEAD_TOKENS])
        if head in self._heads:
            raise ProbeError(
                "prompts", "Prompt %d of %s begins like another one, so it could hit by accident. Use a wider vocab or another seed." % (index, label)
            )
        self._heads.add(head)
        return text

    def shot(self, phase: str, tier: Optional[int], index: int, prefix: str, label: str, suffix: str, max_tokens: int, salt: str = "") -> Shot:
        """Return a request of a given prefix. `suffix` names the suffix, so that a stored and a measured one differ."""
        ids = prefix
        if self.suffix:
            ids = "%s,%s" % (prefix, self.text(label, index, "suffix/" + suffix, self.suffix))
        rest: Dict[str, Any] = {
            "model": self.model,
            "max_tokens": max_tokens,
            "temperature": 0,
            "seed": self.seed % (1 << 31),
            "ignore_eos": True,
            "stream": True,
        }
        rest["stream_options"] = {"include_usage": True}
        if salt:
            rest["cache_salt"] = salt
        encoded = ids.encode("ascii")
        body = b'{"prompt":[' + encoded + b"]," + dumps(rest).encode("ascii")[1:]
        return Shot(phase, tier, index, hashlib.sha256(encoded).hexdigest(), self.context + self.suffix, max_tokens, body)

    def forget_heads(self) -> None:
        """Start the uniqueness check anew, for a phase that rightly uses the same prefixes again."""
        self._heads.clear()


def tier_label(tier: int) -> str:
    """Return the label of a tier's prompts."""
    return "c%d" % tier
