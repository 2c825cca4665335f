"""The requests of a soak as columns: a million of them are judged in a few seconds and in little memory (docs/evidence-format.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from gates.readers.journal import SEQ, Column, column, numbers, read_journal
from gates.readers.run_pack import Request, request_of
from gates.readers.shapes import Path, Shape, Wanted
from gates.readers.strict import Reader

NO_TEXT = "no_text"
_SENT, _FIRST, _END, _SERVER = ("sent_ns",), ("first_text_ns",), ("end_ns",), ("server", "send_ns")
_TOKENS: Path = ("usage", "completion_tokens")
_PROMPT: Path = ("prompt",)
_PROMPT_TOKENS: Path = ("usage", "prompt_tokens")
_HOST: Path = ("host",)
WANTED = Wanted(
    counts=(_SENT, _FIRST, _END, _SERVER, _TOKENS, _PROMPT, _PROMPT_TOKENS),
    # What was asked for is the same in every line of a load that is as agreed: another length is another form of line.
    exact=frozenset(
        {
            *(("boot_id",), ("phase",), ("tier",), ("finish_reason",), ("http_status",), ("error", "kind")),
            *(("prompt_tokens_sent",), ("max_tokens",)),
        }
    ),
    texts=(_HOST,),  # taken out, since requests of several hosts come in turn
    whole=frozenset({("mono_ns",)}),
)


@dataclass(frozen=True)
class SoakRecords:
    """The requests of one phase, in the order of the journal. Times are nanoseconds of the boot's CLOCK_MONOTONIC, -1 for none.

    `boot` and `failure` are indices into `boots` (in order of appearance) and `failures` (whose first is None: the whole work was done).
    """

    sent: Column
    first: Column
    end: Column
    server: Column  # the engine's stamp of its first write
    tokens: Column  # output tokens, -1 for unknown
    prompt: Column  # its number
    prompt_tokens: Column  # by the engine's own count, -1 for unknown
    tier: Column
    tokens_sent: Column  # the length of the prompt, in tokens
    max_tokens: Column  # output tokens asked for
    answered: Column  # 1 where the engine answered it without an error, however much it did of it
    boot: Column
    failure: Column
    host: Column  # index into `hosts`, -1 where a record names none
    boots: tuple[str, ...] = ()
    failures: tuple[str | None, ...] = (None,)
    hosts: tuple[str, ...] = ()  # the engine hosts that requests were sent to, where the driver's is another
    lines: int = 0  # of the whole journal, of all phases
    malformed: int = 0

    def __len__(self) -> int:
        return len(self.sent)

    @property
    def whole(self) -> int:
        """Return how many records of all phases there are, malformed ones left out."""
        return self.lines - self.malformed

    @property
    def good(self) -> Any:
        """Return which requests did their whole work (a mask)."""
        return self.failure == 0

    def where(self, mask: Any) -> SoakRecords:
        """Return the requests of a mask."""
        picked = {name: getattr(self, name)[mask] for name in _COLUMNS}
        return SoakRecords(**picked, boots=self.boots, failures=self.failures, hosts=self.hosts, lines=self.lines, malformed=self.malformed)

    def kinds(self) -> dict[str, int]:
        """Return how many requests failed in which way, the most frequent first."""
        found: Sequence[int] = np.bincount(self.failure, minlength=len(self.failures)).tolist() if len(self) else []
        named = {str(name): n for name, n in zip(self.failures, found, strict=False) if name is not None and n}
        return dict(sorted(named.items(), key=lambda item: (-item[1], item[0])))


def middle(values: Column) -> Fraction:
    """Return the exact median of a column of whole numbers that is not empty."""
    n = len(values)
    half = n // 2
    if n % 2:
        return Fraction(int(np.partition(values, half)[half]))
    parted = np.partition(values, (half - 1, half))
    return Fraction(int(parted[half - 1]) + int(parted[half]), 2)


_NUMBERS: Mapping[str, Path] = {"tokens": _TOKENS, "prompt": _PROMPT, "prompt_tokens": _PROMPT_TOKENS}
_COLUMNS = (
    *("sent", "first", "end", "server", "tokens", "prompt", "prompt_tokens", "tier"),
    *("tokens_sent", "max_tokens", "answered", "boot", "failure", "host"),
)


def read_records(reader: Reader, phase: str, name: str = "records.jsonl") -> SoakRecords:
    """Read the journal of requests and keep those of a phase. What is wrong with it is recorded with the reader."""
    return read_phases(reader, (phase,), name)[phase]


def read_phases(reader: Reader, phases: Sequence[str], name: str = "records.jsonl") -> dict[str, SoakRecords]:
    """Read the journal of requests once, and keep those of some phases, each by itself."""
    sink = _Records(reader, name, {phase: [] for phase in phases})
    lines = read_journal(reader, name, WANTED, sink)
    return {phase: sink.done(phase, lines) for phase in phases}


@dataclass
class _Records:
    reader: Reader
    name: str
    parts: dict[str, list[dict[str, Column]]]  # by phase
    boots: dict[str, int] = field(default_factory=dict)
    failures: dict[str | None, int] = field(default_factory=lambda: {None: 0})
    hosts: dict[str, int] = field(default_factory=dict)
    facts: dict[int, Request] = field(default_factory=dict)  # of each shape: the line that made it, typed
    malformed: int = 0

    def block(self, shape: Shape, lines: Sequence[tuple[bytes, ...]]) -> None:
        """Take lines of one shape: what the first of them was, typed, all of them are, but for the numbers taken out."""
        like = self.facts.get(id(shape)) or request_of(shape.row)
        if like is None:
            raise ValueError("a malformed line makes no shape")
        self.facts[id(shape)] = like
        columns, count = list(zip(*lines, strict=True)), len(lines)
        sent, end = column(shape, _SENT, columns, count), column(shape, _END, columns, count)
        seq = numbers(columns[shape.places[SEQ]])
        backwards = end < sent
        if backwards.any():
            self._bad([int(n) for n in seq[backwards]])
        first = column(shape, _FIRST, columns, count)
        part = {"seq": seq, "sent": sent, "first": first, "end": end, "server": column(shape, _SERVER, columns, count)}
        part |= {name: column(shape, path, columns, count) for name, path in _NUMBERS.items()}
        part["failure"] = self._failure(like, sent, first, end)
        named = shape.places.get(_HOST)
        part["host"] = np.full(count, -1, dtype=np.int64) if named is None else self._hosts([word.decode("ascii") for word in columns[named]])
        self._keep(like, part, ~backwards)

    def row(self, row: Mapping[str, Any]) -> bool:
        """Take one line that was read strictly."""
        request = request_of(row)
        if request is None:
            self._bad([row.get("seq")])
            return False
        one = {
            "seq": request.seq,
            "sent": request.sent_ns,
            "first": -1 if request.first_text_ns is None else request.first_text_ns,
            "end": request.end_ns,
            "server": -1 if request.server_first_sent_ns is None else request.server_first_sent_ns,
            "tokens": -1 if request.completion_tokens is None else request.completion_tokens,
            "prompt": request.prompt,
            "prompt_tokens": -1 if request.prompt_tokens is None else request.prompt_tokens,
            "failure": self.failures.setdefault(request.failure, len(self.failures)),
        }
        part = {key: np.array([value], dtype=np.int64) for key, value in one.items()}
        self._keep(request, {**part, "host": self._hosts([request.host])}, np.array([True]))
        return True

    def done(self, phase: str, lines: int) -> SoakRecords:
        """Return what was kept of a phase, in the order of the journal."""
        names, parts = ("seq", *_COLUMNS), self.parts[phase]
        whole = {name: np.concatenate([p[name] for p in parts]) if parts else np.zeros(0, dtype=np.int64) for name in names}
        if len(whole["seq"]) and (np.diff(whole["seq"]) < 0).any():
            order = np.argsort(whole["seq"], kind="stable")
            whole = {name: values[order] for name, values in whole.items()}
        seen, at = np.unique(whole["boot"], return_index=True)  # boots in the order in which the journal names them
        order_of = {int(boot): n for n, (_, boot) in enumerate(sorted(zip(at, seen, strict=True)))}
        by_code = {code: name for name, code in self.boots.items()}
        if len(order_of) > 1:
            whole["boot"] = np.array([order_of[int(b)] for b in seen], dtype=np.int64)[np.searchsorted(seen, whole["boot"])]
        else:
            whole["boot"] = np.zeros(len(whole["boot"]), dtype=np.int64)
        boots = tuple(by_code[code] for code in order_of)
        kept = {name: whole[name] for name in _COLUMNS}
        failures, hosts = tuple(self.failures), tuple(self.hosts)
        return SoakRecords(**kept, boots=boots, failures=failures, hosts=hosts, lines=lines, malformed=self.malformed)

    def _hosts(self, names: Sequence[str | None]) -> Column:
        """Return the code of each host."""
        codes = {name: -1 if name is None else self.hosts.setdefault(name, len(self.hosts)) for name in dict.fromkeys(names)}
        return np.fromiter((codes[name] for name in names), dtype=np.int64, count=len(names))

    def _failure(self, like: Request, sent: Column, first: Column, end: Column) -> Column:
        """Return the failure of each line: the facts of the form first, as in run_pack, and the order of its times where they decide."""
        untimed = like.error is not None or like.http_status != 200
        code = self.failures.setdefault(like.failure_but_times, len(self.failures))
        out = np.full(len(sent), code, dtype=np.int64)
        if not untimed:
            late = self.failures.setdefault(NO_TEXT, len(self.failures))
            out[~((sent < first) & (first <= end))] = late
        return out

    def _keep(self, like: Request, part: dict[str, Column], mask: Any) -> None:
        if like.phase not in self.parts:
            return
        alike = {
            "boot": self.boots.setdefault(like.boot_id, len(self.boots)),
            "tier": -1 if like.tier is None else like.tier,
            "tokens_sent": like.tokens_sent,
            "max_tokens": like.max_tokens,
            "answered": int(like.error is None and like.http_status == 200),
        }
        part |= {name: np.full(len(part["seq"]), value, dtype=np.int64) for name, value in alike.items()}
        self.parts[like.phase].append(part if mask.all() else {name: values[mask] for name, values in part.items()})

    def _bad(self, seq: Sequence[Any]) -> None:
        for n in seq[:5] if self.malformed < 5 else ():  # a handful names the trouble; the count tells how much of it there is
            self.reader.trouble(
                "malformed",
                self.name,
                f"the record with seq {n!r} lacks a field or holds one of the wrong type.",
                f"seq 为 {n!r} 的记录缺少字段或字段类型错误。",
            )
        self.malformed += len(seq)
