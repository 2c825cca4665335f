"""What a soak's journal says of its disturbances becomes input of the judgement: planned labels only, and only those with both ends."""

import json
from types import SimpleNamespace

from app.engine.steps.journal import injections

WHOLE = {"label": "path-1", "action": "path-down", "from_ns": 1, "to_ns": 2, "boot_id": "b", "begin_exit": 0, "end_exit": 0}


def told(staging, events, params):
    folder = staging / "gpu01" / "pack.d"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text("".join(json.dumps(e) + "\n" if isinstance(e, dict) else e for e in events))
    ctx = SimpleNamespace(current=SimpleNamespace(spec={"params": params}))
    return injections(ctx, staging)


def test_only_planned_labels_with_beginning_and_end_are_injections(tmp_path):
    events = [
        {"kind": "injection_begins", "detail": {"label": "path-1", "from_ns": 1, "boot_id": "b"}},
        {"kind": "injection", "detail": WHOLE},
        {"kind": "injection", "detail": {**WHOLE, "label": "nobody-agreed"}},
        {"kind": "injection", "detail": {"label": "path-1"}},
        {"kind": "engine_exit", "detail": None},
        '{"kind": "injection", "det',
    ]
    found = told(tmp_path, events, {"injections": [{"label": "path-1"}]})
    assert found == [{"label": "path-1", "from_ns": 1, "to_ns": 2, "boot_id": "b"}]


def test_without_a_plan_there_is_no_injection(tmp_path):
    assert told(tmp_path, [{"kind": "injection", "detail": WHOLE}], {}) == []
