"""What would change an answer that is none: which act, which file, how many more requests. Clauses without a last stop, in both languages."""

from __future__ import annotations

from collections.abc import Sequence

from gates.text import Text

_SHOWN = 2


def named(files: Sequence[str]) -> str:
    """Return the first files by their paths in the bundle, and how many more there are."""
    files = tuple(dict.fromkeys(files))
    more = len(files) - _SHOWN
    return ", ".join(files[:_SHOWN]) + (f" (+{more})" if more > 0 else "")


def whole(files: Sequence[str]) -> Text:
    """Return the remedy of what is missing or cannot be read: the same files, whole."""
    if not files:
        return Text("a new attempt that brings the missing evidence would change it", "新的尝试补齐所缺证据方可改变")
    return Text("a new attempt that brings these whole and readable would change it: {f}", "新的尝试须完整可读地带回以下证据方可改变：{f}").fill(
        f=named(files)
    )


def told(files: Sequence[str]) -> Text:
    """Return the remedy of what whole files do not tell."""
    if not files:
        return Text("a new attempt that shows it would change it", "新的尝试取得该项证据方可改变")
    return Text("a new attempt in which this is told would change it: {f}", "新的尝试在以下证据中给出该项方可改变：{f}").fill(f=named(files))


def mended(files: Sequence[str]) -> Text:
    """Return the remedy of a breach at the rig."""
    where = Text(" (evidence: {f})", "（证据：{f}）").fill(f=named(files)) if files else Text("", "")
    return Text("once this is mended at the rig{w}, a new attempt can be judged", "在测试环境中排除此问题{w}后，新的尝试方可判定").fill(w=where)
