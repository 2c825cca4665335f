"""The plan's section `g1`: what arrival acceptance holds parts, links and hosts against."""

# ruff: noqa: RUF009 - `of` and `section` are dataclasses.field with a specification
from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from gates.schema import Choice, Exact, Items, Maybe, Measure, Section, Whole, Words, later, of, section
from gates.units import Quantity

_ONE = Decimal(1)
_RATIO = Exact(Decimal(0), _ONE)
_OPEN_RATIO = Exact(Decimal(0), _ONE, open_low=True)
_COUNT = Whole(0, 10**9)
_NO_SPACE = Words(r"[^\s]{1,120}", "one parameter without spaces", "不含空格的单个参数")
_GOVERNOR = Words(r"[a-z_]{1,30}", "a governor of the kernel, e.g. performance", "内核调频策略名，如 performance")


@dataclass(frozen=True)
class Drive:
    """Health of a drive at arrival."""

    media_errors_max: int = of(_COUNT)
    critical_warning_max: int = of(Whole(0, 255))
    power_on_hours_max: Quantity = of(Measure("time"))
    percentage_used_max: Quantity = of(Measure("percent", high=Decimal(255)))
    available_spare_min: Quantity = of(Measure("percent", high=Decimal(100)))
    # What a new drive has behind it: its factory's tests. These inform unless evidence.required names drive_wear.
    writes_max: Decimal = later(Exact(Decimal(0), Decimal(10**4)), Decimal(1))  # bytes written / capacity
    unsafe_shutdowns_max: int = later(_COUNT, 20)
    temperature_max: Quantity = later(Measure("temperature", Decimal(274), Decimal(400)), Quantity(Decimal(70), "degC"))


@dataclass(frozen=True)
class HostTuning:
    """How the hosts run: informs unless evidence.required names host_tuning."""

    governor: str = later(_GOVERNOR, "performance")
    cmdline: tuple[str, ...] = later(Items(_NO_SPACE), ())  # parameters that must stand there, e.g. iommu=pt


@dataclass(frozen=True)
class Pcie:
    """PCIe links of drives and adapters."""

    width: str = of(Choice(("rated",)))
    speed: str = of(Choice(("rated",)))
    read_under: str = of(Choice(("load", "idle")))


@dataclass(frozen=True)
class Link:
    """The storage network's ports."""

    speed: str = of(Choice(("rated",)))
    mtu_min: Quantity = of(Measure("bytes", low=Decimal(256), high=Decimal(65536)))
    net_mtu_min: Quantity = of(Measure("bytes", low=Decimal(576), high=Decimal(65536)))
    state: str = of(Choice(("active",)))
    pfc_priority: int = of(Whole(0, 7))
    trust: str = of(Choice(("dscp", "pcp")))
    rdma_share_min: Decimal = of(_OPEN_RATIO)
    dscp: tuple[int, ...] = later(Items(Whole(0, 63)), ())  # code points that must be mapped to pfc_priority; none: not asked


@dataclass(frozen=True)
class Fabric:
    """The NVMe-oF paths from an engine host to the array; null: not asked."""

    transport: str | None = later(Maybe(Choice(("rdma", "tcp"))), None)
    paths: int | None = later(Maybe(Whole(1, 64)), None)  # live ones, of each subsystem


@dataclass(frozen=True)
class G1:
    """Arrival acceptance."""

    order: str = of(Words())
    drive: Drive = section(Drive)
    pcie: Pcie = section(Pcie)
    link: Link = section(Link)
    drive_spread_max: Decimal = of(_RATIO)
    gpu_stress_spread_max: Decimal = of(_RATIO)
    receivers_min: int = of(Whole(1, 10))
    host: HostTuning = later(Section(HostTuning), HostTuning("performance", ()))
    fabric: Fabric = later(Section(Fabric), Fabric(None, None))  # of paths that are connected at arrival already
