"""What a job wrote: its samples, its time, its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.attempts.models import SKIPPED, Attempt, Sample, Step
from app.engine import durable, expected, samples
from app.engine.context import Ctx
from app.engine.outcome import Outcome
from app.engine.policy import POLL_LINES_MAX
from app.kit.db import read_session
from gates.model import StepKind
from gates.text import Text

LIVE = ("records.jsonl", "telemetry.jsonl")
HARMLESS = frozenset({"cool", "warmup"})  # phases that store, load and measure nothing: they can tell nothing of the product
BEFORE_ALL = ("engine", "attendant", "no_room", "over_quota")  # ends of a job that may come before anything was measured; its phases say whether
REST_MAX = 8 * 1024 * 1024  # bytes of a journal that go into the live rows at the end; the evidence file holds all

Write = Callable[[Session], None]


def chunks(ctx: Ctx, replies: Mapping[str, Mapping[str, Any]], staging: Path) -> tuple[list[Write], dict[str, Any]]:
    """Return the writes for the samples that a poll brought, and the new offsets {journal: bytes}.

    Of the other journals only the offset is kept, so that the target does not send them anew each time: the pack brings them whole. Offsets go by
    the journal's name, whoever wrote it: of one that several hosts keep (each attendant its account) the least is asked from next time.
    """
    offsets = dict(ctx.current.offsets or {})
    writes: list[Write] = []
    brought = {host: samples.chunks_of(reply, staging, host) for host, reply in replies.items()}
    fetched: dict[str, list[int]] = {}
    for found in brought.values():
        for name, chunk in found.items():
            if name in LIVE:
                writes += _take(ctx, name, chunk, offsets)
            else:
                fetched.setdefault(name, []).append(samples.rows_of(chunk, int(offsets.get(name, 0)))[1])
    if all(brought.values()):  # a host that brought nothing may have less of it than the others
        offsets |= {name: min(ends) for name, ends in fetched.items()}
    return writes, offsets


def rest(ctx: Ctx, packs: Path) -> tuple[list[Write], dict[str, Any]]:
    """Return the writes for what the pack holds beyond the polls."""
    offsets = dict(ctx.current.offsets or {})
    writes: list[Write] = []
    for name in LIVE:
        for path in sorted(packs.glob(f"*/*.d/{name}")):
            with path.open("rb") as file:
                start = file.seek(int(offsets.get(name, 0)))
                data = file.read(REST_MAX)
            data = data[: data.rfind(b"\n") + 1]
            writes += _take(ctx, name, {"from": start, "to": start + len(data), "data": data.decode("utf-8", "replace")}, offsets)
    return writes, offsets


def _take(ctx: Ctx, name: str, chunk: Mapping[str, Any], offsets: dict[str, Any]) -> list[Write]:
    rows, offsets[name] = samples.rows_of(chunk, int(offsets.get(name, 0)))
    if (ctx.current.spec.get("params") or {}).get("kind") == "soak":
        rows = samples.spread(rows, POLL_LINES_MAX)
    stream = name.removesuffix(".jsonl")
    return [samples.storing(ctx.attempt.id, ctx.current.id, stream, rows)] if rows else []


def expected_s(ctx: Ctx, replies: list[dict[str, Any]]) -> tuple[float, bool]:
    """Return how long the job will take and whether anybody knows: told by the targets, and learned from earlier runs of the same work.

    The longer of both: looking late costs seconds, looking early puts a playbook into the measurement. A soak has its length by plan.
    """
    params = ctx.current.spec.get("params") or {}
    told = expected.of_replies(replies)
    if told is not None and params.get("kind") == "soak":
        return told, True
    with read_session() as s:
        rows = s.scalars(
            select(Step.result)
            .join(Attempt, Attempt.id == Step.attempt_id)
            .where(Attempt.engagement_id == ctx.engagement.id, Step.kind == str(StepKind.JOB), Step.status == "done")
            .order_by(Step.finished_at.desc())
            .limit(20)
        )
        earlier = [row["timing"] for row in rows if row and row.get("timing")]
    known = [value for value in (told, expected.of_history(params, earlier)) if value is not None]
    return (max(known), True) if known else (expected.UNKNOWN_S, False)


def timing(ctx: Ctx, packs: Path) -> dict[str, Any] | None:
    """Return what the run took, for the estimate of the next one."""
    path = next(iter(sorted(packs.glob("*/*.d/phases.jsonl"))), None)
    return expected.timing(ctx.current.spec.get("params") or {}, path) if path else None


def injections(ctx: Ctx, packs: Path) -> list[dict[str, Any]]:
    """Return the planned disturbances that the job carried out, [{label, from_ns, to_ns, boot_id}]: only labels that the step was given count."""
    planned = {row["label"] for row in (ctx.current.spec.get("params") or {}).get("injections") or []}
    found = []
    for path in sorted(packs.glob("*/*.d/events.jsonl")) if planned else []:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                event = json.loads(line)
                if event["kind"] == "injection" and event["detail"]["label"] in planned:
                    found.append({key: event["detail"][key] for key in ("label", "from_ns", "to_ns", "boot_id")})
            except (ValueError, KeyError, TypeError):
                continue  # the judge reads the journal strictly and says what is wrong with it
    return found


def ended_well(reply: Mapping[str, Any], staging: Path, host: str) -> bool:
    """Tell whether the job ended by itself with its work done."""
    if reply.get("state") != "exited":
        return False
    end = reply.get("exit")
    if not isinstance(end, Mapping):
        end = durable.read_json(staging / host / "exit.json")
    return (isinstance(end, Mapping) and end.get("outcome") == "done") or end is None  # without either the pack must be complete


def never_began(replies: Mapping[str, Mapping[str, Any]], packs: Path) -> dict[str, tuple[str, str]] | None:
    """Return what each host's job said, {host: (kind, message)}, when every one ended by itself before it stored, loaded or measured.

    Its engine did not come up, or there was no room for what it would write.

    None in any doubt: a file that is missing or does not parse, another end, a phase that could tell something of the product. An attendant makes no
    request, so the job that it served tells.
    """
    said: dict[str, tuple[str, str]] = {}
    for host, reply in replies.items():
        folder = next(iter(sorted((packs / host).glob("*.d"))), None)
        job = durable.read_json(folder / "job.json") if folder else None
        if isinstance(job, Mapping) and job.get("kind") == "attend":
            continue
        end = durable.read_json(folder / "exit.json") if folder else None
        error = end.get("error") if isinstance(end, Mapping) and end.get("outcome") == "error" else None
        if reply.get("state") != "exited" or folder is None or not isinstance(error, Mapping) or error.get("kind") not in BEFORE_ALL:
            return None
        try:
            phases = {json.loads(line)["phase"] for line in (folder / "phases.jsonl").read_text(encoding="utf-8").splitlines()}
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if not phases <= HARMLESS:
            return None
        said[host] = (str(error["kind"]), str(error.get("message") or "-"))
    return said or None


def forgetting(ctx: Ctx) -> list[Write]:
    """Return the write that takes away the live rows of a job before: the journals of another one number their lines from 0 too."""
    step_id = ctx.current.id

    def forget(s: Session) -> None:
        s.execute(delete(Sample).where(Sample.step_id == step_id))

    return [forget] if ctx.current.offsets else []


def broken_off(ctx: Ctx, memo: dict[str, Any], offsets: dict[str, Any], note: Text) -> Outcome:
    """Go to the judgement with what is there: an attempt with a broken run cannot pass, and more runs would only cost time."""
    judge = next((step.position for step in ctx.steps if step.kind == StepKind.JUDGE and step.position > ctx.current.position), len(ctx.steps))
    skipped = [step.id for step in ctx.steps if ctx.current.position < step.position < judge]
    why = Text("Not done: {step} broke off.", "未执行：「{step}」中断。").fill(step=Text.parse(ctx.current.title))

    def skip(s: Session) -> None:
        for step_id in skipped:
            step = s.get_one(Step, step_id)
            step.status, step.problem = "canceled", {"code": SKIPPED, **why.json()}

    index = next((i for i, step in enumerate(ctx.steps) if step.position == judge), len(ctx.steps))
    step = {"status": "done", "result": memo, "offsets": offsets, "problem": {"code": "broke_off", **note.json()}}
    return Outcome(step=step, attempt={"step_index": index}, writes=[skip])
