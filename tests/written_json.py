"""JSON as the product writes it, by table and column, for tests that need old rows with real content."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlalchemy import JSON, select

from app.accounts.actor import SYSTEM
from app.attempts.conclude import conclude
from app.attempts.usecases import start_attempt
from app.evidence.judgement import judge_attempt
from app.kit.db import Base, write_session
from tests import people
from tests.scenes import bring, engage, run, within

RUN = "run-1"
BOTH = {"en": "The target gpu01 does not answer.", "zh-CN": "目标 gpu01 无应答。"}

# What only a running engine writes, in the forms that its code states beside the columns.
BY_THE_ENGINE: dict[tuple[str, str], list[Any]] = {
    ("attempt", "problem"): [{"code": "lost", **BOTH, "step": "g2.run"}, None],
    ("attempt", "because"): [["fragile"], []],
    ("attempt", "extension"): [{"pairs": 4, "from_verdict": "sha256:" + "1" * 64, "from_manifest": "sha256:" + "2" * 64, "said": "…"}, None],
    ("step", "offsets"): [{"records.jsonl": 1 << 33, "telemetry.jsonl": 0}, None],
    ("step", "result"): [{"run": RUN, "late": [0.25, 61.5], "injections": []}, {"run": "poll-17"}, None],
    ("step", "problem"): [{"code": "unreachable", **BOTH}, None],
    ("step_event", "data"): [{"task": "Fetch the pack | 取回", "host": "gpu01", "res": {"rc": 0, "stdout_lines": ["温度 31 °C"], "changed": False}}],
    ("sample", "data"): [{"seq": 1, "boot": "b", "wall_ns": 1790000000123456789, "mono_ns": 9, "ttft_ns": 123456789, "ok": True, "rate": 0.1}],
    ("node", "sees"): [["node-2"], [], None],
    ("attempt_cause", "what"): [{"en": "gpu01 was rebooted", "zh-CN": "gpu01 已重启"}],
    ("engagement", "g2_baseline"): [{"hash": "sha256:" + "3" * 64, "attempt": "a", "tiers": {"8": {"ttft_p50_s": "1.2034"}}, "engine": {}}, None],
    ("target_removal", "report"): [{"hosts": {"gpu01": {"state": "left", "root": "/opt/qg", "why": BOTH}}, "problem": None}, None],
    ("evidence_file", "argv"): [["fio", "--name=读", "--output-format=json"], [], None],
    ("evidence_file", "clocks"): [{"wall_ns": 1790000000123456789, "mono_ns": 5, "boot_id": "7d9c"}, None],
    ("packing_revision", "packing_list"): [
        [{"kind": "drive", "model": "QF-N7680", "serial": "S6XNNG0T1", "host": "array01"}, {"kind": "cable", "model": "DAC 3 米", "quantity": 4}]
    ],
    ("packing_revision", "replaces"): [[{"kind": "drive", "model": "QF-N7680", "serial": "S6XNNG0T1"}], None],
    ("wipe_order", "drives"): [[{"serial": "S6XNNG0T1", "model": "PM1743", "host": "array01"}]],
    ("wipe_order", "report"): [{"drives": [{"serial": "S6XNNG0T1", "host": "array01", "outcome": "wiped", "why": ""}], "problem": None}, None],
}


@lru_cache(maxsize=1)
def written() -> dict[tuple[str, str], list[Any]]:
    """Let an engagement be made, sealed and judged in the present (empty) database, and return what then stands in its JSON columns."""
    found = dict(BY_THE_ENGINE)
    with write_session() as s:
        cast = people.enrol(s)
        engagement = engage(s, cast)
        run(s, cast, engagement, "G1")
        second = start_attempt(s, engagement_id=engagement.id, gate="G2", actor=cast.li_wei)
        bring(s, second, "evidence/run-1/gpu01/log.txt", "温度 31 °C\n".encode())
        second.status = "finished"
        conclude(s, second, judge_attempt(within(s), attempt_id=second.id, actor=SYSTEM).document)
        s.flush()
        for table in Base.metadata.sorted_tables:
            for column in table.columns:
                if isinstance(column.type, JSON):
                    values = [value for value in s.scalars(select(column)) if value is not None]
                    found.setdefault((table.name, column.name), values)
    return found
