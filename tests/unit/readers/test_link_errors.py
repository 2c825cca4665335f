"""Bit errors of links, in the unit that each counter counts."""

from __future__ import annotations

from gates.readers.registry import read
from tests.unit.readers.test_fixtures import FIXTURES


def test_bit_errors_of_links_are_bits_blocks_and_symbols_and_data_is_in_bytes():
    fec = read("ethtool-fec", (FIXTURES / "ethtool-fec" / "good-lanes.txt").read_bytes())
    told = {(o.quantity, o.labels.get("lane")): (str(o.value), o.unit) for o in fec.observations}
    assert told == {
        ("fec.active", None): ("BaseR", "text"),
        ("fec.corrected_blocks", ""): ("256", "block"),
        ("fec.corrected_blocks", "0"): ("255", "block"),
        ("fec.corrected_blocks", "1"): ("1", "block"),
        ("fec.uncorrectable_blocks", ""): ("145", "block"),
        ("fec.uncorrectable_blocks", "0"): ("128", "block"),
        ("fec.uncorrectable_blocks", "1"): ("17", "block"),
        ("fec.corrected_bits", ""): ("301", "bit"),
    }
    names = ("rx_corrected_bits_phy", "rx_err_lane_3_phy", "rx_pcs_symbol_err_phy", "rx_prio3_pause_duration", "a")
    said = "NIC statistics:\n" + "".join(f"     {name}: 9\n" for name in names)
    assert [o.unit for o in read("ethtool-stats", said.encode()).observations] == ["bit", "bit", "symbol", "us", "1"]
    kernel = read("ib-counters", (FIXTURES / "ib-counters" / "good-mlx5.txt").read_bytes())
    query = read("perfquery", (FIXTURES / "perfquery" / "good-edr.txt").read_bytes())
    units = {o.labels["name"]: (int(o.value), o.unit) for o in kernel.observations}
    assert (units["symbol_error"], units["port_rcv_data"], units["link_downed"]) == ((3, "symbol"), (4 * 4128768, "B"), (0, "1"))
    units = {o.labels["name"]: (int(o.value), o.unit) for o in query.observations}
    assert (units["symbol_error"], units["port_rcv_data"], units["link_error_recovery"]) == ((0, "symbol"), (4 * 2062, "B"), (2, "1"))
