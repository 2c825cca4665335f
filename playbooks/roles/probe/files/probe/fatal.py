"""Counters of a soak that must not grow: where each comes from, and that it comes from there from the first sample to the last.

A counter is the sum over the parts that told it when the soak began (drives, ports, cards, the array). Where one of them does not tell any
more, or told it too long ago, the counter is absent: without that part the sum would look as if the counter had gone back, and an old
figure repeated would look as if nothing had happened. Sources that are programs are asked in a thread of their own, since a drive that
hangs holds its program too.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from probe import metrics, vitals
from probe.errors import ProbeError, Refused
from probe.fatal_sources import ASK_S, DRIVES, DRIVES_TOO, HOW, MENDED, Told, ask, of_array, of_cards, of_drives, of_ports, of_sysfs
from probe.files import read_json
from probe.part_health import PartHealth, drives

PERIOD_S = 60.0  # between two questions to a program or an endpoint
FRESH_S = 150.0  # a figure older than that is none: two questions were not answered


class Watch:
    """The fatal counters of one host. `wanted`: those of the plan, None for all; `ports`: network ports by name, None for all with hardware."""

    def __init__(
        self,
        wanted: Optional[Iterable[str]] = None,
        array_stats: Optional[str] = None,
        ports: Optional[List[str]] = None,
        run: Optional[Callable[[List[str]], str]] = None,
        sysfs: str = "/sys",
    ) -> None:
        self._wanted = None if wanted is None else set(wanted)
        self._array, self._ports, self._run, self._sysfs = array_stats, ports, run or ask, sysfs
        self._slow: Dict[str, Tuple[float, Told]] = {}
        self._parts: Optional[Dict[str, List[str]]] = None
        self._health, self._drives = PartHealth(self._run), []  # type: Tuple[PartHealth, List[Drive]]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="counters", daemon=True)
        self.on_health: Optional[Callable[[Dict[str, Any]], None]] = None  # takes what drives and accelerators say of their health, each time

    def begin(self, lacking_array_is_fine: bool = False) -> List[str]:
        """Ask everything once, and hold on to the parts that told something. Return the wanted counters that nobody told.

        `lacking_array_is_fine`: the array's statistics need not be there yet, and may tell any counter later.
        """
        self.ask_slow()
        told = self._told()
        self._parts = {name: sorted(parts) for name, parts in told.items()}
        if lacking_array_is_fine and self._array and self._array_document() is None:
            return []
        return sorted((self._wanted or set()) - set(told))

    def require(self, host: str, lacking_array_is_fine: bool = False) -> None:
        """Refuse, in a sentence with names and the way out, a soak whose counters have no source on this host."""
        lacking = self.begin(lacking_array_is_fine)
        if not lacking:
            return
        ways = "; ".join("%s from %s" % (name, HOW.get(name, "nothing that this service knows")) for name in lacking)
        array = "they are not in %s either" % self._array if self._array else "targets.engine.array_stats names no statistics of the array"
        raise Refused(
            "no_counter",
            "%s has no source of %s, which g4.fatal_counters of the plan wants in every sample of the soak (%s; %s). Bring the source, or let both "
            "parties leave the counter out by a revision of the plan (g4.fatal_counters). The soak was not started."
            % (host, ", ".join(lacking), ways, array),
        )

    def start(self) -> None:
        """Ask programs and endpoints every minute from now on. What the drives said last is what they begin with."""
        self._tell_health()
        self._thread.start()

    def stop(self) -> None:
        """Ask them once more, so that the last minute counts, but wait no longer than one answer may take."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(2 * ASK_S + 5)

    def values(self) -> Dict[str, int]:
        """Return the counters now. One whose parts do not all tell it is absent: 0 would be a claim, and so would the rest of the sum."""
        told = self._told()
        known = self._parts if self._parts is not None else {name: sorted(parts) for name, parts in told.items()}
        return {name: sum(told[name][part] for part in parts) for name, parts in known.items() if all(part in told.get(name, {}) for part in parts)}

    def ages(self) -> Dict[str, float]:
        """Return how many seconds ago each source that is asked once a minute answered last."""
        now = time.monotonic()
        return {name: round(now - at, 1) for name, (at, _) in sorted(self._slow.items())}

    def ask_slow(self) -> None:
        """Ask the programs, drivers and endpoints that are needed for what is wanted. What does not answer leaves its last answer to grow old."""
        self._keep("cards", lambda: of_cards(vitals.accelerators(self._sysfs)))
        if self._wanted is None or any(name in self._wanted for name in (*DRIVES, *DRIVES_TOO)):
            self._drives = drives(self._run, self._sysfs)
            self._keep("drives", lambda: of_drives(self._drives))
        if self._wanted is None or {"pfc_storm_events", "link_corrected_bits"} & self._wanted:
            self._keep("ports", lambda: of_ports(self._run, self._ports, self._sysfs))
        if _is_url(self._array):
            self._keep("array", lambda: of_array(self._array_document()))

    def _keep(self, source: str, answer: Callable[[], Told]) -> None:
        """Keep an answer. One that lacks a part which the soak began with is none: a drive that did not answer once may answer in a minute."""
        at, before = time.monotonic(), self._slow.get(source, (0.0, {}))[1]
        told = answer()
        if told and all(part in told.get(name, {}) for name, parts in before.items() for part in parts):
            self._slow[source] = (at, told)

    def _work(self) -> None:
        while True:
            over = self._ended.wait(PERIOD_S)
            self.ask_slow()
            self._tell_health()
            if over:
                return

    def _tell_health(self) -> None:
        """Hand on the health of the parts, where the plan wants counters of real hardware and the parts tell it."""
        if self.on_health is None or self._wanted == set():
            return
        told = self._health.reading(self._drives)
        if told:
            self.on_health(told)

    def _wants(self, name: str) -> bool:
        return self._wanted is None or name in self._wanted or name in MENDED

    def _told(self) -> Told:
        out: Told = {}
        fast = [of_sysfs(self._sysfs)] + ([] if _is_url(self._array) else [of_array(self._array_document())])
        now = time.monotonic()
        for told in fast + [told for at, told in list(self._slow.values()) if now - at <= FRESH_S]:
            for name, parts in told.items():
                if self._wants(name):
                    out.setdefault(name, {}).update(parts)
        return out

    def _array_document(self) -> Optional[Any]:
        """Return what the array's side says, or None where it says nothing or said it too long ago."""
        if not self._array:
            return None
        if _is_url(self._array):
            return metrics.get_json(self._array)
        try:
            if time.time() - os.stat(self._array).st_mtime > FRESH_S:
                return None
        except OSError:
            return None
        return read_json(self._array)


def check(spec: Dict[str, Any]) -> Dict[str, Any]:
    """Return {host, counters} for `probe counters --spec`: {wanted, host, array_stats?, ports?}; refuse where a counter has no source."""
    if not isinstance(spec.get("wanted"), list):
        raise ProbeError("spec", "probe counters needs `wanted`, a list of names.")
    watch = Watch(spec["wanted"], spec.get("array_stats"), spec.get("ports"))
    watch.require(str(spec.get("host") or "this host"), bool(spec.get("array_comes_later")))
    return {"host": spec.get("host"), "counters": watch.values()}


def _is_url(where: Optional[str]) -> bool:
    return bool(where) and str(where).startswith(("http://", "https://"))
