"""Every claim of validity, declared once: its title, the plan's field that it is held against, and its limit for an arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from gates.model import Limit
from gates.plan import Plan
from gates.text import Text


@dataclass(frozen=True)
class Claim:
    """One statement of validity. `limit` may hang on the arm: what recovers KV must have hits, what does not must have none."""

    title: Text
    source: str = "DESIGN 4.2"
    limit: Callable[[Plan, str], Limit] = lambda _, __: Limit("none")
    share: bool = False  # its value is a part of something, which people read in percent


def _at_most(value: Callable[[Plan], Decimal]) -> Callable[[Plan, str], Limit]:
    return lambda plan, _: Limit("<=", high=value(plan))


def _at_least(value: Callable[[Plan], Decimal]) -> Callable[[Plan, str], Limit]:
    return lambda plan, _: Limit(">=", low=value(plan))


def _hits(plan: Plan, arm: str) -> Limit:
    return Limit(">=", low=plan.validity.external_hits_min) if plan.arms.recovers(arm) else Limit("==", Decimal(0), Decimal(0))


def _bytes(plan: Plan, _: str) -> Limit:
    low, high = plan.validity.device_bytes_ratio
    return Limit("band", low=low, high=high)


CLAIMS: Mapping[str, Claim] = MappingProxyType(
    {
        "hbm_cold": Claim(Text("GPU cache cold", "GPU 缓存为冷态"), "validity.hbm_hits_max", _at_most(lambda p: p.validity.hbm_hits_max), share=True),
        "page_cache_cold": Claim(
            Text("Page cache cold", "页缓存为冷态"),
            "validity.page_cache_resident_max",
            _at_most(lambda p: p.validity.page_cache_resident_max),
            share=True,
        ),
        "engine_restarted_cold": Claim(Text("Engine restarted, or reset and shown cold, before the run", "本轮之前引擎已重启，或已复位并证明为冷态")),
        "array_cold": Claim(
            Text("Array cache cold", "阵列缓存为冷态"),
            "arms.array_cache, validity.array_media_ratio_min",
            _at_least(lambda p: p.validity.array_media_ratio_min),
            share=True,
        ),
        "on_its_medium": Claim(Text("KV lies on the declared medium", "KV 位于所声明的介质"), "targets.volume"),
        "external_hits": Claim(Text("KV recovered from the external tier", "KV 由外部层恢复"), "validity.external_hits_min", _hits, share=True),
        "device_bytes": Claim(Text("Device bytes match the recovered KV", "设备读取量与恢复的 KV 相符"), "validity.device_bytes_ratio", _bytes),
        "store_complete": Claim(
            Text("Store phase complete", "写入阶段完整"),
            "validity.device_bytes_ratio",
            _at_least(lambda p: p.validity.device_bytes_ratio[0]),
            share=True,
        ),
        "equal_work": Claim(Text("Equal work", "工作量相等"), "arms.allowed_difference", lambda _, __: Limit("==", "exact", "exact")),
        "failures": Claim(Text("Every request succeeded", "请求全部成功"), "DESIGN 4.3", _at_most(lambda _: Decimal(0))),
        "client_healthy": Claim(
            Text("Client adds no delay of its own", "客户端自身未引入延迟"),
            "validity.client_share_of_ttft_max",
            _at_most(lambda p: p.validity.client_share_of_ttft_max),
            share=True,
        ),
        "calibration": Claim(
            Text("Client calibrated", "客户端已校准"),
            "validity.calibration_error_max",
            _at_most(lambda p: p.validity.calibration_error_max),
            share=True,
        ),
        "littles_law": Claim(
            Text("C requests in flight (Little's law)", "在途请求数为 C（利特尔法则）"),
            "validity.littles_law_max",
            _at_most(lambda p: p.validity.littles_law_max),
            share=True,
        ),
        "output_identity": Claim(
            Text("Outputs identical to recompute", "输出与重算一致"),
            "validity.divergence_excess_max",
            _at_most(lambda p: p.validity.divergence_excess_max),
            share=True,
        ),
        "placebo": Claim(
            Text("Placebo gains nothing over recompute", "安慰剂相对重算无提升"),
            "validity.placebo_gain_max, arms.controls",
            _at_most(lambda p: p.validity.placebo_gain_max),
            share=True,
        ),
        "replay": Claim(
            Text("A second pass is not faster than the first", "重放不快于首轮"),
            "validity.replay_gain_max, arms.prompts",
            _at_most(lambda p: p.validity.replay_gain_max),
            share=True,
        ),
        "baselines_agree": Claim(
            Text("Baseline runs agree", "各基线轮次一致"), "g3.agreement_max, decision.rule", _at_most(lambda p: p.g3.agreement_max), share=True
        ),
        "g2_agreement": Claim(
            Text("Baseline agrees with the frozen G2 baseline", "基线与已冻结的 G2 基线一致"),
            "g3.agreement_max",
            _at_most(lambda p: p.g3.agreement_max),
            share=True,
        ),
        "gain_explained": Claim(
            Text("Throughput gain explained by measured times", "吞吐提升可由实测时间解释"),
            "validity.gain_explained_max",
            _at_most(lambda p: p.validity.gain_explained_max),
            share=True,
        ),
        "requests_accounted": Claim(Text("Every request on record once, as the engine counted them", "每个请求均记录且仅记录一次，与引擎计数一致")),
        "tier_exercised": Claim(
            Text("The soak loads KV from the external tier", "稳定性运行确实从外部层加载 KV"),
            "validity.external_hits_min",
            _at_least(lambda p: p.validity.external_hits_min),
            share=True,
        ),
    }
)
TITLES: Mapping[str, Text] = MappingProxyType({name: claim.title for name, claim in CLAIMS.items()})
# The claims of each gate in the order of the report's table: what every run must answer, then what compares runs.
OF_RUNS = (
    *("hbm_cold", "page_cache_cold", "engine_restarted_cold", "array_cold", "on_its_medium", "external_hits", "device_bytes", "store_complete"),
    *("equal_work", "failures", "requests_accounted", "client_healthy", "calibration", "littles_law"),
)
OF_GATES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "G1": (),
        "G2": OF_RUNS,
        "G3": (*OF_RUNS, "output_identity", "placebo", "replay", "baselines_agree", "g2_agreement", "gain_explained"),
        "G4": (
            *("tier_exercised", "on_its_medium", "store_complete", "equal_work"),
            *("requests_accounted", "littles_law", "client_healthy", "calibration"),
        ),
    }
)
