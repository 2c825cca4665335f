"""Was the work the same and whole: prompts, lengths, configuration, failures, and the store phase."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from gates.engine_counters import STORE_BYTES, STORED_TOKENS, family_of
from gates.model import Attribution, ClaimResult, ClaimStatus
from gates.plan import Plan
from gates.readers.places import folders_of, hosts_of
from gates.readers.prometheus import called, exposes, growth, series_of
from gates.readers.run_pack import Request
from gates.readers.strict import at, count, exact
from gates.rules import doubtful, identity, phase_words
from gates.rules.claim import Finding, Findings, Run, each, fold, holds, not_applicable, unknown
from gates.rules.engine import IDENTITY, differs_from_plan, instances_differ, setting_differences, settings_of, untold
from gates.rules.estimates import percent
from gates.rules.hash_seed import seeds_differ
from gates.text import Text, amid

_MODEL_PATH = ("model", "model_path")  # vLLM's and SGLang's own names of the folder of the model


def equal_work(data: Findings, arm: str) -> ClaimResult:
    """Return whether every run of an arm did exactly the work of the plan, on one engine of the sealed platform, and differs only where allowed."""
    first = data.runs[0]
    others = data.of(arm)[0] if data.of(arm) else first

    def findings() -> Iterator[Finding]:
        for run in data.of(arm):
            files = tuple(run.pack.path(f) for f in ("records.jsonl", "workload.json", "engine.json", "arm.json"))
            for tier in run.tiers:
                wrong = _tier_differs(data, run, tier) or _prompts_differ(data, run, tier)
                if wrong:
                    yield Finding(ClaimStatus.BREACHED, wrong, None, run.key, tier, files)
            yield from engine_told(data.plan, run, first)
            wrong = (
                _engine_differs(first, run)
                or differs_from_plan(data.plan, run.pack.engine)
                or _arm_differs(data, others, run)
                or _settings_differ(data, others, run)
                or next((wrong for view in run.places if (wrong := seeds_differ(data, view))), None)
                or instances_differ(run.pack.engine, folders_of(run.pack))
            )
            if wrong:
                yield Finding(ClaimStatus.BREACHED, wrong, None, run.key, None, files)
            yield from arm_told(data.plan, run)
            if other := identity.other_model(run.pack):
                yield unknown(
                    run,
                    f"its counters are of the model {other[:80]}, which is not the engine's.",
                    f"其计数器属于模型“{other[:80]}”，并非该引擎的模型。",
                    files=("counters.jsonl", "engine.json"),
                )
            good = Text(
                "Prompts, lengths, token totals, KV blocks and configuration are as the plan says.", "提示、长度、词元总数、KV 块和配置均与计划一致。"
            )
            yield Finding(ClaimStatus.HOLDS, good, None, run.key, None, files)

    return fold(data.plan, "equal_work", arm, findings())


def engine_told(plan: Plan, run: Run, first: Run) -> Iterator[Finding]:
    """Yield that engine.json does not tell all of what a run is held against, where so; `first`: the run that others must equal."""
    lacking = list(dict.fromkeys((*(k for k in IDENTITY if first.pack.engine.get(k) is None), *untold(plan, run.pack.engine))))
    if lacking:
        yield unknown(run, f"engine.json does not tell {', '.join(lacking)}.", f"engine.json 未给出 {', '.join(lacking)}。", files=("engine.json",))


def arm_told(plan: Plan, run: Run) -> Iterator[Finding]:
    """Yield that arm.json does not tell the configuration that the job was given, where so."""
    if plan.arms.recovers(run.arm) and not run.pack.arm:
        yield unknown(run, "arm.json holds no configuration to compare.", "arm.json 中没有可比较的配置。", files=("arm.json",))
    if run.pack.arm != run.pack.job.get("arm"):
        yield unknown(
            run, "arm.json is not the configuration that the job was given.", "arm.json 与作业所给配置不一致。", files=("arm.json", "job.json")
        )


def _tier_differs(data: Findings, run: Run, tier: int) -> Text | None:
    """Return the first difference between a tier's requests and the plan."""
    work, requests = data.plan.workload, run.pack.of("measure", tier)
    sent = work.context_tokens + work.suffix_tokens
    good = [r for r in requests if r.failure is None]
    for what, what_zh, want, seen in (
        ("requests", "请求数", run.wanted[tier], {len(requests)}),
        ("tokens sent for each prompt", "每个提示发送的词元数", sent, {r.tokens_sent for r in requests}),
        ("prompt tokens that the engine counted", "引擎计得的提示词元数", sent, {r.prompt_tokens for r in good}),
        ("output tokens asked for", "要求的输出词元数", work.output_tokens, {r.max_tokens for r in requests}),
        ("output tokens of each answer", "每个回答的输出词元数", work.output_tokens, {r.completion_tokens for r in good}),
        ("different prompts", "不同提示数", run.wanted[tier], {len({r.prompt_sha256 for r in requests})}),
    ):
        odd = sorted(str(v) for v in seen if v != want)
        if odd:
            text = Text("{what}: {seen} where the plan says {want}.", "{what}：{seen}，计划为 {want}。")
            return text.fill(what=Text(what, what_zh), seen=", ".join(odd[:3]), want=want)
    return None


