"""The samples of a soak as columns: the engine's process and memory, the host, the tier's files, and counters (docs/evidence-format.md)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np

from gates.engine_counters import SERIES, SERVED, TIER_HITS
from gates.readers.journal import SEQ, Column, column, numbers, read_journal
from gates.readers.prometheus import amount, is_of
from gates.readers.shapes import Path, Shape, Wanted
from gates.readers.strict import Reader, at, count

DEAD, UNSEEN = -1, -2  # instead of a process: it was gone; the sample does not show it
_MONO: Path = ("mono_ns",)
_THERE: Path = ("on", "mono_ns")
_WHOLE = re.compile(rb"\d{1,18}(?:\.0)?")
WATCHED = (  # mended by themselves, or wear and heat of drives: told, not forbidden
    *("ecc_corrected", "aer_correctable", "pcie_replays", "rdma_ack_timeouts"),
    *("rdma_out_of_sequence", "rdma_sequence_errors", "rdma_not_ready", "rdma_congestion_notices"),
    *("nvme_error_entries", "nvme_percentage_used", "nvme_warning_minutes", "nvme_throttles"),
    *("link_corrected_bits", "link_symbol_errors"),
)
_KEPT = tuple((quantity, *series) for quantity in (TIER_HITS, SERVED) for engine in SERIES.values() for series in engine.get(quantity, ()))
_KEPT_NAMES = tuple({name for _, name, _ in _KEPT})
GAUGES: Mapping[str, Path] = {
    "rss": ("engine", "rss_bytes"),
    "fds": ("engine", "fds"),
    "threads": ("engine", "threads"),
    "kv": ("kv_dir_bytes",),
    "free": ("host", "mem_available_bytes"),
    "total": ("host", "mem_total_bytes"),
}


@dataclass(frozen=True)
class SoakTelemetry:
    """Samples in the order of the journal; -1 stands for a value that is missing or no whole number.

    `boot` is an index into `boots`, `life` one into `lives` (pid, start ticks), or DEAD, or UNSEEN.
    """

    mono: Column
    boot: Column
    life: Column
    gauges: Mapping[str, Column]
    counters: Mapping[str, Column]
    boots: tuple[str, ...] = ()
    lives: tuple[tuple[int, int], ...] = ()
    hits: Column = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # tokens of the external tier so far, -1 where a sample tells none
    served: Column = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # requests that the engine counted as ended, -1 for untold
    hits_known: int = 0  # samples that show the tier's hits
    hits_grown: Decimal = Decimal(0)  # tokens, added up over restarts of the engine
    places: frozenset[tuple[Any, Any, Any]] = frozenset()  # (boot of the row, host, its boot) of the samples, (.., None, None) for the driver's own
    there: Column = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # of another host's sample its own monotonic ns, else -1
    host: Column = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # index into `hosts`, -1 for the driver's own
    hosts: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.mono)

    def of(self, host: str) -> SoakTelemetry:
        """Return the samples of one engine host alone: another's process, memory and counters are not its."""
        mask = self.host == (self.hosts.index(host) if host in self.hosts else -2)
        life, hits = self.life[mask], self.hits[mask]
        seen = np.unique(life[life >= 0])
        known = hits[hits >= 0]
        return replace(
            self,
            mono=self.mono[mask],
            boot=self.boot[mask],
            life=np.where(life >= 0, np.searchsorted(seen, life), life),
            gauges={name: values[mask] for name, values in self.gauges.items()},
            counters={name: values[mask] for name, values in self.counters.items()},
            lives=tuple(self.lives[n] for n in seen.tolist()),
            hits=hits,
            served=self.served[mask],
            hits_known=len(known),
            hits_grown=Decimal(int(np.maximum(np.diff(known), 0).sum())) if len(known) else Decimal(0),
            places=frozenset(place for place in self.places if place[1] == host),
            there=self.there[mask],
            host=self.host[mask],
        )


def read_telemetry(reader: Reader, counters: Sequence[str], name: str = "telemetry.jsonl") -> SoakTelemetry:
    """Read the journal of samples with the counters that the plan names. What is wrong with it is recorded with the reader."""
    sink = _Samples(tuple(dict.fromkeys((*counters, *WATCHED))))
    read_journal(reader, name, sink.wanted, sink)
    return sink.done()


