"""A whole engagement whose load generator is a host of its own: the four gates, through the service."""

from __future__ import annotations

from tests.ports import free_port

APART = {
    "gpu01": {"groups": ["engine"], "connection": "local"},
    "load01": {"groups": ["loadgen"], "connection": "local"},
}


def test_an_engagement_of_a_load_generator_and_an_engine_host_passes_its_four_gates(demo):
    place = {"attend": {"address": "127.0.0.2", "port": free_port()}}
    summary = demo(hosts={**APART, "gpu01": {**APART["gpu01"], **place}})
    assert {gate: row["verdict"] for gate, row in summary["gates"].items()} == dict.fromkeys(("G1", "G2", "G3", "G4"), "pass"), summary["gates"]