def _prompts_differ(data: Findings, run: Run, tier: int) -> Text | None:
    """Return whether a run's prompts are others than those of the first run of its set, were used in another set, or are not those declared."""
    mine, first = {r.prompt_sha256 for r in run.pack.of("measure", tier)}, data.first_with_prompts_of(run)
    others = [r for r in data.runs if r.prompts != run.prompts and (run.arm == "placebo" or r.arm != "placebo")]
    again = mine & {request.prompt_sha256 for other in others for request in other.pack.requests}
    if again:
        who = Text("the placebo", "安慰剂") if run.arm == "placebo" else run.shown
        return Text("{n} prompts of {who} were used elsewhere.", "{who}中有 {n} 个提示在别处用过。").fill(n=len(again), who=who)
    if mine != {r.prompt_sha256 for r in first.pack.of("measure", tier)}:
        return Text(f"the prompts are not those of {first.key}.", f"提示与{amid(first.shown.zh)}不同。")
    told = run.pack.workload.get("tiers")
    declared = next((t for t in (told if isinstance(told, list) else ()) if at(t, "tier") == tier), None)
    ordered = "\n".join(r.prompt_sha256 for r in sorted(run.pack.of("measure", tier), key=lambda r: r.prompt))
    odd = next((key for key, want in _asked(data, run, tier).items() if at(declared, key) != want), None)
    if odd:
        return Text("workload.json declares {v} as {k}, where the plan says {w}.", "workload.json 声明的 {k} 为 {v}，计划为 {w}。").fill(
            k=odd, v=at(declared, odd), w=_asked(data, run, tier)[odd]
        )
    if at(declared, "prompts_sha256") != hashlib.sha256(ordered.encode()).hexdigest():
        return Text("the prompts sent are not those that workload.json declares.", "所发提示与 workload.json 声明的不符。")
    return None


def _asked(data: Findings, run: Run, tier: int) -> dict[str, int]:
    """Return what workload.json must declare of a tier, as the sealed plan asks for it."""
    work = data.plan.workload
    lengths = {"context_tokens": work.context_tokens, "suffix_tokens": work.suffix_tokens, "output_tokens": work.output_tokens}
    return {"requests": run.wanted[tier], **lengths}


def _engine_differs(first: Run, run: Run) -> Text | None:
    for key in IDENTITY:
        mine, theirs = run.pack.engine.get(key), first.pack.engine.get(key)
        if mine is not None and theirs is not None and mine != theirs:
            return Text(
                f"the engine's {key} is {mine}; in {first.key} it is {theirs}.",
                f"引擎的“{key}”为“{mine}”；{amid(first.shown.zh).lstrip()}中为“{theirs}”。",
            )
    return None


def _arm_differs(data: Findings, same_arm: Run, run: Run) -> Text | None:
    """Return a difference of configuration that the plan does not allow.

    Runs of one arm must not differ at all, and the placebo is the candidate. Against the baseline an arm may differ in the allow-list only;
    an arm without an external tier has no keys of one, so with it only the keys that both have are compared.
    """
    allowed = set(data.plan.arms.allowed_difference)
    own = _difference(same_arm.pack.arm, run.pack.arm)
    if own:
        return Text(
            f"{', '.join(own[:3])} differs from {same_arm.key}, a run of the same arm.",
            f"{', '.join(own[:3])} 与同一对照组的{amid(same_arm.shown.zh)}不同。",
        )
    base = _reference(data, run)
    if base is None:
        return None
    keys = _not_allowed(data, base, run, _difference(base.pack.arm, run.pack.arm), {*base.pack.arm} & {*run.pack.arm})
    if keys:
        return Text(
            f"{', '.join(keys[:3])} differs from {base.key}; the plan allows a difference in {', '.join(sorted(allowed)) or 'nothing'} only.",
            f"{', '.join(keys[:3])} 与{amid(base.shown.zh)}不同；计划只允许 {'、'.join(sorted(allowed)) or '无'} 不同。",
        )
    return None


