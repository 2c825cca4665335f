"""The plan's sections: each field with the one specification that reads, checks and writes it. Values stand in default-plan.yaml."""

# ruff: noqa: RUF009 - `of` and `section` are dataclasses.field with a specification
from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gates.plan_arrival import Fabric
from gates.plan_clients import PlannedClient
from gates.schema import Choice, Day, Exact, Items, Maybe, Measure, Section, Table, Whole, Words, YesNo, later, of, section
from gates.units import Quantity

GATES = ("G1", "G2", "G3", "G4")

# Differences that are the medium's own. Any other allowed key is software: it then needs the arm baseline_tuned (DESIGN 3).
MEDIUM_KEYS = ("mount_path", "device", "transport", "mount_options", "address", "model_dir")

# Claims that both parties may agree not to test. Cold, equal work and failures are not among them, and never will be.
MAY_BE_LEFT_OUT = (
    "external_hits",
    "device_bytes",
    "client_healthy",
    "calibration",
    "littles_law",
    "gain_explained",
    "placebo",
    "replay",
    "output_identity",
    "store_complete",
    "baselines_agree",
    "g2_agreement",
)
# Groups of checks whose evidence not every site can bring (gates/g1/declared_more.py, gates/g1/declared_arrival.py, gates/g2/declared.py).
EVIDENCE_GROUPS = (
    *("nvme_logs", "nvme_paths", "aer", "roce_gid", "pfc", "net_mtu", "port_counters", "optics", "rdma_bandwidth", "memory"),
    *("gpu_health", "gpu_firmware", "gpu_stress", "volume", "drive_wear", "kernel_log", "soak_kernel_log", "host_tuning", "pfc_watchdog", "link_fec"),
)
NEVER_LEFT_OUT = ("hbm_cold", "page_cache_cold", "engine_restarted_cold", "array_cold", "equal_work", "failures", "completeness")

_ONE = Decimal(1)
_RATIO = Exact(Decimal(0), _ONE)
_OPEN_RATIO = Exact(Decimal(0), _ONE, open_low=True)
_GAIN = Exact(Decimal(-1), Decimal(1000))
_TIME = Measure("time", open_low=True, high=Decimal(10 * 366 * 86400))  # ten years: what is longer is a typing error, and no calendar holds its end
_TIERS = Items(Whole(1, 4096), least=1)


def _gate(key: str) -> str:
    if key not in GATES:
        raise ValueError(key)
    return key


def _tier(key: str) -> int:
    number = int(key)
    if number < 1:
        raise ValueError(key)
    return number


def _name(key: str) -> str:
    if not key.isidentifier():
        raise ValueError(key)
    return key


def _by_gate(spec: Any) -> Any:
    return of(Table(_gate, "G1, G2, G3, G4", spec, required=GATES))


@dataclass(frozen=True)
class Header:
    """Which schema and revision this plan is, and which language prevails."""

    schema: int = of(Whole(1, 1))
    revision: int = of(Whole(0, 9999))
    language_prevailing: str = of(Choice(("zh-CN", "en")))


@dataclass(frozen=True)
class Calendar:
    """Weeks for each gate. Overrun is reported and never changes a verdict."""

    start: str | None = of(Maybe(Day()))
    weeks: dict[str, int] = _by_gate(Whole(1, 104))


@dataclass(frozen=True)
class Policy:
    """Attempts, what a fail does, sign-off."""

    attempts: dict[str, int] = _by_gate(Whole(1, 20))
    on_fail: dict[str, str] = _by_gate(Choice(("rectify", "stop")))
    objection_days: int = of(Whole(0, 365))
    sign_off: dict[str, str] = _by_gate(Choice(("recorded", "required")))


@dataclass(frozen=True)
class Decision:
    """How estimates meet limits (DESIGN 4.5 and 4.6)."""

    rule: str = of(Choice(("simple", "interval", "guarded")))
    comparison: str = of(Choice(("full", "rounded")))
    digits: int | None = of(Maybe(Whole(0, 6)))
    confidence: Decimal = of(Exact(Decimal("0.5"), Decimal("0.999"), open_low=True))
    pairs: int = of(Whole(1, 20))
    guard_r: Decimal = of(Exact(Decimal(0), Decimal(10)))
    seed: int = of(Whole(0, 2**53 - 1))


@dataclass(frozen=True)
class RequestsPerRun:
    """Requests of one tier in one run: the larger of both, a multiple of the concurrency."""

    min: int = of(Whole(20, 10**6))
    per_concurrency: int = of(Whole(1, 10**4))


