"""How an estimate meets a limit (DESIGN 4.4 to 4.7): exact comparison, the three decision rules, and their risk in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache

from gates.model import Because, Interval, Verdict
from gates.plan_model import Decision
from gates.rules.estimates import EXACT
from gates.text import Text

PAIRS_FOR_AN_INTERVAL = 4
_NEAR = 1e-9  # on the log scale: nearer to a limit than this, a float's rounding could decide
_LARGEST_LOG = 700.0  # exp of more is beyond a double
_COVERAGE = 0.97725  # one side of 95.45 %, for which k = 2 when the spread is well known (ILAC-G8); the GUM takes k from Student's t when it is not


@dataclass(frozen=True)
class Effect:
    """The effect of run pairs (base, new): their geometric mean ratio, as a drop (1 - ratio) or a gain (ratio - 1).

    With several pairs the comparison stays exact without a root: the mean drop reaches `limit` if and only if
    `product(new) <= (1 - limit)**n * product(base)`, which for one pair is `new <= (1 - limit) * base`. A gain likewise with `>=`.
    """

    pairs: tuple[tuple[Fraction, Fraction], ...]
    drop: bool

    def __post_init__(self) -> None:
        if not self.pairs or any(base <= 0 or new <= 0 for base, new in self.pairs):
            raise ValueError("an effect needs pairs of positive measurements")

    @cached_property
    def _product(self) -> tuple[int, int]:
        """Return the product of new/base over all pairs as numerator and denominator, not reduced: comparing needs no common divisor."""
        up = math.prod(new.numerator * base.denominator for base, new in self.pairs)
        return up, math.prod(new.denominator * base.numerator for base, new in self.pairs)

    @property
    def ratio(self) -> Fraction:
        """Return the product of new/base over all pairs."""
        return Fraction(*self._product)

    def _against(self, limit: Decimal) -> int:
        """Return -1, 0 or 1: whether the mean effect is less than the limit, equal to it, or greater, exactly."""
        (up, down), (p, q), n = self._product, (1 - limit if self.drop else 1 + limit).as_integer_ratio(), len(self.pairs)
        measured, bound = up * int(q**n), int(p**n) * down
        side = (measured > bound) - (measured < bound)
        return -side if self.drop else side

    def reaches(self, limit: Decimal) -> bool:
        """Return whether the mean effect is at least the limit, exactly."""
        return self._against(limit) >= 0

    def exceeds(self, limit: Decimal) -> bool:
        """Return whether the mean effect is greater than the limit, exactly."""
        return self._against(limit) > 0

    def to_fifty_digits(self) -> Decimal:
        """Return the effect to 50 significant digits."""
        with localcontext() as context:
            context.prec = 50
            ratio, n = self.ratio, len(self.pairs)
            root = Decimal(ratio.numerator) / Decimal(ratio.denominator)
            root = root if n == 1 else (root.ln() / n).exp()
            return 1 - root if self.drop else root - 1

    def value(self, *limits: Decimal) -> Decimal:
        """Return the effect with 10 decimals, or with more where 10 would put it on the wrong side of a limit."""
        exact = self.to_fifty_digits()
        for limit in limits:  # the root is rounded; the comparison without it is not
            if self.reaches(limit) and not self.exceeds(limit):
                return limit
        for places in (10, 20, 40):
            shown = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN, EXACT)
            if all((shown >= limit) == self.reaches(limit) and (shown > limit) == self.exceeds(limit) for limit in limits):
                break
        return shown

    def logs(self) -> list[float]:
        """Return the log ratio of each pair."""
        return [math.log(new) - math.log(base) for base, new in self.pairs]

    def spread(self) -> tuple[float, float]:
        """Return mean and standard error of the log ratios; at least two pairs."""
        logs = self.logs()
        mean = math.fsum(logs) / len(logs)
        variance = math.fsum((x - mean) ** 2 for x in logs) / (len(logs) - 1)
        return mean, math.sqrt(variance / len(logs))

    def between(self, half_width: float) -> tuple[Decimal, Decimal]:
        """Return the effects that lie a half width (on the log scale) below and above the mean."""
        mean, _ = self.spread()
        if self.drop:
            ends = (-_ratio_less_one(mean + half_width), -_ratio_less_one(mean - half_width))
        else:
            ends = (_ratio_less_one(mean - half_width), _ratio_less_one(mean + half_width))
        return _decimal(ends[0]), _decimal(ends[1])


def interval(effect: Effect, decision: Decision) -> Interval:
    """Return the bounds of the one-sided t intervals on the log ratios of run pairs, or why there is none.

    The unit is the run pair: requests of one run are not independent (DESIGN 4.6). `low` and `high` are each one-sided.
    """
    n = len(effect.pairs)
    if n < PAIRS_FOR_AN_INTERVAL:
        note = Text("{n} run pairs are too few for an interval; it takes {least}.", "{n} 个轮次对不足以给出区间；至少需要 {least} 个。")
        return Interval(confidence=decision.confidence, n=n, note=note.fill(n=n, least=PAIRS_FOR_AN_INTERVAL))
    low, high = _bounds(effect, decision)
    return Interval(low=low, high=high, confidence=decision.confidence, n=n)


def _bounds(effect: Effect, decision: Decision) -> tuple[Decimal, Decimal]:
    return effect.between(_student_t(float(decision.confidence), len(effect.pairs) - 1) * effect.spread()[1])


@dataclass(frozen=True)
class Outcome:
    """What a rule makes of an effect and a lower limit. `value` is what was compared and what is printed."""

    verdict: Verdict
    value: Decimal
    interval: Interval
    because: Because | None = None


def compare(effect: Effect, limit: Decimal, decision: Decision, *others: Decimal) -> Outcome:
    """Hold an effect against a lower limit by the plan's rule and comparison. `others` are limits that the printed value must respect too."""
    verdict, because = decide(effect, limit, decision)
    return Outcome(verdict, measured(effect, decision, limit, *others), interval(effect, decision), because)


