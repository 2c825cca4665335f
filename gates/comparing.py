"""What keeps result files of two arms from being compared: each a problem with a code, a sentence, a tier, and what it makes of that tier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from typing import Any

from gates.importing import NO_TIER, RunFigures
from gates.model import Problem, Verdict
from gates.plan import Plan
from gates.text import Text

ARMS = ("baseline", "candidate")
# Decode may slow down beside the loading of KV; twice, and a tenth of the baseline's request more, is none of that.
SLOWER, WITHIN = 2, Decimal("0.1")
_STATE_IT = Text("Where you know it, give the file as FILE@8.", "若已知并发数，请将文件写成 FILE@8。")
_ARM = {"baseline": Text("baseline", "基线"), "candidate": Text("candidate", "产品")}
_WORK = {
    "model": Text("model", "模型"),
    "requests": Text("requests", "请求数"),
    "input_tokens.total": Text("input tokens", "输入词元总数"),
    "input_tokens.min": Text("fewest input tokens", "最少输入词元数"),
    "input_tokens.max": Text("most input tokens", "最多输入词元数"),
    "output_tokens.total": Text("output tokens", "输出词元总数"),
    "output_tokens.min": Text("fewest output tokens", "最少输出词元数"),
    "output_tokens.max": Text("most output tokens", "最多输出词元数"),
}
_CLIENT = {
    "client.endpoint": Text("endpoint", "接口"),
    "client.backend": Text("backend", "后端"),
    "client.tokenizer": Text("tokenizer", "分词器"),
}


@dataclass(frozen=True)
class Compared:
    """One file of one arm: what it was read as."""

    arm: str
    name: str
    sha256: str
    tool: str
    figures: RunFigures
    problems: tuple[Problem, ...]

    def json(self) -> dict[str, Any]:
        """Return plain data."""
        problems = [{"code": p.code, "message": p.message.json()} for p in self.problems]
        return {"arm": self.arm, "file": self.name, "sha256": self.sha256, "tool": self.tool, **self.figures.json(), "problems": problems}


@dataclass(frozen=True)
class Trouble:
    """Why a tier, or (tier None) the comparison as a whole, is not answered."""

    code: str
    message: Text
    tier: int | None
    verdict: Verdict = Verdict.INCONCLUSIVE
    files: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"code": self.code, "message": self.message.json(), "tier": self.tier, "files": list(self.files)}


def troubles(plan: Plan, files: Sequence[Compared]) -> tuple[Trouble, ...]:
    """Return all that keeps the files from being compared, tier by tier; what makes a tier invalid stands first."""
    found = [t for f in files for t in _of_one(f)]
    for tier in sorted({*plan.workload.tiers, *(f.figures.tier for f in files if f.figures.tier is not None)}):
        found += _of_tier(tier, [[f for f in files if f.arm == arm and f.figures.tier == tier] for arm in ARMS])
    found += _same_file_twice(files)
    models = sorted({f.figures.model for f in files if f.figures.model is not None})
    if len(models) > 1:
        text = Text("The files are of several models: {m}.", "文件涉及多个模型：{m}。").fill(m=", ".join(models))
        found.append(Trouble("several_models", text, None, files=tuple(f.name for f in files)))
    return tuple(sorted(found, key=lambda t: t.verdict is not Verdict.INVALID))


def _of_one(file: Compared) -> Iterator[Trouble]:
    """Yield what is wrong with one file. Failures in the baseline are the rig's; in the candidate nobody can say whose they are."""
    figures = file.figures
    for problem in file.problems:
        rig = file.arm == "baseline" and problem.code in ("failed_requests", "empty_streams")
        yield Trouble(problem.code, _in(file, problem.message), figures.tier, Verdict.INVALID if rig else Verdict.INCONCLUSIVE, (file.name,))
    for text in figures.missing:
        said = Text(f"{text.en} {_STATE_IT.en}", f"{text.zh}{_STATE_IT.zh}") if text is NO_TIER else text
        yield Trouble("missing_figure", _in(file, said), figures.tier, files=(file.name,))
    if figures.failed and not any(p.code in ("failed_requests", "empty_streams") for p in file.problems):
        text = Text("{n} requests failed.", "{n} 个请求失败。").fill(n=figures.failed)
        yield Trouble("failed_requests", _in(file, text), figures.tier, files=(file.name,))
    if figures.ok == 0 or figures.ttft_p50_ns == 0 or figures.output_per_s == 0:
        yield Trouble("zero_samples", _in(file, Text("nothing was measured.", "没有测量结果。")), figures.tier, files=(file.name,))


def _of_tier(tier: int, groups: Sequence[Sequence[Compared]]) -> Iterator[Trouble]:
    names = tuple(f.name for group in groups for f in group)
    for arm, group in zip(ARMS, groups, strict=True):
        if not group:
            text = Text("c{t}: the {arm} has no file.", "c{t}：{arm}缺少文件。").fill(t=tier, arm=_ARM[arm])
            yield Trouble("missing_tier", text, tier, files=names)
        if len(group) > 1:
            text = Text(
                "c{t}: the {arm} has {n} files; none of them is chosen. Give one file a tier.",
                "c{t}：{arm}有 {n} 个文件，不作挑选。每档位请只给一个文件。",
            )
            yield Trouble("duplicate_tier", text.fill(t=tier, arm=_ARM[arm], n=len(group)), tier, files=tuple(f.name for f in group))
    if any(len(group) != 1 for group in groups):
        return
    base, new = groups[0][0], groups[1][0]
    if base.tool != new.tool:
        text = Text("c{t}: {a} and {b} define their figures differently.", "c{t}：{a} 与 {b} 对各项数值的定义不同。")
        yield Trouble("mixed_tools", text.fill(t=tier, a=base.tool, b=new.tool), tier, files=names)
        return
    yield from _unequal(tier, base, new)
    yield from _unexplained(tier, base, new)


