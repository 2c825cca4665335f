"""Runs with chosen medians and rates, without the files: for rules that compare runs with each other."""

from fractions import Fraction

from gates.readers.run_pack import Pack
from gates.rules.claim import Run
from gates.rules.engine import IDENTITY
from gates.rules.estimates import TierStats
from gates.steps import run_step

ONE = Fraction(1)
ENGINE = dict.fromkeys(IDENTITY, 1)  # the same in every run, and in the frozen baseline


def measured(plan, arm, key, values, prompts="g3"):
    """A run whose tiers measured (TTFT p50 in ns, output tokens/s)."""
    spec = run_step(plan, key=key, arm=arm, run_index=1, prompts=prompts, store=False)
    return Run(spec, Pack(key, "host", f"evidence/{key}/host", engine=ENGINE), {tier: _stats(tier, *pair) for tier, pair in values.items()})


def _stats(tier, ttft, rate):
    ttft, rate = Fraction(ttft), Fraction(rate)
    return TierStats(tier, 100, 0, (int(ttft),), ttft, int(ttft), 1, ONE, ONE, ONE, rate)
