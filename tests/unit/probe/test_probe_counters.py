"""Counters that must not grow: every source that a real host has, nothing stale, and no soak without a source."""

import json
import os
import sys
import time

import pytest
from probe import fatal
from probe.errors import ProbeError, Refused
from probe.fatal import Watch
from probe.fatal_sources import ask, of_ports
from probe.vitals import accelerators

from gates.plan import default_data, parse_plan
from gates.rules.standing import counters_left_out
from tests.unit.probe.kit import ROOT, build, probe, write

sys.path.insert(0, str(ROOT / "playbooks" / "filter_plugins"))
from fatal_counters import counters_order

ALL = default_data()["g4"]["fatal_counters"]
STATISTICS = """NIC statistics:
     rx_prio3_pause: 812
     tx_pause_ctrl_phy: 7
     tx_pause_storm_warning_events: 0
     tx_pause_storm_error_events: {n}
"""


class Host:
    """A host with two drives, one of them by two paths, a card, a memory controller, a port: as files and as answers of programs."""

    def __init__(self, folder):
        self.sysfs, self.answers, self.asked = folder / "sys", {}, []
        for path, text in {
            "devices/system/edac/mc/mc0/ue_count": "0\n",
            "bus/pci/devices/0000:01:00.0/aer_dev_fatal": "Undefined 0\nTOTAL_ERR_FATAL 0\n",
            "bus/pci/devices/0000:01:00.0/aer_dev_nonfatal": "TOTAL_ERR_NONFATAL 2\n",
            "class/infiniband/mlx5_0/ports/1/counters/link_downed": "1\n",
            "class/net/ens8f0np0/device/vendor": "0x15b3\n",
            "class/drm/card0/device/mem_info_vram_total": "1024\n",
            "class/drm/card0/device/ras/umc_err_count": "ue: 0\nce: 5\nde: 3\n",
            "class/drm/card0/device/ras/gfx_err_count": "ue: 0\nce: 0\n",
            "class/nvme/nvme0/subsysnqn": "nqn.local\n",
            "class/nvme/nvme1/subsysnqn": "nqn.array\n",
            "class/nvme/nvme2/subsysnqn": "nqn.array\n",
        }.items():
            self.write(path, text)
        for n in range(3):
            self.drive(n, 4)
        self.answers["ethtool -S ens8f0np0"] = STATISTICS.replace("{n}", "0")

    def write(self, path, text):
        (self.sysfs / path).parent.mkdir(parents=True, exist_ok=True)
        (self.sysfs / path).write_text(text)

    def drive(self, n, media_errors, **more):
        log = {"critical_warning": 0, "media_errors": media_errors, "temperature": 310, **more}
        self.answers[f"nvme smart-log /dev/nvme{n} -o json"] = json.dumps(log)

    def run(self, argv):
        self.asked.append(argv[0])
        return self.answers.get(" ".join(argv), "")

    def watch(self, wanted=ALL, array=None, ports=None):
        return Watch(wanted, array, ports, run=self.run, sysfs=str(self.sysfs))


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_a_real_host_has_a_source_of_every_fatal_counter_of_the_default_plan(host):
    watch = host.watch()
    watch.require("gpu01")
    assert watch.values() == {
        "ecc_uncorrected": 0,
        "ecc_deferred": 3,
        "aer_fatal": 0,
        "aer_nonfatal": 2,
        "nvme_media_errors": 8,  # two paths lead to one subsystem with one log
        "nvme_critical_warning": 0,
        "link_down_events": 1,
        "pfc_storm_events": 0,
    }
    assert accelerators(str(host.sysfs))["card0"]["ecc_deferred"] == 3


