"""The dataset says what the verdict says, in both languages, and hides nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from app.reports.checks import check_row
from app.reports.dataset import build
from app.reports.pdf import render_pdf
from app.reports.thresholds import _leaves, threshold_rows
from app.reports.words import Words, catalogue
from gates.canonical import canonical_bytes
from gates.model import Limit
from gates.plan import parse_plan
from gates.text import Text
from tests.unit.reports import samples

LANGUAGES = ("zh-CN", "en")
GATES = ("G1", "G2", "G3", "G4")


def tree(value: Any) -> Any:
    return {k: tree(v) for k, v in value.items()} if isinstance(value, dict) else None


def test_both_word_catalogues_have_the_same_keys_and_placeholders() -> None:
    def leaves(value: Any, path: str = "") -> dict[str, set[str]]:
        if isinstance(value, dict):
            return {k: v for key, inner in value.items() for k, v in leaves(inner, f"{path}.{key}").items()}
        import string

        return {path: {name for _, name, _, _ in string.Formatter().parse(value) if name}}

    assert leaves(catalogue("en")) == leaves(catalogue("zh"))


def test_every_threshold_of_the_default_plan_has_words_in_both_languages() -> None:
    plan = parse_plan({}).data
    paths = [path for name in ("g1", "g2", "g3", "g4", "validity") for path, _ in _leaves(name, plan[name])]
    assert paths
    for tag in ("en", "zh"):
        assert [p for p in paths if p not in catalogue(tag)["thresholds"]] == []


def test_thresholds_are_printed_as_sealed_with_their_tiers() -> None:
    rows = {row["source"]: row for row in threshold_rows(samples.plan().data, "G3", Words("en"))}
    assert rows["g3.ttft_p50_drop_min"]["limit"] == "25 %"
    assert rows["g3.ttft_p50_drop_min"]["scope"] == "8, 16, 32"
    assert rows["g3.throughput_gain_band"]["limit"] == "+29 % .. +40 % (above the band: audit)"
    assert rows["g3.guards.ttft_p99_ratio_max"]["limit"] == "1.05"
    assert rows["validity.calibration_error_max"]["limit"] == "1 %"
    assert rows["g3.sla.ttft_p50"]["limit"] == "not agreed"


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_dataset_is_plain_json_and_the_same_twice(gate: str, language: str) -> None:
    facts = samples.facts(gate)
    data = build(facts, language)
    assert canonical_bytes(json.loads(json.dumps(data))) == canonical_bytes(build(facts, language))


@pytest.mark.parametrize("gate", GATES)
def test_both_editions_show_the_same_numbers_and_hashes(gate: str) -> None:
    zh, en = (build(samples.facts(gate), language) for language in LANGUAGES)
    assert zh["basis"] == en["basis"]
    assert zh["integrity"] == en["integrity"]
    assert zh["document"]["number"] == en["document"]["number"] == f"ACC-DEMO-{gate}-R0"
    assert [(c["id"], c["value"], c["limit"], c["verdict"]) for c in zh["checks"]] == [
        (c["id"], c["value"], c["limit"], c["verdict"]) for c in en["checks"]
    ]
    assert [e["value"] for e in zh["exact"]] == [e["value"] for e in en["exact"]]


def test_every_check_of_the_verdict_is_shown_with_the_exact_value_that_was_compared() -> None:
    facts = samples.facts("G3")
    data = build(facts, "en")
    assert [c["id"] for c in data["checks"]] == [c["id"] for c in facts.document["checks"]]
    exact = {row["id"]: row["value"] for row in data["exact"]}
    assert exact["g3.ttft_p50_drop.c8"] == "0.259612345678901234567890123"


def test_the_big_number_is_that_of_the_weakest_tier() -> None:
    panels = build(samples.facts("G3"), "en")["headlines"]
    assert [p["value"] for p in panels] == ["25.51 %", "+33.50 %"]
    assert panels[0]["note"] == "weakest tier: c = 32"


def test_page_one_data_tells_rehearsals_attempts_and_what_was_not_tested() -> None:
    document = samples.document("G3", not_tested=[{"claim": "littles_law", "title": Text("Little's law", "利特尔法则").json(), "reason": None}])
    data = build(samples.facts("G3", document=document), "en")
    assert data["scope"]["tries"] == "Attempts: 1 of at most 2; counted: 1; rehearsals: 1; ended without a judgement: 0."
    assert data["scope"]["not_tested"] == [{"what": "Little's law", "reason": "left out by agreement of both parties"}]
    assert "as delivered" in data["scope"]["array_cache"]
    assert [(a["kind"], a["verdict"]) for a in data["attempts"]] == [("rehearsal", "none"), ("formal", "pass")]


def test_what_nobody_agreed_on_does_not_stand_under_what_the_parties_left_out() -> None:
    same = {"title": Text("RDMA bandwidth", "RDMA 带宽").json(), "reason": Text("The plan does not require it.", "计划未要求。").json()}
    rows = [
        {"check": "g1.rdma.bandwidth", **same},
        {"claim": "replay", **same, "agreed": True},
        {"claim": "baselines_agree", **same, "agreed": False},
    ]
    data = build(samples.facts("G3", document=samples.document("G3", not_tested=rows)), "zh-CN")
    assert len(data["scope"]["not_tested"]) == 1
    assert [row["what"] for row in data["scope"]["not_asked"]] == ["RDMA 带宽", "RDMA 带宽"]


def test_a_fail_of_a_stopping_gate_prints_stop_loss_and_the_objection_window() -> None:
    document = samples.document("G3", "fail", checks=samples.g3_checks(Decimal("0.2499")))
    data = build(samples.facts("G3", "fail", document=document), "zh-CN")
    assert data["consequence"]["stop"] is True
    said = "".join(data["consequence"]["sentences"])
    assert "止损" in said
    assert "5 日内可提出异议" in said
    assert "2026-12-13 04:12:08 UTC" in said
    assert data["key_checks"][0] == "g3.ttft_p50_drop.c8"
    assert next(c for c in data["checks"] if c["id"] == "g3.ttft_p50_drop.c8")["value"] == "24.99 %"


def test_a_fail_of_a_rectifying_gate_blocks_and_does_not_stop() -> None:
    data = build(samples.facts("G1", "fail"), "en")
    assert data["consequence"]["stop"] is False
    assert data["consequence"]["sentences"][0].startswith("RECTIFY.")


def test_a_rehearsal_is_not_judged_whatever_was_computed() -> None:
    tries = samples.attempts("G3", "pass")
    tries[-1]["rehearsal"] = True
    data = build(samples.facts("G3", "pass", attempts=tries), "en")
    assert data["verdict"]["word"] == "none"
    assert data["headlines"] == []
    assert data["document"]["state"] == "draft"
    assert "rehearsal" in [m["kind"] for m in data["document"]["marks"]]


@pytest.mark.parametrize("verdict", ["pass", "conditional", "fail", "inconclusive", "invalid"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_verdict_has_its_words_and_its_consequence(verdict: str, language: str) -> None:
    data = build(samples.facts("G3", verdict), language)
    assert data["verdict"]["word"] == verdict
    assert data["verdict"]["text"] != verdict
    assert data["consequence"]["sentences"]


def test_one_hint_of_simulation_is_enough_for_the_mark() -> None:
    real = samples.engagement() | {"targets": {"simulated": False, "hosts": {}}}
    document = samples.document("G3", simulated=False)
    manifest = samples.manifest("G3") | {"simulated": False}
    facts = samples.facts("G3", document=document, engagement=real, manifest=manifest, plan=parse_plan({}).data)
    assert build(facts, "en")["document"]["marks"] == []
    marked = build(replace(facts, manifest=manifest | {"simulated": True}), "en")["document"]
    assert (marked["simulated"], marked["state_text"]) == (True, "SIMULATED")  # never "issued" beside the mark


def test_the_state_is_signed_only_where_both_parties_signed_what_holds_now() -> None:
    both = [samples.approval(party, "sign_off", "sha256:x", "2026-12-09T01:00:00+00:00") for party in ("vendor", "customer")]
    states = [build(samples.facts("G3", approvals=both, signed=signed), "en")["document"]["state"] for signed in (False, True)]
    assert states == ["issued", "signed"]


def test_the_revision_table_says_what_changed() -> None:
    facts = samples.facts("G3")
    assert facts.verdict is not None
    earlier = (
        {"revision": 0, "at": "2026-12-08T03:00:00+00:00", "verdict_hash": "sha256:old"},
        {"revision": 1, "at": "2026-12-08T03:30:00+00:00", "verdict_hash": facts.verdict["hash"]},
    )
    rows = build(facts, "en", revision=2, revisions=earlier)["document"]["revisions"]
    assert [(r["revision"], r["what"]) for r in rows] == [
        ("R0", "first issue"),
        ("R1", "judged again; the former judgement stays on record"),
        ("R2", "approvals or later facts recorded"),
    ]


def test_a_breached_claim_stands_in_the_matrix_and_in_the_list_with_its_blame() -> None:
    document = samples.document("G3", "invalid")
    document["claims"].insert(0, samples.BROKEN_CLAIM.json())
    data = build(samples.facts("G3", "invalid", document=document), "en")
    row = next(r for r in data["claims"]["matrix"]["rows"] if r["claim"] == "page_cache_cold")
    arms = [a["arm"] for a in data["claims"]["matrix"]["arms"]]
    assert row["cells"][arms.index("candidate")] == {"status": "breached", "text": "breached", "holds": 6, "of": 7}
    broken = [c for c in data["claims"]["rows"] if c["status"] == "breached"]
    assert [(c["attribution_text"], c["tier"], c["run"]) for c in broken] == [("rig", 8, "run-2")]


def test_an_unpacking_form_is_printed_in_the_words_of_its_fields() -> None:
    fields = [
        {"name": "packaging", "label": Text("Packaging", "外包装").json(), "choices": [{"value": "intact", "label": Text("intact", "完好").json()}]},
        {"name": "receiver_vendor", "label": Text("Received: vendor", "签收人（供方）").json()},
        {"name": "serials_match", "label": Text("Serials match", "序列号一致").json()},
    ]
    form = {"packaging": "intact", "receiver_vendor": {"name": "李伟", "user_id": "u1"}, "serials_match": True}
    title = Text("Unpacking", "开箱检验").json()
    data = build(
        samples.facts("G1", forms=[{"title": title, "fields": fields, "form": form, "photos": [{"name": "a.jpg", "sha256": "0" * 64}]}]), "zh-CN"
    )
    assert [(r["field"], r["entry"]) for r in data["forms"][0]["rows"]] == [
        ("外包装", "完好"),
        ("签收人（供方）", "李伟"),
        ("序列号一致", "是"),
        ("a.jpg", "0" * 64),
    ]


def test_a_question_without_a_number_is_blank_when_answered_and_a_missing_number_never_is() -> None:
    check = samples.check("g1.unpacking", "Unpacking", "开箱", None, Limit("none"), unit="1").json()
    assert check_row(check, Words("en"))["value"] == ""
    assert check_row({**check, "verdict": "inconclusive"}, Words("en"))["value"] == "n/a"


def test_an_extension_is_told_with_time_reason_pairs_and_both_judgements() -> None:
    told = {"pairs": 2, "at": "2026-12-08T05:00:00.000Z", "by": "李伟", "party": "vendor", "said": "双方同意", "from_verdict": "sha256:" + "a" * 64}
    told |= {"why": {"en": "Nothing was proven.", "zh-CN": "未能证明。"}, "judged": "sha256:" + "b" * 64}
    tries = [a | ({"extension": told} if not a["rehearsal"] else {}) for a in samples.attempts("G3")]
    row = {"check": "g3.x", "title": {"en": "Drop", "zh-CN": "降幅"}, "from": "inconclusive", "to": "pass"}
    known = {"at": "2026-12-08T04:12:08+00:00", "judge_version": "0.1.0"}
    judged = [
        {"revision": 1, "verdict": "inconclusive", "hash": told["from_verdict"], "changed": [], **known},
        {"revision": 2, "verdict": "pass", "hash": told["judged"], "changed": [row, {**row, "to": "inconclusive"}], **known},
    ]
    for language, words in (("en", "by 2 run pairs"), ("zh-CN", "补充 2 个轮次对")):
        data = build(samples.facts("G3", attempts=tries, verdicts=judged, attempt=tries[-1]), language)
        assert words in data["extension"]["sentence"]
        assert words in data["attempts"][-1]["reason"]
        assert (data["extension"]["said"], bool(data["extension"]["why"])) == ("双方同意", True)
        assert [len(j["changed"]) for j in data["judgements"]] == [0, 1]
        assert render_pdf(data).startswith(b"%PDF")
    going_on = [
        a | ({"extension": {**told, "judged": None}, "status": "running"} if not a["rehearsal"] else {}) for a in samples.attempts("G3", None)
    ]
    data = build(samples.facts("G3", "inconclusive", attempts=going_on, attempt=going_on[-1]), "en")
    assert (data["document"]["state"], "no verdict holds" in data["extension"]["sentence"]) == ("draft", True)
    assert build(samples.facts("G3"), "en")["extension"] == {}
    doc = samples.document("G3", "inconclusive") | {"extension": {"pairs": 2, "done": None, "may": True, "reason": told["why"]}}
    assert "extended by 2 run pairs" in build(samples.facts("G3", "inconclusive", document=doc), "en")["consequence"]["sentences"][0]


@pytest.mark.parametrize(("gate", "waits"), [("G1", False), ("G2", False), ("G3", True), ("G4", True)])
def test_what_follows_a_pass_waits_for_the_sign_off_only_where_the_plan_requires_it(gate: str, waits: bool) -> None:
    facts = samples.facts(gate)
    assert (facts.plan["policy"]["sign_off"][gate] == "required") is waits
    en, zh = ("".join(build(facts, language)["consequence"]["sentences"]) for language in ("en", "zh-CN"))
    assert ("once both parties have signed" in en, "双方签署本报告后" in zh) == (waits, waits)
    assert ("nothing waits for it" in en, "后续无须等待" in zh) == (not waits, not waits)
    assert ("the next gate may start" in en.lower()) is (gate != "G4")


def beside(*verdicts: str) -> dict[str, Any]:
    """A document of G3 whose advisory checks have these verdicts."""
    document = samples.document("G3")
    model = next(c for c in document["checks"] if c["severity"] == "advisory")
    blocking = [c for c in document["checks"] if c["severity"] == "blocking"]
    return {**document, "checks": blocking + [{**model, "id": f"g3.beside_{n}", "verdict": verdict} for n, verdict in enumerate(verdicts)]}


@pytest.mark.parametrize(
    ("verdicts", "en", "zh"),
    [
        (("pass", "pass"), "", ""),
        (("pass", "fail"), "Advisory checks, which decide nothing: 1 of 2 did not hold.", "2 个参考项中有 1 个未达标"),
        (
            ("inconclusive", "pass", "fail"),
            "Advisory checks, which decide nothing: 1 of 3 did not hold, 1 could not be judged.",
            "3 个参考项中有 1 个未达标、1 个无法判定",
        ),
        (("invalid",), "Advisory checks, which decide nothing: 1 of 1 could not be judged.", "1 个参考项中有 1 个无法判定"),
    ],
)
def test_page_one_says_how_many_advisory_checks_did_not_hold(verdicts: tuple[str, ...], en: str, zh: str) -> None:
    for language, told in (("en", en), ("zh-CN", zh)):
        found = build(samples.facts("G3", document=beside(*verdicts)), language)["advisory"]
        assert found["sentence"].startswith(told)
        assert bool(found["sentence"]) == bool(told)
    assert found["checks"] == [f"g3.beside_{n}" for v in ("fail", "inconclusive", "invalid") for n, had in enumerate(verdicts) if had == v]


def test_an_attempt_with_an_approved_rig_cause_is_printed_as_not_counted() -> None:
    tries = samples.attempts("G3", None)
    tries[-1] |= {"excused": True, "rig_cause": "机房断电", "problem": Text("The host is silent.", "主机无响应。").json()}
    data = build(samples.facts("G3", attempts=tries), "en")
    assert "counted: 0;" in data["scope"]["tries"]
    assert data["scope"]["tries"].endswith("Taken out of the count by a rig cause that both parties approved: 1.")
    row = data["attempts"][-1]
    assert (row["counted"], row["reason"]) == (
        "",
        "The host is silent. Does not count: both parties approved a cause in the rig or at the site (机房断电).",
    )