@dataclass
class _Samples:
    names: tuple[str, ...]
    parts: list[dict[str, Column]] = field(default_factory=list)
    boots: dict[str, int] = field(default_factory=dict)
    lives: dict[tuple[int, int, str], int] = field(default_factory=dict)  # processes of different hosts may be alike
    hosts: dict[str, int] = field(default_factory=dict)
    hits: list[tuple[int, Decimal]] = field(default_factory=list)  # (seq, total)
    served: list[tuple[int, Decimal]] = field(default_factory=list)
    places: set[tuple[Any, Any, Any]] = field(default_factory=set)

    @property
    def wanted(self) -> Wanted:
        """Return what is taken out of each line."""
        exact = frozenset({("boot_id",), ("on", "host"), ("on", "boot_id"), ("engine", "pid"), ("engine", "start_ticks"), ("engine", "alive")})
        counts = (_MONO, _THERE, *GAUGES.values(), *(("counters", name) for name in self.names))
        return _SeriesWanted(counts, (), exact)

    def block(self, shape: Shape, lines: Sequence[tuple[bytes, ...]]) -> None:
        """Take lines of one shape."""
        columns, size = list(zip(*lines, strict=True)), len(lines)
        part = {name: column(shape, path, columns, size) for name, path in self._paths().items()}
        part["seq"] = numbers(columns[shape.places[SEQ]])
        for quantity, kept in ((TIER_HITS, self.hits), (SERVED, self.served)):
            series = {path[1]: n for path, n in shape.places.items() if path[:1] == ("metrics",) and _quantity_of(path[1]) == quantity}
            kept += _totals(quantity, series, lines, part["seq"].tolist())
        self._keep(shape.row, part)

    def row(self, row: Mapping[str, Any]) -> bool:
        """Take one sample that was read strictly."""
        part = {}
        for name, path in {**self._paths(), "seq": SEQ}.items():
            value = count(at(row, *path))
            part[name] = np.array([-1 if value is None else value], dtype=np.int64)
        for quantity, kept in ((TIER_HITS, self.hits), (SERVED, self.served)):
            found = amount(row.get("metrics"), quantity)
            if found is not None:
                kept.append((int(part["seq"][0]), found))
        self._keep(row, part)
        return True

    def done(self) -> SoakTelemetry:
        """Return what was kept, in the order of the journal."""
        names = ("seq", "boot", "life", "host", *self._paths())
        whole = {name: np.concatenate([p[name] for p in self.parts]) if self.parts else np.zeros(0, dtype=np.int64) for name in names}
        if len(whole["seq"]) and (np.diff(whole["seq"]) < 0).any():
            order = np.argsort(whole["seq"], kind="stable")
            whole = {name: values[order] for name, values in whole.items()}
        known = [value for _, value in sorted(self.hits, key=lambda pair: pair[0])]
        grown = sum((max(b - a, Decimal(0)) for a, b in itertools.pairwise(known)), Decimal(0))
        return SoakTelemetry(
            mono=whole["mono"],
            boot=whole["boot"],
            life=whole["life"],
            gauges={name: whole[name] for name in GAUGES},
            counters={name: whole["counter " + name] for name in self.names},
            boots=tuple(self.boots),
            lives=tuple((pid, ticks) for pid, ticks, _ in self.lives),
            hits=_in_order(whole["seq"], self.hits),
            served=_in_order(whole["seq"], self.served),
            hits_known=len(known),
            hits_grown=grown,
            places=frozenset(self.places),
            there=whole["there"],
            host=whole["host"],
            hosts=tuple(self.hosts),
        )

    def _paths(self) -> dict[str, Path]:
        return {"mono": _MONO, "there": _THERE, **GAUGES, **{"counter " + name: ("counters", name) for name in self.names}}

    def _keep(self, row: Mapping[str, Any], part: dict[str, Column]) -> None:
        """Add what all these samples have in common: the boot and the process."""
        size, boot = len(part["seq"]), row.get("boot_id")
        code = self.boots.setdefault(boot, len(self.boots)) if isinstance(boot, str) else -1
        place = boot if isinstance(boot, str) else None, at(row, "on", "host"), at(row, "on", "boot_id")
        self.places.add(place if all(word is None or isinstance(word, str) for word in place) else (None, "?", "?"))
        part["boot"] = np.full(size, code, dtype=np.int64)
        name = place[1] if isinstance(place[1], str) else None
        part["host"] = np.full(size, -1 if name is None else self.hosts.setdefault(name, len(self.hosts)), dtype=np.int64)
        alive, pid, ticks = at(row, "engine", "alive"), count(at(row, "engine", "pid")), count(at(row, "engine", "start_ticks"))
        life = UNSEEN
        if alive is False:
            life = DEAD
        elif alive is True and pid is not None and ticks is not None:
            life = self.lives.setdefault((pid, ticks, str(place[1])), len(self.lives))
        part["life"] = np.where(part["mono"] < 0, UNSEEN, np.full(size, life, dtype=np.int64))
        self.parts.append(part)


def _totals(quantity: str, series: Mapping[str, int], lines: Sequence[tuple[bytes, ...]], seqs: Sequence[int]) -> list[tuple[int, Decimal]]:
    """Return (seq, total) of one quantity by its series, for the lines that tell it."""
    places, out = list(series.values()), []
    for values, seq in zip(lines, seqs, strict=True):
        texts = [values[n] for n in places]
        if texts and all(map(_WHOLE.fullmatch, texts)):  # whole numbers, as engines write them: no need to parse the names again
            out.append((seq, Decimal(sum(int(text.partition(b".")[0]) for text in texts))))
            continue
        found = amount({key: values[n].decode() for key, n in series.items()}, quantity)
        if found is not None:
            out.append((seq, found))
    return out


def _in_order(seq: Column, told: Sequence[tuple[int, Decimal]]) -> Column:
    """Return totals as a column beside the samples, -1 where none is told."""
    out = np.full(len(seq), -1, dtype=np.int64)
    rows = np.searchsorted(seq, np.array([n for n, _ in told], dtype=np.int64))
    for row, (_, value) in zip(rows.tolist(), told, strict=True):
        if row < len(out) and value < 2**62:
            out[row] = int(value)
    return out


class _SeriesWanted(Wanted):
    """Takes the series of the tier's hits and of the requests served too, whatever labels they carry."""

    def takes_text(self, path: Path) -> bool:
        return path[:1] == ("metrics",) and len(path) == 2 and _quantity_of(path[1]) is not None


def _quantity_of(series: str) -> str | None:
    if not series.startswith(_KEPT_NAMES):
        return None
    return next((quantity for quantity, name, labels in _KEPT if is_of(series, name, labels)), None)
