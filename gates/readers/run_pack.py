"""The pack of one detached job (docs/evidence-format.md): typed requests, phases, and what proves the state of caches and counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gates.bundle import Bundle
from gates.model import Problem
from gates.readers.receipts import contradiction
from gates.readers.strict import Reader, at, count, whole

if TYPE_CHECKING:
    from gates.readers.soak_records import SoakRecords
    from gates.readers.soak_telemetry import SoakTelemetry

LONG = ("records.jsonl", "telemetry.jsonl")
GOOD_FINISH = "length"  # fixed output length with ignore_eos: any other end is a request that did less


@dataclass(frozen=True, slots=True)
class Request:
    """One request, as the driver saw it. Times are nanoseconds of the target's CLOCK_MONOTONIC."""

    seq: int
    phase: str
    tier: int | None
    prompt: int
    prompt_sha256: str
    tokens_sent: int
    max_tokens: int
    sent_ns: int
    end_ns: int
    first_text_ns: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    finish_reason: str | None
    http_status: int | None
    error: str | None  # kind
    output_sha256: str | None
    server_first_sent_ns: int | None
    mono_ns: int
    boot_id: str
    failure: str | None  # why it did not do its whole work; judged from the facts, not only from the driver's label
    cached_tokens: int | None = None  # of its prompt, by the engine's own account; None where it does not say
    output_head: tuple[str, ...] | None = None  # the first token texts of the output; None where they were not recorded
    host: str | None = None  # the engine host that it was sent to, where that is another than the driver's
    offsets: int = 0  # how many chunks of its text have an offset on record

    @property
    def failure_but_times(self) -> str | None:
        """Return why it did not do its whole work, had its times been in order (or, without a first text, for want of it)."""
        if self.error is not None or self.http_status != 200 or self.first_text_ns is None:
            return self.failure
        return _failure(None, 200, (0, 1, 1), self.finish_reason, self.completion_tokens if self.prompt_tokens is not None else None)

    @property
    def ttft_ns(self) -> int:
        """Return the time to the first text. Only of a request without failure."""
        if self.first_text_ns is None:
            raise ValueError("a request without text has no TTFT")
        return self.first_text_ns - self.sent_ns

    @property
    def e2e_ns(self) -> int:
        """Return the time to the last text."""
        return self.end_ns - self.sent_ns


