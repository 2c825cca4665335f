"""Bit errors of the links at arrival: what FEC could not correct is a fault, what it corrected is told, what nobody counts is said."""

from __future__ import annotations

import pytest

from gates.g1_arrival import judge
from gates.model import Severity, Verdict
from tests.unit.gates.test_g1_more import SURVEY, check, judged
from tests.unit.rack.simulate import bundle_of, demo_plan, evidence

FEC = "ethtool-fec.ens8f0np0.out"


@pytest.mark.parametrize(
    ("file", "old", "new", "verdict", "says"),
    [
        (FEC, b"FEC", b"FEC", "pass", "No port"),
        (FEC, b"uncorrectable_blocks: 0", b"uncorrectable_blocks: 2", "fail", "did not correct uncorrectable_blocks 2"),
        ("ib-counters.out", b"symbol_error:0", b"symbol_error:4", "fail", "symbol_error 4"),
        ("ethtool-stats.ens8f0np0.out", b"rx_pcs_symbol_err_phy: 0", b"rx_pcs_symbol_err_phy: 1", "fail", "rx_pcs_symbol_err_phy 1"),
        (FEC, b"Active FEC encoding: RS\n", b"", "inconclusive", "Active FEC encoding"),
        ("ethtool-stats.ens8f0np0.out", b"rx_corrected_bits_phy", b"rx_corrected_bits_other", "pass", "No port"),  # then blocks are told
    ],
)
def test_what_fec_did_not_correct_fails_where_the_plan_requires_it_and_informs_elsewhere(whole, file, old, new, verdict, says):
    assert old in whole[SURVEY + file]
    files = {**whole, SURVEY + file: whole[SURVEY + file].replace(old, new)}
    required = next(c for c in judge(demo_plan(evidence={"required": ["link_fec"]}), bundle_of(files, demo_plan())).checks if c.id == "g1.link.fec")
    assert (required.verdict, required.severity) == (Verdict(verdict), Severity.BLOCKING)
    assert says in required.reason.en
    assert check(judged(files), "g1.link.fec").severity is Severity.ADVISORY


def test_a_port_that_says_nothing_of_fec_is_said_and_a_bad_lane_is_named(whole):
    silent = whole[SURVEY + FEC].split(b"Statistics")[0]
    stats = b"\n".join(line for line in whole[SURVEY + "ethtool-stats.ens8f0np0.out"].split(b"\n") if b"corrected_bits" not in line)
    files = {**whole, SURVEY + FEC: silent, SURVEY + "ethtool-stats.ens8f0np0.out": stats}
    result = check(judged(files), "g1.link.fec")
    assert (result.verdict, "what FEC RS corrected is not told" in result.reason.en) == (Verdict.INCONCLUSIVE, True)
    result = check(judged(evidence({"bit-errors": 3})), "g1.link.fec")
    assert (result.verdict, result.severity, "most on lane 1" in result.reason.en) == (Verdict.FAIL, Severity.ADVISORY, True)
    assert "通道 1 最多" in result.reason.zh