def decide(effect: Effect, limit: Decimal, decision: Decision) -> tuple[Verdict, Because | None]:
    """Return what the plan's rule makes of an effect and a lower limit, and why where it is conditional: the decision without its words."""
    met = at_least(effect, limit, decision)
    if decision.rule == "simple":
        return Verdict.PASS if met else Verdict.FAIL, None
    if len(effect.pairs) < PAIRS_FOR_AN_INTERVAL:
        return Verdict.INCONCLUSIVE, None
    if decision.rule == "guarded":
        expansion = _student_t(_COVERAGE, len(effect.pairs) - 1)  # 3.31 for 4 pairs: with k = 2 they would pass a true limit in 7 %, not 2.3 %
        low, high = effect.between(float(decision.guard_r) * expansion * effect.spread()[1])
    else:
        low, high = _bounds(effect, decision)
    if not met:
        return Verdict.INCONCLUSIVE if high >= limit else Verdict.FAIL, None
    return (Verdict.PASS, None) if low >= limit else (Verdict.CONDITIONAL, Because.GUARD)


_MOST_PAIRS = 64  # more than any plan has days for


def pairs_needed(effect: Effect, limit: Decimal, decision: Decision) -> int | None:
    """Return how many run pairs in all would decide at the scatter seen, were the estimate to stay where it is; None: no number of them would.

    The bound leaves the limit behind once t x s / sqrt(n) is at most the distance of the mean from it (log scale). Pairs come in twos (ABBA).
    """
    n = len(effect.pairs)
    if n < 2:
        return PAIRS_FOR_AN_INTERVAL
    mean, error = effect.spread()
    end = 1 - limit if effect.drop else 1 + limit
    distance, deviation = abs(mean - math.log(end)) if end > 0 else math.inf, error * math.sqrt(n)
    guarded = decision.rule == "guarded"
    scale, cover = (float(decision.guard_r), _COVERAGE) if guarded else (1.0, float(decision.confidence))
    first = max(PAIRS_FOR_AN_INTERVAL, n + 1)
    for total in range(first + first % 2, _MOST_PAIRS + 1, 2):
        if scale * _student_t(cover, total - 1) * deviation <= distance * math.sqrt(total):
            return total
    return None


def measured(effect: Effect, decision: Decision, *limits: Decimal) -> Decimal:
    """Return the value that is compared and printed: unrounded (`full`), or as the contract rounds (`rounded`: GB/T 8170, half to even)."""
    if decision.comparison == "rounded" and decision.digits is not None:
        return effect.to_fifty_digits().quantize(Decimal(1).scaleb(-decision.digits - 2), ROUND_HALF_EVEN, EXACT)
    return effect.value(*limits)


def at_least(effect: Effect, limit: Decimal, decision: Decision) -> bool:
    """Return whether the estimate reaches a limit, by the plan's comparison."""
    return measured(effect, decision, limit) >= limit if decision.comparison == "rounded" else effect.reaches(limit)


def above(effect: Effect, limit: Decimal, decision: Decision) -> bool:
    """Return whether the estimate is greater than a limit, by the plan's comparison."""
    return measured(effect, decision, limit) > limit if decision.comparison == "rounded" else effect.exceeds(limit)