def _unequal(tier: int, base: Compared, new: Compared) -> Iterator[Trouble]:
    """Yield differences of work and of definition between the two files of one tier."""
    a, b = base.figures, new.figures
    names = (base.name, new.name)
    rows = [("model", a.model, b.model), ("requests", a.asked, b.asked), *((n, x, y) for (n, x), (_, y) in zip(a.work, b.work, strict=True))]
    differ = [(_WORK[name], f"{'?' if x is None else x} / {'?' if y is None else y}") for name, x, y in rows if x != y]
    if differ:
        told = Text("; ".join(f"{name.en} {pair}" for name, pair in differ), "；".join(f"{name.zh} {pair}" for name, pair in differ))
        text = Text("c{t}: the work is not equal (baseline / candidate): {d}.", "c{t}：工作量不相等（基线 / 产品）：{d}。")
        yield Trouble("unequal_work", text.fill(t=tier, d=told), tier, Verdict.INVALID, names)
    other = [(_CLIENT[name], f"{x or '?'} / {y or '?'}") for (name, x), (_, y) in zip(a.client, b.client, strict=True) if x != y]
    if other:
        told = Text("; ".join(f"{name.en} {pair}" for name, pair in other), "；".join(f"{name.zh} {pair}" for name, pair in other))
        text = Text(
            "c{t}: the client was set up differently (baseline / candidate), so TTFT and tokens do not mean the same: {d}.",
            "c{t}：两侧客户端的设置不同（基线 / 产品），TTFT 与词元的含义不一致：{d}。",
        )
        yield Trouble("unequal_client", text.fill(t=tier, d=told), tier, files=names)
    if (a.ttft_from, a.rate_from) != (b.ttft_from, b.rate_from):
        text = Text(
            "c{t}: one file gives TTFT p50 or the rate from its rows and totals, the other only the tool's own statistics.",
            "c{t}：一个文件可由明细与总数计算 TTFT p50 或吞吐，另一个只有工具自身的统计值。",
        )
        yield Trouble("unequal_definition", text.fill(t=tier), tier, files=names)


def _unexplained(tier: int, base: Compared, new: Compared) -> Iterator[Trouble]:
    """Yield a drop that its own gain contradicts: with C in flight a request takes C / throughput, and TTFT is a part of that.

    Where no file tells the decode time, all of a request but its TTFT is decode. A TTFT in another unit turns the rest of the request into decode
    time that the other arm does not have. It is no trouble of one tier's limits: one that is missed stays missed.
    """
    before, after = (_behind_first_token(f.figures, longest=f is base) for f in (base, new))
    if before is None or after is None or (base.figures.decode_told and new.figures.decode_told):
        return
    if after > SLOWER * before + WITHIN * (base.figures.request_ms or 0):
        text = Text(
            "c{t}: behind the first token a request took {a} ms in the baseline and {b} ms with the product: drop and gain contradict each other, "
            "a time is wrong or in another unit.",
            "c{t}：首个词元之后，单个请求在基线中用时 {a} ms，在产品中用时 {b} ms：降幅与提升相互矛盾，有时间值错误或单位不同。",
        ).fill(t=tier, a=format(before, ".3f"), b=format(after, ".3f"))
        yield Trouble("drop_gain_conflict", text, None, files=(base.name, new.name))


def _behind_first_token(figures: RunFigures, *, longest: bool) -> Decimal | None:
    """Return the time (ms) of a request that is not TTFT, with the least or the greatest of its p50 and mean: the reading that leaves least doubt."""
    p50 = None if figures.ttft_p50_ns is None else Decimal(figures.ttft_p50_ns.numerator) / figures.ttft_p50_ns.denominator / 10**6
    first = [v for v in (p50, figures.ttft_mean_ms) if v is not None]
    if figures.request_ms is None or not first:
        return None
    return max(figures.request_ms - (min(first) if longest else max(first)), Decimal(0))


def _same_file_twice(files: Sequence[Compared]) -> Iterator[Trouble]:
    """Yield, for each tier that it stands at, a file that is there twice by its content, whatever its names: an arm compared with itself.

    Within one arm it is one measurement said to be two. Neither is a comparison, so no limit is held against it.
    """
    for base, new in combinations(files, 2):
        if base.sha256 != new.sha256:
            continue
        if base.arm != new.arm:
            text = Text(
                "Both arms are the same file: {a} and {b} hold the same bytes. Give each arm the result of its own run.",
                "两个对照组是同一个文件：{a} 与 {b} 内容完全相同。请为每个对照组提供其自身的测量结果。",
            )
        else:
            text = Text(
                "The {arm} holds one file twice: {a} and {b} hold the same bytes. Give each tier the result of its own run.",
                "{arm}重复列出同一个文件：{a} 与 {b} 内容完全相同。请为每个档位提供其自身的测量结果。",
            )
        told = text.fill(a=base.name, b=new.name, arm=_ARM[base.arm])
        for tier in dict.fromkeys((base.figures.tier, new.figures.tier)):
            yield Trouble("same_file", told, tier, Verdict.INVALID, (base.name, new.name))


def _in(file: Compared, text: Text) -> Text:
    return Text(f"{file.name}: {text.en}", f"{file.name}：{text.zh}")
