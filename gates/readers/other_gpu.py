"""Other tools for accelerators: `rocm-smi -a --json` (deprecated) and its partitions, `npu-smi info` (text), and `rvs` (stress, text or JSON).

Observations, labelled `gpu` (index): gpu.model, gpu.serial, gpu.address, gpu.health (text), gpu.firmware (text; label
`block`), gpu.temperature (K), gpu.power (W), gpu.usage (%),
gpu.memory, gpu.memory_used (B); rvs.flops (GFLOPS; labels `gpu`, `action`, `n`: one interval each), rvs.met, rvs.pass (text).
rocm-smi puts the unit into the key and every value into a text; npu-smi's MB are MiB, and `-` is no power at all.
"""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import pairwise
from typing import Any

from gates.model import Reading
from gates.readers.common import Collector, available, decode, exact, load_json
from gates.units import convert

UNANSWERED = "unanswered"  # the code of a problem with the answer of one GPU: its intervals still tell what they tell
_CARD = re.compile(r"card:?([0-9]{1,4})")
_SENSOR = re.compile(r"Temperature \(Sensor ([a-z0-9 ]+)\) \((\w+)\)", re.IGNORECASE)
_UNIT_KEYS = {
    "Average Graphics Package Power (W)": ("gpu.power", "W"),
    "Current Socket Graphics Package Power (W)": ("gpu.power", "W"),
    "GPU use (%)": ("gpu.usage", "%"),
    "VRAM Total Memory (B)": ("gpu.memory", "B"),
    "VRAM Total Used Memory (B)": ("gpu.memory_used", "B"),
}
_TEXT_KEYS = {
    "Card Series": "gpu.model",
    "Card series": "gpu.model",
    "Device Name": "gpu.model",
    "Serial Number": "gpu.serial",
    "PCI Bus": "gpu.address",
}
_BLOCK = re.compile(r"([A-Za-z0-9 _]{1,30}) firmware version")
_PAIR = re.compile(r"([0-9]{1,9})\s*/\s*([0-9]{1,9})")
_NPU_HEAD = ("Health", "Power(W)", "Temp(C)")
_NPU_HEAD_2 = ("Bus-Id", "HBM-Usage(MB)")
_RVS = re.compile(r"^\[(?P<level>[A-Z]+)\s*\]\s*\[\s*(?P<at>[0-9.]{1,30})\s*\]\s*\[(?P<action>[^\]]+)\]\s*(?P<rest>.*)$")
_RVS_GPU = re.compile(r"GPU\s*:{0,2}\s*\(?([0-9]{1,10})\)?\]?")
_RVS_FLOPS = re.compile(r"\bGFLOPS:?\s+([0-9]{1,12}(?:\.[0-9]{1,6})?)")
_RVS_MET = re.compile(r"\bmet:\s*(TRUE|FALSE)\b")


def read_rocm_smi(data: bytes) -> Reading:
    """Read each card of one host. A warning before the JSON, `N/A`, and a key whose unit is not known are problems."""
    found = Collector()
    for index, card in _cards(load_json(data, found), found):
        if not isinstance(card, dict):
            found.absent(f"card{index}", card)
            continue
        for key, raw in card.items():
            _rocm_field(key, raw, index, found)
    return found.reading()


def read_rocm_smi_partition(data: bytes) -> Reading:
    """Read `rocm-smi --showcomputepartition --showmemorypartition --json`: gpu.compute_partition and gpu.memory_partition of each card."""
    found = Collector()
    for index, card in _cards(load_json(data, found), found):
        for key, quantity in (("Compute Partition", "gpu.compute_partition"), ("Memory Partition", "gpu.memory_partition")):
            found.text(card, key, quantity, gpu=index)
    return found.reading()


def _cards(document: Any, found: Collector) -> list[tuple[str, Any]]:
    """Return index and entry of each card; a document without any is a problem."""
    cards = [(m[1], value) for key, value in document.items() if (m := _CARD.fullmatch(key))] if isinstance(document, dict) else []
    if document is not None and not cards:
        found.trouble("empty_inventory", "rocm-smi names no card.", "rocm-smi 未列出任何显卡。")
    return cards