def test_what_mends_itself_is_counted_where_the_kernel_counts_it(host):
    for path, text in {
        "devices/system/edac/mc/mc0/ce_count": "3\n",
        "bus/pci/devices/0000:01:00.0/aer_dev_correctable": "RxErr 1\nTOTAL_ERR_COR 4\n",
        "class/drm/card0/device/pcie_replay_count": "7\n",
        "class/infiniband/mlx5_0/ports/1/hw_counters/local_ack_timeout_err": "2\n",
        "class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence": "5\n",
    }.items():
        host.write(path, text)
    host.drive(0, 4, num_err_log_entries=6, percent_used=1, warning_temp_time=0)
    host.drive(1, 4, num_err_log_entries="2")
    found = {"ecc_corrected": 3, "aer_correctable": 4, "pcie_replays": 7, "rdma_ack_timeouts": 2, "rdma_out_of_sequence": 5}
    found |= {"nvme_error_entries": 8, "nvme_percentage_used": 1, "nvme_warning_minutes": 0}
    watch = host.watch()
    watch.require("gpu01")
    assert watch.values().items() >= found.items()  # whether or not the plan names it
    watch = host.watch([*ALL, *found])
    watch.require("gpu01")


def test_growth_of_any_part_is_growth_of_the_counter(host):
    watch = host.watch()
    watch.require("gpu01")
    host.drive(2, 5)
    host.drive(0, 4, critical_warning=4)
    host.answers["ethtool -S ens8f0np0"] = STATISTICS.replace("{n}", "2")
    watch.ask_slow()
    now = watch.values()
    assert (now["nvme_media_errors"], now["nvme_critical_warning"], now["pfc_storm_events"]) == (9, 4, 2)


def test_what_was_told_too_long_ago_is_absent_and_what_is_read_now_is_there(host, monkeypatch):
    watch = host.watch()
    watch.require("gpu01")
    monkeypatch.setattr(fatal, "FRESH_S", -1.0)
    assert set(watch.values()) == {"aer_fatal", "aer_nonfatal", "link_down_events"}  # memory errors are the card's too


def test_a_drive_that_does_not_answer_never_makes_the_sum_smaller(host, monkeypatch):
    watch = host.watch()
    watch.require("gpu01")
    del host.answers["nvme smart-log /dev/nvme0 -o json"]
    began = time.monotonic()
    watch.ask_slow()
    assert watch.values()["nvme_media_errors"] == 8  # once is no end: it may answer in a minute
    monkeypatch.setattr(fatal, "FRESH_S", began - time.monotonic())
    assert "nvme_media_errors" not in watch.values()


def test_one_path_of_two_that_is_down_takes_nothing_away(host):
    watch = host.watch()
    watch.require("gpu01")
    del host.answers["nvme smart-log /dev/nvme1 -o json"]
    watch.ask_slow()
    assert watch.values()["nvme_media_errors"] == 8


def test_a_part_that_disappears_makes_the_counter_absent(host):
    watch = host.watch()
    watch.require("gpu01")
    (host.sysfs / "bus/pci/devices/0000:01:00.0/aer_dev_fatal").unlink()
    assert "aer_fatal" not in watch.values()


def test_text_before_the_log_of_a_drive_is_no_source(host):
    host.answers["nvme smart-log /dev/nvme0 -o json"] = "NVMe status: warning\n{}"
    for n in (1, 2):
        host.answers[f"nvme smart-log /dev/nvme{n} -o json"] = json.dumps({"media_errors": "none"})
    with pytest.raises(Refused, match=r"gpu01 has no source of nvme_critical_warning, nvme_media_errors,"):
        host.watch().require("gpu01")


def test_a_counter_without_a_source_is_refused_with_its_name_the_host_and_the_way_out(host):
    host.answers.clear()
    with pytest.raises(Refused) as refused:
        host.watch().require("gpu01")
    sentence = str(refused.value)
    assert refused.value.kind == "no_counter"
    assert "gpu01 has no source of nvme_critical_warning, nvme_media_errors, pfc_storm_events" in sentence
    assert "targets.engine.array_stats" in sentence
    assert "both parties leave the counter out by a revision of the plan" in sentence


