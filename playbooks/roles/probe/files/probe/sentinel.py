"""The sentinel of a soak: now and then the same few prompts again, whose time and answers can be compared over the whole soak.

A window asks each sentinel prefix once, with the same suffix every time, and one prefix that was never stored. The next window comes when
`every_s` has passed and the rotation has gone round at least once since, so that the prefixes had to leave the caches above the tier. The
requests are part of the load (phase `soak`); their prompt numbers lie behind those of the rotation: count .. count + prefixes - 1, then a
new number for each never-stored one. What a window showed is one event `sentinel`; answers that are others than before, or a hit where
nothing can be stored, are an event `canary`. Nothing is judged here. Of several engine hosts each has a sentinel of its own, with prompts of its own,
each of a number that is that host's (probe.shares); its events bear the host's name.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Optional

from probe.prompts import Prompts, Shot
from probe.shares import Part

LABEL, NEW = "sentinel", "sentinel-new"


class Sentinel:
    """Makes the requests of each window, and sums up their records."""

    def __init__(
        self, spec: Dict[str, Any], prompts: Prompts, job: str, tier: int, count: int, say: Callable[[str, Dict[str, Any]], None], part: Part = Part()
    ) -> None:
        """Take `soak.sentinel`, the prompts, the job's name, its concurrency, the prefixes of the whole rotation, and what tells events."""
        self.prefixes, self._every_ns = int(spec["prefixes"]), int(float(spec["every_s"]) * 1e9)
        self._prompts, self._job, self._tier, self._say, self._part = prompts, job, tier, say, part
        self._round = part.of(count)  # requests of this host's rotation until it has gone round
        self._first = -(-count // part.places) * part.places  # the first number behind the rotation that is the first host's
        self._due_ns = self._since = 0
        self._asked = self._told = 0
        self._rows: List[Dict[str, Any]] = []
        self._known: Dict[int, str] = {}

    def stored(self) -> List[Any]:
        """Return (label, tier, index) of each prefix that the store phase must store for it."""
        return [(LABEL, None, self._number(n)) for n in range(self.prefixes)]

    def windows(self, seconds: float) -> int:
        """Return how many windows such a soak has at most: each leaves one more prefix, that was never stored before, on the medium."""
        return int(seconds * 1e9 // self._every_ns) + 1

    def window(self, now_ns: int, rotated: int) -> Iterator[Shot]:
        """Yield the requests of a window when one is due, else nothing. `rotated` counts the requests of the rotation so far."""
        if not self._due_ns:  # the load has just begun: the first window says what later ones are compared with
            self._due_ns = now_ns
        if now_ns < self._due_ns or (self._asked and rotated - self._since < self._round):
            return
        self._due_ns, self._since = max(self._due_ns + self._every_ns, now_ns), rotated
        number, self._asked = self._asked, self._asked + 1
        for n in range(self.prefixes):
            yield self._shot(LABEL, self._number(n))
        yield self._shot("%s/%s" % (NEW, self._job), self._number(self.prefixes + number))

    def _number(self, n: int) -> int:
        """Return the prompt number of the n-th prefix of this sentinel."""
        return self._first + n * self._part.places + self._part.place

    def _shot(self, label: str, index: int) -> Shot:
        prompts = self._prompts
        return prompts.shot("soak", self._tier, index, prompts.text(label, index, "prefix", prompts.context), label, "s", prompts.output)

    def see(self, record: Dict[str, Any]) -> None:
        """Take one record of the journal; the last one of a window makes its event."""
        if record["phase"] != "soak" or record["prompt"] < self._first or record["prompt"] % self._part.places != self._part.place:
            return
        self._rows.append(record)
        if len(self._rows) > self.prefixes:
            self.finish()

    def finish(self) -> None:
        """Sum up the window that is open, whole or not (the end of the soak cuts the last one)."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        new = self._number(self.prefixes)
        fixed = [r for r in rows if r["prompt"] < new]
        good = [r for r in fixed if r["error"] is None]
        times = sorted(r["first_text_ns"] - r["sent_ns"] for r in good)
        detail: Dict[str, Any] = {
            "window": self._told,
            **self._part.named,
            "from_ns": min(r["sent_ns"] for r in rows),
            "to_ns": max(r["end_ns"] for r in rows),
        }
        detail.update(whole=len(rows) == self.prefixes + 1, requests=len(rows), failed=sum(1 for r in rows if r["error"]))
        detail.update(ttft_p50_ns=_middle(times), hit_tokens_least=_least(good))
        self._told += 1
        other = [r["prompt"] for r in good if self._known.setdefault(r["prompt"], str(r["output_sha256"])) != str(r["output_sha256"])]
        false = [r["prompt"] for r in rows if r["prompt"] >= new and self._hit(r)]
        detail.update(compared=len(good), other_answers=other, hits_of_never_stored=false)
        self._say("sentinel", detail)
        if other or false:
            keys = ("window", *self._part.named, "compared", "other_answers", "hits_of_never_stored")
            self._say("canary", {key: detail[key] for key in keys})

    def _hit(self, record: Dict[str, Any]) -> bool:
        """Tell whether most of a prefix that nobody stored came from a cache. Half tells two facts apart and is no limit."""
        cached = (record["usage"] or {}).get("cached_tokens")
        return cached is not None and cached * 2 > self._prompts.context


def _middle(values: List[int]) -> Optional[int]:
    """Return the median in ns (of an even number the mean of the middle two, rounded down), None for none."""
    half = len(values) // 2
    if not values:
        return None
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) // 2


def _least(rows: List[Dict[str, Any]]) -> Optional[int]:
    known = [(r["usage"] or {}).get("cached_tokens") for r in rows]
    told = [n for n in known if n is not None]
    return min(told) if told and len(told) == len(known) else None
