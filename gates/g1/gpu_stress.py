"""Are the GPUs of a host steady under stress: each GPU in each action of the run, from its intervals and not from the tool's peak."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from gates.g1.pack import Answer
from gates.rules.estimates import beside, percent
from gates.rules.findings import Finding, bad, good, unknown

WORST_OF = 3  # intervals at least: fewer say nothing about steadiness
_Key = tuple[str, str]  # GPU, action: a stock configuration has actions of quite different targets, which are not compared with each other


def under_stress(host: str, answer: Answer, limit: Decimal) -> Finding:
    """Return what the stress run of one host says: the greatest spread of intervals of a GPU in an action, (max - min) / max, against `limit` (1)."""
    told: dict[_Key, list[Decimal]] = {}
    for o in answer.all("rvs.flops"):
        if isinstance(o.value, Decimal):
            told.setdefault((o.labels["gpu"], o.labels["action"]), []).append(o.value)
    answers = {(o.labels["gpu"], o.labels["action"]): str(o.value).lower() for name in ("rvs.met", "rvs.pass") for o in answer.all(name)}
    refused = sorted(key for key, value in answers.items() if value == "false")
    if refused:
        return bad("{h}: missed their target: {r}", "{h}：未达目标：{r}", answer.path, h=host, r=_named(refused))
    gpus, actions = {gpu for gpu, _ in (*told, *answers)}, {action for _, action in (*told, *answers)}
    short = sorted((gpu, action) for gpu in gpus for action in actions if len(told.get((gpu, action), ())) < WORST_OF or max(told[gpu, action]) <= 0)
    if short or not told:
        text = "{h}: fewer than {n} intervals are told of {g}", "{h}：少于 {n} 个时段：{g}"
        return unknown(*text, answer.path, h=host, n=WORST_OF, g=_named(short) or "GPU")
    spreads = {key: (Fraction(max(v)) - Fraction(min(v))) / Fraction(max(v)) for key, v in told.items()}
    worst = max(spreads, key=lambda key: spreads[key])
    words = {"h": host, "g": worst[0], "a": worst[1], "v": percent(spreads[worst], limit)}
    text = "{h}: the intervals of GPU {g} in {a} differ by {v}", "{h}：GPU {g} 在 {a} 中各时段相差 {v}"
    value = beside(spreads[worst], limit, 6)
    if spreads[worst] > Fraction(limit):
        return bad(*text, answer.path, value=value, **words)
    silent = sorted(set(told) - set(answers))
    if silent:
        return unknown("{h}: rvs does not say whether {g} met the target", "{h}：rvs 未说明 {g} 是否达标", answer.path, h=host, g=_named(silent))
    return good(*text, answer.path, value=value, **words)


def _named(keys: list[_Key]) -> str:
    return ", ".join(f"GPU {gpu} ({action})" for gpu, action in keys)
