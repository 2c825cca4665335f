"""The four gates by name. Each stands as one frozen GATE in its own module."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gates import g1_arrival, g2_baseline, g3_main, g4_soak
from gates.model import GateSpec

GATES: Mapping[str, GateSpec] = MappingProxyType({spec.id: spec for spec in (g1_arrival.GATE, g2_baseline.GATE, g3_main.GATE, g4_soak.GATE)})