def _rocm_field(key: str, raw: Any, index: str, found: Collector) -> None:
    sensor = _SENSOR.fullmatch(key)
    if sensor:
        value = exact(raw)
        if sensor[2] != "C":
            found.trouble("unknown_unit", "The key {key} names another unit than C.", "键 {key} 的单位不是 C。", key=key)
        elif value is None:
            found.absent(key, raw, gpu=index)
        else:
            found.see("gpu.temperature", convert(value, "degC", "K"), "K", gpu=index, sensor=sensor[1].lower())
    elif key in _UNIT_KEYS:
        quantity, unit = _UNIT_KEYS[key]
        value = exact(raw)
        if value is None:
            found.absent(key, raw, gpu=index)
        else:
            found.see(quantity, value, unit, gpu=index)
    elif (block := _BLOCK.fullmatch(key)) and isinstance(raw, str) and available(raw):
        found.see("gpu.firmware", raw.strip(), "text", gpu=index, block=block[1].strip())
    elif key in _TEXT_KEYS and isinstance(raw, str) and available(raw):
        found.see(_TEXT_KEYS[key], raw.strip(), "text", gpu=index)


def read_npu_smi(data: bytes) -> Reading:
    """Read the chips of one host from the table of `npu-smi info`; a table with other columns is not guessed at."""
    found = Collector()
    text = decode(data, found)
    if text is None:
        return found.reading()
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines() if line.strip().startswith("|")]
    heads = [row for row in cells if len(row) == 3 and row[0].startswith(("NPU", "Chip"))]
    known = len(heads) >= 2 and all(w in " ".join(heads[0]) for w in _NPU_HEAD) and all(w in " ".join(heads[1]) for w in _NPU_HEAD_2)
    if not known:
        found.trouble("unknown_shape", "The table of npu-smi has other columns than those that are known.", "npu-smi 表格的列与已知格式不同。")
        return found.reading()
    body = cells[cells.index(heads[1]) + 1 :]
    chips = [row for row in body if len(row) == 3 and re.match(r"[0-9]", row[0])]
    if len(chips) % 2 or not chips:
        found.trouble("missing_field", "A chip has not both of its lines.", "某芯片缺少一行。")
    for first, second in zip(chips[::2], chips[1::2], strict=False):
        _chip(first, second, found)
    return found.reading()


def _chip(first: list[str], second: list[str], found: Collector) -> None:
    named, ids = first[0].split(), second[0].split()
    labels = {"gpu": named[0], "chip": ids[0]}
    found.see("gpu.model", " ".join(named[1:]) or "unknown", "text", **labels)
    if available(first[1]):
        found.see("gpu.health", first[1], "text", **labels)
    else:
        found.absent("Health", first[1], **labels)
    figures = first[2].split()
    power, heat = (exact(figures[0]), exact(figures[1])) if len(figures) >= 2 else (None, None)
    if power is not None:  # `-` on the second chip of a card, which has no meter of its own
        found.see("gpu.power", power, "W", **labels)
    if heat is None:
        found.absent("Temp(C)", first[2], **labels)
    else:
        found.see("gpu.temperature", convert(heat, "degC", "K"), "K", sensor="chip", **labels)
    if available(second[1]):
        found.see("gpu.address", second[1].lower(), "text", **labels)
    pairs = _PAIR.findall(second[2])
    if not pairs:
        found.absent("HBM-Usage(MB)", second[2], **labels)
        return
    for raw, quantity in zip(pairs[-1], ("gpu.memory_used", "gpu.memory"), strict=True):
        found.see(quantity, convert(Decimal(raw), "MiB", "B"), "B", **labels)