def risk(decision: Decision, *, looks: int = 1) -> Text:
    """Return the risk of the rule in words, printed under every verdict.

    `looks`: how often the data were looked at to decide, 2 after an extension. The chances of several looks add up at most (Bonferroni).
    """
    if looks > 1:
        said, again = risk(decision), _LOOKS.fill(n=looks)
        return Text(said.en + again.en, said.zh + again.zh)
    if decision.rule == "simple":
        return Text(
            "Decision rule: simple acceptance, shared risk. The estimate itself is held against the limit; where the true value lies at the limit, "
            "either party has a chance of up to 50 % of a wrong decision.",
            "判定规则：简单接受，风险共担。直接以估计值与限值比较；若真值恰在限值处，双方误判的风险各可达 50 %。",
        )
    if decision.rule == "interval":
        return Text(
            "Decision rule: one-sided interval over run pairs at {c} confidence. A true value below the limit passes with a chance of at most {a}.",
            "判定规则：以轮次对为单位、置信度 {c} 的单侧区间。真值低于限值而被判通过的概率不超过 {a}。",
        ).fill(c=_pct(decision.confidence), a=_pct(1 - decision.confidence))
    return Text(
        "Decision rule: guarded acceptance after ILAC-G8 with w = r U, r = {r}, U = k u from the spread of run pairs, k of Student's t for 95.45 % "
        "coverage. "
        "With r = 1 a wrong acceptance has a chance below 2.5 %; r = 0 is shared risk.",
        "判定规则：按 ILAC-G8 的保护带接受，w = r U，r = {r}，U = k u 由轮次对的离散得出，k 取覆盖率 95.45 % 的 t 分布系数。"
        "r = 1 时误接受概率低于 2.5 %；r = 0 即风险共担。",
    ).fill(r=format(decision.guard_r, "f"))


_LOOKS = Text(
    " The attempt was extended: the data were looked at {n} times, so the chance of a wrong acceptance is up to {n} times the one named.",
    "本次尝试经过补充：数据共判定 {n} 次，误接受的概率至多为上述数值的 {n} 倍。",
)


def flips(effect: Effect, baselines: Sequence[Fraction], same: Sequence[Decimal], decision: Decision) -> bool:
    """Return whether one baseline run alone decides: with it left out, the estimate would lie on another side of a limit.

    With two runs the base is then the other one, exactly. Leaving out the largest and the smallest is enough: any other run moves the base less.
    """
    if len(baselines) < 2:
        return False
    there, ordered = _sides(effect, same, decision), sorted(baselines)
    return any(_sides(_based_on(effect, others, same), same, decision) != there for others in (ordered[1:], ordered[:-1]))


def _based_on(effect: Effect, others: Sequence[Fraction], limits: Sequence[Decimal]) -> Effect:
    """Return the effect with the geometric mean of `others` as every base. A float carries that mean, but where it would decide about a limit."""
    if len(others) == 1:
        return Effect(tuple((others[0], new) for _, new in effect.pairs), effect.drop)
    mean = math.fsum(math.log(b) for b in others) / len(others)
    moved = math.fsum(math.log(new) for _, new in effect.pairs) / len(effect.pairs) - mean
    ends = [1 - limit if effect.drop else 1 + limit for limit in limits]
    if all(end <= 0 or abs(moved - math.log(end)) > _NEAR for end in ends):
        return Effect(tuple((Fraction(math.exp(mean)), new) for _, new in effect.pairs), effect.drop)
    return Effect(tuple((base, new) for base in others for _, new in effect.pairs), effect.drop)  # each with each: the same mean, without a root


def _sides(effect: Effect, limits: Sequence[Decimal], decision: Decision) -> tuple[bool, ...]:
    """Return on which side of each limit it lies: the first is a lower bound (reached or not), any other an upper one (exceeded or not)."""
    return (at_least(effect, limits[0], decision), *(above(effect, limit, decision) for limit in limits[1:]))


@lru_cache(maxsize=64)
def _student_t(confidence: float, degrees: int) -> float:
    from scipy.special import stdtrit  # costs a quarter of a second to import; most verdicts need no interval

    return float(stdtrit(degrees, confidence))


def _ratio_less_one(log: float) -> float:
    """Return exp(log) - 1, at the largest a double holds where the bound of few wild pairs lies beyond it."""
    return math.expm1(min(log, _LARGEST_LOG))


def _decimal(value: float) -> Decimal:
    return Decimal(repr(value)).quantize(Decimal("1e-10"), ROUND_HALF_EVEN, EXACT)


def _pct(value: Decimal) -> str:
    return f"{(value * 100).normalize():f} %"