def _settings_differ(data: Findings, same_arm: Run, run: Run) -> Text | None:
    """Return a difference between engines by their own words, where arm.json may keep quiet: command line and reported configuration.

    The same rule as for arm.json, but the place where an engine runs, and between arms the external tier itself, are left to arm.json.
    """
    own = setting_differences(same_arm.pack.engine, run.pack.engine, tier=True)
    if own:
        return Text(
            f"the engine's own {', '.join(own[:3])} differs from {same_arm.key}, a run of the same arm (engine.json).",
            f"引擎自身的 {', '.join(own[:3])} 与同一对照组的{amid(same_arm.shown.zh)}不同（engine.json）。",
        )
    base = _reference(data, run)
    if base is None:
        return None
    both = {*settings_of(base.pack.engine)} & {*settings_of(run.pack.engine)}
    keys = _not_allowed(data, base, run, setting_differences(base.pack.engine, run.pack.engine, tier=False), both)
    keys = [key for key in keys if not (key.rsplit(".", 1)[-1] in _MODEL_PATH and _same_model_elsewhere(data, base, run))]
    if keys:
        return Text(
            f"the engine's own {', '.join(keys[:3])} differs from {base.key}, and the plan does not allow that (engine.json).",
            f"引擎自身的 {', '.join(keys[:3])} 与{amid(base.shown.zh)}不同，计划不允许（engine.json）。",
        )
    return None


def _same_model_elsewhere(data: Findings, base: Run, run: Run) -> bool:
    """Return whether the plan lets arms load the model from media of their own, and both loaded the same model by the digest of its configuration."""
    digests = {one.pack.engine.get("model_config_sha256") for one in (base, run)}
    return "model_dir" in data.plan.arms.allowed_difference and len(digests) == 1 and digests != {None}


def _reference(data: Findings, run: Run) -> Run | None:
    """Return the run that an arm's configuration is held against: the candidate's for the placebo, else the baseline's. None: its own arm's."""
    found = data.of("candidate" if run.arm == "placebo" else "baseline")
    return found[0] if found and found[0].arm != run.arm else None


def _not_allowed(data: Findings, base: Run, run: Run, keys: list[str], both: set[str]) -> list[str]:
    """Return the keys in which two arms may not differ. An arm without an external tier has no keys of one: then those that both have count."""
    if run.arm == "placebo":
        return keys
    allowed = set(data.plan.arms.allowed_difference)
    if not (data.plan.arms.recovers(run.arm) and data.plan.arms.recovers(base.arm)):
        keys = [k for k in keys if k in both]
    return [k for k in keys if k not in allowed and k.rsplit(".", 1)[-1] not in allowed]


def _difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    return sorted(k for k in {*a, *b} if k not in a or k not in b or a[k] != b[k])


def failures(data: Findings, arm: str) -> ClaimResult:
    """Failed or empty requests, judged from the facts of each. In the candidate they are the product's, once it is proven cold and stored.

    Where none failed, and the probe itself does not find a phase as it should be, it is unknown.
    """

    def findings() -> Iterator[Finding]:
        for run in data.of(arm):
            yield from phase_words.not_ok(run)
            for tier in run.tiers:
                requests = run.pack.of("measure", tier)
                failed = [r.failure for r in requests if r.failure is not None]
                kinds = ", ".join(f"{k} x {failed.count(k)}" for k in sorted(set(failed)))
                reason = Text("{n} of {m} requests failed{k}.", "{m} 个请求中有 {n} 个失败{k}。")
                reason = reason.fill(n=len(failed), m=len(requests), k=f" ({kinds})" if kinds else "")
                if not requests:
                    yield unknown(run, "there are no requests of this tier.", "该档位没有请求记录。", tier=tier, files=("records.jsonl",))
                else:
                    yield Finding(holds(not failed), reason, Decimal(len(failed)), run.key, tier, (run.pack.path("records.jsonl"),))

    return fold(data.plan, "failures", arm, findings(), fault=Attribution.PRODUCT if arm == "candidate" else Attribution.RIG)


def store_complete(data: Findings, arm: str) -> ClaimResult:
    """Return whether every prefix that the runs recover was stored before, with the bytes that it takes."""
    if not data.plan.arms.recovers(arm):
        return not_applicable("store_complete", arm, "This arm recovers nothing.", "该对照组不恢复任何 KV。")

    storing = [view for view in data.places(arm) if view.spec.params.get("store")]

    def findings(run: Run) -> Iterator[Finding]:
        requests = run.pack.of("store")
        failed, alone = sum(not _store_answered(r) for r in requests), run.key == storing[0].key and len(hosts_of(run.pack)) < 2
        yield stored(data.plan, run, asked=len(requests), failed=failed, needed=sum(run.wanted.values()), alone=alone)

    return fold(data.plan, "store_complete", arm, each(storing, findings))