def read_rvs(data: bytes) -> Reading:
    """Read the intervals and the tool's own answers of a stress run. The answer rests on the peak: a judge uses the intervals."""
    found = Collector()
    if data.lstrip()[:1] in (b"{",):
        _rvs_json(load_json(data, found), found, 0)
        return found.reading()
    text = decode(data, found)
    if text is None:
        return found.reading()
    counts: dict[tuple[str, str], int] = {}
    times: dict[tuple[str, str], list[Decimal]] = {}
    for line in text.splitlines():
        match = _RVS.match(line)
        if match is None:
            continue
        gpu = _RVS_GPU.search(match["rest"])
        labels = {"action": match["action"].strip(), "gpu": gpu[1] if gpu else "?"}
        flops, met = _RVS_FLOPS.search(match["rest"]), _RVS_MET.search(match["rest"])
        if match["level"] in ("ERROR", "FATAL"):
            found.trouble("command_failed", "rvs reports an error: {line}", "rvs 报告错误：{line}", line=line)
        elif met:
            found.see("rvs.met", met[1], "text", **labels)
        elif flops and "Target" not in match["rest"]:
            key = (labels["action"], labels["gpu"])
            counts[key] = counts.get(key, 0) + 1
            times.setdefault(key, []).append(exact(match["at"]) or Decimal(0))
            found.see("rvs.flops", Decimal(flops[1]), "GFLOPS", **labels, n=str(counts[key]))
    for key, seen in times.items():
        _without_gap(*key, seen, found)
        if not any(o.quantity == "rvs.met" and (o.labels["action"], o.labels["gpu"]) == key for o in found.observations):
            text_en = "{action} of GPU {gpu}: rvs does not say whether it met its target; the text may have been cut."
            found.trouble(UNANSWERED, text_en, "GPU {gpu} 的 {action}：rvs 未说明是否达标，文本可能被截断。", action=key[0], gpu=key[1])
    if not text.endswith("\n"):
        found.trouble("truncated", "The text ends within a line.", "文本末行不完整。")
    if not found.observations:
        found.trouble("unknown_shape", "No result line of rvs stands in this text.", "文本中没有 rvs 的结果行。")
    return found.reading()


def _without_gap(action: str, gpu: str, times: list[Decimal], found: Collector) -> None:
    """Add the problem of a missing interval: rvs writes one line each log interval, so a step of two intervals is a line that was lost."""
    steps = sorted(later - earlier for earlier, later in pairwise(times))
    if len(steps) > 1 and 2 * steps[-1] > 3 * steps[(len(steps) - 1) // 2]:
        found.trouble(
            "rows_incomplete",
            "{action} of GPU {gpu}: an interval is missing; one step is {most} s, the others {usual} s.",
            "GPU {gpu} 的 {action}：缺少一个时段；某一间隔为 {most} s，其余为 {usual} s。",
            action=action,
            gpu=gpu,
            most=steps[-1],
            usual=steps[(len(steps) - 1) // 2],
        )


def _rvs_json(value: Any, found: Collector, depth: int) -> None:
    """Take `pass` and GFLOPS of every action, wherever the version puts its list of actions."""
    if depth > 20:
        return
    if isinstance(value, list):
        for inner in value[:100_000]:
            _rvs_json(inner, found, depth + 1)
    elif isinstance(value, dict):
        labels = {"action": str(value.get("action") or value.get("action_name") or "?"), "gpu": str(value.get("gpu_id") or value.get("gpu") or "?")}
        if "pass" in value:
            answer = str(value["pass"]).lower()
            if answer in ("true", "false"):
                found.see("rvs.pass", answer, "text", **labels)
            else:
                found.absent("pass", str(value["pass"]))
        for key, raw in value.items():
            if key.lower() in ("gflops", "flops") and (number := exact(raw)) is not None:
                earlier = sum(1 for o in found.observations if o.quantity == "rvs.flops" and labels.items() <= o.labels.items())
                found.see("rvs.flops", number, "GFLOPS", **labels, n=str(earlier + 1))
            else:
                _rvs_json(raw, found, depth + 1)