def test_only_what_the_plan_wants_is_asked(host):
    watch = host.watch(wanted=["aer_fatal"])
    watch.require("gpu01")
    assert (host.asked, watch.values()) == ([], {"aer_fatal": 0})


def test_the_array_s_own_statistics_count_with_the_host_s_and_are_absent_once_they_are_old(host, tmp_path):
    stats = write(tmp_path / "array.json", {"counters": {"nvme_media_errors": 100, "fans_failed": 0, "odd": "x"}})
    watch = host.watch([*ALL, "fans_failed"], str(stats))
    watch.require("gpu01")
    assert (watch.values()["nvme_media_errors"], watch.values()["fans_failed"]) == (108, 0)
    os.utime(stats, (time.time() - 1000, time.time() - 1000))
    assert not {"nvme_media_errors", "fans_failed"} & set(watch.values())
    with pytest.raises(Refused, match="fans_failed"):
        host.watch(["fans_failed"], str(stats)).require("gpu01")
    host.watch(["fans_failed"], str(tmp_path / "later.json")).require("gpu01", lacking_array_is_fine=True)


def test_pause_frames_are_how_a_lossless_network_works_and_no_storm(host):
    host.answers["ethtool -S ens8f0np0"] = "NIC statistics:\n     rx_prio3_pause: 812\n"
    assert of_ports(host.run, ["ens8f0np0"]) == {}


def test_pause_storms_and_the_bits_that_fec_corrected_are_told_by_port():
    said = "NIC statistics:\n     tx_pause_storm_error_events: 1\n     rx_corrected_bits_phy: 40\n     rx_corrected_bits_phy_x: 9\n"
    told = of_ports(lambda argv: said if argv[-1] == "a" else "     rx_corrected_bits_phy: 2\n", ["a", "b"])
    assert told == {"pfc_storm_events": {"a": 1}, "link_corrected_bits": {"a": 40, "b": 2}}


def test_a_program_that_is_not_there_or_fails_tells_nothing():
    assert ask(["no-such-program-of-ours"]) == ""
    assert ask(["false"]) == ""


def test_the_command_line_refuses_by_name_and_tells_what_it_found(tmp_path):
    pyz = build(tmp_path)
    array = write(tmp_path / "array.json", {"counters": {"fans_failed": 7}})
    spec = {"host": "gpu01", "wanted": ["fans_failed"], "array_stats": str(array)}
    assert probe(pyz, "counters", "--spec", write(tmp_path / "a", spec))["counters"] == {"fans_failed": 7}
    refused = probe(pyz, "counters", "--spec", write(tmp_path / "b", {**spec, "wanted": ["fans_failed", "not_known"]}), expect=3)
    assert "gpu01 has no source of not_known" in refused.stderr
    with pytest.raises(ProbeError, match="wanted"):
        fatal.check({})


def test_the_deployment_wants_the_plan_s_counters_of_a_real_engine_and_the_candidate_s_array():
    plan = parse_plan({}).data
    site = {
        "engine": {"kind": "vllm", "array_stats": {"array": "http://192.0.2.31/stats.json"}},
        "arms": {"candidate": {"mount_path": "array"}, "baseline": {"mount_path": "nfs"}},
        "fabric": {"interfaces": [{"netdev": "ens8f0np0", "device": "mlx5_0"}], "hosts": {"gpu02": {"interfaces": [{"netdev": "ens9"}]}}},
    }
    assert counters_order(site, plan, "gpu01") == {
        "host": "gpu01",
        "wanted": ALL,
        "array_stats": "http://192.0.2.31/stats.json",
        "ports": ["ens8f0np0"],
    }
    assert counters_order(site, plan, "gpu02")["ports"] == ["ens9"]
    assert counters_order({"engine": {"kind": "lab"}}, plan, "gpu01")["wanted"] == []
    with pytest.raises(ValueError, match="give it as"):
        counters_order({**site, "engine": {"kind": "vllm", "array_stats": "/x"}}, plan, "gpu01")