@dataclass(frozen=True)
class Sampling:
    """Greedy and of fixed length: nothing else is comparable between arms."""

    temperature: int = of(Whole(0, 0))
    ignore_eos: bool = of(YesNo())


@dataclass(frozen=True)
class Workload:
    """What is asked of the engine, the same for every arm."""

    tiers: tuple[int, ...] = of(_TIERS)
    context_tokens: int = of(Whole(1, 10**7))
    suffix_tokens: int = of(Whole(1, 10**6))
    output_tokens: int = of(Whole(2, 10**6))
    requests_per_run: RequestsPerRun = section(RequestsPerRun)
    sampling: Sampling = section(Sampling)
    warmup_requests: int = of(Whole(1, 10**4))
    identity_repeats: int = of(Whole(1, 10**5))
    run_timeout: Quantity = of(_TIME)
    cells: tuple[str, ...] = later(Items(Choice(("checkpoint", "tier_read", "fio", "ib_write_bw", "model_load"))), ())
    clients: tuple[PlannedClient, ...] = later(Items(Section(PlannedClient)), ())

    def requests(self, tier: int) -> int:
        """Return the measured requests of one tier in one run: max(min, per_concurrency x tier), rounded up to a multiple of the tier."""
        wanted = max(self.requests_per_run.min, self.requests_per_run.per_concurrency * tier)
        return -(-wanted // tier) * tier


@dataclass(frozen=True)
class BaselineArm:
    """What the product is compared with."""

    kind: str = of(Choice(("nfs", "local_disk", "array_default", "recompute")))  # recompute: no external tier at all


CONTROLS = ("recompute", "placebo")  # arms that are no pair of the order and may run several times: what the noise of one run would blur


@dataclass(frozen=True)
class Arms:
    """The order of whole runs, what runs beside them and how often, and in what the arms may differ."""

    order: tuple[str, ...] = of(Items(Choice(("baseline", "candidate")), least=2, most=40, unique=False))
    once: tuple[str, ...] = of(Items(Choice((*CONTROLS, "baseline_tuned"))))
    controls: int = later(Whole(1, 20), 1)
    prompts: str = later(Choice(("shared", "per_block")), "shared")
    baseline: BaselineArm = section(BaselineArm)
    allowed_difference: tuple[str, ...] = of(Items(Words(r"[A-Za-z0-9_.-]{1,80}", "a key name", "键名")))
    array_cache: str = of(Choice(("cold", "as_delivered")))

    def recovers(self, arm: str) -> bool:
        """Tell whether the requests of an arm load KV that was stored before; those of any other arm must load none."""
        return arm in ("candidate", "baseline_tuned") or (arm == "baseline" and self.baseline.kind != "recompute")

    @property
    def beside(self) -> tuple[tuple[str, int], ...]:
        """Return the runs beside the order as (arm, which one of it, from 1): all once, then recompute and placebo as often as the plan says.

        Every second round is turned around (recompute, placebo, placebo, recompute), so that a steady drift cancels in their mean.
        """
        out = [(arm, 1) for arm in self.once]
        for n in range(2, self.controls + 1):
            again = [arm for arm in self.once if arm in CONTROLS]
            out += [(arm, n) for arm in (again[::-1] if n % 2 == 0 else again)]
        return tuple(out)

    @property
    def blocks(self) -> int:
        """Return how many prompt sets the runs of the order ask: one, or one for each ABBA block of four runs."""
        return -(-len(self.order) // 4) if self.prompts == "per_block" else 1

    def block(self, n: int) -> int:
        """Return which of the prompt sets (from 1) the n-th run (from 1) of an order asks."""
        return (n - 1) // 4 + 1 if self.prompts == "per_block" else 1


@dataclass(frozen=True)
class G2:
    """Single-node baseline."""

    runs: int = of(Whole(2, 20))
    repeatability_cv_max: Decimal = of(_OPEN_RATIO)
    fabric: Fabric = later(Section(Fabric), Fabric(None, None))  # of paths as the deployment connected them


@dataclass(frozen=True)
class TierLimit:
    """A limit and the tiers where it blocks."""

    limit: Decimal = of(Exact(Decimal(0), Decimal("0.999"), open_low=True))
    tiers: tuple[int, ...] = of(_TIERS)


@dataclass(frozen=True)
class TierBand:
    """A band and the tiers where it blocks; the remaining tiers are advisory."""

    low: Decimal = of(_GAIN)
    high: Decimal = of(_GAIN)
    tiers: tuple[int, ...] = of(_TIERS)
    above: str = of(Choice(("accept", "audit", "fail")))


@dataclass(frozen=True)
class Guards:
    """What must not get worse while the medians get better."""

    ttft_p99_ratio_max: Decimal = of(Exact(Decimal(0), Decimal(100), open_low=True))
    tpot_p99_ratio_max: Decimal = of(Exact(Decimal(0), Decimal(100), open_low=True))
    blocking: bool = of(YesNo())


@dataclass(frozen=True)
class Sla:
    """Absolute limits by tier, when agreed."""

    ttft_p50: dict[int, Quantity] | None = of(Maybe(Table(_tier, "concurrency tiers", _TIME)))


@dataclass(frozen=True)
class G3:
    """The main gate."""

    ttft_p50_drop_min: TierLimit = section(TierLimit)
    throughput_gain_band: TierBand = section(TierBand)
    agreement_max: Decimal = of(_OPEN_RATIO)
    extension_pairs: int = of(Whole(0, 20))
    guards: Guards = section(Guards)
    sla: Sla = section(Sla)
    optional: dict[str, str] = of(Table(_name, "names of optional claims", Choice(("advisory", "off"))))


@dataclass(frozen=True)
class SoakClock:
    """What restarts the soak and what ends it (DESIGN 4.12)."""

    product_fault: str = of(Choice(("fail",)))
    host_reboot_or_site_fault: str = of(Choice(("restart_when_attributed",)))
    restarts_max: int = of(Whole(0, 20))


@dataclass(frozen=True)
class Leak:
    """Growth of the engine's memory: its lower bound over the horizon against the free memory."""

    warmup: Quantity = of(_TIME)
    horizon: Quantity = of(_TIME)
    headroom_share_max: Decimal = of(_OPEN_RATIO)
    handles_growth_max: Decimal = of(Exact(Decimal(0), Decimal(1000), open_low=True))


@dataclass(frozen=True)
class SteadyState:
    """When a series of windows is steady (SNIA SSS PTS): so many in a row, early enough, spread and fitted slope within shares of the mean."""

    rounds: int = of(Whole(3, 1000))
    within: int = of(Whole(3, 10**5))
    spread_max: Decimal = of(_OPEN_RATIO)
    slope_max: Decimal = of(_OPEN_RATIO)


@dataclass(frozen=True)
class ErrorBudget:
    """How much of the failures that the error rate allows over the whole soak one short and one long window may use up."""

    window: Quantity = of(_TIME)
    share_max: Decimal = of(_OPEN_RATIO)
    long_window: Quantity = of(_TIME)
    long_share_max: Decimal = of(_OPEN_RATIO)
    failures_min: int = of(Whole(1, 10**6))
    blocking: bool = of(YesNo())


@dataclass(frozen=True)
class ChangePoint:
    """When a level shift between windows is told from noise: one-sided rank-sum test, windows needed on each side."""

    p_max: Decimal = of(Exact(Decimal(0), Decimal("0.1"), open_low=True))
    windows_min: int = of(Whole(2, 1000))


@dataclass(frozen=True)
class PlannedInjection:
    """A disturbance of the soak that both parties agreed to: what (a name of the site's list, or engine-restart), when, and for how long."""

    label: str = of(
        Words(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", "1 to 60 letters, digits, dots, dashes or underscores", "1 到 60 个字母、数字、点、连字符或下划线")
    )
    action: str = of(Words(r"[a-z0-9][a-z0-9-]{0,59}", "a name of lower-case letters, digits and dashes", "由小写字母、数字和连字符组成的名称"))
    at: Quantity = of(_TIME)
    lasts: Quantity = of(_TIME)


@dataclass(frozen=True)
class G4:
    """The 72 h stability gate. All times are the plan's: a simulated rig scales them by rig.time_scale."""

    duration: Quantity = of(_TIME)
    clock: SoakClock = section(SoakClock)
    tier: int = of(Whole(1, 4096))
    error_rate_max: Decimal = of(_RATIO)
    engine_restarts_max: int = of(Whole(0, 0))
    hourly_drift_max: Decimal = of(_OPEN_RATIO)
    excursion_max: Decimal = of(_OPEN_RATIO)
    window: Quantity = of(_TIME)
    change_point: ChangePoint = section(ChangePoint)
    window_requests_min: int = of(Whole(1, 10**6))
    leak: Leak = section(Leak)
    steady_state: SteadyState = section(SteadyState)
    error_budget: ErrorBudget = section(ErrorBudget)
    coverage_min: Decimal = of(_OPEN_RATIO)
    gap_max: Quantity = of(_TIME)
    fatal_counters: tuple[str, ...] = of(Items(Words(r"[a-z0-9_]{1,60}", "a counter's name", "计数器名")))
    injections: tuple[PlannedInjection, ...] = later(Items(Section(PlannedInjection)), ())
    # By how much the percentage used of a drive may grow over the soak: a drive counts whole percents, so one may always fall due. Informs only.
    drive_wear_max: Quantity = later(Measure("percent", high=Decimal(255)), Quantity(Decimal(1), "%"))
    # Share of the readings in which a GPU may say that it is throttled (acceptance 4: unthrottled in 99.9 %). Informs only.
    throttled_share_max: Decimal = later(_RATIO, Decimal("0.001"))


@dataclass(frozen=True)
class Validity:
    """Limits of the claims of validity (DESIGN 4.2)."""

    hbm_hits_max: Decimal = of(_RATIO)
    external_hits_min: Decimal = of(_OPEN_RATIO)
    page_cache_resident_max: Decimal = of(_RATIO)
    device_bytes_ratio: tuple[Decimal, ...] = of(Items(Exact(Decimal(0), Decimal(100)), least=2, most=2))
    token_totals: str = of(Choice(("exact",)))
    littles_law_max: Decimal = of(_OPEN_RATIO)
    client_share_of_ttft_max: Decimal = of(_OPEN_RATIO)
    calibration_error_max: Decimal = of(_OPEN_RATIO)
    loop_lag_p99_max: Quantity = of(_TIME)
    gain_explained_max: Decimal = of(_OPEN_RATIO)
    placebo_gain_max: Decimal = of(_RATIO)
    replay_gain_max: Decimal = of(_RATIO)
    divergence_excess_max: Decimal = of(_RATIO)
    array_media_ratio_min: Decimal = of(_OPEN_RATIO)
    # By which factor two counts of the same bytes (array media and hosts, written and stored) may differ before their units are doubted: more is no
    # physics. Read-ahead and parity of an array read somewhat more than hosts ask for, another unit (KiB, blocks, bits) is off by 8 at least.
    account_ratio_max: Decimal = later(Exact(Decimal(1), Decimal(8), open_low=True), Decimal(2))
    # Share of its own outputs in which recompute may differ from itself before they are no measure: beyond it noise hides what is lost in the tier.
    noise_floor_max: Decimal = later(_RATIO, Decimal("0.25"))
    # By which share of the KV that is read meanwhile the page cache may grow: more says that it was read through it. Informs only.
    page_cache_growth_max: Decimal = later(_OPEN_RATIO, Decimal("0.10"))
    # Share of one processor that the measuring client may use: beyond it a single-threaded loop may answer late (llm-bench 7.10). Informs only.
    client_cpu_max: Decimal = later(_OPEN_RATIO, Decimal("0.6"))
    # Share of the measured time that a port of the storage network may be paused by PFC (acceptance 4). Informs only.
    pause_share_max: Decimal = later(_OPEN_RATIO, Decimal("0.01"))
    # Share of a link's bits that FEC may correct: the bit error ratio that IEEE 802.3 lets a PAM4 link have before RS(544,514). Informs only.
    corrected_ber_max: Decimal = later(_RATIO, Decimal("0.00024"))
    # By how much the wall clock may be set while something is measured: ntpd steps it from here on, below it slews. Informs only.
    clock_step_max: Quantity = later(_TIME, Quantity(Decimal(128), "ms"))


@dataclass(frozen=True)
class RequiredEvidence:
    """Evidence that a site may or may not be able to bring: what is named decides, what is not is printed as not tested, by agreement."""

    required: tuple[str, ...] = of(Items(Choice(EVIDENCE_GROUPS)))


@dataclass(frozen=True)
class NotTested:
    """A claim that both parties agreed not to test, printed on page 1."""

    claim: str = of(Choice(MAY_BE_LEFT_OUT))
    reason: str = of(Words())


@dataclass(frozen=True)
class Expected:
    """What both parties expect of G3, by tier, and how steady the site is: for the chances that are shown at sealing. It decides nothing."""

    ttft_p50_drop: dict[int, Decimal] | None = of(Maybe(Table(_tier, "concurrency tiers", Exact(-_ONE, Decimal("0.999")))))
    throughput_gain: dict[int, Decimal] | None = of(Maybe(Table(_tier, "concurrency tiers", Exact(Decimal("-0.99"), Decimal(1000)))))
    run_variation: Decimal = of(Exact(Decimal(0), Decimal("0.5")))


@dataclass(frozen=True)
class Rig:
    """Whether the target is simulated, and how its time is scaled."""

    simulated: bool = of(YesNo())
    time_scale: Decimal = of(Exact(Decimal("0.1"), Decimal(10**6)))
