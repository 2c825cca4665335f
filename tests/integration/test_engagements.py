"""Engagement files, who sees which engagement, and the dataset of the pages."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from app.audit.chain import verify
from app.engagements.file import read_file
from app.engagements.models import Engagement
from app.engagements.usecases import board, create_engagement, overview, warning_of
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput, Forbidden, NotFound
from app.settings import ROOT
from app.targets.inventory import build
from app.web.starter import starter
from gates.model import ATTENDED
from gates.plan import parse_plan
from tests.people import Cast
from tests.sample import REAL, filled
from tests.scenes import DEMO, engage, run

PAIR = "host: array01, interface: ens8f0np0, far_host: {far}, far_interface: ens3f0np0, far_address: 127.0.0.1"
PAIRS = "  rdma_bandwidth: {{pairs: [{{" + PAIR + "}}]}}\n  rack: lab"
ONE = "{groups: [engine, loadgen], connection: local}"
APART = "{{groups: [loadgen], connection: local}}\n    gpu02: {{groups: [engine], connection: local{attend}}}"
PLACE = ", attend: {{address: {}, port: {}}}"
CHANGES = {
    "unknown key": ("order:", "colour: blue\norder:", "/colour", "unknown"),
    "unknown key deep down": ("  quantity: 1\n", "  quantity: 1\n  qty: 2\n", "/order/qty", "unknown"),
    "wrong type": ("quantity: 4", "quantity: four", "/order/lines/1/quantity", "whole number"),
    "wrong unit": ('"7.68 TB"', '"7.68 GHz"', "/order/lines/1/capacity", "unit"),
    "unit of another kind": ('"100 Gbit/s"', '"100 GB"', "/order/lines/2/speed", "unit of bytes"),
    "no serial of a drive": (", serial: QF26K0A00102", "", "/packing_list/2/serial", "may stand: cable, optic"),
    "one serial for two": (", serial: QF26K0A00102", ", serial: QF26K0A00102, quantity: 2", "/packing_list/2/quantity", "one piece"),
    "serial twice": ("QF26K0A00102", "QF26K0A00101", "/packing_list/2/serial", "already"),
    "host without a group": ("groups: [storage]", "groups: []", "/targets/hosts/array01/groups", "no group"),
    "no load generator": ("[engine, loadgen]", "[engine]", "/targets/hosts", "loadgen"),
    "two load generators": ("groups: [storage]", "groups: [engine, loadgen]", "/targets/hosts", "driven by one host"),
    "a load generator apart, and no place for the attendant": (ONE, APART.format(attend=""), "/targets/hosts/gpu02/attend", "needs an attendant"),
    "an attendant on every address": (ONE, APART.format(attend=PLACE.format("0.0.0.0", 7)), "/targets/hosts/gpu02/attend/address", "one address"),
    "an attendant by name": (ONE, APART.format(attend=PLACE.format("gpu02", 7)), "/targets/hosts/gpu02/attend/address", "IP address"),
    "an attendant on the engine's port": (
        ONE,
        APART.format(attend=PLACE.format("127.0.0.2", 18461)),
        "/targets/hosts/gpu02/attend/port",
        "port of the engine",
    ),
    "an attendant where nobody drives from elsewhere": (
        "[storage], connection: local",
        "[storage], connection: local" + PLACE.format("127.0.0.2", 7),
        "/targets/hosts/array01/attend",
        "leave it out",
    ),
    "two engine hosts at one address": (
        ONE,
        APART.format(attend=PLACE.format("127.0.0.2", 7)) + "\n    gpu03: {groups: [engine], connection: local" + PLACE.format("127.0.0.2", 8) + "}",
        "/targets/hosts/gpu03/attend/address",
        "the address of gpu02 too",
    ),
    "another number of instances than two engine hosts have": (
        ONE,
        APART.format(attend=PLACE.format("127.0.0.2", 7)) + "\n    gpu03: {groups: [engine], connection: local" + PLACE.format("127.0.0.3", 7) + "}",
        "/plan/platform/layout/instances",
        "shared by 2",
    ),
    "ssh without an address": ("[storage], connection: local", "[storage], connection: ssh", "/targets/hosts/array01/address", "address"),
    "unknown host": ("host: array01}", "host: array09}", "/packing_list/0/host", "array09"),
    "password in clear": ("  rack: lab", "  rack: lab\n  array: {ssh_password: hunter22}", "/targets/array/ssh_password", "credential"),
    "password in an address": ("  rack: lab", "  rack: lab\n  array: {url: 'https://admin:hunter22@array01'}", "/targets/array/url", "credential"),
    "nobody to approve": ("title: 交付负责人, roles: [approver]", "title: 交付负责人, roles: [viewer]", "/engagement/people/vendor", "approver"),
    "an administrator by file": ("roles: [approver]", "roles: [admin]", "/engagement/people/vendor/1/roles/0", "admin"),
    "login twice": ("login: zhao.lei", "login: LI.WEI", "/engagement/people/customer/1/login", "already"),
    "plan field": ("plan:\n", "plan:\n  g3: {agreement_max: 7}\n", "/plan/g3/agreement_max", "7"),
    "simulated here, real there": ("rig: {simulated: true", "rig: {simulated: false", "/plan/rig/time_scale", "1"),
    "targets real, plan simulated": ("  simulated: true\n", "  simulated: false\n", "/plan/rig/simulated", "targets.simulated"),
    "a simulated rack as real": ("  simulated: true\n", "  simulated: false\n", "/targets/rack", "simulated rack"),
    "a simulated engine as real": ("  simulated: true\n", "  simulated: false\n", "/targets/engine/kind", "lab stands in"),
    "an engine that nobody imitates": ("    kind: lab ", "    dialect: sgl\n    kind: lab ", "/targets/engine/dialect", "only of kind lab"),
    "a key twice": ("order:\n", "order: {}\norder:\n", "", "twice"),
    "a key missing": ("connection: local}", "root: /tmp/x}", "/targets/hosts/gpu01/connection", "missing"),
    "a section's key missing": ("  simulated: true\n", "", "/targets/simulated", "missing"),
    "physics that nothing reads": ("{prefill_tokens_per_s:", "{prefil:", "/targets/engine/physics/prefil", "Known here: prefill_tokens_per_s"),
    "physics that is no number": ("decode_base_s: 0.00035", "decode_base_s: fast", "/targets/engine/physics/decode_base_s", "a number"),
    "a mistyped key": ("{kind: array, model: FX100, quantity:", "{kind: array, model: FX100, quantiy:", "/order/lines/0/quantiy", "mean `quantity`?"),
    "a key of an arm that nothing reads": ("read_bytes_per_s: 309", "read_byte_per_s: 309", "/targets/arms/baseline/read_byte_per_s", "unknown"),
    "an arm that no gate has": ("    recompute: {}", "    recomputed: {}", "/targets/arms/recomputed", "Known here: recompute"),
    "RDMA pairs that no step measures": ("  rack: lab", PAIRS.format(far="gpu01"), "/targets/rdma_bandwidth", "never be measured"),
    "RDMA between one host and itself": ("  rack: lab", PAIRS.format(far="array01"), "/targets/rdma_bandwidth/pairs/0/far_host", "one host"),
    "RDMA against a host that is not there": ("  rack: lab", PAIRS.format(far="gpu09"), "/targets/rdma_bandwidth/pairs/0/far_host", "gpu09"),
    "RDMA required and no pair": ("plan:\n", "plan:\n  evidence: {required: [rdma_bandwidth]}\n", "/plan/evidence/required", "names no pair"),
    "a quota that is no number": ("  rack: lab", "  rack: lab\n  disk_quota_bytes: 5 GB", "/targets/disk_quota_bytes", "a whole number"),
    "a quota beyond what is judged": ("  rack: lab", "  rack: lab\n  disk_quota_bytes: 200000000000", "/targets/disk_quota_bytes", "100000000000"),
    "a time to start with its unit": (
        "    kind: lab ",
        "    start_timeout_s: 10 min\n    kind: lab ",
        "/targets/engine/start_timeout_s",
        "seconds as a number",
    ),
    "a key of Ansible's own": ("  rack: lab", "  rack: lab\n  facts: {__ansible_unsafe: x}", "/targets/facts/__ansible_unsafe", "Ansible's own"),
    "a day that no calendar has": ("plan:\n", "plan:\n  calendar: {start: 2026-02-30}\n", "/plan/calendar/start", "2026-02-30"),
    "another quantity than the lines": ("  quantity: 1\n", "  quantity: 2\n", "/order/quantity", "the lines name 1"),
    "another model than the lines": ("  model: FX100\n", "  model: FX200\n", "/order/quantity", "the lines name 0"),
    "a name that nobody sees": ("customer: 示例智算科技有限公司", 'customer: "\\u200b\\u3164"', "/engagement/customer", "1 to 200"),
    "no YAML": ("engagement:\n", "engagement: [\n", "", "line"),
    "code with spaces": ("code: DEMO", "code: my demo", "/engagement/code", "capital letters"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_wrong_file_is_refused_with_a_sentence_in_both_languages_that_names_the_field(case: str) -> None:
    old, new, pointer, word = CHANGES[case]
    assert old in DEMO
    with pytest.raises(BadInput) as caught:
        read_file(DEMO.replace(old, new, 1))
    found = next((e for e in caught.value.errors if e.pointer == pointer), None)
    assert found, [e.pointer for e in caught.value.errors]
    assert word in found.text("en")
    assert found.text("zh_CN") != found.text("en")
    said = str(caught.value) + "".join(e.text("zh_CN") for e in caught.value.errors)
    assert "hunter22" not in said


def test_a_load_generator_of_its_own_is_told_where_the_attendant_of_the_engines_host_listens(state: Path) -> None:
    file = read_file(DEMO.replace(ONE, APART.format(attend=PLACE.format("127.0.0.2", 18460)), 1))
    inventory = build(code="X", targets=file.targets, state_dir=state)
    assert inventory.members(ATTENDED) == ["gpu02"]
    assert inventory.hostvars["gpu02"]["qg_attend"] == {"address": "127.0.0.2", "port": 18460}
    assert build(code="X", targets=read_file(DEMO).targets, state_dir=state).members(ATTENDED) == []


def test_cells_are_measured_on_an_engine_host_that_another_host_drives() -> None:
    asks = DEMO.replace(ONE, APART.format(attend=PLACE.format("127.0.0.2", 18460)), 1).replace(
        "plan:\n", "plan:\n  workload: {cells: [checkpoint]}\n", 1
    )
    assert read_file(asks).plan.workload.cells == ("checkpoint",)


@pytest.mark.parametrize("locale", ["en", "zh_CN"])
def test_the_sample_of_a_new_engagement_is_refused_with_each_value_that_is_still_to_be_filled_in_and_with_nothing_else(locale: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_file(starter(locale))
    said = {e.pointer: e for e in caught.value.errors}
    assert all("placeholder" in e.text("en") and "占位" in e.text("zh_CN") for e in said.values())
    places = starter(locale).partition("engagement:")[2].replace("<state folder>", "").replace("<状态目录>", "")
    assert len(said) == len(re.findall(r"<[^<>]+>", places)) > 20
    assert {"/packing_list/0/serial", "/targets/hosts/array01/host_key", "/engagement/customer", "/targets/engine/image"} <= set(said)
    assert re.search("[\u4e00-\u9fff]", starter(locale)) is None or locale != "en"


@pytest.mark.parametrize("value", ["ssh-ed25519 AAAA", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXAMPLEEXAMPLEEXAMPLE", "<key of gpu01>"])
def test_a_host_key_that_is_a_samples_is_refused(value: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_file(filled().replace(REAL["host_key"], value))
    assert {e.pointer for e in caught.value.errors} == {f"/targets/hosts/{name}/host_key" for name in ("gpu01", "array01")}


def test_the_example_of_real_hardware_is_refused_for_the_keys_and_digests_that_it_marks_and_for_nothing_else() -> None:
    with pytest.raises(BadInput) as caught:
        read_file((ROOT / "playbooks/inventories/example/engagement.yaml").read_text(encoding="utf-8"))
    keys = {f"/targets/hosts/{name}/host_key" for name in ("gpu01", "array01")}
    assert keys < {e.pointer for e in caught.value.errors} <= keys | {"/targets/engine/image", "/targets/engine/image_id"}


def test_angle_brackets_within_a_value_are_no_placeholder() -> None:
    assert read_file(DEMO.replace("示例智算科技有限公司", "A <B> C")).customer == "A <B> C"


def test_vllm_on_a_cpu_is_no_real_target_and_vllm_itself_is() -> None:
    real = filled().replace("kind: vllm,", "kind: vllm_cpu,")
    with pytest.raises(BadInput) as caught:
        read_file(real)
    assert [e.pointer for e in caught.value.errors] == ["/targets/engine/kind"]
    as_simulated = real.replace("simulated: false", "simulated: true").replace("plan: {}", "plan: {rig: {simulated: true}}")
    assert read_file(as_simulated).targets["engine"]["kind"] == "vllm_cpu"


@pytest.mark.parametrize("locale", ["en", "zh_CN"])
def test_the_text_that_a_new_engagement_begins_with_is_once_filled_in_a_valid_file_of_a_real_engine(locale: str) -> None:
    file = read_file(filled(locale))
    assert (file.targets["simulated"], file.targets["engine"]["kind"]) == (False, "vllm")
    assert {host["credential"] for host in file.targets["hosts"].values()} == {"ssh-gpu01", "ssh-array01"}


def test_the_key_that_a_host_names_is_the_file_of_that_name_below_the_state_folder(state: Path) -> None:
    for name in ("ssh-gpu01", "ssh-array01"):
        (state / "credentials").mkdir(mode=0o700, exist_ok=True)
        (state / "credentials" / name).write_text("a key")
        (state / "credentials" / name).chmod(0o600)
    inventory = build(code="X", targets=read_file(filled()).targets, state_dir=state)
    assert inventory.hostvars["gpu01"]["ansible_ssh_private_key_file"] == str(state / "credentials" / "ssh-gpu01")


def test_nothing_is_kept_of_a_wrong_file(cast: Cast) -> None:
    with write_session() as s, pytest.raises(BadInput):
        create_engagement(s, text=DEMO.replace("quantity: 4", "quantity: four"), actor=cast.li_wei)
    with read_session() as s:
        assert board(s, actor=cast.li_wei) == []


def test_rates_and_counts_of_tokens_are_no_secrets_and_stay_numbers() -> None:
    assert "kv_bytes_per_token" in DEMO
    assert read_file(DEMO).targets["engine"]["physics"] == yaml.safe_load(DEMO)["targets"]["engine"]["physics"]


def test_a_number_that_no_json_could_show_again_is_refused() -> None:
    with pytest.raises(BadInput) as caught:
        read_file(DEMO.replace("port: 18461", "port: 1.0e+390"))
    assert [e.pointer for e in caught.value.errors] == ["/targets/engine"]
    assert "1.7e308" in caught.value.errors[0].text("zh_CN")


def test_a_small_file_that_unfolds_without_end_is_refused() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
    with pytest.raises(BadInput) as caught:
        read_file(bomb)
    assert "unfolds to more than" in caught.value.text("en")


def test_a_code_is_used_once(cast: Cast) -> None:
    with write_session() as s:
        engage(s, cast, sealed=False)
    with write_session() as s, pytest.raises(BadInput) as caught:
        engage(s, cast, sealed=False)
    assert caught.value.errors[0].pointer == "/engagement/code"


def test_the_plan_of_the_file_is_what_plan_check_shows(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast, sealed=False)
        view = overview(s, engagement_id=engagement.id, actor=cast.viewer)
    expected = parse_plan(yaml.safe_load(DEMO)["plan"])
    assert view["plan"]["hash"] == expected.hash
    assert view["plan"]["data"] == expected.data
    assert view["plan"]["sealed_at"] is None


def test_a_customer_sees_the_engagements_that_name_them_and_no_others_and_ids_tell_nothing(cast: Cast) -> None:
    stranger = replace(cast.zhao_lei, login="another.customer", user_id="x")
    with write_session() as s:
        engagement = engage(s, cast)
    with read_session() as s:
        for actor in (cast.li_wei, cast.wang_fang, cast.zhao_lei, cast.admin, cast.viewer):
            assert [e["code"] for e in board(s, actor=actor)] == ["DEMO"]
        assert board(s, actor=stranger) == []
        answers = set()
        for engagement_id in (engagement.id, "no-such-id"):
            with pytest.raises(NotFound) as caught:
                overview(s, engagement_id=engagement_id, actor=stranger)
            answers.add((caught.value.code, caught.value.text("en").replace(engagement_id, "ID")))
    assert len(answers) == 1


def test_a_viewer_and_an_approver_cannot_create_one(cast: Cast) -> None:
    for actor in (cast.viewer, cast.chen_jing):
        with write_session() as s, pytest.raises(Forbidden):
            create_engagement(s, text=DEMO, actor=actor)


def test_the_board_shows_four_gates_and_the_one_next_action_for_each_person(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        mine, theirs = board(s, actor=cast.li_wei)[0], board(s, actor=cast.wang_fang)[0]
    assert [(g["gate"], g["state"], g["attempts_left"]) for g in mine["gates"]] == [
        ("G1", "ready", 3),
        ("G2", "locked", 3),
        ("G3", "locked", 2),
        ("G4", "locked", 2),
    ]
    assert mine["gates"][1]["blocked_by"]["code"] == "earlier_gate_open"
    assert (mine["next"]["kind"], mine["next"]["gate"], mine["next"]["enabled"], mine["next"]["why_not"]) == ("start", "G1", True, None)
    assert theirs["next"]["enabled"] is False
    assert theirs["next"]["why_not"]["zh-CN"]
    with write_session() as s:
        run(s, cast, s.get(Engagement, engagement.id), "G1", "fail")
        item = board(s, actor=cast.li_wei)[0]
    assert (item["gates"][0]["state"], item["gates"][0]["verdict"], item["gates"][0]["attempts_left"]) == ("rectify", "fail", 2)
    assert item["gates"][1]["blocked_by"]["code"] == "rectify_first"


def test_the_overview_is_plain_json_and_every_change_stands_in_the_audit_chain(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        run(s, cast, engagement, "G1")
        view = overview(s, engagement_id=engagement.id, actor=cast.wang_fang)
        check = verify(s)
    assert json.loads(json.dumps(view)) == view
    assert check.ok
    assert check.rows >= 8
    assert view["calendar"]["weeks"] == 10
    assert view["attempts"][0]["report_ids"]["zh-CN"]


def test_the_calendar_has_dates_when_the_plan_names_a_start(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast, DEMO.replace("plan:\n", 'plan:\n  calendar: {start: "2026-12-01"}\n'), sealed=False)
        dates = overview(s, engagement_id=engagement.id, actor=cast.li_wei)["calendar"]["gates"]
    assert [(d["from"], d["to"]) for d in dates] == [
        ("2026-12-01", "2026-12-14"),
        ("2026-12-15", "2026-12-28"),
        ("2026-12-29", "2027-01-25"),
        ("2027-01-26", "2027-02-08"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("  - {kind: drive, model: QF-N7680, serial: QF26K0A00103, host: array01}\n", "", "QF-N7680: 4 ordered, 3 packed"),
        ("QF-N7680, serial: QF26K0A00103", "QF-N3840, serial: QF26K0A00103", "QF-N3840 (QF26K0A00103) is packed but was not ordered"),
        ("serial: QF26K0A00103,", "serial: QF26K0A00103, firmware: OLD1,", "firmware OLD1 for QF26K0A00103"),
        ("packing_list:\n", "packing_list:\n  - {kind: cable, model: DAC, quantity: 4}\n", "DAC is packed but was not ordered"),
        ("  lines:\n", "  lines:\n    - {kind: cable, model: DAC, quantity: 4}\n", "DAC: 4 ordered, 0 packed"),
    ],
)
def test_what_order_and_packing_list_disagree_on_is_said_before_and_after_an_engagement_is_made_of_them(
    cast: Cast, old: str, new: str, said: str
) -> None:
    assert old in DEMO
    text = DEMO.replace(old, new, 1)
    warned = warning_of(text, cast.li_wei)
    assert warned
    assert said in warned.en
    with write_session() as s:
        made = create_engagement(s, text=text, actor=cast.li_wei)
        seen = overview(s, engagement_id=made.id, actor=cast.li_wei)
    assert seen["packing_warning"] == warned.json()


def test_an_order_that_its_packing_list_fulfils_is_created_without_a_word(cast: Cast) -> None:
    assert warning_of(DEMO, cast.li_wei) is None
    with write_session() as s:
        made = create_engagement(s, text=DEMO, actor=cast.li_wei)
        assert overview(s, engagement_id=made.id, actor=cast.li_wei)["packing_warning"] is None
