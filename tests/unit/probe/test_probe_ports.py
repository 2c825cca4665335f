"""What the storage ports count: pauses by priority in microseconds, errors of the link, of the ports that matter, and nothing where nobody tells."""

import stat

import pytest
from probe.fatal_sources import ask
from probe.port_counters import of, rdma_ports

from tests.unit.rack.simulate import rack, rack_for, run_tool

MLX5 = """NIC statistics:
     rx_packets: 1845201
     rx_prio3_pause: 812
     rx_prio3_pause_duration: 20300
     rx_prio3_pause_transition: 406
     tx_prio3_pause: 4
     tx_prio3_pause_duration: 90
     rx_global_pause_duration: 0
     tx_pause_storm_error_events: 0
     rx_crc_errors_phy: 2
     rx_buffer_passed_thres_phy: 9
     rx_corrected_bits_phy: 153303800
     rx_err_lane_0_phy: 74171021
     rx_err_lane_1_phy: 79132779
     rx_err_lane_overflow: 1
"""
BNXT = """NIC statistics:
     pfc_pri3_rx_duration_us: 17
     pfc_pri3_tx_duration_us: 0
     rx_pfc_ena_frames_pri3: 5
"""


def answering(answers):
    return lambda argv: answers.get(" ".join(argv), "")


def test_each_drivers_names_become_one_and_a_port_that_counts_neither_time_nor_errors_has_no_row():
    run = answering(
        {
            "ethtool -S a": MLX5,
            "ethtool a": "Settings for a:\n\tSpeed: 100000Mb/s\n",
            "ethtool -S b": BNXT,
            "ethtool -S c": "NIC statistics:\n     rx_prio3_pause: 8\n",
        }
    )
    assert of(run, ["a", "b", "c", "gone"]) == {
        "a": {
            "pauses_us": {"rx_prio3": 20300, "tx_prio3": 90, "rx_global": 0},
            "errors": {"rx_crc_errors_phy": 2},
            "corrected": {"rx_corrected_bits_phy": 153303800, "rx_err_lane_0_phy": 74171021, "rx_err_lane_1_phy": 79132779},
            "bit_per_s": 100_000_000_000,
        },
        "b": {"pauses_us": {"rx_prio3": 17, "tx_prio3": 0}, "errors": {}, "corrected": {}},
    }


def test_a_port_that_is_down_has_corrected_bits_and_no_speed():
    run = answering({"ethtool -S a": "     rx_corrected_bits_phy: 3\n", "ethtool a": "Settings for a:\n\tSpeed: Unknown!\n"})
    assert of(run, ["a"]) == {"a": {"pauses_us": {}, "errors": {}, "corrected": {"rx_corrected_bits_phy": 3}}}


@pytest.mark.parametrize(
    ("said", "ports"),
    [
        ('[{"ifname": "mlx5_0", "netdev": "ens8"}, {"ifname": "mlx5_1", "netdev": "ens3"}]', ["ens3", "ens8"]),
        ('[{"ifname": "mlx5_0"}, 7, null]', []),
        ('{"netdev": "ens8"}', []),
        ("link mlx5_0/1 state ACTIVE", []),
        ("", []),
    ],
)
def test_the_ports_are_those_behind_rdma_devices(said, ports):
    assert rdma_ports(answering({"rdma -j link show": said})) == ports


def test_the_rack_answers_for_its_server_as_an_adapter_does():
    seen = rack_for(rack(), "gpu01", ["engine"])

    def run(argv):
        return run_tool(argv, seen)[0]

    assert rdma_ports(run) == ["ens3f0np0"]
    port = of(run, ["ens3f0np0"])["ens3f0np0"]
    assert len(port["errors"]) == 7
    assert port["bit_per_s"] == 100_000_000_000
    assert len(port["corrected"]) == 5
    told = port["pauses_us"]
    assert set(told) == {f"{way}_{what}" for way in ("rx", "tx") for what in (*(f"prio{n}" for n in range(8)), "global")}
    assert {name for name, us in told.items() if us} == {"rx_prio3", "tx_prio3"}


def test_a_folder_that_stands_first_is_looked_in_first(tmp_path):
    program = tmp_path / "uname"
    program.write_text("#!/bin/sh\necho rack\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert ask(["uname"], [str(tmp_path)]) == "rack\n"
    assert ask(["uname"]) not in ("", "rack\n")
