"""A unit on loan is wiped by the service: ordered, approved by both parties, played on the simulated rack, its records and return slip at home."""

from __future__ import annotations

import json
import time

from sqlalchemy import select

from app.accounts.actor import command_line
from app.engine import runs, wiping
from app.evidence import store
from app.kit.db import read_session, write_session
from app.wipes.models import WipeFile
from app.wipes.usecases import order_wipe, wipe_seen
from tests.engine_kit import PATIENCE_S
from tests.integration.playbook_lab import playbook_lab
from tests.people import Cast
from tests.scenes import DEMO, decide, engage

TEMPLATE = "{{ lookup('pipe', 'exit 1') }}"  # words of a person, whatever they look like
SERIALS = ["QF26K0A00101", "QF26K0A00103"]


def test_the_named_drives_and_no_others_are_wiped_and_the_record_by_serial_number_is_kept(cast: Cast) -> None:
    with write_session() as s:
        noted = DEMO.replace("serial: QF26K0A00101, host: array01", f"serial: QF26K0A00101, host: array01, note: {json.dumps(TEMPLATE)}")
        engagement = engage(s, cast, noted)
        reason = f"借测期满 {TEMPLATE}"
        order = order_wipe(s, engagement_id=engagement.id, way="sanitize_block", serials=SERIALS, reason=reason, actor=cast.li_wei)
        decide(s, "wipe", cast.chen_jing, cast.wang_fang)
        wiping.begin(s, order_id=order.id, actor=command_line())
    end = time.monotonic() + PATIENCE_S
    while (done := wiping.go_on(order.id, command_line())).finished_at is None:
        assert time.monotonic() < end
        time.sleep(0.2)
    with read_session() as s:
        shown = wipe_seen(s, wipe_id=order.id, actor=cast.viewer)
        kept = {f.name: json.loads(store.read(f.sha256)) for f in s.scalars(select(WipeFile)) if f.name.endswith(".json")}
        journal = store.read(s.scalars(select(WipeFile).where(WipeFile.name == "records.jsonl")).one().sha256).decode().splitlines()
    log = (runs.folder_of(order.id, "wipe", "run-1") / "events.jsonl").read_text()
    assert (shown["state"], [row["serial"] for row in shown["records"]]) == ("wiped", SERIALS), (done.report, log[-3000:])
    rows = [(row["serial"], row["outcome"]) for row in map(json.loads, journal)]
    assert rows == [(serial, how) for serial in SERIALS for how in ("begun", "wiped")]
    record, slip = kept["wipe-record.json"], kept["return-slip.json"]
    assert record["facts"]["order_hash"] == slip["order_hash"] == shown["hash"]
    assert sorted(record["facts"]["approvals"].values()) == sorted(a["id"] for a in shown["approvals"])
    assert [piece["note"] for piece in slip["pieces"] if "note" in piece] == [TEMPLATE]
    assert slip["drives_not_wiped"] == ["QF26K0A00102", "QF26K0A00104"]


def test_whoever_plays_it_by_hand_without_the_approvals_wipes_nothing() -> None:
    with playbook_lab() as lab:
        lab.groups = ("storage",)
        root = lab.add("array01")
        packed = [{"kind": "drive", "model": "QF-N7680", "serial": "QF26K0A00101", "host": "array01"}]
        told = lab.variables({"key": "wipe"}, site={"rack": "roce", "packing_list": packed})
        for made_up in ({}, {"wipe": {"method": "sanitize", "approvals": {"vendor": "a-1", "customer": "a-2"}, "serials": ["QF26K0A00101"]}}):
            refused = lab.play("wipe.yml", {**told, **made_up})
            assert refused.rc != 0
            assert "Nothing was wiped" in refused.output
        assert not root.exists()