def test_a_counter_that_both_parties_left_out_is_printed_as_not_tested():
    assert counters_left_out(parse_plan({})) == ()
    kept = parse_plan({"g4": {"fatal_counters": ["aer_fatal"]}})
    assert [row["claim"] for row in counters_left_out(kept)] == [f"counter_{name}" for name in ALL if name != "aer_fatal"]


GPU = {
    "gpu": 0,
    "temperature": {"edge": "N/A", "hotspot": {"value": 61, "unit": "C"}, "mem": {"value": 55, "unit": "C"}},
    "power": {"throttle_status": "THROTTLED"},
    "throttle": {"ppt_accumulated": 9, "prochot_accumulated": 0, "socket_thermal_accumulated": "N/A", "hbm_thermal_accumulated": 4},
}
LIMITS = {"gpu": 0, "limit": {"slowdown_hotspot_temperature": {"value": 100, "unit": "C"}, "slowdown_vram_temperature": "105 \u00b0C"}}


def told(host, watch):
    seen = []
    watch.on_health = seen.append
    watch._tell_health()
    return seen[0] if seen else None


def test_each_drive_tells_its_health_by_its_serial_number_and_its_own_thresholds(host):
    for n, serial in enumerate(("S1", "S2", "S2")):
        host.write(f"class/nvme/nvme{n}/serial", serial + "  \n")
    host.drive(0, 4, avail_spare=100, spare_thresh=10, percent_used=1, warning_temp_time=0, thm_temp1_total_time="7")
    host.answers["nvme id-ctrl /dev/nvme0 -o json"] = json.dumps({"wctemp": 350, "cctemp": 358})
    host.answers["nvme id-ctrl /dev/nvme1 -o json"] = json.dumps({"wctemp": 0, "cctemp": 0})
    watch = host.watch()
    watch.require("gpu01")
    drives = told(host, watch)["drives"]
    assert sorted(drives) == ["S1", "S2"]  # two paths lead to one of them
    assert (drives["S1"]["warning_k"], drives["S1"]["critical_k"], drives["S1"]["temperature_k"], drives["S1"]["throttle1_s"]) == (350, 358, 310, 7)
    assert {"warning_k", "spare_percent"}.isdisjoint(drives["S2"])  # what a drive does not declare or tell is absent, not 0
    assert (drives["S2"]["device"], drives["S2"]["media_errors"]) == ("nvme1", 4)


def test_accelerators_tell_heat_and_what_throttled_them_whatever_release_their_tool_is_of(host):
    host.answers["amd-smi metric --json"] = json.dumps({"gpu_data": [GPU]})  # a release that does not know the shorter question
    host.answers["amd-smi static --limit --json"] = json.dumps([LIMITS])
    row = {"temperature_c": {"hotspot": 61, "mem": 55}, "slowdown_c": {"hotspot": 100, "mem": 105}, "throttled": True}
    assert told(host, host.watch([*ALL]))["gpus"] == {"0": {**row, "throttle": {"prochot": 0, "hbm_thermal": 4}}}
    del host.answers["amd-smi metric --json"]
    asked = "nvidia-smi --query-gpu=index,temperature.gpu," + ",".join(
        f"clocks_throttle_reasons.{reason}" for reason in ("hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown")
    )
    host.answers[f"{asked} --format=csv,noheader,nounits"] = "0, 66, Not Active, Active, Not Active\n1, [N/A], [N/A], [N/A], [N/A]\n"
    assert told(host, host.watch())["gpus"] == {"0": {"temperature_c": {"gpu": 66}, "throttled": True}}


def test_where_the_plan_wants_no_counter_no_part_is_asked_for_its_health(host):
    assert (told(host, host.watch(wanted=[])), host.asked) == (None, [])