@dataclass(frozen=True)
class Pack:
    """All files of one job on one host. `problems` empty: every file was there, whole, and of the right form."""

    step: str
    host: str
    folder: str
    job: Mapping[str, Any] = field(default_factory=dict)
    phases: tuple[dict[str, Any], ...] = ()
    requests: tuple[Request, ...] = ()
    coldness: tuple[dict[str, Any], ...] = ()
    counters: tuple[dict[str, Any], ...] = ()
    engine: Mapping[str, Any] = field(default_factory=dict)
    arm: Mapping[str, Any] = field(default_factory=dict)
    client: Mapping[str, Any] = field(default_factory=dict)
    workload: Mapping[str, Any] = field(default_factory=dict)
    exit: Mapping[str, Any] = field(default_factory=dict)
    listing: Mapping[str, Any] = field(default_factory=dict)  # pack.json
    records: SoakRecords | None = None  # of a soak, whose requests stand in columns and not in `requests`
    stored: SoakRecords | None = None  # of a soak: those of its store phase
    samples: SoakTelemetry | None = None
    events: tuple[dict[str, Any], ...] = ()
    problems: tuple[Problem, ...] = ()

    def path(self, name: str) -> str:
        """Return the bundle path of one of the pack's files."""
        return f"{self.folder}/{name}"

    def of_the_job(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """Return (name, content) of each document that must name the job. arm.json cannot: it is the job's `arm` and no more."""
        named = {"job": self.job, "exit": self.exit, "engine": self.engine, "client": self.client, "workload": self.workload, "pack": self.listing}
        return tuple((f"{name}.json", document) for name, document in named.items())

    def of(self, phase: str, tier: int | None = None) -> tuple[Request, ...]:
        """Return the requests of a phase, of one tier when it is given."""
        return tuple(r for r in self.requests if r.phase == phase and (tier is None or r.tier == tier))

    def phase(self, name: str, tier: int | None = None) -> dict[str, Any] | None:
        """Return the phase row of a name (and tier), or None when there is not exactly one.

        One that broke off because the engine's host was lost does not count where a soak did it again behind that host's reboot.
        """
        rows = [p for p in self.phases if p.get("phase") == name and (tier is None or p.get("tier") == tier)]
        if len(rows) > 1 and self.records is not None:
            rows = [p for p in rows[:-1] if at(p, "detail", "error", "kind") != "attendant" or p.get("ok") is not False] + rows[-1:]
        return rows[0] if len(rows) == 1 else None

    def counter_pair(self, phase: str, tier: int | None) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the counters before and after a phase, or None when there is not exactly one of each, in this order."""
        rows = [c for c in self.counters if c.get("phase") == phase and c.get("tier") == tier]
        if [c.get("when") for c in rows] != ["before", "after"]:
            return None
        return rows[0], rows[1]


def read_pack(bundle: Bundle, step: str, host: str, names: Iterable[str], counters: Sequence[str] = ()) -> Pack:
    """Read the pack of a step on a host. `names` are the files that the step must bring; each that is missing is a problem.

    A pack with telemetry is a soak's: its long journals are read into columns, `counters` are the ones that the plan names.
    """
    reader = Reader(bundle, f"evidence/{step}/{host}")
    wanted = set(names)
    rows = {n: tuple(reader.journal(n)) for n in sorted(wanted) if n.endswith(".jsonl") and n not in LONG}
    docs = {n: reader.document(n) for n in sorted(wanted) if n.endswith(".json")}
    requests: tuple[Request, ...] = ()
    records = stored = samples = None
    if "telemetry.jsonl" in wanted:
        from gates.readers.soak_records import read_phases  # in columns: only who judges a soak pays for numpy
        from gates.readers.soak_telemetry import read_telemetry

        found = read_phases(reader, ("soak", "store"))
        records, stored, samples = found["soak"], found["store"], read_telemetry(reader, counters)
    elif "records.jsonl" in wanted:
        requests = _requests(reader)
    end, phases = docs.get("exit.json", {}), rows.get("phases.jsonl", ())
    _check_exit(reader, end, len(requests) if records is None else records.whole)
    _check_end(reader, end, phases)
    return Pack(
        step=step,
        host=host,
        folder=reader.folder,
        job=docs.get("job.json", {}),
        phases=phases,
        requests=requests,
        coldness=rows.get("coldness.jsonl", ()),
        counters=rows.get("counters.jsonl", ()),
        engine=docs.get("engine.json", {}),
        arm=docs.get("arm.json", {}),
        client=docs.get("client.json", {}),
        workload=docs.get("workload.json", {}),
        exit=end,
        listing=docs.get("pack.json", {}),
        records=records,
        stored=stored,
        samples=samples,
        events=rows.get("events.jsonl", ()),
        problems=tuple(reader.problems),
    )


def _requests(reader: Reader) -> tuple[Request, ...]:
    out = []
    odd: dict[str, list[int]] = {}  # field -> seqs of the records whose receipts contradict each other in it
    for row in reader.journal("records.jsonl"):
        request = request_of(row)
        if request is None:
            reader.trouble(
                "malformed",
                "records.jsonl",
                f"the record with seq {row.get('seq')!r} lacks a field or holds one of the wrong type.",
                f"seq 为 {row.get('seq')!r} 的记录缺少字段或字段类型错误。",
            )
            continue
        out.append(request)
        if field := contradiction(row, request):
            odd.setdefault(field, []).append(request.seq)
    for field, seqs in odd.items():
        reader.trouble(
            "receipts",
            "records.jsonl",
            f"{field} contradicts first_text_ns and end_ns in {len(seqs)} records (the first has seq {seqs[0]}).",
            f"{len(seqs)} 条记录的 {field} 与 first_text_ns、end_ns 矛盾（首条 seq 为 {seqs[0]}）。",
        )
    if twice := len(out) - len({(request.boot_id, request.prompt_sha256, request.sent_ns) for request in out}):
        reader.trouble(
            "twice",
            "records.jsonl",
            f"{twice} requests are on record twice: the same prompt sent at the same moment.",
            f"{twice} 个请求被记录两次：同一提示在同一时刻发出。",
        )
    return tuple(out)


def request_of(row: Mapping[str, Any]) -> Request | None:
    """Return the typed request, or None when a field that every request has is missing or of the wrong type."""
    seq, sent, end, mono = (count(row.get(k)) for k in ("seq", "sent_ns", "end_ns", "mono_ns"))
    prompt, tokens, limit = (count(row.get(k)) for k in ("prompt", "prompt_tokens_sent", "max_tokens"))
    phase, digest, boot = row.get("phase"), row.get("prompt_sha256"), row.get("boot_id")
    if seq is None or sent is None or end is None or mono is None or prompt is None or tokens is None or limit is None:
        return None
    if not isinstance(phase, str) or not isinstance(digest, str) or not isinstance(boot, str) or end < sent:
        return None
    tier, first, status = row.get("tier"), row.get("first_text_ns"), row.get("http_status")
    if any(v is not None and whole(v) is None for v in (tier, first, status)):
        return None
    error = row.get("error")
    kind = None if error is None else str(at(error, "kind") or "unknown")
    finish, output = row.get("finish_reason"), row.get("output_sha256")
    prompt_count, answered = count(at(row, "usage", "prompt_tokens")), count(at(row, "usage", "completion_tokens"))
    return Request(
        seq=seq,
        phase=phase,
        tier=tier,
        prompt=prompt,
        prompt_sha256=digest,
        tokens_sent=tokens,
        max_tokens=limit,
        sent_ns=sent,
        end_ns=end,
        first_text_ns=first,
        prompt_tokens=prompt_count,
        completion_tokens=answered,
        finish_reason=finish if isinstance(finish, str) else None,
        http_status=status,
        error=kind,
        output_sha256=output if isinstance(output, str) and output else None,
        server_first_sent_ns=count(at(row, "server", "send_ns")),
        mono_ns=mono,
        boot_id=boot,
        failure=_failure(kind, status, (sent, first, end), finish, answered if prompt_count is not None else None),
        cached_tokens=count(at(row, "usage", "cached_tokens")),
        output_head=_head(row.get("output_head")),
        host=str(row["host"]) if row.get("host") is not None else None,
        offsets=len(told) if isinstance(told := row.get("chunk_offsets_us"), list) else 0,
    )


def _head(value: Any) -> tuple[str, ...] | None:
    texts = value if isinstance(value, list) else ()
    return tuple(texts) if texts and all(isinstance(text, str) for text in texts) else None


def _failure(error: str | None, status: Any, times: tuple[int, int | None, int], finish: Any, answered: int | None) -> str | None:
    """Return why a request did not do its whole work, or None."""
    sent, first, end = times
    if error is not None:
        return error
    if status != 200:
        return "http"
    if first is None or not sent < first <= end:
        return "no_text"
    if finish != GOOD_FINISH:
        return "no_finish"
    return "no_usage" if answered is None else None


# What the probe always writes of an end (docs/evidence-format.md): a key that is not there was taken out, and with it what it said.
_END = ("ended_wall_ns", "ended_ns", "boot_id", "outcome", "error", "records", "last_seq")


def _check_exit(reader: Reader, data: Mapping[str, Any], records: int) -> None:
    if not data:
        return
    lacking = ", ".join(key for key in _END if key not in data)
    if lacking:
        reader.trouble("keys", "exit.json", f"the end of the job is not told whole: {lacking} is missing.", f"作业结束记录不完整：缺少 {lacking}。")
    if data.get("outcome") != "done" or data.get("error") is not None:
        why = at(data, "error", "message") or data.get("error") or data.get("outcome")
        reader.trouble("not_done", "exit.json", f"the job did not end as done: {why}.", f"作业未正常结束：“{why}”。")
    if data.get("records") != records or data.get("last_seq") != records - 1:
        reader.trouble(
            "count",
            "exit.json",
            f"the job wrote {data.get('records')!r} records (last seq {data.get('last_seq')!r}); {records} are here.",
            f"作业写了 {data.get('records')!r} 条记录（末 seq {data.get('last_seq')!r}）；此处有 {records} 条。",
        )


def _check_end(reader: Reader, data: Mapping[str, Any], phases: Sequence[Mapping[str, Any]]) -> None:
    """Name an end that came before what the job did, by the clock of the boot in which it ended."""
    told = [ended for phase in phases if phase.get("boot_id") == data.get("boot_id") and (ended := count(phase.get("ended_ns"))) is not None]
    ended = count(data.get("ended_ns"))
    if "ended_ns" in data and (ended is None or any(phase > ended for phase in told)):
        reader.trouble(
            "ended_before",
            "exit.json",
            f"the job is said to have ended at {data.get('ended_ns')!r} ns, before a phase of it did.",
            f"作业记录的结束时刻为 {data.get('ended_ns')!r} ns，早于其某个阶段。",
        )
