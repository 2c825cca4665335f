"""The engines that serve one load, one for each engine host: a list of one where the driver is the engine's host, or drives one.

What is done to them is done side by side, since each may load a model for an hour; what is asked of them comes back in their order.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, TypeVar

from probe.engine import Engine
from probe.errors import Ended
from probe.job_main import Job
from probe.shares import Part
from probe.slot import Target

T = TypeVar("T")
Sleep = Callable[[float], None]


class Engines:
    """The engines of one job. `hosts` are their hosts (probe.engine_host), in the order of the job file's `attendants`."""

    def __init__(self, job: Job, hosts: Sequence[Any]) -> None:
        self._job = job
        rows = job.spec.get("attendants") or [{}]
        spec, limits = job.spec["engine"], job.spec["limits"]
        self.all = [Engine(row.get("engine") or spec, job.folder, limits, host, n) for n, (row, host) in enumerate(zip(rows, hosts))]

    def __iter__(self) -> Iterator[Engine]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def part(self, engine: Engine) -> Part:
        """Return an engine's place among these, as what shares a load is told."""
        return Part(engine.place, len(self.all), engine.name)

    def targets(self) -> List[Target]:
        """Return where requests go: the first instance of each host, the second of each, and so on; so any few slots are spread over the hosts."""
        of_each = [[Target(base, place=engine.place, on=engine.name) for base in engine.bases] for engine in self.all]
        return [target for row in itertools.zip_longest(*of_each) for target in row if target is not None]

    def each(self, work: Callable[[Engine, Sleep], T]) -> List[T]:
        """Return what `work` returns of each engine. All are at work at once; where one fails, the others end at their next breath."""
        answers: List[Any] = [None] * len(self.all)
        errors: List[BaseException] = []

        def sleep(seconds: float) -> None:
            if errors:
                raise Ended("given_up", "Another engine host failed.")
            self._job.sleep(seconds)

        def run(n: int) -> None:
            try:
                answers[n] = work(self.all[n], sleep)
            except BaseException as error:
                errors.append(error)

        others = [threading.Thread(target=run, args=(n,), name="engine-%d" % n, daemon=True) for n in range(1, len(self.all))]
        for thread in others:
            thread.start()
        run(0)
        for thread in others:
            thread.join()
        if errors:
            raise errors[0]
        return answers

    def media(self, needed: int) -> List[Dict[str, Any]]:
        """Return what was found of the medium of each host's KV; refuse one that cannot hold its share of `needed` bytes (LocalHost.medium)."""
        share = -(-needed // len(self.all))
        return [row for rows in self.each(lambda engine, _: engine.host.medium(share)) for row in rows]

    def ensure(self) -> None:
        """Start what does not run and may be started; wait until all are healthy."""
        self.each(lambda engine, sleep: engine.ensure(sleep))

    def wait_idle(self, stored: bool = False) -> List[Dict[str, Any]]:
        """Return of each how it came to rest (Engine.wait_idle)."""
        return self.each(lambda engine, sleep: engine.wait_idle(sleep, stored and bool(engine.kv_dirs)))

    def told(self, details: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
        """Return one detail of a phase from that of each engine: what the first says, and of several `hosts`: {name: the same of each}."""
        if len(details) == 1:
            return details[0]
        return dict(details[0], hosts={str(engine.name): detail for engine, detail in zip(self.all, details)})

    def describe(self) -> Dict[str, Any]:
        """Return engine.json: what the engines report about themselves. Of several instances it is what the first reports, with `instances`.

        An instance of an engine host elsewhere bears `host`.
        """
        rows = [row for found in self.each(lambda engine, _: engine.instances()) for row in found]
        first = {key: value for key, value in rows[0].items() if key not in ("url", "host")}
        return dict(first, instances=rows) if len(rows) > 1 else first


def all_idle(answers: Sequence[Dict[str, Any]]) -> Optional[bool]:
    """Return whether every engine came to rest: False where one did not, None where one does not tell."""
    states = [answer["idle"] for answer in answers]
    return False if False in states else None if None in states else True
