"""Values that a tool writes when it knows nothing, and values that no hardware can have: both are problems, never observations.

Sentinels are the largest numbers of 32 and 64 bits and the blanks just below them, which drivers and management libraries use for "not
supported". Ceilings are set far above what exists, so that only a wrong unit, a page cache or a broken field can pass them: what is
likely is judged by the checks, against the rated values of the very part.
"""

from __future__ import annotations

from decimal import Decimal
from types import MappingProxyType

from gates.text import Text

# (low, high): both ends are themselves sentinels. 2**31 and 2**63 with the 16 values below are the blanks of GPU management libraries.
SENTINELS = ((2**31 - 17, 2**31), (2**32 - 1, 2**32 - 1), (2**63 - 17, 2**63), (2**64 - 1, 2**64 - 1), (2**128 - 1, 2**128 - 1))
# Quantities that are sizes or rates in the smallest unit: there a power of two is an ordinary value.
_SIZES = frozenset(("B", "B/s", "bit/s"))

# quantity -> (unit, lowest, highest). Temperatures: what electronics survives. 800 Gbit/s ports, in pairs. PCIe 7.0 x32.
RANGES: MappingProxyType[str, tuple[str, Decimal, Decimal]] = MappingProxyType(
    {
        "health.temperature": ("K", Decimal(230), Decimal(400)),
        "gpu.temperature": ("K", Decimal(230), Decimal(400)),
        "optics.temperature": ("K", Decimal(230), Decimal(400)),
        "health.available_spare": ("%", Decimal(0), Decimal(100)),
        "health.percentage_used": ("%", Decimal(0), Decimal(255)),
        "health.power_on_hours": ("h", Decimal(0), Decimal(300_000)),
        "selftest.power_on_hours": ("h", Decimal(0), Decimal(300_000)),
        "io.bandwidth": ("B/s", Decimal(0), Decimal(10) ** 12),
        "io.iops": ("1/s", Decimal(0), Decimal(10) ** 9),
        "perftest.bandwidth": ("bit/s", Decimal(0), Decimal(1_600) * 10**9),
        "net.speed": ("bit/s", Decimal(0), Decimal(1_600) * 10**9),
        "net.mtu": ("B", Decimal(0), Decimal(65_536)),
        "rdma.mtu_active": ("B", Decimal(256), Decimal(65_536)),
        "pci.speed": ("GT/s", Decimal(1), Decimal(128)),
        "pci.width": ("lanes", Decimal(0), Decimal(32)),
        "gpu.pcie_speed": ("GT/s", Decimal(0), Decimal(128)),
        "gpu.pcie_width": ("lanes", Decimal(0), Decimal(32)),
        "gpu.power": ("W", Decimal(0), Decimal(10_000)),
        "gpu.usage": ("%", Decimal(0), Decimal(100)),
        "optics.voltage": ("V", Decimal(0), Decimal(60)),
        "memory.size": ("B", Decimal(0), Decimal(2) ** 44),
        # One run of a benchmark client. No token comes over a socket within 10 us; no run waits a day for its first or lasts a month.
        "ttft.p50": ("ms", Decimal("0.01"), Decimal(86_400_000)),
        "ttft.mean": ("ms", Decimal(0), Decimal(86_400_000)),
        "ttft.p99": ("ms", Decimal(0), Decimal(86_400_000)),
        "benchmark.duration": ("s", Decimal("0.001"), Decimal(30 * 86_400)),
        "output_tokens.rate": ("1/s", Decimal(0), Decimal(10) ** 9),
        **{f"requests.{name}": ("1", Decimal(0), Decimal(10) ** 9) for name in ("asked", "ok", "failed")},
        **{f"{way}_tokens.{name}": ("1", Decimal(0), Decimal(10) ** 15) for way in ("input", "output") for name in ("total", "min", "max")},
    }
)

_SENTINEL = Text(
    "{quantity} is {value} {unit} ({where}): the value that stands for not known.", "{quantity} 为 {value} {unit}（{where}）：该数值表示未知。"
)
_RANGE = Text(
    "{quantity} is {value} {unit} ({where}): nothing can have that value, so its unit or its source is doubtful.",
    "{quantity} 为 {value} {unit}（{where}）：不可能出现的数值，单位或来源存疑。",
)
_UNIT = Text(
    "{quantity} is {value} ({where}) without its unit, or in another one: {unit}.", "{quantity} 为 {value}（{where}），缺少单位或单位不符：{unit}。"
)


def doubt(quantity: str, value: Decimal | str, unit: str) -> tuple[str, Text] | None:
    """Return (code, sentence) when an observation must not be used, else None."""
    if not unit:
        return "unknown_unit", _UNIT
    if isinstance(value, str):
        return None
    if value < 0:  # temperatures are in kelvin, optical power in mW: nothing that is read here can be below zero
        return "impossible_value", _RANGE
    allowed = RANGES.get(quantity)
    if allowed is not None and unit != allowed[0]:
        return "unknown_unit", _UNIT
    if unit not in _SIZES and any(low <= value <= high for low, high in SENTINELS):
        return "sentinel_value", _SENTINEL
    if unit in _SIZES and value >= 2**63 - 17:
        return "sentinel_value", _SENTINEL
    if allowed is not None and not allowed[1] <= value <= allowed[2]:
        return "impossible_value", _RANGE
    return None