def stored(plan: Plan, run: Run, *, asked: int, failed: int, needed: int, alone: bool) -> Finding:
    """Return whether the store phase of a run stored `needed` prefixes whole, with the bytes that they take.

    `asked`: prefixes that it sent, `failed` of them without an answer. `alone`: no other store phase came before it on the same medium, and
    no other engine host may write there, so that all that lies there is its own.
    """
    files = (run.pack.path("records.jsonl"), run.pack.path("counters.jsonl"), run.pack.path("phases.jsonl"))
    phase = run.pack.phase("store")
    if phase is None or not asked:
        return unknown(run, "there is no record of the store phase.", "没有写入阶段的记录。", files=("phases.jsonl", "records.jsonl"))
    if phase.get("ok") is not True or failed or asked < needed:
        reason = Text("{m} of {n} prefixes were stored, {f} requests failed.", "{n} 个前缀中写入 {m} 个，{f} 个请求失败。")
        return Finding(ClaimStatus.BREACHED, reason.fill(m=asked - failed, n=needed, f=failed), None, run.key, None, files)
    per_token, block = exact(run.pack.engine.get("kv_bytes_per_token")), count(run.pack.engine.get("block_tokens")) or 1
    written = _bytes_stored(run, alone=alone)
    if per_token is None or per_token <= 0 or written is None:
        return unknown(run, "nothing tells how many bytes were stored.", "没有写入字节数的证据。", files=("counters.jsonl",))
    context = plan.workload.context_tokens
    whole = needed * (context // block * block)
    share = written / (whole * per_token) if whole else Decimal(0)
    low, most = plan.validity.device_bytes_ratio[0], plan.validity.account_ratio_max
    if odd := doubtful.stored_units(run, share, most):
        return odd
    if _keeps(run, STORED_TOKENS):  # what the engine itself says that it wrote away: it must not say less than the bytes do
        tokens = _tokens_stored(run)
        if tokens is None:
            name = called(run.metrics_names or (), (STORED_TOKENS,)).en
            told = f"the engine does not tell how many tokens it stored ({name}).", f"引擎未给出已写入的词元数（{name}）。"
            return unknown(run, *told, files=("counters.jsonl", "engine.json"))
        share = min(share, tokens / whole) if whole else share
    reason = Text("{n} prefixes were stored, {v} of the bytes that they take (at least {l}).", "写入 {n} 个前缀，为应有字节的 {v}（下限 {l}）。")
    return Finding(holds(share >= low), reason.fill(n=asked, v=percent(share, low), l=percent(low)), share, run.key, None, files)


def _store_answered(r: Request) -> bool:
    return r.error is None and r.http_status == 200 and r.prompt_tokens == r.tokens_sent


def _keeps(run: Run, quantity: str) -> bool:
    """Return whether a run's engine is one that has a counter of this quantity, whether or not it exposed it in this run."""
    return bool(series_of(family_of(run.metrics_names or ()), quantity))


def _tokens_stored(run: Run) -> Decimal | None:
    """Return the tokens that the engine counts as stored in the store phase; None where it exposes no such counter. It appears with the first."""
    if not exposes(run.metrics_names or (), STORED_TOKENS):
        return None
    before, after = _around_storing(run)
    return growth(at(before, "metrics"), at(after, "metrics"), STORED_TOKENS, absent=Decimal(0))


def _around_storing(run: Run) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the counters before and after the store phase."""
    rows = [c for c in run.pack.counters if c.get("phase") == "store"]
    return next((c for c in rows if c.get("when") == "before"), None), next((c for c in rows[::-1] if c.get("when") == "after"), None)


def _bytes_stored(run: Run, *, alone: bool) -> Decimal | None:
    """Return the bytes of the store phase: by the engine's own counter, else what its process wrote, else what lay in the directory after it.

    `alone`: no other store phase came before it, and no other engine host may write there, so that all that lies there is its own.
    """
    before, after = _around_storing(run)
    counted = growth(at(before, "metrics"), at(after, "metrics"), STORE_BYTES)
    if counted is not None or run.metrics_names is None or exposes(run.metrics_names, STORE_BYTES):  # an engine that has the counter is held to it
        return counted
    low, high = count(at(before, "engine_io", "write_bytes")), count(at(after, "engine_io", "write_bytes"))
    if low is None or high is None:
        return None
    if high > low:
        return Decimal(high - low)
    sizes = [count(c.get("bytes")) for c in run.pack.coldness if c.get("when") == "after_cool"]
    return Decimal(sum(s or 0 for s in sizes)) if alone and sizes and None not in sizes else None
